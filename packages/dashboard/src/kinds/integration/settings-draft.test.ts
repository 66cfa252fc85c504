import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holds, type ObjectSchema } from './definition.ts'
import { settingFields, settingsChanges, settingsDraftOf, settingsOf, settingsProblems } from './settings-draft.ts'

const SCHEMA: ObjectSchema = {
  properties: {
    apiKey: { title: 'API key', type: 'string', writeOnly: true },
    region: {
      title: 'Region',
      type: 'string',
      default: 'us',
      oneOf: [
        { const: 'us', title: 'United States' },
        { const: 'custom', title: 'Another' },
      ],
    },
    host: {
      title: 'Host',
      type: 'string',
      'x-shown-if': { conditions: [{ fieldKey: 'region', operator: 'is', value: 'custom' }] },
      'x-required-if': { conditions: [{ fieldKey: 'region', operator: 'is', value: 'custom' }] },
    },
    limit: { title: 'Limit', type: 'number' },
    headers: { title: 'Headers', type: 'object' },
    internal: { title: 'Internal', type: 'string', 'x-hidden': true },
    oauth: {
      title: 'OAuth',
      type: 'object',
      properties: {
        clientId: { title: 'Client ID', type: 'string' },
        clientSecret: { title: 'Client secret', type: 'string', writeOnly: true },
      },
      required: ['clientId'],
    },
  },
  required: ['apiKey', 'oauth'],
}

const keys = (values: Record<string, unknown>): string[] => settingFields(SCHEMA, values).map(({ key }) => key)

test('fields are shown in the order of the definition, conditional ones only if their condition holds, hidden ones never', () => {
  assert.deepEqual(keys({ region: 'us' }), ['apiKey', 'region', 'limit', 'headers', 'oauth.clientId', 'oauth.clientSecret'])
  assert.deepEqual(keys({ region: 'custom' }).slice(0, 3), ['apiKey', 'region', 'host'])
})

test('a new draft has the defaults; required settings are named until they are entered', () => {
  const draft = settingsDraftOf(SCHEMA, null)
  assert.deepEqual(draft, { values: { region: 'us' }, secrets: {} })
  assert.deepEqual(
    [...settingsProblems(SCHEMA, draft, [])],
    [
      ['settings.apiKey', 'Enter API key.'],
      ['settings.oauth.clientId', 'Enter Client ID.'],
    ],
  )
  const filled = { values: { region: 'custom', headers: '{' }, secrets: { apiKey: 'k', 'oauth.clientId': 'c' } }
  assert.deepEqual([...settingsProblems(SCHEMA, filled, []).keys()], ['settings.host', 'settings.headers'])
  const whole = { ...filled, values: { region: 'custom', host: 'h', headers: '{"a":1}', limit: 3 } }
  assert.deepEqual([...settingsProblems(SCHEMA, whole, [])], [])
  assert.deepEqual(settingsOf(SCHEMA, whole), {
    apiKey: 'k',
    region: 'custom',
    host: 'h',
    limit: 3,
    headers: { a: 1 },
    oauth: { clientId: 'c' },
  })
})

test('a stored secret is kept unless it is replaced or removed, and only what changed is sent', () => {
  const saved = settingsDraftOf(SCHEMA, { region: 'us', limit: 3 })
  const stored = ['apiKey', 'oauth']
  assert.deepEqual([...settingsProblems(SCHEMA, saved, stored)], [])
  assert.equal(settingsChanges(SCHEMA, saved, saved), null)
  assert.deepEqual(
    [...settingsProblems(SCHEMA, { ...saved, secrets: { apiKey: '' } }, stored)],
    [['settings.apiKey', 'Enter the new value, or keep the current one.']],
  )
  assert.deepEqual(settingsChanges(SCHEMA, saved, { values: { region: 'us' }, secrets: { apiKey: 'new', 'oauth.clientSecret': null } }), {
    apiKey: 'new',
    limit: null,
    oauth: { clientSecret: null },
  })
  // Removing a required secret leaves it missing.
  assert.ok(settingsProblems(SCHEMA, { ...saved, secrets: { apiKey: null } }, stored).has('settings.apiKey'))
})

test('a part of OAuth is required only as long as what replaces it is not typed', () => {
  const isMissing = { conditions: [{ fieldKey: 'accessToken', operator: 'is' }] }
  const schema: ObjectSchema = {
    properties: {
      oauth: {
        title: 'OAuth',
        type: 'object',
        properties: {
          clientId: { title: 'Client ID', type: 'string', 'x-required-if': isMissing },
          accessToken: { title: 'Access token', type: 'string', writeOnly: true },
        },
      },
    },
    required: ['oauth'],
  }
  const problems = (secrets: Record<string, string>): string[] => [...settingsProblems(schema, { values: {}, secrets }, []).keys()]
  assert.deepEqual(problems({}), ['settings.oauth.clientId'])
  assert.deepEqual(problems({ 'oauth.accessToken': '' }), ['settings.oauth.clientId'])
  assert.deepEqual(problems({ 'oauth.accessToken': 'token' }), [])
})

test('conditions hold for any or all of their fields, for a list of values, and for values that depend on the message', () => {
  const is = (fieldKey: string, value: unknown) => ({ fieldKey, operator: 'is', value })
  assert.equal(holds(undefined, {}), true)
  assert.equal(holds({ match: 'any', conditions: [is('a', 1), is('b', 1)] }, { b: 1 }), true)
  assert.equal(holds({ conditions: [is('a', 1), is('b', 1)] }, { b: 1 }), false)
  assert.equal(holds({ conditions: [is('a', [1, 2])] }, { a: 2 }), true)
  assert.equal(holds({ conditions: [{ fieldKey: 'a', operator: 'is_not', value: 1 }] }, {}), true)
  assert.equal(holds({ conditions: [is('a', 1)] }, { a: { '@path': '$.x' } }), true)
  assert.equal(holds({ conditions: [{ type: 'syncMode', operator: 'is', value: 'add' }] }, { __segment_internal_sync_mode: 'add' }), true)
})
