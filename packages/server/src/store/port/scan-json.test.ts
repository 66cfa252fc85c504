// Compares the scanner with JSON.parse on the same bytes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isTooDeep, MAX_DEPTH, mayBeDeep, parseBatchItems, scanBatch } from './scan-json.ts'

const bytes = (text: string): Buffer => Buffer.from(text)
const nested = (levels: number, open = '[', close = ']', inner = ''): string => open.repeat(levels) + inner + close.repeat(levels)

test('the size of an item is its number of bytes as sent', () => {
  const items = ['{"a" : "é\\"}]"}', '[1, 2]', '"x"', '12345', 'null', '{}']
  const body = `{"x":[{"batch":[0]}],"batch" : [ ${items.join(' ,\n')} ] , "y":"batch"}`
  for (const [index, item] of items.entries()) {
    const size = Buffer.byteLength(item)
    const others = items.map((each, at) => (at === index ? each : '1')).join(',')
    assert.equal(scanBatch(bytes(`{"batch":[${others}]}`), size).oversized, null)
    assert.equal(scanBatch(bytes(`{"batch":[${others}]}`), size - 1).oversized?.index, size === 1 ? 0 : index)
  }
  assert.deepEqual(scanBatch(bytes(body), 10).oversized, { index: 0, start: body.indexOf(items[0] as string) })
  assert.equal(scanBatch(bytes(body), 100).oversized, null)
})

test('if there are several arrays named batch, the last one counts, however its key is escaped', () => {
  const big = `"${'x'.repeat(50)}"`
  assert.equal(scanBatch(bytes(`{"batch":[${big}],"batch":[1]}`), 10).oversized, null)
  assert.equal(scanBatch(bytes(`{"batch":[1],"b\\u0061tch":[1,${big}]}`), 10).oversized?.index, 1)
  assert.equal(scanBatch(bytes(`{"batch":[1],"b\\\\atch":[${big}]}`), 10).oversized, null)
})

test('nesting depth starts at the message', () => {
  const deep = nested(MAX_DEPTH + 1)
  const fits = nested(MAX_DEPTH)
  assert.deepEqual(scanBatch(bytes(`{"batch":[${fits},${deep},1,${deep}]}`), 1e6).deepItems, new Set([1, 3]))
  assert.equal(scanBatch(bytes(`{"batch":[${fits}],"context":${fits}}`), 1e6).deepItems, null)
  assert.equal(scanBatch(bytes(`{"batch":[${fits}],"context":${fits}}`), 1e6).deepEnvelope, false)
  assert.equal(scanBatch(bytes(`{"context":${deep},"batch":[${fits}]}`), 1e6).deepEnvelope, true)
  assert.deepEqual([isTooDeep(bytes(fits)), isTooDeep(bytes(deep)), isTooDeep(bytes(` ${deep} `))], [false, true, true])
  assert.equal(isTooDeep(bytes(`"${deep}"`)), false)
  assert.equal(scanBatch(bytes(`{"batch":[${nested(200_000)}]}`), 1e6).deepItems?.has(0), true)
})

test('a text with few brackets is recognised as not too deep', () => {
  assert.equal(mayBeDeep(nested(MAX_DEPTH)), false)
  assert.equal(mayBeDeep(nested(MAX_DEPTH + 1)), true)
  assert.equal(mayBeDeep(nested(400, '{"a":', '}', nested(101))), true)
  assert.equal(mayBeDeep('"'.concat('x'.repeat(5_000), '"')), false)
})

test('sizes and depths match the parsed values, for any JSON', () => {
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0
  const spaced = fc.tuple(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(undefined, 1, '\t'))
  fc.assert(
    fc.property(fc.array(spaced), fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(60), (values, others, limit) => {
      const items = values.map(([value, space]) => JSON.stringify(value, null, space))
      const rest = Object.entries(others).map(([key, value]) => `,${JSON.stringify(key)}:${JSON.stringify(value)}`)
      const text = `{"batch":[${items.join(', ')}]${rest.filter((each) => !each.startsWith(',"batch"')).join('')}}`
      const { oversized, deepItems, deepEnvelope } = scanBatch(bytes(text), limit)
      const first = items.findIndex((item) => Buffer.byteLength(item) > limit)
      assert.equal(oversized?.index ?? -1, first)
      if (oversized)
        assert.ok(
          bytes(text)
            .subarray(oversized.start)
            .toString()
            .startsWith(items[first] as string),
        )
      assert.deepEqual([deepItems, deepEnvelope], [null, false])
      for (const [value] of values) assert.ok(depthOf(value) <= MAX_DEPTH)
    }),
    { numRuns: 300 },
  )
})

test('the wanted items and the other fields are parsed as JSON.parse does, and the other items are null', () => {
  const spaced = fc.tuple(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(undefined, 1, '\t'))
  const fields = fc.dictionary(
    fc.string().filter((key) => key !== 'batch'),
    fc.jsonValue(),
  )
  fc.assert(
    fc.property(fields, fc.array(spaced), fields, fc.array(fc.nat(5)), (before, values, after, wanted) => {
      const items = values.map(([value, space]) => JSON.stringify(value, null, space)).join(' ,')
      const inner = [before, 'batch', after].flatMap((part) => {
        if (part === 'batch') return [`"batch" : [ ${items} ]`]
        return Object.entries(part).map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
      })
      const text = ` { ${inner.join(' , ')} } `
      const expected = JSON.parse(text) as { batch: unknown[] }
      for (const index of expected.batch.keys()) if (!wanted.includes(index)) expected.batch[index] = null
      assert.deepEqual(parseBatchItems(bytes(text), new Set(wanted)), expected)
    }),
  )
  assert.deepEqual(parseBatchItems(bytes('{"batch":[1],"b\\u0061tch":[2,3],"a":4}'), new Set([0])), { batch: [2, null], a: 4 })
  assert.deepEqual(parseBatchItems(bytes('{"a":[1]}'), new Set([0])), { a: [1] })
  for (const damaged of ['{"batch":[{"a":1},{"b"', '{"batch":[1', '{"batch":', '{"batch":[{"a":}]}', '{']) {
    assert.throws(() => parseBatchItems(bytes(damaged), new Set([0])), SyntaxError, damaged)
  }
})
