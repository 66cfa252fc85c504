import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import fc from 'fast-check'
import { MESSAGE_TYPES, parseMessage, REFUSALS, type RefusalCode } from './index.ts'

const user = { userId: 'u-1' }

const refused: [title: string, input: unknown, code: RefusalCode, field?: string][] = [
  ['something that is not an object', 'track', 'invalid_request'],
  ['null', null, 'invalid_request'],
  ['an array', [], 'invalid_request'],
  ['a message without a type', user, 'unknown_type', 'type'],
  ['an unknown type', { ...user, type: 'purchase' }, 'unknown_type', 'type'],
  ['delete, which only the service makes', { ...user, type: 'delete' }, 'unknown_type', 'type'],
  ['a type that is a property of every object', { ...user, type: 'constructor' }, 'unknown_type', 'type'],
  ['a messageId that is not a string', { ...user, type: 'identify', messageId: 7 }, 'message_id_invalid', 'messageId'],
  ['an empty messageId', { ...user, type: 'identify', messageId: '' }, 'message_id_invalid', 'messageId'],
  ['a messageId of 101 characters', { ...user, type: 'identify', messageId: 'x'.repeat(101) }, 'message_id_invalid', 'messageId'],
  ['a numeric userId', { type: 'identify', userId: 42 }, 'id_not_string', 'userId'],
  ['a numeric anonymousId', { ...user, type: 'identify', anonymousId: 42 }, 'id_not_string', 'anonymousId'],
  ['identify with neither userId nor anonymousId', { type: 'identify' }, 'no_user_anon_id', 'userId'],
  ['track with neither userId nor anonymousId', { type: 'track', event: 'e' }, 'no_user_anon_id', 'userId'],
  ['page with neither userId nor anonymousId', { type: 'page' }, 'no_user_anon_id', 'userId'],
  ['screen with neither userId nor anonymousId', { type: 'screen' }, 'no_user_anon_id', 'userId'],
  ['group with neither userId nor anonymousId', { type: 'group', groupId: 'g' }, 'no_user_anon_id', 'userId'],
  ['empty ids, which identify nobody', { type: 'identify', userId: '', anonymousId: '' }, 'no_user_anon_id', 'userId'],
  ['track without an event name', { ...user, type: 'track' }, 'event_required', 'event'],
  ['track with an empty event name', { ...user, type: 'track', event: '' }, 'event_required', 'event'],
  ['track with an event name that is not a string', { ...user, type: 'track', event: 3 }, 'event_required', 'event'],
  ['group without groupId', { ...user, type: 'group' }, 'group_id_required', 'groupId'],
  ['group with a numeric groupId', { ...user, type: 'group', groupId: 1 }, 'id_not_string', 'groupId'],
  ['alias without userId', { type: 'alias', previousId: 'p' }, 'user_id_required', 'userId'],
  [
    'alias without userId, for which anonymousId is no substitute',
    { type: 'alias', anonymousId: 'a', previousId: 'p' },
    'user_id_required',
    'userId',
  ],
  ['alias without previousId', { ...user, type: 'alias' }, 'previous_id_required', 'previousId'],
  ['alias with a numeric previousId', { ...user, type: 'alias', previousId: 1 }, 'id_not_string', 'previousId'],
  ['properties that are an array', { ...user, type: 'track', event: 'e', properties: [] }, 'properties_not_object', 'properties'],
  ['properties that are a string', { ...user, type: 'page', properties: 'x' }, 'properties_not_object', 'properties'],
  ['traits that are not an object', { ...user, type: 'identify', traits: 'x' }, 'traits_not_object', 'traits'],
  ['group traits that are not an object', { ...user, type: 'group', groupId: 'g', traits: 1 }, 'traits_not_object', 'traits'],
  ['context that is not an object', { ...user, type: 'identify', context: true }, 'context_not_object', 'context'],
  ['integrations that are not an object', { ...user, type: 'identify', integrations: ['All'] }, 'integrations_not_object', 'integrations'],
  ['a page name that is not a string', { ...user, type: 'page', name: {} }, 'name_not_string', 'name'],
  ['a screen category that is not a string', { ...user, type: 'screen', category: 5 }, 'category_not_string', 'category'],
]

for (const [title, input, code, field] of refused) {
  test(`rejects ${title}: ${code}`, () => {
    const result = parseMessage(input)
    assert.equal(result.ok, false)
    assert.equal(!result.ok && result.code, code)
    assert.equal(!result.ok && result.field, field)
    assert.equal(!result.ok && result.message, REFUSALS[code])
  })
}

const minimal = {
  identify: { type: 'identify', userId: 'u' },
  track: { type: 'track', anonymousId: 'a', event: 'Order Completed' },
  page: { type: 'page', userId: 'u' },
  screen: { type: 'screen', userId: 'u' },
  group: { type: 'group', userId: 'u', groupId: 'g' },
  alias: { type: 'alias', userId: 'u', previousId: 'p' },
} as const

for (const type of MESSAGE_TYPES) {
  test(`accepts the smallest ${type} and returns the same object`, () => {
    const result = parseMessage(minimal[type])
    assert.ok(result.ok)
    assert.equal(result.message, minimal[type])
  })

  test(`accepts null as "not set" in every optional field of ${type}`, () => {
    const nulls = {
      messageId: null,
      anonymousId: null,
      context: null,
      integrations: null,
      traits: null,
      properties: null,
      name: null,
      category: null,
    }
    assert.ok(parseMessage({ ...nulls, ...minimal[type] }).ok)
  })
}

test('accepts a messageId of 100 characters', () => {
  assert.ok(parseMessage({ ...minimal.track, messageId: 'x'.repeat(100) }).ok)
})

test('accepts the calls of the shared vectors', () => {
  const vectors = JSON.parse(readFileSync(new URL('../../webhook/vectors.json', import.meta.url), 'utf8')) as {
    messages: { call: unknown }[]
  }
  const calls = vectors.messages.map((message) => message.call).filter((call) => call !== null)
  assert.ok(calls.length >= 3)
  for (const call of calls) assert.ok(parseMessage(call).ok)
})

test('returns a code from the table for any invalid JSON value, and never throws', () => {
  const field = fc.constantFrom(
    'type',
    'messageId',
    'userId',
    'anonymousId',
    'groupId',
    'previousId',
    'event',
    'properties',
    'traits',
    'context',
    'integrations',
    'name',
    '__proto__',
  )
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom(...MESSAGE_TYPES), fc.string())
  fc.assert(
    fc.property(fc.array(fc.tuple(field, value)), (entries) => {
      const result = parseMessage(
        JSON.parse(`{${entries.map(([key, item]) => `${JSON.stringify(key)}:${JSON.stringify(item)}`).join(',')}}`),
      )
      if (!result.ok) assert.ok(Object.hasOwn(REFUSALS, result.code))
    }),
    { numRuns: 2_000 },
  )
})

test('a missing field that is there under another spelling is named', () => {
  const CASES: [message: object, sentence: string][] = [
    [
      { type: 'track', event: 'E', user_id: 'u' },
      'Either userId or anonymousId is required. The message has user_id: did you mean userId?',
    ],
    [
      { type: 'track', event: 'E', anonymousID: 'a' },
      'Either userId or anonymousId is required. The message has anonymousID: did you mean anonymousId?',
    ],
    [{ type: 'group', userId: 'u', group_id: 'g' }, 'A group call requires groupId. The message has group_id: did you mean groupId?'],
    [
      { type: 'track', userId: 'u', event_name: 'E' },
      'A track call requires event, a non-empty string. The message has event_name: did you mean event?',
    ],
    [
      { Type: 'track', userId: 'u', event: 'E' },
      'type must be one of identify, track, page, screen, group or alias. The message has Type: did you mean type?',
    ],
    [{ type: 'track', event: 'E', constructor: 'u' }, 'Either userId or anonymousId is required.'],
  ]
  for (const [message, sentence] of CASES) {
    const result = parseMessage(message)
    assert.equal(result.ok ? '' : result.message, sentence)
  }
})
