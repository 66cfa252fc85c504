// How the documentation is served: its paths, content security policy and caching, and that only the files of the build are accessible. The built
// site itself is tested in e2e/documentation/docs.test.ts.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import Fastify, { type FastifyInstance } from 'fastify'
import { registerDocs } from './docs.ts'

const SECRET = 'what lies beside the build'
const INLINE = 'document.documentElement.classList.add("dark")'
const page = (title: string): string =>
  `<!DOCTYPE html><html><head><title>${title}</title><script id="one">${INLINE}</script><script type="module" src="/docs/assets/app.abc.js"></script></head><body>${title} ${'long enough to be packed '.repeat(40)}</body></html>`
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

function build(folder: string, { title = 'Home', stamp = 1 } = {}): void {
  for (const part of ['assets/chunks', 'guide', 'decisions', 'operations']) mkdirSync(join(folder, part), { recursive: true })
  writeFileSync(join(folder, 'index.html'), page(title))
  writeFileSync(join(folder, '404.html'), page('Not found'))
  writeFileSync(join(folder, 'guide', 'concepts.html'), page('Concepts'))
  writeFileSync(join(folder, 'decisions', 'index.html'), page('Decisions'))
  writeFileSync(join(folder, 'operations', 'alerts.yml'), 'groups: []')
  writeFileSync(join(folder, 'assets', 'app.abc.js'), '1')
  writeFileSync(join(folder, 'assets', 'chunks', 'theme.abc.js'), '2')
  writeFileSync(join(folder, 'assets', 'picture.abc.png'), 'png')
  writeFileSync(join(folder, 'hashmap.json'), '{}')
  writeFileSync(join(folder, '.built-from'), SECRET)
  utimesSync(join(folder, '.built-from'), stamp, stamp)
}

function serve(t: TestContext, { isBuilt = true } = {}): { app: FastifyInstance; folder: string; place: string } {
  const place = mkdtempSync(join(tmpdir(), 'switchyard-docs-'))
  const folder = join(place, 'dist')
  writeFileSync(join(place, 'secret.html'), SECRET)
  writeFileSync(join(place, 'secret.yml'), SECRET)
  if (isBuilt) build(folder)
  const app = Fastify()
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ success: false, code: 'not_found' }))
  registerDocs(app, {
    document: () => {
      throw new Error('the reference is not requested here')
    },
    site: folder,
  })
  t.after(async () => {
    await app.close()
    rmSync(place, { recursive: true })
  })
  return { app, folder, place }
}

test('pages have paths without file extensions; other spellings redirect there', async (t) => {
  const { app } = serve(t)
  for (const [url, title] of [
    ['/docs/', 'Home'],
    ['/docs/?x=1', 'Home'],
    ['/docs/guide/concepts', 'Concepts'],
    ['/docs/decisions/', 'Decisions'],
  ] as const) {
    const { statusCode, headers, body } = await app.inject({ url })
    assert.deepEqual([statusCode, headers['content-type'], headers['cache-control']], [200, 'text/html; charset=utf-8', 'no-cache'], url)
    assert.match(body, new RegExp(`<title>${title}<`), url)
  }
  for (const [url, location] of [
    ['/docs', '/docs/'],
    ['/docs?q=a', '/docs/?q=a'],
    ['/docs/index.html', '/docs/'],
    ['/docs/index', '/docs/'],
    ['/docs/guide/concepts.html?q=a', '/docs/guide/concepts?q=a'],
    ['/docs/guide/concepts.md', '/docs/guide/concepts'],
    ['/docs/guide/concepts/', '/docs/guide/concepts'],
    ['/docs/decisions', '/docs/decisions/'],
    ['/docs/decisions/index.html', '/docs/decisions/'],
  ] as const) {
    const { statusCode, headers } = await app.inject({ url })
    assert.deepEqual([statusCode, headers.location], [308, location], url)
  }
})

test('the content security policy allows the inline scripts of the pages by their hashes, and no other inline script or style', async (t) => {
  const { app } = serve(t)
  for (const url of ['/docs/', '/docs/guide/concepts']) {
    const { headers } = await app.inject({ url })
    assert.deepEqual(String(headers['content-security-policy']).split('; ').sort(), [
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "font-src 'self'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "img-src 'self' data:",
      `script-src 'self' 'sha256-${createHash('sha256').update(INLINE).digest('base64')}'`,
      "style-src 'self'",
    ])
    assert.deepEqual(
      ['x-content-type-options', 'x-frame-options', 'referrer-policy', 'cross-origin-opener-policy'].map((name) => headers[name]),
      ['nosniff', 'DENY', 'no-referrer', 'same-origin'],
    )
  }
})

test('files with hashed names are cached forever; others are revalidated, and not sent again if unchanged', async (t) => {
  const { app } = serve(t)
  for (const [url, type, cacheControl] of [
    ['/docs/assets/app.abc.js', 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
    ['/docs/assets/chunks/theme.abc.js', 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
    ['/docs/assets/picture.abc.png', 'image/png', 'public, max-age=31536000, immutable'],
    ['/docs/hashmap.json', 'application/json; charset=utf-8', 'no-cache'],
    ['/docs/operations/alerts.yml', 'text/plain; charset=utf-8', 'no-cache'],
    ['/docs/guide/concepts', 'text/html; charset=utf-8', 'no-cache'],
  ] as const) {
    const { statusCode, headers } = await app.inject({ url })
    assert.deepEqual([statusCode, headers['content-type'], headers['cache-control']], [200, type, cacheControl], url)
    assert.deepEqual([headers['x-content-type-options'], headers['vary']], ['nosniff', 'accept-encoding'], url)
    const again = await app.inject({ url, headers: { 'if-none-match': `"x", ${headers['etag']}` } })
    assert.deepEqual([again.statusCode, again.body, again.headers['etag']], [304, '', headers['etag']], url)
    assert.equal((await app.inject({ url, headers: { 'if-none-match': 'W/"other"' } })).statusCode, 200, url)
  }
})

test('pages are compressed with an encoding that the browser accepts; images are not compressed', async (t) => {
  const { app } = serve(t)
  const ask = (url: string, encoding: string) => app.inject({ url, headers: { 'accept-encoding': encoding } })
  for (const [encoding, unpack] of [
    ['br', brotliDecompressSync],
    ['gzip', gunzipSync],
  ] as const) {
    const { headers, rawPayload } = await ask('/docs/guide/concepts', encoding)
    assert.equal(headers['content-encoding'], encoding)
    assert.equal(unpack(rawPayload).toString(), page('Concepts'))
    assert.ok(rawPayload.length < page('Concepts').length / 2)
    assert.equal((await ask('/docs/assets/picture.abc.png', encoding)).headers['content-encoding'], undefined)
  }
})

test('an unknown path is a page for people and a JSON error for programs, both with status 404', async (t) => {
  const { app } = serve(t)
  for (const url of ['/docs/nothing', '/docs/guide/nothing.html', '/docs/guide/', '/docs/404', '/docs/404.html']) {
    const shown = await app.inject({ url, headers: { ...BROWSER, 'if-none-match': '*' } })
    assert.equal(shown.statusCode, 404, url)
    assert.match(shown.body, /<title>Not found</, url)
    assert.match(String(shown.headers['content-security-policy']), /default-src 'none'/)
    const told = await app.inject({ url })
    assert.deepEqual([told.statusCode, told.json()], [404, { success: false, code: 'not_found' }], url)
  }
  assert.equal((await app.inject({ url: '/docs/', method: 'POST' })).statusCode, 404)
})

test('no path reaches files outside of the build', async (t) => {
  const { app } = serve(t)
  for (const path of [
    '../secret',
    '../secret.yml',
    '..%2fsecret',
    '..%2fsecret.yml',
    '%2e%2e%2fsecret.html',
    'guide/..%2f..%2fsecret',
    'guide/../../secret.yml',
    '..%5csecret.yml',
    '..%252fsecret.yml',
    '....//secret.yml',
    '/etc/passwd',
    '%2fetc%2fpasswd',
    'guide/concepts%00',
    '%00',
    '.built-from',
    'index.html.br',
    '__proto__',
    'constructor',
    '/evil.example/',
    '/evil.example/..',
  ]) {
    const { statusCode, body, headers } = await app.inject({ url: `/docs/${path}` })
    assert.ok(statusCode === 404 || statusCode === 400, `${path}: ${statusCode} ${headers.location}`)
    assert.doesNotMatch(body, /what lies beside|root:/, path)
  }
})

test('without a build, every page says so and where the reference is; a new build is served as soon as it is complete', async (t) => {
  const { app, folder, place } = serve(t, { isBuilt: false })
  const before = await app.inject({ url: '/docs/' })
  assert.equal(before.statusCode, 200)
  assert.match(before.body, /npm run build:docs/)
  assert.match(before.body, /docs\/reference\/http\.md[^]*href="\/docs\/openapi\.json"/)
  assert.match(String(before.headers['content-security-policy']), /script-src 'self';/)
  for (const url of ['/docs/guide/concepts', '/docs/reference/http']) {
    const shown = await app.inject({ url, headers: BROWSER })
    assert.deepEqual([shown.statusCode, shown.body], [404, before.body], url)
    const { statusCode, body } = await app.inject({ url })
    assert.deepEqual([statusCode, JSON.parse(body)], [404, { success: false, code: 'not_found' }], url)
  }
  build(folder)
  assert.match((await app.inject({ url: '/docs/' })).body, /<title>Home/)
  assert.match(String((await app.inject({ url: '/docs/' })).headers['content-security-policy']), /script-src 'self' 'sha256-/)
  // Like scripts/build-docs.ts: while the folder is being replaced, the old build is served.
  renameSync(folder, join(place, 'old'))
  assert.match((await app.inject({ url: '/docs/' })).body, /<title>Home/)
  build(folder, { title: 'Home again', stamp: 2 })
  assert.match((await app.inject({ url: '/docs/' })).body, /<title>Home again/)
})

test('a path full of slashes is answered as quickly as any other', async (t) => {
  const { app } = serve(t)
  const started = performance.now()
  for (let nth = 0; nth < 25; nth++)
    assert.equal((await app.inject({ url: `/docs/${'/'.repeat(15_000)}x`, headers: BROWSER })).statusCode, 404)
  // With a regular expression, each took some tenths of a second.
  assert.ok(performance.now() - started < 3_000, `${performance.now() - started} ms`)
})
