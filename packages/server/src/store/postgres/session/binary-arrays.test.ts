import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { parsePostgresAddress } from './address.ts'
import { bools, byteas, int4s, int8s, texts, uuids } from './binary-arrays.ts'
import { Database } from './database.ts'

let server: TestDatabase
let database: Database

before(async () => {
  server = await createDatabase()
  database = new Database({ address: parsePostgresAddress(server.url), connections: 1 })
})
after(async () => {
  database.close()
  await server.drop()
})

/** Returns the elements of an array as text, as the server decodes them. */
async function decoded(type: string, value: Buffer): Promise<(string | null)[]> {
  const { rows } = await database.query<{ element: string | null }>(
    `SELECT e::text AS element FROM unnest($1::${type}[]) WITH ORDINALITY AS a (e, nth) ORDER BY nth`,
    [value],
  )
  return rows.map(({ element }) => element)
}

test('the server decodes the same values', async () => {
  assert.deepEqual(await decoded('bigint', int8s(['9223372036854775807', 0, -5, null, '3775000000000000001'])), [
    '9223372036854775807',
    '0',
    '-5',
    null,
    '3775000000000000001',
  ])
  assert.deepEqual(await decoded('integer', int4s([0, -1, 2_147_483_647])), ['0', '-1', '2147483647'])
  assert.deepEqual(await decoded('boolean', bools([true, false, true])), ['true', 'false', 'true'])
  assert.deepEqual(await decoded('text', texts(['', 'ä€😀', null, '{"a,b"}\\', 'NULL'])), ['', 'ä€😀', null, '{"a,b"}\\', 'NULL'])
  const bytes = Uint8Array.from({ length: 16 }, (_, at) => at * 17)
  assert.deepEqual(await decoded('uuid', uuids([bytes, null])), ['00112233-4455-6677-8899-aabbccddeeff', null])
  assert.deepEqual(await decoded('bytea', byteas([new Uint8Array(), Uint8Array.of(0, 255)])), ['\\x', '\\x00ff'])
})

test('empty arrays are empty', async () => {
  for (const [type, value] of [
    ['bigint', int8s([])],
    ['integer', int4s([])],
    ['boolean', bools([])],
    ['text', texts([])],
    ['uuid', uuids([])],
    ['bytea', byteas([])],
  ] as const) {
    assert.deepEqual(await decoded(type, value), [], type)
  }
})

test('arbitrary texts and numbers are decoded unchanged', async () => {
  const text = fc.option(
    fc.string({ unit: 'binary', maxLength: 50 }).map((each) => each.replaceAll('\0', '')),
    { nil: null },
  )
  const property = fc.asyncProperty(
    fc.array(text, { maxLength: 20 }),
    fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
    async (some, ints) => {
      assert.deepEqual(await decoded('text', texts(some)), some)
      assert.deepEqual(await decoded('bigint', int8s(ints.map(String))), ints.map(String))
    },
  )
  await fc.assert(property, { numRuns: 50 })
})
