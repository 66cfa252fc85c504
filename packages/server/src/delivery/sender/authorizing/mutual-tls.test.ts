// Client certificates and private authorities, against real TLS receivers.

import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import test, { type TestContext } from 'node:test'
import type { TLSSocket } from 'node:tls'
import type { TlsSettings } from '../../../store/store.ts'
import { anywhere, assertFailed, clientFor, listening, post } from '../../fixtures/attempts.ts'
import { startAuthorizationServer } from '../../fixtures/authorization-server.ts'
import { type Certificate, createCertificate } from '../../fixtures/certificates.ts'
import type { HttpClient } from '../http/attempt.ts'
import { createDialCheck } from '../http/dial-check.ts'
import { senderFor } from './authorized-client.ts'

const AUTHORITY = createCertificate({ commonName: 'private authority', isAuthority: true })
const OTHER_AUTHORITY = createCertificate({ commonName: 'another authority', isAuthority: true })
const SERVER = createCertificate({ commonName: 'receiver', hosts: ['127.0.0.1'], issuer: AUTHORITY })

function clientCertificate(commonName: string, issuer = AUTHORITY): Certificate {
  return createCertificate({ commonName, issuer })
}

function tlsOf(certificate: Certificate | null, ca: string | null = AUTHORITY.cert): TlsSettings {
  return { certificate: certificate?.cert ?? null, privateKey: certificate?.key ?? null, ca }
}

interface Receiver {
  url: string
  /** The common name of the client certificate of each request. */
  names: (string | null)[]
  /** The number of connections on which a handshake was completed, and of those that resumed a session. */
  connections: number
  resumed: number
}

async function mutualReceiver(
  t: TestContext,
  options: { requestCert?: boolean; maxVersion?: 'TLSv1.2' | 'TLSv1.3' } = {},
): Promise<Receiver> {
  const receiver: Receiver = { url: '', names: [], connections: 0, resumed: 0 }
  const { requestCert = true, ...version } = options
  const server = createServer(
    { cert: SERVER.cert, key: SERVER.key, ca: AUTHORITY.cert, requestCert, rejectUnauthorized: requestCert, ...version },
    (request, response) => {
      const { subject } = (request.socket as TLSSocket).getPeerCertificate()
      receiver.names.push((subject as { CN?: string } | undefined)?.CN ?? null)
      request.resume()
      response.end()
    },
  )
  server.on('secureConnection', (socket: TLSSocket) => {
    receiver.connections++
    if (socket.isSessionReused()) receiver.resumed++
  })
  receiver.url = `https://127.0.0.1:${await listening(t, server)}/hook`
  return receiver
}

function senderWith(http: HttpClient, tls: TlsSettings | null): HttpClient {
  const sender = senderFor({ auth: null, tls, timeoutMs: 3_000 }, http)
  return { send: (request, onOutcome) => sender.send(request, onOutcome), close: () => http.close(), inFlight: 0 }
}

test('a client certificate identifies the destination to the receiver, and a private authority is trusted', async (t) => {
  const receiver = await mutualReceiver(t)
  const outcome = await post(senderWith(clientFor(t), tlsOf(clientCertificate('service'))), receiver.url)
  assert.deepEqual([outcome.verdict, receiver.names], ['success', ['service']])
  assert.ok((outcome.timings.tlsMs ?? 0) > 0)
})

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`a missing client certificate is a temporary failure (${maxVersion})`, async (t) => {
    const receiver = await mutualReceiver(t, { maxVersion })
    const outcome = await post(senderWith(clientFor(t), tlsOf(null)), receiver.url)
    // Before TLS 1.3, there was no alert for this.
    assertFailed(outcome, 'temporary', maxVersion === 'TLSv1.3' ? 'tls_certificate_refused' : 'tls_failure')
    assert.deepEqual(receiver.names, [])
  })
}

test('a client certificate of another authority is not accepted', async (t) => {
  const receiver = await mutualReceiver(t)
  const outcome = await post(senderWith(clientFor(t), tlsOf(clientCertificate('stranger', OTHER_AUTHORITY))), receiver.url)
  assert.equal(outcome.verdict, 'temporary')
  assert.deepEqual(receiver.names, [])
})

test('the authority of a destination replaces the usual ones', async (t) => {
  const receiver = await mutualReceiver(t, { requestCert: false })
  const http = clientFor(t, { ca: AUTHORITY.cert })
  assert.equal((await post(senderWith(http, null), receiver.url)).verdict, 'success')
  assertFailed(await post(senderWith(http, tlsOf(null, OTHER_AUTHORITY.cert)), receiver.url), 'permanent', 'tls_self_signed')
  // Without an own authority, the usual ones count.
  const own = tlsOf(clientCertificate('service'), null)
  assert.equal((await post(senderWith(http, own), receiver.url)).verdict, 'success')
  assertFailed(await post(senderWith(clientFor(t), own), receiver.url), 'permanent', 'tls_self_signed')
})

test('destinations with the same origin share no connection and no TLS session', async (t) => {
  const receiver = await mutualReceiver(t)
  const http = clientFor(t)
  const [one, two] = [tlsOf(clientCertificate('one')), tlsOf(clientCertificate('two'))]
  const senders = [senderWith(http, one), senderWith(http, two), senderWith(http, one)]
  for (let round = 0; round < 3; round++) for (const sender of senders) assert.equal((await post(sender, receiver.url)).verdict, 'success')
  assert.deepEqual(receiver.names, Array.from({ length: 3 }, () => ['one', 'two', 'one']).flat())
  // Each destination reuses its own connection.
  assert.deepEqual([receiver.connections, receiver.resumed], [3, 0])
  // A destination without a certificate does not get one of the open connections.
  assert.notEqual((await post(senderWith(clientFor(t, { ca: AUTHORITY.cert }), null), receiver.url)).verdict, 'success')
  assert.notEqual((await post(senderWith(http, tlsOf(null)), receiver.url)).verdict, 'success')
})

test('a private authority is trusted for the token endpoint in addition to the usual ones', async (t) => {
  const server = await startAuthorizationServer(t, { certificate: SERVER })
  const receiver = await mutualReceiver(t)
  const other = createCertificate({ commonName: 'authorization', hosts: ['127.0.0.1'], issuer: OTHER_AUTHORITY })
  const publicServer = await startAuthorizationServer(t, { certificate: other })
  for (const { auth, ca } of [
    { auth: server.auth(), ca: undefined },
    { auth: publicServer.auth(), ca: OTHER_AUTHORITY.cert },
  ]) {
    const http = clientFor(t, { ca })
    const sender = senderFor({ auth, tls: tlsOf(clientCertificate('service')), timeoutMs: 3_000 }, http)
    const outcome = await post({ ...http, send: (request, onOutcome) => sender.send(request, onOutcome) }, receiver.url)
    assert.equal(outcome.verdict, 'success')
  }
  assert.deepEqual([server.issued.length, publicServer.issued.length, receiver.names], [1, 1, ['service', 'service']])
})

test('the check of a URL dials with the TLS settings of the destination', async (t) => {
  const receiver = await mutualReceiver(t)
  const dial = createDialCheck({ guard: anywhere })
  assert.equal((await dial(receiver.url, 3_000)).reason, 'tls_self_signed')
  assert.equal((await dial(receiver.url, 3_000, tlsOf(clientCertificate('service')))).reason, null)
})
