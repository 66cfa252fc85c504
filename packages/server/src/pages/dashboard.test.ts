// How the dashboard is served: its paths, caching and compression, and that only the files of the build are accessible.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import { registerDashboard } from './dashboard.ts'
import { FILE_PATHS, PAGE_PATHS } from './paths.ts'

const SCRIPT = `// ${'a script that is long enough to be worth it '.repeat(200)}`
const SECRET = 'what lies beside the build'

async function serve(t: TestContext, { isBuilt = true } = {}): Promise<{ url: string; folder: string; build: () => void }> {
  const place = mkdtempSync(join(tmpdir(), 'switchyard-dashboard-'))
  const folder = join(place, 'dist')
  const build = (): void => {
    mkdirSync(join(folder, 'assets'), { recursive: true })
    writeFileSync(join(folder, 'index.html'), '<!doctype html><meta name="csp-nonce" content="NONCE"><title>Built</title>')
    writeFileSync(join(folder, 'assets', 'index-abc.js'), SCRIPT)
    writeFileSync(join(folder, 'assets', 'index-abc.css'), 'a{}')
    writeFileSync(join(folder, 'icon.svg'), '<svg/>')
    writeFileSync(join(folder, 'scheme.js'), '1')
    writeFileSync(join(folder, '.built-from'), SECRET)
    writeFileSync(join(place, 'secret.js'), SECRET)
  }
  if (isBuilt) build()
  const app = Fastify({ routerOptions: { maxParamLength: 1_000 } })
  const { sendNotFound } = registerDashboard(app, { folder })
  app.get('/mistyped', (_request, reply) => sendNotFound(reply))
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(async () => {
    await app.close()
    rmSync(place, { recursive: true })
  })
  return { url, folder, build }
}

const plain = { headers: { 'accept-encoding': 'identity' } }

test('the service serves exactly the paths of the views of the dashboard', () => {
  const routes = readFileSync(join(import.meta.dirname, '../../../dashboard/src/routes.tsx'), 'utf8')
  const [, views = ''] = /VIEWS[^=]*= \[\n([^]*?)\n\]/.exec(routes) ?? []
  const paths = [...views.matchAll(/view\('([^']+)'/g)].map(([, path]) => path as string)
  assert.ok(paths.length > 10)
  assert.deepEqual(paths.sort(), [...PAGE_PATHS].sort())
})

test('every view is served with the same page, for any id; other paths are not', async (t) => {
  const { url } = await serve(t)
  for (const path of PAGE_PATHS) {
    const address = path.replace(/:\w+/, encodeURIComponent('<id>/../ü'))
    const response = await fetch(`${url}${address}?state=failed`)
    assert.equal(response.status, 200, address)
    assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.match(await response.text(), /<title>Built/)
  }
  for (const path of [
    '/nothing',
    '/sources/a/b',
    '/assets',
    '/assets/',
    '/index.html',
    '/.built-from',
    '/assets/nothing.js',
    '/dist/index.html',
  ])
    assert.equal((await fetch(url + path)).status, 404, path)
})

test('for an address that does not exist, the page is sent with the status 404 and its policy', async (t) => {
  const { url } = await serve(t)
  const response = await fetch(`${url}/mistyped`)
  assert.equal(response.status, 404)
  assert.match(response.headers.get('content-security-policy') ?? '', /script-src 'self'/)
  assert.match(await response.text(), /<title>Built/)
})

test('the page is revalidated, can run only its own files, and has a new nonce each time', async (t) => {
  const { url } = await serve(t)
  const nonces = new Set<string>()
  for (let at = 0; at < 3; at++) {
    const response = await fetch(`${url}/deliveries`)
    const { headers } = response
    const policy = headers.get('content-security-policy') ?? ''
    const [, nonce = ''] = /'nonce-([^']+)'/.exec(policy) ?? []
    assert.ok(Buffer.from(nonce, 'base64').length >= 16)
    nonces.add(nonce)
    assert.ok((await response.text()).includes(`<meta name="csp-nonce" content="${nonce}">`))
    assert.deepEqual(policy.split('; ').sort(), [
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "font-src 'self'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "img-src 'self' data:",
      "script-src 'self'",
      `style-src 'self' 'nonce-${nonce}'`,
    ])
    assert.deepEqual(
      ['x-content-type-options', 'x-frame-options', 'referrer-policy', 'cross-origin-opener-policy', 'cache-control'].map((name) =>
        headers.get(name),
      ),
      ['nosniff', 'DENY', 'no-referrer', 'same-origin', 'no-cache'],
    )
  }
  assert.equal(nonces.size, 3)
})

test('files with hashed names are cached forever, others are revalidated', async (t) => {
  const { url } = await serve(t)
  for (const [path, type, cacheControl] of [
    ['/assets/index-abc.js', 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
    ['/assets/index-abc.css', 'text/css; charset=utf-8', 'public, max-age=31536000, immutable'],
    ['/icon.svg', 'image/svg+xml', 'no-cache'],
    ['/scheme.js', 'text/javascript; charset=utf-8', 'no-cache'],
  ] as const) {
    const { status, headers } = await fetch(url + path)
    assert.deepEqual([status, headers.get('content-type'), headers.get('cache-control')], [200, type, cacheControl], path)
    assert.deepEqual([headers.get('x-content-type-options'), headers.get('vary')], ['nosniff', 'accept-encoding'], path)
  }
  assert.deepEqual([...FILE_PATHS].sort(), ['/assets/:name', '/icon.svg', '/scheme.js'])
})

test('files are compressed with an encoding that the browser accepts', async (t) => {
  const { url } = await serve(t)
  for (const [accepted, encoding] of [
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip;q=1.0, br;q=0.5', 'br'],
    ['gzip, br;q=0', 'gzip'],
    ['gzip', 'gzip'],
    ['identity', null],
    ['gzip;q=0, br;q=0.0', null],
  ] as const) {
    const answer = await raw(
      url,
      `GET /assets/index-abc.js HTTP/1.1\r\nhost: x\r\naccept-encoding: ${accepted}\r\nconnection: close\r\n\r\n`,
    )
    assert.equal(/^content-encoding: (.*)\r$/m.exec(answer.head)?.[1] ?? null, encoding, accepted)
    const body = encoding === 'br' ? brotliDecompressSync(answer.body) : encoding === 'gzip' ? gunzipSync(answer.body) : answer.body
    assert.equal(body.toString(), SCRIPT, accepted)
    if (encoding !== null) assert.ok(answer.body.length < SCRIPT.length / 10)
  }
})

test('files that the build compressed are sent unchanged', async (t) => {
  const { url, folder } = await serve(t)
  const small = brotliCompressSync(SCRIPT)
  writeFileSync(join(folder, 'assets', 'index-abc.js.br'), small)
  const { body } = await raw(url, 'GET /assets/index-abc.js HTTP/1.1\r\nhost: x\r\naccept-encoding: br\r\nconnection: close\r\n\r\n')
  assert.ok(body.equals(small))
  assert.equal((await fetch(`${url}/assets/index-abc.js.br`)).status, 404)
})

test('HEAD returns the same as GET, without a body', async (t) => {
  const { url } = await serve(t)
  for (const path of ['/', '/destinations/d_1', '/assets/index-abc.js', '/icon.svg']) {
    const [get, head] = [await fetch(url + path, plain), await fetch(url + path, { ...plain, method: 'HEAD' })]
    assert.equal(head.status, 200, path)
    for (const name of ['content-type', 'content-length', 'cache-control'])
      assert.equal(head.headers.get(name), get.headers.get(name), `${path} ${name}`)
    assert.equal(await head.text(), '')
    await get.body?.cancel()
  }
  assert.equal((await fetch(url, { method: 'POST' })).status, 404)
})

test('no path reaches files outside of the build', async (t) => {
  const { url } = await serve(t)
  for (const path of [
    '/assets/../secret.js',
    '/assets/..%2fsecret.js',
    '/assets/..%2F..%2Fsecret.js',
    '/assets/%2e%2e%2f%2e%2e%2fsecret.js',
    '/assets/..%5c..%5csecret.js',
    '/assets/....//....//secret.js',
    '/assets/..%2f.built-from',
    '/assets/..%252f..%252fsecret.js',
    '/assets/%00',
    '/assets/index-abc.js%00',
    '/assets/%2fetc%2fpasswd',
    '/assets/__proto__',
    '/assets/constructor',
    '/../secret.js',
    '//secret.js',
    '/.built-from',
  ]) {
    const { head, body } = await raw(url, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    assert.match(head, /^HTTP\/1\.1 40[04] /, path)
    assert.doesNotMatch(body.toString(), /what lies beside|root:/, path)
  }
})

test('without a build the page says what to do, and the dashboard is served as soon as there is a build', async (t) => {
  const { url, build } = await serve(t, { isBuilt: false })
  const before = await fetch(`${url}/sources`)
  assert.equal(before.status, 200)
  assert.match(await before.text(), /npm run build:dashboard/)
  assert.match(before.headers.get('content-security-policy') ?? '', /default-src 'none'/)
  assert.equal((await fetch(`${url}/assets/index-abc.js`)).status, 404)
  build()
  assert.match(await (await fetch(`${url}/sources`)).text(), /<title>Built/)
  assert.equal((await fetch(`${url}/assets/index-abc.js`)).status, 200)
})

async function raw(url: string, request: string): Promise<{ head: string; body: Buffer }> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write(request)
  await once(socket, 'close')
  const answer = Buffer.concat(chunks)
  const end = answer.indexOf('\r\n\r\n')
  return { head: answer.subarray(0, end + 2).toString(), body: answer.subarray(end + 4) }
}
