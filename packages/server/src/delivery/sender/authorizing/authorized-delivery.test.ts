// Deliveries with OAuth 2 and mutual TLS through the whole stage, with the sender in the main thread and in a thread of its own.

import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import test from 'node:test'
import type { TLSSocket } from 'node:tls'
import type { Destination } from '../../../store/store.ts'
import { httpReceiver, listening } from '../../fixtures/attempts.ts'
import { startAuthorizationServer, tokenCheck } from '../../fixtures/authorization-server.ts'
import { createCertificate } from '../../fixtures/certificates.ts'
import { type Rig, startRig } from '../../fixtures/rig.ts'

const THREAD = new URL('../sender-thread.ts', import.meta.url)

/** Advances time until nothing is pending. Token requests are paced in real time, so real time has to pass as well. */
async function untilDelivered(rig: Rig, destination: Destination, count: number): Promise<void> {
  while ((await rig.ledger(destination)).delivered < count) {
    rig.clock.advance(10_000)
    await rig.untilStoreAnswered()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

for (const [where, options] of [
  ['in the main thread', {}],
  ['in a sender thread', { thread: THREAD }],
] as const) {
  test(`a token endpoint that is down delays deliveries, with its own reason, and they succeed when it is back (${where})`, async (t) => {
    const rig = await startRig(t, options)
    const server = await startAuthorizationServer(t)
    const seen: (string | null)[] = []
    const url = await httpReceiver(
      t,
      tokenCheck(server, (token) => seen.push(token)),
    )
    server.intercept = (_, response) => response.writeHead(500).end()
    const destination = await rig.destination('one', { urls: [url], auth: server.auth() })
    await rig.until(() => rig.claims.length === 1)
    await rig.accept([destination], 10)
    await rig.until(() => rig.attempts.length > 0)
    await rig.untilIdle()
    const { outcome } = rig.attempts[0] as Rig['attempts'][number]
    assert.deepEqual([outcome.verdict, outcome.reason], ['temporary', 'auth_unavailable'])
    assert.equal(rig.delivery.health(destination.id)?.failure?.reason, 'auth_unavailable')
    assert.equal(seen.length, 0)
    server.intercept = null
    await untilDelivered(rig, destination, 10)
    assert.equal(server.issued.length, 1)
    await rig.untilIdle()
    assert.equal(rig.delivery.health(destination.id)?.failure, null)
    const { data } = await rig.store.history.deliveries({ destinationId: destination.id }, { limit: 10, cursor: null })
    const details = JSON.stringify(await Promise.all(data.map(({ id }) => rig.store.history.delivery(id))))
    assert.match(details, /The token endpoint 127\.0\.0\.1:\d+ answered 500\./)
    for (const secret of [server.issued[0] as string, 'more', 'special']) assert.ok(!details.includes(secret))
    // The server forgets the token: the next attempt renews it and needs no retry.
    await server.revoke(server.issued[0] as string)
    const before = rig.attempts.length
    await rig.accept([destination], 1)
    await rig.untilLedger(destination, { delivered: 11 })
    assert.deepEqual([rig.attempts.length - before, server.issued.length], [1, 2])
    assert.equal(rig.attempts.at(-1)?.outcome.verdict, 'success')
  })

  test(`a new client secret takes effect with the change of the settings (${where})`, async (t) => {
    const rig = await startRig(t, options)
    const server = await startAuthorizationServer(t)
    const url = await httpReceiver(
      t,
      tokenCheck(server, () => undefined),
    )
    server.clientSecret = 'rotated'
    const destination = await rig.destination('one', { urls: [url], auth: server.auth() })
    await rig.until(() => rig.claims.length === 1)
    await rig.accept([destination], 2)
    await rig.until(() => rig.attempts.length > 0)
    assert.equal(rig.attempts[0]?.outcome.reason, 'auth_refused')
    await rig.store.resources.updateDestination(destination.id, { auth: server.auth({ clientSecret: 'rotated' }) })
    await untilDelivered(rig, destination, 2)
    assert.deepEqual((await rig.ledger(destination)).failed, 0)
  })

  test(`two destinations with the same URL are told apart by their client certificates (${where})`, async (t) => {
    const rig = await startRig(t, options)
    const authority = createCertificate({ commonName: 'authority', isAuthority: true })
    const { cert, key } = createCertificate({ commonName: 'receiver', hosts: ['127.0.0.1'], issuer: authority })
    const seen: string[] = []
    const receiver = createServer({ cert, key, ca: authority.cert, requestCert: true }, (request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        const { subject } = (request.socket as TLSSocket).getPeerCertificate()
        seen.push(`${String(subject.CN)} ${(JSON.parse(body) as { messageId: string }).messageId}`)
        response.end()
      })
    })
    const url = `https://127.0.0.1:${await listening(t, receiver)}/`
    const destinations: Destination[] = []
    for (const name of ['one', 'two']) {
      const own = createCertificate({ commonName: name, issuer: authority })
      const tls = { certificate: own.cert, privateKey: own.key, ca: authority.cert }
      destinations.push(await rig.destination(name, { urls: [url], tls }))
    }
    await rig.until(() => rig.claims.length === 2)
    await rig.accept(destinations, 3)
    for (const destination of destinations) await rig.untilLedger(destination, { delivered: 3 })
    assert.deepEqual(seen.sort(), ['one m-1', 'one m-2', 'one m-3', 'two m-1', 'two m-2', 'two m-3'])
  })
}

test('the credentials of auth are in no request that is shown', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], auth: { type: 'bearer', token: 'SECRET' } })
  const tested = await rig.delivery.test(destination.id, { type: 'track', messageId: 'm' })
  assert.equal(receiver.received[0]?.headers.authorization, 'Bearer SECRET')
  assert.equal(tested?.request?.headers['Authorization'], '(hidden)')
  assert.doesNotMatch(JSON.stringify(tested), /SECRET/)
})
