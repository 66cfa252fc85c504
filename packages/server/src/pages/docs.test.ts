// How the OpenAPI document is served, and the redirect of /docs/api. The site is tested in site.test.ts.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import Fastify, { type FastifyInstance } from 'fastify'
import { registerDocs } from './docs.ts'

/** A folder without a built site. */
const NOWHERE = join(import.meta.dirname, 'nowhere')
const URL = '/docs/openapi.json'
const DOCUMENT = { openapi: '3.1.0', info: { description: 'long enough to be compressed '.repeat(100) } }

function serve(document: () => object = () => DOCUMENT): FastifyInstance & AsyncDisposable {
  const app = Fastify()
  registerDocs(app, { document, site: NOWHERE })
  return Object.assign(app, { [Symbol.asyncDispose]: () => app.close() })
}

test('/docs/api redirects to the reference in the site', async () => {
  await using app = serve()
  for (const [url, location] of [
    ['/docs/api', '/docs/reference/http'],
    ['/docs/api?x=1', '/docs/reference/http?x=1'],
  ] as const) {
    const { statusCode, headers } = await app.inject({ url })
    assert.deepEqual([statusCode, headers.location], [308, location])
  }
})

test('the document is made at the first request, and only once', async () => {
  let made = 0
  await using app = serve(() => {
    made += 1
    return DOCUMENT
  })
  await app.ready()
  assert.equal(made, 0)
  for (let nth = 0; nth < 2; nth++) assert.deepEqual((await app.inject({ url: URL })).json(), DOCUMENT)
  assert.equal(made, 1)
})

test('the document is compressed once per encoding, however often it is requested', async () => {
  await using app = serve()
  const sent: unknown[] = []
  app.addHook('onSend', (_request, _reply, payload, next) => {
    sent.push(payload)
    next(null, payload)
  })
  for (const encoding of ['identity', 'gzip', 'br']) {
    sent.length = 0
    for (const host of ['a', 'b']) await app.inject({ url: URL, headers: { host, 'accept-encoding': encoding } })
    assert.ok(sent[0] instanceof Buffer)
    assert.equal(sent[0], sent[1], encoding)
  }
  const { headers } = await app.inject({ url: URL })
  assert.equal((await app.inject({ url: URL, headers: { 'if-none-match': String(headers['etag']) } })).statusCode, 304)
})

test('the document is compressed only for clients that accept it', async () => {
  await using app = serve()
  const ask = (encoding?: string) => app.inject({ url: URL, headers: encoding ? { 'accept-encoding': encoding } : {} })
  const plain = await ask()
  assert.equal(plain.headers['content-encoding'], undefined)
  for (const refusing of ['identity', 'gzip;q=0', 'br;q=0, gzip; q=0.0', 'x-gzipped'])
    assert.equal((await ask(refusing)).headers['content-encoding'], undefined, refusing)
  for (const accepting of ['gzip', 'br;q=0, gzip;q=0.5', 'gzip, deflate']) {
    const packed = await ask(accepting)
    assert.equal(packed.headers['content-encoding'], 'gzip', accepting)
    assert.match(String(packed.headers.vary), /accept-encoding/)
    assert.equal(gunzipSync(packed.rawPayload).toString('utf8'), plain.payload)
  }
})
