import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { createCertificate } from '../../fixtures/certificates.ts'
import { createAddressGuard } from './address-guard.ts'
import { createDialCheck } from './dial-check.ts'

const guard = createAddressGuard({ allowPrivate: true, allow: [] })
const strict = createAddressGuard({ allowPrivate: false, allow: [] })
const authority = createCertificate({ commonName: 'Test Authority', isAuthority: true })

/** Records what is sent to it, which must be only a handshake. */
async function listening(t: TestContext, tls?: TlsOptions): Promise<{ port: number; received: Buffer[]; closed: Promise<void> }> {
  const received: Buffer[] = []
  let close = (): void => {}
  const closed = new Promise<void>((resolve) => {
    close = resolve
  })
  const onSocket = (socket: Socket): void => {
    socket.on('data', (chunk: Buffer) => received.push(chunk))
    socket.on('error', () => {}).on('close', close)
  }
  const server: Server = tls === undefined ? createServer(onSocket) : createTlsServer(tls, onSocket)
  server.on('tlsClientError', () => close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return { port: (server.address() as AddressInfo).port, received, closed }
}

test('the check of a reachable URL returns its address and timings, and sends nothing', async (t) => {
  const { port, received, closed } = await listening(t)
  const report = await createDialCheck({ guard, lookup: async () => ['127.0.0.1'] })(`http://hooks.example:${port}/a?b=c`, 5_000)
  assert.deepEqual([report.reason, report.error, report.address, report.tlsMs], [null, null, '127.0.0.1', null])
  assert.ok((report.dnsMs ?? -1) >= 0 && (report.connectMs ?? -1) >= 0)
  await closed
  assert.equal(Buffer.concat(received).length, 0)
})

test('over TLS the certificate is checked against the name, and its expiry is returned', async (t) => {
  const { key, cert } = createCertificate({ commonName: 'x', hosts: ['hooks.example'], issuer: authority, notAfter: '20400101000000Z' })
  const { port, received, closed } = await listening(t, { key, cert })
  const dial = createDialCheck({ guard, ca: authority.cert, lookup: async () => ['127.0.0.1'] })
  const good = await dial(`https://hooks.example:${port}/`, 5_000)
  assert.deepEqual([good.reason, good.certificateExpiresAtMs], [null, Date.UTC(2040, 0, 1)])
  assert.ok((good.tlsMs ?? -1) >= 0)
  await closed
  assert.equal(Buffer.concat(received).length, 0)
  assert.equal((await dial(`https://other.example:${port}/`, 5_000)).reason, 'tls_wrong_host')
  const untrusting = createDialCheck({ guard, lookup: async () => ['127.0.0.1'] })
  assert.match((await untrusting(`https://hooks.example:${port}/`, 5_000)).reason ?? '', /^tls_(untrusted|self_signed)$/)
})

test('an address that the guard blocks is not dialled, directly or through a name', async (t) => {
  const { port } = await listening(t)
  let connections = 0
  const dial = createDialCheck({
    guard: strict,
    lookup: async () => {
      connections += 1
      return ['127.0.0.1', '169.254.169.254', '::1']
    },
  })
  for (const url of [`http://127.0.0.1:${port}/`, `http://[::1]:${port}/`, `http://inside.example:${port}/`]) {
    const report = await dial(url, 5_000)
    assert.deepEqual([report.reason, report.address, report.connectMs], ['address_refused', null, null], url)
  }
  assert.equal(connections, 1)
})

test('the check of an unreachable URL returns the reason and never rejects', async (t) => {
  const { port } = await listening(t)
  const dial = createDialCheck({
    guard,
    lookup: async (hostname) => {
      if (hostname === 'nowhere.example') throw Object.assign(new Error('no'), { code: 'ENOTFOUND' })
      return hostname === 'two.example' ? ['127.0.0.2', '127.0.0.1'] : []
    },
  })
  assert.equal((await dial('http://127.0.0.1:1/', 5_000)).reason, 'connection_refused')
  assert.equal((await dial('http://nowhere.example/', 5_000)).reason, 'dns_not_found')
  assert.equal((await dial('http://empty.example/', 5_000)).reason, 'dns_not_found')
  assert.equal((await dial('ftp://127.0.0.1/', 5_000)).reason, 'invalid_request')
  assert.equal((await dial('not a url', 5_000)).reason, 'invalid_request')
  const second = await dial(`http://two.example:${port}/`, 5_000)
  assert.deepEqual([second.reason, second.address], [null, '127.0.0.1'], 'the next address is tried')
})

test('the check of a receiver that accepts and then sends nothing ends at the deadline', async (t) => {
  const { port } = await listening(t)
  const report = await createDialCheck({ guard })(`https://127.0.0.1:${port}/`, 200)
  assert.deepEqual([report.reason, report.tlsMs], ['timeout', null])
})
