import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Cell, EngineName, Evolved, PlannedColumns, SourceSchema, StoredColumn, TableRows } from '../warehouse.ts'
import { evolve, plannedColumns, schemaName } from './evolve.ts'
import { columnName, eventTable, keysOf, pathOf, snakeCase } from './names.ts'
import { timestampText } from './values.ts'

const LOADED_AT = Date.UTC(2026, 10, 17, 12)
const EMPTY: SourceSchema = { name: 'shop', revision: 0, tables: [] }
const ENGINES: EngineName[] = ['parquet', 'postgres', 'clickhouse']

function load(
  messages: readonly object[],
  { engine = 'postgres', schema = EMPTY, planned = {} }: { engine?: EngineName; schema?: SourceSchema; planned?: PlannedColumns } = {},
): Evolved {
  const texts = messages.map((message, at) => ({
    text: JSON.stringify({ messageId: `m${at}`, receivedAt: '2026-11-17T10:00:00.000Z', userId: 'alice', ...message }),
  }))
  return evolve(schema, texts, { engine, planned, loadedAtMs: LOADED_AT })
}

const track = (properties: object, event = 'Order Completed'): object => ({ type: 'track', event, properties })

function tableOf({ batch }: Evolved, table: string): TableRows {
  const found = batch.tables.find((each) => each.table === table)
  assert.ok(found, `no table ${table} in ${batch.tables.map((each) => each.table).join(', ')}`)
  return found
}

function rowOf(evolved: Evolved, table: string, at = 0): Record<string, Cell> {
  const { columns, rows } = tableOf(evolved, table)
  const row = [...rows][at]
  return Object.fromEntries(columns.map(({ name }, index) => [name, row?.[index] ?? null]))
}

function columnOf(evolved: Evolved, table: string, name: string): StoredColumn | undefined {
  return tableOf(evolved, table).columns.find((column) => column.name === name)
}

test('a track call is a row of tracks without properties, and a row of its event with them', () => {
  const evolved = load([{ ...track({ cart: { total: 12.5 }, Coupon: null }), context: { page: { url: 'https://x' } } }])
  assert.deepEqual(evolved.tablesOf, [['tracks', 'order_completed']])
  const common = {
    id: 'm0',
    anonymous_id: null,
    user_id: 'alice',
    received_at: Date.UTC(2026, 10, 17, 10),
    sent_at: null,
    original_timestamp: null,
    timestamp: null,
    uuid_ts: LOADED_AT,
    event: 'order_completed',
    event_text: 'Order Completed',
    _unfit: null,
    context_page_url: 'https://x',
  }
  assert.deepEqual(rowOf(evolved, 'tracks'), common)
  assert.deepEqual(rowOf(evolved, 'order_completed'), { ...common, cart_total: 12.5 })
})

test('each type of call has its table', () => {
  const evolved = load([
    { type: 'identify', traits: { plan: 'pro' } },
    { type: 'page', name: 'Home', category: 'Docs', properties: { name: 'other' } },
    { type: 'screen', name: 'Start', properties: {} },
    { type: 'group', groupId: 'g1', traits: { seats: 3 } },
    { type: 'alias', previousId: 'old' },
    { type: 'delete' },
  ])
  assert.deepEqual(evolved.tablesOf, [['identifies', 'users'], ['pages'], ['screens'], ['groups', 'accounts'], ['aliases'], []])
  assert.equal(rowOf(evolved, 'identifies')['plan'], 'pro')
  assert.equal(rowOf(evolved, 'pages')['name'], 'Home')
  assert.equal(rowOf(evolved, 'pages')['_name'], 'other')
  assert.equal(rowOf(evolved, 'groups')['group_id'], 'g1')
  assert.equal(rowOf(evolved, 'aliases')['previous_id'], 'old')
  assert.deepEqual(
    evolved.batch.states.map(({ table, calls }) => [table, calls.map(({ id }) => id)]),
    [
      ['users', ['alice']],
      ['accounts', ['g1']],
    ],
  )
})

test('only a lake has the archive, with the text of the message', () => {
  assert.equal(load([track({})]).batch.archive, null)
  const { archive } = load([track({ a: 1 })], { engine: 'parquet' }).batch
  assert.equal(archive?.table, '_messages')
  assert.match(String([...archive.rows][0]?.[6]), /"properties":\{"a":1\}/)
})

test('names are snake case', () => {
  const names = ['Order Completed', 'orderCompleted', 'HTTPServer', 'item2Price', 'a--b..c', 'Größe', '日本 語', '$$', ' x ']
  assert.deepEqual(names.map(snakeCase), [
    'order_completed',
    'order_completed',
    'http_server',
    'item2_price',
    'a_b_c',
    'größe',
    '日本_語',
    '',
    'x',
  ])
})

test('events whose name collides with a table, a word or nothing get a prefix, and long names a hash', () => {
  assert.equal(eventTable('Users'), 'event_users')
  assert.equal(eventTable('tracks'), 'event_tracks')
  assert.equal(eventTable('Order'), '_order')
  assert.equal(eventTable('2FA enabled'), '_2_fa_enabled')
  assert.match(eventTable('💥'), /^event_[0-9a-f]{8}$/)
  assert.match(eventTable('x'.repeat(61)), /^x{51}_[0-9a-f]{8}$/)
  assert.ok(Buffer.byteLength(eventTable('日'.repeat(40))) <= 60)
  assert.notEqual(eventTable('x'.repeat(61)), eventTable('x'.repeat(62)))
  assert.equal(eventTable('x'.repeat(60)), 'x'.repeat(60))
})

test('the schema of a source has a number if its name is taken', () => {
  assert.equal(schemaName('My Shop', []), 'my_shop')
  assert.equal(schemaName('My Shop', ['my_shop', 'my_shop_2']), 'my_shop_3')
})

test('columns that collide with ours, with a word or with another path get a prefix or a number, and keep it', () => {
  const first = load([track({ id: 1, day: 'x', order: 2, cart: { total: 1 }, cart_total: 2, 'cart.total': 3 })])
  const paths = tableOf(first, 'order_completed').columns.map(({ name, path }) => [path, name])
  assert.deepEqual(paths.slice(11), [
    ['properties.id', '_id'],
    ['properties.day', '_day'],
    ['properties.order', '_order'],
    ['properties.cart.total', 'cart_total'],
    ['properties.cart_total', 'cart_total_2'],
    ['properties.cart\\.total', 'cart_total_3'],
  ])
  const second = load([track({ 'cart.total': 7, cart_total: 8 })], { schema: first.schema })
  assert.equal(second.changed, false)
  assert.equal(rowOf(second, 'order_completed')['cart_total_3'], 7)
  assert.equal(rowOf(second, 'order_completed')['cart_total_2'], 8)
})

test('paths can be read back', () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { minLength: 1, maxLength: 5 }), (keys) => {
      assert.deepEqual(keysOf(pathOf(keys)), keys)
    }),
  )
})

test('a name of a column fits 60 bytes also with its number', () => {
  const taken = new Set<string>()
  for (let at = 0; at < 12; at++) taken.add(columnName(['ä'.repeat(60)], new Set(), (name) => taken.has(name)))
  assert.equal(taken.size, 12)
  for (const name of taken) assert.ok(Buffer.byteLength(name) <= 60, name)
})

test('a column takes the type of its first value, or of the plan', () => {
  const given = { flag: true, count: 3, share: 0.5, at: '2026-01-01T00:00:00Z', day_only: '2026-01-01', list: [1], word: 'x' }
  const types = (evolved: Evolved): unknown =>
    Object.fromEntries(
      tableOf(evolved, 'order_completed')
        .columns.slice(11)
        .map(({ name, type }) => [name, type]),
    )
  const expected = { flag: 'boolean', count: 'bigint', share: 'double', at: 'timestamp', day_only: 'text', list: 'text', word: 'text' }
  assert.deepEqual(types(load([track(given)])), expected)
  assert.deepEqual(types(load([track(given)], { engine: 'parquet' })), { ...expected, count: 'double' })
  const planned = plannedColumns({
    rules: [
      {
        type: 'track',
        event: 'Order Completed',
        mode: 'observe',
        schema: {
          properties: {
            count: { type: 'integer' },
            at: { type: ['string', 'null'] },
            word: { type: 'string', format: 'date-time' },
            nested: { type: 'object', properties: { deep: { type: 'number' } } },
          },
        },
      },
    ],
  })
  const withPlan = load([track({ ...given, nested: { deep: 1 } })], { engine: 'parquet', planned })
  assert.deepEqual(types(withPlan), { ...expected, at: 'text', word: 'timestamp', nested_deep: 'double' })
  assert.deepEqual(JSON.parse(String(rowOf(withPlan, 'order_completed')['_unfit'])), { 'properties.word': 'x' })
})

test('integers widen to double in a database; a planned integer does not', () => {
  const first = load([track({ n: 1 })])
  const wide = load([track({ n: 1.5 }), track({ n: 2 ** 60 })], { schema: first.schema })
  assert.equal(wide.changed, true)
  assert.equal(columnOf(wide, 'order_completed', 'n')?.type, 'double')
  assert.equal(rowOf(wide, 'order_completed', 1)['n'], 2 ** 60)
  assert.deepEqual(wide.unfit, [])
  const planned = { order_completed: { 'properties.n': 'bigint' } } as const
  const kept = load([track({ n: 1 }), track({ n: 1.5 })], { engine: 'parquet', planned })
  assert.equal(columnOf(kept, 'order_completed', 'n')?.type, 'bigint')
  assert.deepEqual(kept.unfit, [{ table: 'order_completed', column: 'n', path: 'properties.n', type: 'number', count: 1 }])
})

test('values that do not fit stay verbatim in _unfit and are counted by type', () => {
  const { schema } = load([track({ n: 1, b: true, at: '2026-01-01T00:00:00Z', s: 'x' })])
  const evolved = load(
    [
      track({ n: 'one', b: 'yes', at: 'soon', s: 5 }),
      track({ n: ['a'], b: 1, at: 7, s: true }),
      track({ n: 'two', at: '2026-01-01T00:00:00.1234567Z', s: ['x', null] }),
    ],
    { schema },
  )
  assert.deepEqual(JSON.parse(String(rowOf(evolved, 'order_completed')['_unfit'])), {
    'properties.n': 'one',
    'properties.b': 'yes',
    'properties.at': 'soon',
  })
  assert.deepEqual(
    [0, 1, 2].map((at) => rowOf(evolved, 'order_completed', at)['s']),
    ['5', 'true', '["x",null]'],
  )
  const counts = evolved.unfit.filter(({ column }) => column === 'n').map(({ type, count }) => [type, count])
  assert.deepEqual(counts, [
    ['string', 2],
    ['array', 1],
  ])
})

test('timestamps keep microseconds', () => {
  const row = rowOf(load([track({ at: '2026-01-01T00:00:00.123456+02:00', far: '9999-12-31T23:59:59.999Z' })]), 'order_completed')
  assert.equal(timestampText(row['at'] as number), '2025-12-31T22:00:00.123456Z')
  assert.equal(timestampText(row['far'] as number), '9999-12-31T23:59:59.999Z')
})

test('texts that an engine cannot hold are in _unfit', () => {
  const properties = { nul: 'a\0b', lone: 'a\ud800b' }
  const inDatabase = rowOf(load([track(properties)]), 'order_completed')
  assert.deepEqual([inDatabase['nul'], inDatabase['lone']], [null, null])
  assert.deepEqual(JSON.parse(String(inDatabase['_unfit'])), { 'properties.nul': 'a\0b', 'properties.lone': 'a\ud800b' })
  const inLake = rowOf(load([track(properties)], { engine: 'parquet' }), 'order_completed')
  assert.deepEqual([inLake['nul'], inLake['lone']], ['a\0b', null])
})

test('a table has at most 1,000 columns, and a schema 2,000 tables', () => {
  const wide = load([track(Object.fromEntries(Array.from({ length: 1_100 }, (_, at) => [`p${at}`, at])))], { engine: 'parquet' })
  const { columns } = tableOf(wide, 'order_completed')
  assert.equal(columns.length, 1_000)
  assert.equal(Object.keys(JSON.parse(String(rowOf(wide, 'order_completed')['_unfit']))).length, 1_100 - 989)
  assert.deepEqual(wide.limits, [{ limit: 'columns', table: 'order_completed' }])
  const many = load(Array.from({ length: 2_100 }, (_, at) => track({ at }, `event ${at}`)))
  assert.equal(many.schema.tables.filter(({ table }) => table.startsWith('event_')).length, 1_992)
  assert.deepEqual(many.limits, [{ limit: 'tables', table: null }])
  assert.deepEqual(many.tablesOf[2_099], ['tracks'])
  assert.deepEqual(JSON.parse(String(rowOf(many, 'tracks', 2_099)['_unfit'])), { properties: { at: 2_099 } })
})

test('a row that is too wide for a page of PostgreSQL keeps the rest in _unfit', () => {
  const properties = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`p${at}`, `a text of some length, ${at}`]))
  const row = rowOf(load([track(properties)]), 'order_completed')
  const kept = Object.keys(properties).filter((key) => row[key] !== null)
  const unfit = JSON.parse(String(row['_unfit'])) as Record<string, string>
  assert.ok(kept.length > 300 && kept.length < 400, `${kept.length} columns`)
  assert.equal(kept.length + Object.keys(unfit).length, 900)
})

test('a message that is nested deeply is kept as text', () => {
  const text = `{"messageId":"m","type":"track","event":"E","userId":"u","receivedAt":"2026-11-17T10:00:00Z","properties":${'{"a":'.repeat(4_000)}1${'}'.repeat(4_000)}}`
  const evolved = evolve(EMPTY, [{ text }], { engine: 'parquet', loadedAtMs: LOADED_AT })
  const deep = [...tableOf(evolved, 'e').rows][0]?.at(-1)
  assert.equal(deep, `${'{"a":'.repeat(3_983)}1${'}'.repeat(3_983)}`)
})

test('tables that are done get no row', () => {
  const text = JSON.stringify({ messageId: 'm', type: 'track', event: 'E', userId: 'u', receivedAt: '2026-11-17T10:00:00Z' })
  const evolved = evolve(EMPTY, [{ text, done: ['tracks'] }], { engine: 'postgres', loadedAtMs: LOADED_AT })
  assert.deepEqual(evolved.tablesOf, [['e']])
})

const value = fc.jsonValue({ maxDepth: 4 })
const key = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom('id', 'a', 'b', 'a_b', 'cart', 'total', 'userId', 'day', '__proto__', 'constructor'),
)
const properties = fc.dictionary(key, fc.oneof(value, fc.constantFrom(1, 1.5, 'x', true, '2026-01-01T00:00:00Z')), { maxKeys: 8 })

test('every value of a message is found in its row or in _unfit', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ properties, context: properties }), { maxLength: 6 }),
      fc.constantFrom(...ENGINES),
      (given, engine) => {
        const half = Math.floor(given.length / 2)
        const messages = given.map(({ properties: own, context }) => ({ ...track(own, 'E'), context }))
        const first = load(messages.slice(0, half), { engine })
        const second = load(messages.slice(half), { engine, schema: first.schema })
        for (const [evolved, from] of [
          [first, messages.slice(0, half)],
          [second, messages.slice(half)],
        ] as const) {
          from.forEach((message, at) => {
            for (const { path, value: leaf } of leaves(JSON.parse(JSON.stringify(message)) as object)) {
              assert.ok(holds(evolved, at, path, leaf), `${path} = ${JSON.stringify(leaf)} in ${engine}`)
            }
          })
          checkNames(evolved)
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('the same messages give the same rows, in one load or in two', () => {
  fc.assert(
    fc.property(fc.array(properties, { maxLength: 6 }), fc.constantFrom(...ENGINES), (given, engine) => {
      const messages = given.map((own) => track(own, 'E'))
      const once = load(messages, { engine })
      assert.deepEqual(load(messages, { engine }), once)
      // With the schema that the first attempt stored, a repeat changes nothing.
      const again = load(messages, { engine, schema: once.schema })
      assert.equal(again.changed, false)
      assert.deepEqual(again.schema, once.schema)
    }),
    { numRuns: 100 },
  )
})

function* leaves(message: object, keys: string[] = []): Generator<{ path: string; value: unknown }> {
  for (const [name, inner] of Object.entries(message) as [string, unknown][]) {
    if (keys.length === 0 && (name === 'type' || name === 'event')) continue
    if (typeof inner === 'object' && inner !== null && !Array.isArray(inner)) yield* leaves(inner, [...keys, name])
    else if (inner !== null) yield { path: pathOf([...keys, name]), value: inner }
  }
}

function holds(evolved: Evolved, at: number, path: string, leaf: unknown): boolean {
  const { columns, rows } = tableOf(evolved, 'e')
  const row = [...rows][at] as Cell[]
  const unfit = JSON.parse(String(row[columns.findIndex(({ name }) => name === '_unfit')] ?? '{}')) as Record<string, unknown>
  if (Object.hasOwn(unfit, path)) return JSON.stringify(unfit[path]) === JSON.stringify(leaf)
  const index = columns.findIndex((column) => column.path === path)
  const cell = row[index] ?? null
  if (columns[index]?.type === 'timestamp') return Date.parse(String(leaf)) === cell
  if (typeof leaf === 'object') return cell === JSON.stringify(leaf)
  // Only a text column may have another form of a number or a boolean.
  return cell === leaf || (columns[index]?.type === 'text' && cell === JSON.stringify(leaf))
}

function checkNames({ schema }: Evolved): void {
  for (const { columns } of schema.tables) {
    assert.equal(new Set(columns.map(({ name }) => name)).size, columns.length)
    for (const { name } of columns) assert.match(name, /^[\p{L}_][\p{L}\p{N}\p{M}_]*$/u)
  }
}
