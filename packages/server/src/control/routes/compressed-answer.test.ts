// Which responses of the control API are compressed, and that they are the same.

import assert from 'node:assert/strict'
import test from 'node:test'
import { controlRoutes } from '../control.ts'
import { startControl } from '../fixtures/start-control.ts'

test('a large list of destinations is compressed if the client accepts it, and is the same', async (t) => {
  const { call } = await startControl(t)
  const path = '/api/destinations/summary'
  const small = await call('GET', path)
  assert.deepEqual([small.headers.get('content-encoding'), small.headers.get('vary')], [null, 'accept-encoding'])
  for (let nth = 0; nth < 100; nth++) {
    const name = `${nth} ${'a long name '.repeat(7)}`.trim()
    assert.equal((await call('POST', '/api/destinations?allowDuplicate=true', { name, urls: ['https://example.com/'] })).status, 201)
  }
  const plain = await call('GET', path, undefined, { headers: { 'accept-encoding': 'identity' } })
  const compressed = await call('GET', path, undefined, { headers: { 'accept-encoding': 'br, gzip' } })
  assert.deepEqual([plain.headers.get('content-encoding'), compressed.headers.get('content-encoding')], [null, 'gzip'])
  assert.equal(compressed.headers.get('content-type'), plain.headers.get('content-type'))
  assert.ok(Number(compressed.headers.get('content-length')) < Number(plain.headers.get('content-length')) / 4)
  assert.equal(compressed.text, plain.text)
  assert.equal(compressed.body.data.length, 100)
  assert.equal((await call('GET', path, undefined, { token: null })).status, 401)
  // A list with settings, which may contain credentials.
  assert.equal((await call('GET', '/api/destinations')).headers.get('content-encoding'), null)
})

test('responses with settings, write keys or tokens are never compressed', async (t) => {
  const { deps } = await startControl(t)
  const compressed = controlRoutes(deps).filter((route) => route.compressed)
  assert.deepEqual(compressed.map(({ method, path }) => `${method} ${path}`).sort(), [
    'GET /catalog',
    'GET /destinations/health',
    'GET /destinations/summary',
    'GET /ledger',
  ])
})
