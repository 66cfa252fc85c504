// Which responses of the control API are compressed, and that they are the same.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { JsonSchema } from '../../api/schema.ts'
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
    'GET /destinations/summary',
    'GET /ledger',
  ])
  // Where a new field may be text that somebody else can choose, such as an error or a response that quotes a message, the route must not be compressed.
  const texts = compressed.map(({ path, answer }) => [path, answer === undefined ? [] : textsOf(answer.toJsonSchema())] as const)
  assert.deepEqual(Object.fromEntries(texts), {
    // Of the installed package.
    '/catalog': ['data.description', 'data.keywords', 'data.name', 'data.needs', 'data.problem', 'data.slug', 'data.title', 'hint', 'next'],
    // Names are chosen by editors, who see all of the response.
    '/destinations/summary': ['data.id', 'data.name', 'data.sourceIds', 'next'],
    '/ledger': ['data.destinationId', 'next'],
  })
})

/** The fields of a schema that may have any text, or any value. */
function textsOf(schema: JsonSchema, path = ''): string[] {
  const { type, enum: values, format, properties, items, anyOf, additionalProperties } = schema as Record<string, JsonSchema | undefined>
  if (values !== undefined || format !== undefined) return []
  if (properties !== undefined)
    return Object.entries(properties)
      .flatMap(([name, field]) => textsOf(field as JsonSchema, path === '' ? name : `${path}.${name}`))
      .sort()
  if (items !== undefined) return textsOf(items, path)
  if (anyOf !== undefined) return (anyOf as unknown as JsonSchema[]).flatMap((each) => textsOf(each, path))
  const types: readonly unknown[] = [type].flat()
  const isKnown =
    types.length > 0 && types.every((each) => each === 'integer' || each === 'number' || each === 'boolean' || each === 'null')
  return isKnown && additionalProperties === undefined ? [] : [path]
}
