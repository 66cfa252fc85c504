import assert from 'node:assert/strict'
import { test } from 'node:test'
import { integrationOf, MESSAGE, runSend } from './fixtures/integrations.ts'
import { library } from './library.ts'

const PAYLOAD = { data: { type: 'object', label: 'Data', description: 'Data.', additionalProperties: true } } as const

function keep(seen: unknown[]) {
  return integrationOf({
    fields: PAYLOAD,
    perform: (_, { payload }) => void seen.push(payload['data']),
    performBatch: (_, { payload }) => void seen.push(...payload.map(({ data }) => data)),
  })
}

test('a mapping reads no prototype, and ordinary values as before', async () => {
  const seen: unknown[] = []
  const data = {
    name: { '@path': '$.constructor.name' },
    inherited: { '@template': 'x{{properties.toString}}' },
    total: { '@path': "$.properties['total']" },
    flat: { '@flatten': { value: { '@path': '$.nested' }, separator: '_' } },
  }
  await runSend(keep(seen), { mapping: { data }, messages: [{ ...MESSAGE, nested: { a: { b: 1 }, c: [2, 3] } }] })
  assert.deepEqual(seen, [{ inherited: 'x', total: 12, flat: { a_b: 1, c_0: 2, c_1: 3 } }])
})

test('flattening 20,000 keys takes time in proportion to the keys', async () => {
  const flattened = (count: number): number => {
    const keys = Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))
    const startedAt = process.cpuUsage()
    const mapping = { data: { '@flatten': { value: { '@path': '$.properties' }, separator: '.' } } }
    const { data } = library().transform(mapping, { properties: keys }) as { data: object }
    assert.equal(Object.keys(data).length, count)
    return process.cpuUsage(startedAt).user
  }
  flattened(2_000)
  // The library's own function takes about 300 ms for 2,000 keys, and a hundred times as long for ten times as many.
  const micros = flattened(20_000)
  assert.ok(micros < 5_000_000, `${micros} µs of CPU time`)
})

test('what one message may read is limited: it fails alone, also in a batch', async () => {
  const seen: unknown[] = []
  const copies = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`copy${at}`, { '@path': '$.properties' }]))
  const huge = { ...MESSAGE, properties: { text: 'x'.repeat(30_000) } }
  const { results } = await runSend(keep(seen), { mapping: { data: copies }, messages: [MESSAGE, huge, MESSAGE] })
  assert.deepEqual(
    results.map((result) => (result.kind === 'failed' ? [result.code, result.message] : result.kind)),
    ['success', ['invalid_payload', 'The mapping results in more than 1000000 characters for this message.'], 'success'],
  )
  assert.equal(seen.length, 2)
})
