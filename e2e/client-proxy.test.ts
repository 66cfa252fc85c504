// The client behind a proxy, as NODE_USE_ENV_PROXY=1 sets it: a real proxy that forwards and tunnels, in front of a real
// endpoint over HTTP and over TLS.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, request, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { createCertificate } from '../packages/server/src/delivery/fixtures/certificates.ts'

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

/** What the proxy was asked for: CONNECT with host and port, or a whole URL. */
let asked: string[] = []
const proxy = createServer((incoming, response) => {
  asked.push(`${incoming.method} ${incoming.url}`)
  const { method = '', headers } = incoming
  const onward = request(incoming.url ?? '', { method, headers }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.headers)
    answered.pipe(response)
  })
  incoming.pipe(onward)
})
proxy.on('connect', (incoming, socket) => {
  asked.push(`CONNECT ${incoming.url}`)
  const [host, port] = (incoming.url ?? '').split(':')
  const onward = connect(Number(port), host, () => {
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    onward.pipe(socket).pipe(onward)
  })
  for (const end of [onward, socket]) end.on('error', () => end.destroy())
})

const port = async (server: Server | ReturnType<typeof createTlsServer>): Promise<number> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
const hosts = { http: `http://127.0.0.1:${await port(plain)}`, https: `https://127.0.0.1:${await port(secure)}` }
const proxyUrl = `http://127.0.0.1:${await port(proxy)}`

after(() => {
  for (const server of [plain, secure, proxy]) {
    server.close()
    server.closeAllConnections()
  }
  rmSync(folder, { recursive: true })
})

/** In a process of its own: the runtime reads these variables when it starts. */
async function send(host: string, variables: Record<string, string>, before = '') {
  asked = []
  received = 0
  const program = `
    ${before}
    const { Analytics } = await import('@switchyard/node')
    const analytics = new Analytics({ writeKey: 'wk', host: ${JSON.stringify(host)}, maxRetries: 0 })
    analytics.on('error', (error) => console.log(error.message))
    analytics.track({ userId: 'u', event: 'e' })
    console.log(JSON.stringify(await analytics.closeAndFlush()))`
  const inherited = Object.entries(process.env).filter(([name]) => !/proxy/i.test(name))
  const env = { ...Object.fromEntries(inherited), NODE_EXTRA_CA_CERTS: authorityFile, ...variables }
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', program], {
    cwd: import.meta.dirname,
    env,
    timeout: 30_000,
  })
  assert.equal(stdout.trim(), '{"delivered":1,"failed":0,"pending":0}')
  assert.equal(received, 1)
  return { asked, stderr }
}

const proxies = { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl }

for (const [scheme, host] of Object.entries(hosts)) {
  test(`with NODE_USE_ENV_PROXY=1 messages go through ${scheme.toUpperCase()}_PROXY`, async () => {
    const { asked } = await send(host, { NODE_USE_ENV_PROXY: '1', ...proxies })
    assert.equal(asked.length, 1)
    assert.match(asked[0] ?? '', new RegExp(`^(CONNECT|POST) .*${new URL(host).host}`))
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

test('the client warns if a proxy is configured that the runtime does not use', async () => {
  const { asked, stderr } = await send(hosts.http, proxies, `process.env.NODE_USE_ENV_PROXY = '1'`)
  assert.deepEqual(asked, [])
  assert.match(stderr, /SwitchyardWarning: NODE_USE_ENV_PROXY=1 has no effect in this process .*HTTP_PROXY is not used/)
})
