// Every way in which code in a host can connect, with the libraries that integrations use. Nothing is dialled but 127.0.0.1.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { createCertificate } from '../fixtures/certificates.ts'
import { countConnections, runInHost } from '../fixtures/run-in-host.ts'

const REFUSED = 'ERR_ADDRESS_REFUSED'
const ALLOWED = { allowPrivate: false, allow: ['127.0.0.1/32'] }

/** Code that connects to a host and a port, and returns the code of the error. */
const WAYS: Record<string, (host: string, port: number) => string> = {
  http: (host, port) => errorOf(`(await load('node:http')).get('http://${host}:${port}/')`),
  'http without an agent': (host, port) => errorOf(`(await load('node:http')).get({ host: '${host}', port: ${port}, agent: false })`),
  https: (host, port) => errorOf(`(await load('node:https')).get('https://${host}:${port}/')`),
  http2: (host, port) => errorOf(`(await load('node:http2')).connect('http://${host}:${port}')`),
  'net, with options': (host, port) => errorOf(`(await load('node:net')).connect({ host: '${host}', port: ${port} })`),
  'net, with arguments': (host, port) => errorOf(`(await load('node:net')).connect(${port}, '${host}')`),
  'a socket': (host, port) => errorOf(`new (await load('node:net')).Socket().connect(${port}, '${host}')`),
  tls: (host, port) => errorOf(`(await load('node:tls')).connect({ host: '${host}', port: ${port} })`),
  fetch: (host, port) => `return await fetch('http://${host}:${port}/').then(({ status }) => status, ({ cause }) => cause.code)`,
  'node-fetch': (host, port) =>
    `return await (await load('node-fetch')).default('http://${host}:${port}/').then(({ status }) => status, ({ code }) => code)`,
  kafkajs: (host, port) => `
    const { Kafka, logLevel } = (await load('kafkajs')).default
    const kafka = new Kafka({ brokers: ['${host}:${port}'], retry: { retries: 0 }, logLevel: logLevel.NOTHING, connectionTimeout: 5000 })
    return await kafka.producer().connect().then(() => 'connected', (error) => {
      for (let each = error; each; each = each.cause) if (/connections may only go/.test(each.message)) return '${REFUSED}'
      return error.message
    })`,
  'ssh2-sftp-client': (host, port) => `
    const Client = (await load('ssh2-sftp-client')).default
    const client = new Client()
    return await client.connect({ host: '${host}', port: ${port}, username: 'a', password: 'b', retries: 0, readyTimeout: 5000 }).then(
      () => 'connected', (error) => /connections may only go/.test(error.message) ? '${REFUSED}' : error.message)`,
}

function errorOf(connection: string): string {
  return `const made = ${connection}; return await new Promise((end) => { made.on('error', ({ code }) => end(code)).on('connect', () => end('connected')).on('response', () => end('connected')) })`
}

for (const [way, code] of Object.entries(WAYS)) {
  test(`${way} connects only to addresses that are allowed`, async (t) => {
    const target = await countConnections(t)
    const guarded = runInHost(t)
    for (const host of ['127.0.0.1', 'localhost']) assert.equal(await guarded(code(host, target.port)), REFUSED, host)
    assert.equal(target.count, 0)
    const allowed = runInHost(t, { guard: ALLOWED })
    // The receiver closes the connection, which each library reports in its own way.
    assert.notEqual(await allowed(code('127.0.0.1', target.port)), REFUSED)
    assert.ok(target.count > 0)
  })
}

test('an address in any notation is refused, and so are Unix sockets, datagrams, listening and other DNS servers', async (t) => {
  const target = await countConnections(t)
  const run = runInHost(t)
  const connect = (host: string): string => errorOf(`(await load('node:net')).connect({ host: '${host}', port: ${target.port} })`)
  for (const host of [
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '0.0.0.0',
    '::',
    '127.1',
    '0x7f000001',
    '2130706433',
    '169.254.169.254',
    '10.0.0.1',
    '',
  ])
    assert.equal(await run(connect(host)), REFUSED, host)
  for (const code of [
    errorOf(`(await load('node:net')).connect('/tmp/a.sock')`),
    errorOf(`(await load('node:net')).connect({ path: '/tmp/a.sock' })`),
    errorOf(`(await load('node:http')).get({ socketPath: '/tmp/a.sock' })`),
  ])
    assert.equal(await run(code), REFUSED, code)
  for (const code of [
    `(await load('node:dgram')).createSocket('udp4').send('a', ${target.port}, '127.0.0.1')`,
    `(await load('node:dgram')).createSocket('udp4').bind()`,
    `(await load('node:net')).createServer().listen(0)`,
    `(await load('node:net')).createServer()._listen2('127.0.0.1', 0, 4, 1)`,
    `(await load('node:http')).createServer().listen(0)`,
    `(await load('node:dns')).setServers(['127.0.0.1'])`,
    `new (await load('node:dns')).promises.Resolver().setServers(['127.0.0.1'])`,
  ])
    assert.equal(await run(code), `error ${REFUSED}`, code)
  // A library may wrap connect().
  await run(`
    const { prototype } = (await load('node:net')).Socket
    const { connect } = prototype
    prototype.connect = function (...args) { return connect.apply(this, args) }`)
  assert.equal(await run(connect('127.0.0.1')), REFUSED)
  assert.equal(target.count, 0)
})

test('what is checked is what is dialled: a lookup of its own is not used, and options are read once', async (t) => {
  const target = await countConnections(t)
  const run = runInHost(t, { guard: ALLOWED })
  const lookup = `lookup: (_, options, done) => done(null, options.all ? [{ address: '::1', family: 6 }] : '::1', 6)`
  assert.equal(
    await run(errorOf(`(await load('node:net')).connect({ host: 'localhost', family: 4, port: ${target.port}, ${lookup} })`)),
    'connected',
  )
  const changing = `get host() { const { read } = this; this.read = true; return read ? '::1' : '127.0.0.1' }`
  assert.equal(await run(errorOf(`new (await load('node:net')).Socket().connect({ port: ${target.port}, ${changing} })`)), 'connected')
  const guarded = runInHost(t)
  // It reports an error without a code.
  await guarded(`await new Promise((end) => { new WebSocket('ws://127.0.0.1:${target.port}').onerror = end })`)
  assert.equal(target.count, 2)
})

test('each hop of a redirect is checked', async (t) => {
  const secret = await countConnections(t)
  const redirect = (socket: Socket): void =>
    void socket.once('data', () => socket.end(`HTTP/1.1 302 Found\r\nlocation: http://[::1]:${secret.port}/\r\nconnection: close\r\n\r\n`))
  const target = await countConnections(t, redirect)
  const run = runInHost(t, { guard: ALLOWED })
  assert.equal(await run(WAYS['fetch']?.('127.0.0.1', target.port) ?? ''), REFUSED)
  assert.equal(await run(WAYS['node-fetch']?.('127.0.0.1', target.port) ?? ''), REFUSED)
  assert.deepEqual([target.count > 0, secret.count], [true, 0])
})

async function startGateway(t: TestContext) {
  const authority = createCertificate({ commonName: 'Gateway', isAuthority: true })
  const { cert, key } = createCertificate({ commonName: 'tool.test', hosts: ['tool.test'], issuer: authority })
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-host-'))
  const ca = join(folder, 'authority.pem')
  writeFileSync(ca, authority.cert)
  const seen: string[] = []
  const server = createServer({ cert, key }, ({ headers }, response) => {
    seen.push(headers.host ?? '')
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.after(() => {
    rmSync(folder, { recursive: true })
    server.closeAllConnections()
    server.close()
  })
  return { seen, ca, gateway: { host: '127.0.0.1', port: (server.address() as AddressInfo).port } }
}

test('with a gateway, all connections go there, its authority is trusted, and private addresses are still refused', async (t) => {
  const { seen, ca, gateway } = await startGateway(t)
  const run = runInHost(t, { gateway, ca })
  const viaHttps = `return await new Promise((end) => void load('node:https').then(({ get }) => get('https://tool.test/a', (response) => end(response.statusCode)).on('error', ({ code }) => end(code))))`
  assert.equal(await run(viaHttps), 200)
  assert.equal(await run(`return (await fetch('https://tool.test:8443/')).status`), 200)
  assert.deepEqual(seen, ['tool.test', 'tool.test:8443'])
  // The certificate is for another name.
  assert.equal(await run(`return await fetch('https://other.test/').catch(({ cause }) => cause.code)`), 'ERR_TLS_CERT_ALTNAME_INVALID')
  for (const host of ['127.0.0.1', '10.0.0.1', '[::1]', '169.254.169.254'])
    assert.equal(await run(`return await fetch('https://${host}/').catch(({ cause }) => cause.code)`), REFUSED, host)
  assert.equal(seen.length, 2)
  const untrusting = runInHost(t, { gateway })
  assert.match((await untrusting(viaHttps)) as string, /CERT|VERIFY/)
})
