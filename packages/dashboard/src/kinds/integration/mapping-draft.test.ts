import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ObjectSchema } from './definition.ts'
import { fieldDraftOf, inMode, isDefault, mappingDraftOf, mappingOf, mappingProblems } from './mapping-draft.ts'
import { eventNames, pathSuggestions } from './path-suggestions.ts'

const SCHEMA: ObjectSchema = {
  properties: {
    user_id: { title: 'User ID', type: 'string', default: { '@path': '$.userId' } },
    utm: { title: 'UTM', type: 'object', properties: { source: { title: 'Source', type: 'string' } }, required: ['source'] },
    flag: { title: 'Flag', type: 'boolean' },
  },
  required: ['user_id'],
}

test('each value gets the form that fits it, and nothing is lost', () => {
  const mapping = {
    user_id: { '@path': '$.userId' },
    text: { '@template': '{{event}}' },
    utm: { source: { '@path': '$.context.campaign.source' }, unknown: 1 },
    flag: false,
    amount: 3.5,
    nothing: null,
    list: [{ '@path': '$.a' }],
    either: { '@case': { operator: 'lower', value: { '@path': '$.a' } } },
    both: { '@path': '$.a', '@template': 'b' },
    free: { a: 1 },
    empty: {},
  }
  const draft = mappingDraftOf(mapping, SCHEMA.properties)
  assert.deepEqual(Object.fromEntries(Object.entries(draft).map(([key, { mode }]) => [key, mode])), {
    user_id: 'path',
    text: 'template',
    utm: 'fields',
    flag: 'constant',
    amount: 'constant',
    nothing: 'json',
    list: 'json',
    either: 'json',
    both: 'json',
    free: 'json',
    empty: 'json',
  })
  assert.deepEqual(mappingOf(draft), mapping)
})

test('required fields, empty paths and JSON that cannot be parsed are problems at their field', () => {
  assert.deepEqual([...mappingProblems({}, SCHEMA)], [['mapping.user_id', 'This field is required.']])
  const draft = {
    user_id: { mode: 'path', text: '' },
    utm: { mode: 'fields', fields: {} },
    flag: { mode: 'json', text: '{' },
  } as const
  assert.deepEqual([...mappingProblems(draft, SCHEMA).keys()], ['mapping.user_id', 'mapping.utm.source', 'mapping.flag'])
})

test('another form keeps what fits', () => {
  const path = fieldDraftOf({ '@path': '$.properties.total' }, undefined)
  assert.deepEqual(inMode(path, 'template', undefined), { mode: 'template', text: '{{properties.total}}' })
  assert.deepEqual(inMode(inMode(path, 'template', undefined), 'path', undefined), path)
  assert.deepEqual(JSON.parse((inMode(path, 'json', undefined) as { text: string }).text), { '@path': '$.properties.total' })
  assert.deepEqual(inMode({ mode: 'none' }, 'constant', SCHEMA.properties['flag']), { mode: 'constant', value: true })
  assert.ok(isDefault(fieldDraftOf({ '@path': '$.userId' }, undefined), SCHEMA.properties['user_id']))
  assert.ok(!isDefault(path, SCHEMA.properties['user_id']))
})

test('paths are suggested from messages, with the newest value, and without keys that a path cannot name', () => {
  const suggestions = pathSuggestions([
    { userId: 'u-1', properties: { total: 19.9, items: [1, 2], 'a.b': 1, 'two words': 'x'.repeat(100) } },
    { userId: 'u-2', properties: { total: 5, coupon: 'SPRING' }, context: { ip: '203.0.113.7' } },
  ])
  const examples = new Map(suggestions.map(({ path, example }) => [path, example]))
  assert.equal(examples.get('$.properties.total'), '19.9')
  assert.equal(examples.get('$.properties.coupon'), 'SPRING')
  assert.equal(examples.get('$.properties.items'), '[1,2]')
  assert.equal(examples.get('$.userId'), 'u-1')
  assert.equal(examples.get('$.messageId'), '')
  assert.equal(examples.get('$.properties.two words')?.length, 41)
  assert.ok(!suggestions.some(({ path }) => path.includes('a.b')))
  assert.deepEqual(suggestions.at(-1)?.path, '$.context.ip')
})

test('events are suggested by how often they occur', () => {
  const events = ['A', 'B', 'B', null].map((event) => ({ event }))
  assert.deepEqual(eventNames(events), ['B', 'A'])
})
