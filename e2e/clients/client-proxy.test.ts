// The client behind a proxy, as NODE_USE_ENV_PROXY=1 sets it: a real proxy that forwards and tunnels, in front of a real
// endpoint over HTTP and over TLS.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, request } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, createServer as createNetServer, type Server as NetServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { createCertificate } from '../../packages/server/src/delivery/fixtures/certificates.ts'

const run = promisify(execFile)
const authority = createCertificate({ commonName: 'An Authority', isAuthority: true })
const certificate = createCertificate({ commonName: 'endpoint', hosts: ['127.0.0.1'], issuer: authority })
const folder = mkdtempSync(join(tmpdir(), 'switchyard-proxy-'))
const authorityFile = join(folder, 'authority.pem')
writeFileSync(authorityFile, authority.cert)

let received = 0
const answer: RequestListener = (incoming, response) => {
  incoming.resume().on('end', () => {
    received++
    response.end('{"success":true}')
  })
}
const plain = createServer(answer)
const secure = createTlsServer({ key: certificate.key, cert: certificate.cert }, answer)

/** The requests to the proxy: CONNECT with host and port, or a whole URL. */
let asked: string[] = []
let credentials: (string | undefined)[] = []
const proxy = createServer((incoming, response) => {
  asked.push(`${incoming.method} ${incoming.url}`)
  credentials.push(incoming.headers['proxy-authorization'])
  const { method = '', headers } = incoming
  const onward = request(incoming.url ?? '', { method, headers }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.headers)
    answered.pipe(response)
  })
  incoming.pipe(onward)
})
proxy.on('connect', (incoming, socket) => {
  asked.push(`CONNECT ${incoming.url}`)
  credentials.push(incoming.headers['proxy-authorization'])
  const [host, port] = (incoming.url ?? '').split(':')
  const onward = connect(Number(port), host, () => {
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    onward.pipe(socket).pipe(onward)
  })
  for (const end of [onward, socket]) end.on('error', () => end.destroy())
})
const secureProxy = createTlsServer({ key: certificate.key, cert: certificate.cert }, (...request) => proxy.emit('request', ...request))
secureProxy.on('connect', (...request) => proxy.emit('connect', ...request))

async function port(server: NetServer): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
const hosts = { http: `http://127.0.0.1:${await port(plain)}`, https: `https://127.0.0.1:${await port(secure)}` }
const proxyUrl = `http://127.0.0.1:${await port(proxy)}`
const secureProxyUrl = `https://127.0.0.1:${await port(secureProxy)}`

after(() => {
  for (const server of [plain, secure, proxy, secureProxy]) {
    server.close()
    server.closeAllConnections()
  }
  rmSync(folder, { recursive: true })
})

/** In a separate process, which must end, because the runtime reads these variables when it starts. */
async function runClient(host: string, variables: Record<string, string>, settings: object, close: object, before = '') {
  const program = `
    ${before}
    const { Analytics } = await import('@switchyard/node')
    const analytics = new Analytics({ writeKey: 'wk', host: ${JSON.stringify(host)}, maxRetries: 0, ...${JSON.stringify(settings)} })
    analytics.on('error', (error) => console.log(error.message))
    analytics.track({ userId: 'u', event: 'e' })
    const { delivered, failed, pending } = await analytics.closeAndFlush(${JSON.stringify(close)})
    console.log(JSON.stringify({ delivered, failed, pending }))`
  const inherited = Object.entries(process.env).filter(([name]) => !/proxy/i.test(name))
  const env = { ...Object.fromEntries(inherited), NODE_EXTRA_CA_CERTS: authorityFile, ...variables }
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', program], {
    cwd: import.meta.dirname,
    env,
    timeout: 30_000,
  })
  return { lines: stdout.trim().split('\n'), stderr }
}

async function send(host: string, variables: Record<string, string>, before = '') {
  asked = []
  credentials = []
  received = 0
  const { lines, stderr } = await runClient(host, variables, {}, {}, before)
  assert.deepEqual(lines, ['{"delivered":1,"failed":0,"pending":0}'])
  assert.equal(received, 1)
  return { asked, stderr }
}

const proxies = { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl }

const requests = { http: `POST ${hosts.http}/v1/batch`, https: `CONNECT ${new URL(hosts.https).host}` }

for (const scheme of ['http', 'https'] as const) {
  const host = hosts[scheme]

  test(`with NODE_USE_ENV_PROXY=1 messages go through ${scheme.toUpperCase()}_PROXY`, async () => {
    const { asked } = await send(host, { NODE_USE_ENV_PROXY: '1', ...proxies })
    assert.deepEqual(asked, [requests[scheme]])
    assert.deepEqual(credentials, [undefined])
  })

  test(`credentials in the lower-case ${scheme}_proxy are sent to the proxy`, async () => {
    const variable = { [`${scheme}_proxy`]: proxyUrl.replace('//', '//user:p%40ss@') }
    const { asked } = await send(host, { NODE_USE_ENV_PROXY: '1', ...variable })
    assert.deepEqual(asked, [requests[scheme]])
    assert.deepEqual(credentials, [`Basic ${Buffer.from('user:p@ss').toString('base64')}`])
  })

  test(`a proxy that is reached over TLS serves ${scheme}`, async () => {
    const { asked } = await send(host, { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: secureProxyUrl, HTTPS_PROXY: secureProxyUrl })
    assert.deepEqual(asked, [requests[scheme]])
  })

  test(`NO_PROXY exempts a host over ${scheme}`, async () => {
    const { asked } = await send(host, { NODE_USE_ENV_PROXY: '1', ...proxies, NO_PROXY: '127.0.0.1' })
    assert.deepEqual(asked, [])
  })

  test(`without NODE_USE_ENV_PROXY messages are sent directly over ${scheme}`, async () => {
    const { asked, stderr } = await send(host, proxies)
    assert.deepEqual(asked, [])
    assert.doesNotMatch(stderr, /PROXY/)
  })
}

test('NODE_USE_ENV_PROXY can be set by the program before it creates the client', async () => {
  const { asked } = await send(hosts.http, proxies, `process.env.NODE_USE_ENV_PROXY = '1'`)
  assert.deepEqual(asked, [requests.http])
})

/** Counts connections, and passes each to `behave`. */
async function startBadProxy(behave: (socket: Socket) => void) {
  const bad = { connections: 0, url: '' }
  const sockets = new Set<Socket>()
  const server = createNetServer((socket) => {
    bad.connections++
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    behave(socket)
  })
  bad.url = `http://127.0.0.1:${await port(server)}`
  const stop = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return Object.assign(bad, { [Symbol.dispose]: stop })
}

function responding(status: string): (socket: Socket) => void {
  return (socket) => socket.once('data', () => socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`))
}

for (const [kind, scheme, behave, expected] of [
  ['closes the connection', 'https', (socket: Socket) => socket.once('data', () => socket.destroy()), /socket hang up|ECONNRESET|closed/],
  ['closes the connection', 'http', (socket: Socket) => socket.once('data', () => socket.destroy()), /socket hang up|ECONNRESET|closed/],
  ['hangs', 'https', () => {}, /no response within 200 ms/],
  ['hangs', 'http', () => {}, /no response within 200 ms/],
  ['answers 403', 'https', responding('403 Forbidden'), /the proxy answered CONNECT with \[403\] Forbidden/],
  ['answers 407', 'https', responding('407 Proxy Authentication Required'), /answered CONNECT with \[407\] Proxy Authentication Required/],
  ['answers 407', 'http', responding('407 Proxy Authentication Required'), /the proxy answered the request with \[407\]/],
  ['answers 502', 'https', responding('502 Bad Gateway'), /the proxy answered CONNECT with \[502\] Bad Gateway/],
] as const) {
  test(`a proxy that ${kind} for ${scheme}: each attempt fails, is retried after the usual delay, and the process ends`, async () => {
    using bad = await startBadProxy(behave)
    const secretUrl = bad.url.replace('//', '//user:secret@')
    const settings = { maxRetries: 1, httpRequestTimeout: kind === 'hangs' ? 200 : 10_000 }
    const { lines } = await runClient(
      hosts[scheme],
      { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: secretUrl, HTTPS_PROXY: secretUrl },
      settings,
      {},
    )
    const [message = '', result] = lines
    assert.equal(result, '{"delivered":0,"failed":1,"pending":0}')
    assert.match(message, expected)
    assert.ok(message.endsWith(`(through the proxy ${bad.url})`), message)
    assert.doesNotMatch(message, /secret/)
    assert.equal(bad.connections, 2)
  })
}

test('a process whose proxy hangs ends after closeAndFlush() has timed out', async () => {
  using bad = await startBadProxy(() => {})
  for (const host of Object.values(hosts)) {
    const variables = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: bad.url, HTTPS_PROXY: bad.url }
    const settings = { httpRequestTimeout: 60_000, maxRetries: 5 }
    const { lines } = await runClient(host, variables, settings, { timeout: 300 })
    assert.ok(lines.includes('{"delivered":0,"failed":0,"pending":1}'), lines.join('\n'))
  }
  assert.equal(bad.connections, 2)
})
