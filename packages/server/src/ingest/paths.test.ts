// The tracking paths as clients use them: with extra slashes, and with their bodies and content types.

import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { MESSAGE_TYPES } from '@switchyard/protocol'
import { assertRefused, BASIC, type TrackingApi, trackingApi } from './fixtures/tracking-api.ts'

const good = { type: 'track', userId: 'u', event: 'e', messageId: 'm', groupId: 'g', previousId: 'p' }
const batch = JSON.stringify({ batch: [good], writeKey: 'key-1' })

/** All spellings of a path with extra slashes. */
function spellings(path: string): string[] {
  return [`${path}/`, `/${path}`, `/${path}/`, `${path}//`, path.replaceAll('/', '//'), path.replaceAll('/', '///')]
}

/** Sends the body without Content-Length, as streaming clients do. */
function postChunked(api: TrackingApi, path: string, body: Uint8Array, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${api.url}${path}`, { method: 'POST', headers, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    request.on('error', reject)
    for (const byte of [body.subarray(0, 5), body.subarray(5)]) request.write(byte)
    request.end()
  })
}

test('trailing and doubled slashes in a tracking path are ignored', async (t) => {
  const api = await trackingApi(t)
  const posts = ['batch', 'import', 'b', ...MESSAGE_TYPES, 'i', 't', 'p', 's', 'g', 'a'].map((name) => `/v1/${name}`)
  for (const path of [...posts, '/beacon/v1/batch', '/v1/batch?from=here'].flatMap(spellings)) {
    const body = /batch|import|b\/*$/.test(path) ? batch : JSON.stringify(good)
    assert.equal((await api.post(path, body)).status, 200, path)
    assert.equal(api.accepted.splice(0).length, 1, path)
  }
  for (const path of spellings('/v1/m')) assert.equal((await api.post(path, '{}')).status, 200, path)
})

test('they are also ignored for settings that browsers load, for preflights and for rejected requests', async (t) => {
  const api = await trackingApi(t)
  const data = Buffer.from(JSON.stringify({ ...good, writeKey: 'key-1', properties: { path: '//a//' } })).toString('base64')
  for (const path of spellings('/v1/pixel/track')) {
    assert.equal((await api.send('GET', `${path}?data=${encodeURIComponent(data)}`)).headers['content-type'], 'image/gif', path)
    assert.deepEqual(api.accepted.pop()?.content.items[0]?.['properties'], { path: '//a//' }, 'the query string is unchanged')
  }
  for (const path of spellings('/v1/projects/key-1/settings')) assert.equal((await api.send('GET', path)).status, 200, path)
  for (const path of spellings('/v1/sourceConfig')) assert.equal((await api.send('GET', path, BASIC)).status, 200, path)
  for (const path of spellings('/v1/batch')) {
    assert.equal((await api.send('OPTIONS', path)).status, 204, path)
    assert.equal((await api.send('GET', path)).headers['allow'], 'POST, OPTIONS', path)
  }
  for (const path of [...spellings('/v1/nothing'), '/v1/', '/v1//', '/v1/ba/tch/', '/v1/batch/x/'])
    assert.equal((await api.post(path, batch)).status, 404, path)
})

test('other paths are unchanged', async (t) => {
  const api = await trackingApi(t)
  for (const path of ['//v2/batch', '//beacon', '//', '/batch/', '//v1']) {
    const { status, headers } = await api.post(path, batch)
    assert.deepEqual([status, headers['access-control-allow-origin']], [404, undefined], path)
  }
})

// From the source code of these clients: path, location of the key, content type, compression, and whether the length is declared.
const CLIENTS: [client: string, path: string, headers: Record<string, string>, gzip: boolean, chunked: boolean][] = [
  ['analytics-java', '/v1/import/', { ...BASIC, 'Content-Type': 'application/json; charset=UTF-8' }, false, false],
  ['analytics-java, compressing', '/v1/import/', { ...BASIC, 'Content-Type': 'application/json; charset=UTF-8' }, true, true],
  ['analytics-go', '//v1/batch', { ...BASIC, 'Content-Type': 'application/json' }, false, false],
  ['analytics-python', '/v1/batch', { ...BASIC, 'Content-Type': 'application/json' }, true, false],
  ['analytics-ruby', '/v1/import', { ...BASIC, 'Content-Type': 'application/json' }, false, false],
  ['analytics-php', '/v1/batch', { ...BASIC, 'Content-Type': 'application/json', Expect: '100-continue' }, true, false],
  ['analytics-kotlin', '/v1/b', { 'Content-Type': 'text/plain' }, true, true],
  ['Analytics-CSharp', '/v1//b', { 'Content-Type': 'text/plain' }, true, true],
  ['analytics-swift', '/v1/b', { 'Content-Type': 'application/json; charset=utf-8' }, false, false],
]

for (const [client, path, headers, gzip, chunked] of CLIENTS) {
  test(`a batch as ${client} sends it is accepted`, async (t) => {
    const api = await trackingApi(t)
    const body = gzip ? gzipSync(batch) : Buffer.from(batch)
    const sent = gzip ? { ...headers, 'Content-Encoding': 'gzip' } : headers
    assert.equal(chunked ? await postChunked(api, path, body, sent) : (await api.send('POST', path, sent, body)).status, 200)
    assert.deepEqual(api.accepted[0]?.messageIds, ['m'])
  })
}

test('an unknown path gets a 404, and a wrong method a 405 with the allowed methods', async (t) => {
  const api = await trackingApi(t)
  for (const path of ['/v1/', '/v1/nothing', '/v1/batch/x', '/v1/projects/key-1']) {
    assertRefused(await api.send('GET', path), 404, 'not_found')
    assertRefused(await api.post(path, 'x', { 'Content-Type': ';;' }), 404, 'not_found')
  }
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'PROPFIND']) {
    const answer = await api.send(method, '/v1/batch')
    assertRefused(answer, 405, 'method_not_allowed')
    assert.equal(answer.headers['allow'], 'POST, OPTIONS')
  }
  const answer = await api.post('/v1/pixel/track', 'x')
  assertRefused(answer, 405, 'method_not_allowed')
  assert.equal(answer.headers['allow'], 'GET, HEAD, OPTIONS')
  const head = await api.send('HEAD', '/v1/batch')
  assert.deepEqual([head.status, head.headers['allow'], head.text], [405, 'POST, OPTIONS', ''])
  assert.deepEqual(api.rejections, [])
})
