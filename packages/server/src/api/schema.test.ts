import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { ApiError } from '../errors.ts'
import {
  array,
  boolean,
  integer,
  nullable,
  object,
  oneOf,
  optional,
  patchOf,
  record,
  type Schema,
  shown,
  string,
  time,
  withDefault,
} from './schema.ts'

const THING = object({
  name: string({ min: 1, max: 5 }),
  size: withDefault(integer({ min: 1, max: 10 }), 3),
  kind: optional(oneOf(['a', 'b'])),
  parts: withDefault(array(object({ on: boolean() }), { max: 2 }), []),
  labels: optional(record(string({ max: 3 }), { max: 2 })),
  note: optional(nullable(string())),
})

function rejectionOf(value: unknown, schema: Schema<unknown> = THING): { code: string; field: string | undefined; message: string } {
  try {
    schema.parse(value, '')
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error))
    return { code: error.code, field: error.field, message: error.message }
  }
  throw assert.fail('it was accepted')
}

test('known fields are parsed, and missing fields get their defaults', () => {
  assert.deepEqual(THING.parse({ name: 'x' }, ''), { name: 'x', size: 3, parts: [] })
  const whole = { name: 'x', size: 1, kind: 'b', parts: [{ on: true }], labels: { k: 'v' }, note: null }
  assert.deepEqual(THING.parse(whole, ''), whole)
})

test('a default value is a fresh copy each time', () => {
  const { parts } = THING.parse({ name: 'x' }, '')
  parts.push({ on: true })
  assert.deepEqual(THING.parse({ name: 'x' }, '').parts, [])
})

test('an unknown field is rejected with its path, at any depth', () => {
  assert.deepEqual(rejectionOf({ name: 'x', colour: 1 }), {
    code: 'unknown_field',
    field: 'colour',
    message: 'colour is not a known field. Remove it or correct its spelling.',
  })
  assert.equal(rejectionOf({ name: 'x', Parts: [] }).message, 'Parts is not a known field. Did you mean parts?')
  assert.equal(rejectionOf({ name: 'x', part: [] }).message, 'part is not a known field. Did you mean parts?')
  assert.equal(rejectionOf({ name: 'x', parts: [{ on: true, off: 1 }] }).field, 'parts[0].off')
  assert.equal(rejectionOf({ name: 'x', toString: 1 }).field, 'toString')
  assert.equal(rejectionOf({ name: 'x', constructor: {} }).field, 'constructor')
})

test('__proto__ is an unknown field in objects and records alike, and pollutes nothing', () => {
  for (const [text, field] of [
    ['{"name":"x","__proto__":{"polluted":true}}', '__proto__'],
    ['{"name":"x","parts":[{"on":true,"__proto__":{"polluted":true}}]}', 'parts[0].__proto__'],
    ['{"name":"x","labels":{"__proto__":"y"}}', 'labels.__proto__'],
  ] as const) {
    const { code, field: told } = rejectionOf(JSON.parse(text))
    assert.deepEqual([code, told], ['unknown_field', field])
  }
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
})

test('fields of a prototype do not count as given', () => {
  assert.equal(rejectionOf(Object.create({ name: 'x' })).message, 'name is required.')
})

const wrong: [title: string, value: unknown, field: string, message: string][] = [
  ['a missing field', {}, 'name', 'name is required.'],
  ['null where it is not allowed', { name: null }, 'name', 'name must be a string.'],
  ['a string that is too long', { name: 'abcdef' }, 'name', 'name must be 1 to 5 characters long.'],
  ['a string with an unpaired surrogate', { name: '\ud800' }, 'name', 'name must be valid Unicode, without unpaired surrogates.'],
  ['a number out of its range', { name: 'x', size: 11 }, 'size', 'size must be an integer from 1 to 10.'],
  ['a fraction', { name: 'x', size: 1.5 }, 'size', 'size must be an integer from 1 to 10.'],
  ['a number as text', { name: 'x', size: '3' }, 'size', 'size must be an integer from 1 to 10.'],
  ['a word that is not in the list', { name: 'x', kind: 'c' }, 'kind', 'kind must be one of a, b.'],
  ['something other than an array', { name: 'x', parts: {} }, 'parts', 'parts must be an array.'],
  ['too many entries', { name: 'x', parts: [{ on: true }, { on: true }, { on: true }] }, 'parts', 'parts must have at most 2 entries.'],
  ['a wrong type inside a list', { name: 'x', parts: [{ on: true }, { on: 1 }] }, 'parts[1].on', 'parts[1].on must be true or false.'],
  ['a wrong value in a record', { name: 'x', labels: { k: 'long' } }, 'labels.k', 'labels.k must be at most 3 characters long.'],
  ['too many entries in a record', { name: 'x', labels: { a: '', b: '', c: '' } }, 'labels', 'labels must have at most 2 entries.'],
  ['an array for a record', { name: 'x', labels: [] }, 'labels', 'labels must be an object.'],
]
for (const [title, value, field, message] of wrong) {
  test(`rejects ${title}: ${message}`, () => assert.deepEqual(rejectionOf(value), { code: 'invalid_field', field, message }))
}

test('a body that is not an object is rejected as invalid_request', () => {
  for (const value of [null, [], 'x', 7]) assert.equal(rejectionOf(value).code, 'invalid_request')
})

test('a duplicate in a list of unique entries is rejected with its index', () => {
  const schema = object({ ids: array(string(), { identity: (id) => id.toLowerCase() }) })
  assert.deepEqual(rejectionOf({ ids: ['a', 'b', 'A'] }, schema).field, 'ids[2]')
})

test('in a patch schema no field is required and none has a default', () => {
  const change = object(patchOf(THING.fields))
  assert.deepEqual(change.parse({}, ''), {})
  assert.deepEqual(change.parse({ size: 4 }, ''), { size: 4 })
  assert.doesNotMatch(JSON.stringify(change.toJsonSchema()), /required":\["name|"default"/)
})

test('a time is ISO 8601 in UTC with milliseconds', () => {
  const schema = object({ at: time() })
  assert.deepEqual(schema.parse({ at: '2026-11-14T09:00:00.000Z' }, ''), { at: '2026-11-14T09:00:00.000Z' })
  assert.equal(rejectionOf({ at: '2026-11-14' }, schema).field, 'at')
})

test('a stored time is shown under its name without Ms; a stored duration does not fill a field that is no time', () => {
  const schema = object({ at: time(), closedAt: nullable(time()), retry: nullable(string()), size: withDefault(integer(), 3) })
  assert.deepEqual(shown(schema, { atMs: 0, closedAtMs: null, retryMs: 5, sizeMs: 7 }), {
    at: '1970-01-01T00:00:00.000Z',
    closedAt: null,
    size: 3,
  })
})

test('any JSON value is either parsed or rejected with an ApiError; no other error is thrown', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      try {
        THING.parse(value, '')
      } catch (error) {
        return error instanceof ApiError
      }
      return true
    }),
  )
})

test('the JSON Schema describes what the parser accepts', () => {
  assert.deepEqual(THING.toJsonSchema(), {
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 5 },
      size: { type: 'integer', minimum: 1, maximum: 10, default: 3 },
      kind: { type: 'string', enum: ['a', 'b'] },
      parts: {
        type: 'array',
        items: { type: 'object', properties: { on: { type: 'boolean' } }, required: ['on'], additionalProperties: false },
        maxItems: 2,
        default: [],
      },
      labels: { type: 'object', additionalProperties: { type: 'string', maxLength: 3 }, maxProperties: 2 },
      note: { type: ['string', 'null'] },
    },
    required: ['name'],
    additionalProperties: false,
  })
})
