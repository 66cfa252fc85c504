import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { integrationOf, type Request, type TestAction } from '../fixtures/integrations.ts'
import { answerJson, startTool } from '../fixtures/tool.ts'
import type { FieldLookup, FoundChoices, Integration, RunOptions } from '../integration.ts'

const ABOUT = { label: 'Field', description: 'A field.' }
const FIELDS = {
  list: { ...ABOUT, type: 'string', dynamic: true },
  traits: { ...ABOUT, type: 'object', dynamic: true },
  links: { ...ABOUT, type: 'object', multiple: true, properties: { kind: { ...ABOUT, type: 'string', dynamic: true } } },
} as const

function integration(dynamicFields: NonNullable<TestAction['dynamicFields']>, settings: JsonObject = {}, more = {}): Integration {
  return integrationOf({ fields: FIELDS, dynamicFields }, more, settings)
}

async function look(opened: Integration, lookup: Partial<FieldLookup>, options: Partial<RunOptions> = {}): Promise<FoundChoices> {
  const found = await opened.choices?.(
    { action: 'send', field: 'list', mapping: {}, ...lookup },
    { signal: AbortSignal.timeout(20_000), ...options },
  )
  return found ?? assert.fail('the integration has no lookup of choices')
}

test('a function gets the constants of the mapping, the page and the settings, and what it answers is returned', async () => {
  const seen: unknown[] = []
  const opened = integration(
    {
      list: (_, { payload, page, settings }) => {
        seen.push({ payload, page, settings })
        return { choices: [{ value: 'l1', label: 'First', description: 'One' }, { value: 2, label: 'Second' }, 'l3'], nextPage: 5 }
      },
    },
    { region: 'eu' },
  )
  const mapping = {
    type: 'contact',
    id: { '@path': '$.userId' },
    quoted: { '@literal': 'x' },
    details: { kind: 'a', name: { '@template': '{{event}}' } },
    links: [{ kind: 'b' }, { '@path': '$.x' }],
  }
  assert.deepEqual(await look(opened, { mapping, page: '4' }), {
    result: { kind: 'success' },
    choices: [
      { value: 'l1', label: 'First', description: 'One' },
      { value: 2, label: 'Second' },
      { value: 'l3', label: 'l3' },
    ],
    nextPage: '5',
  })
  const payload = { type: 'contact', quoted: 'x', details: { kind: 'a' }, links: [{ kind: 'b' }, null] }
  assert.deepEqual(seen, [{ payload, page: '4', settings: { region: 'eu' } }])
})

test('the names of properties, and the properties of elements of a list, have functions of their own', async () => {
  const opened = integration({
    traits: { __keys__: () => ({ choices: [{ value: 'plan', label: 'Plan' }] }) },
    links: { kind: (_, { dynamicFieldContext }) => ({ choices: [{ value: JSON.stringify(dynamicFieldContext), label: 'Kind' }] }) },
  })
  assert.deepEqual((await look(opened, { field: 'traits' })).choices, [{ value: 'plan', label: 'Plan' }])
  const { choices } = await look(opened, { field: 'links[2].kind' })
  assert.deepEqual(choices[0]?.value, '{"selectedArrayIndex":2}')
  const missing = await look(opened, { field: 'other' })
  assert.deepEqual(missing.result.kind, 'failed')
})

test('an answer is limited in size, contains no secret, and omits invalid choices', async () => {
  const secret = 'secret-key-123'
  const authentication = { scheme: 'custom', fields: { apiKey: { ...ABOUT, type: 'password' } } }
  const many = Array.from({ length: 3_000 }, (_, at) => ({ value: `v${at}`, label: `l${at}` }))
  const answers: Record<string, unknown> = {
    many: { choices: many, nextPage: '' },
    long: { choices: many.map(({ value }) => ({ value: `${value}${'x'.repeat(900)}`, label: 'y'.repeat(900) })) },
    odd: {
      choices: [
        null,
        { label: 'no value' },
        { value: {}, label: 'object' },
        { value: '' },
        { value: 'x'.repeat(1_001) },
        { value: 'a', label: 7 },
        { value: 'a', label: 'again' },
        { value: secret, label: 'Key' },
        { value: 'b', label: `Key ${secret}` },
      ],
      nextPage: `/next?key=${secret}`,
    },
    none: null,
  }
  const opened = integration({ list: (_, { page = '' }) => answers[page] }, { apiKey: secret }, { authentication })
  const lengths: number[] = []
  for (const page of ['many', 'long']) lengths.push((await look(opened, { page })).choices.length)
  assert.equal(lengths[0], 1_000)
  assert.ok((lengths[1] ?? 0) > 50 && (lengths[1] ?? 0) < 200, String(lengths[1]))
  assert.deepEqual(await look(opened, { page: 'odd' }), {
    result: { kind: 'success' },
    choices: [
      { value: 'a', label: 'a' },
      { value: 'b', label: 'Key (hidden)' },
    ],
    nextPage: null,
  })
  assert.deepEqual((await look(opened, { page: 'none' })).choices, [])
})

test('errors are classified whether the function throws or returns them, and name no secret', async (t) => {
  const secret = 'secret-key-123'
  const tool = await startTool(t, (response) => answerJson(response, 403, {}))
  const opened = (list: (request: Request) => unknown) =>
    integration(
      { list: (request) => list(request) },
      { apiKey: secret },
      { authentication: { scheme: 'custom', fields: { apiKey: { ...ABOUT, type: 'password' } } } },
    )
  const resultOf = async (list: (request: Request) => unknown) => (await look(opened(list), {})).result
  const thrown = await resultOf((request) => request(tool.url))
  assert.deepEqual(thrown.kind === 'status' && thrown.status, 403)
  const returned = await resultOf(async (request) => {
    await request(tool.url).catch(() => undefined)
    return { choices: [], error: { code: 'FORBIDDEN', message: `No access with ${secret}` } }
  })
  assert.deepEqual(returned, { kind: 'status', status: 403, retryAfter: null, message: 'No access with (hidden)' })
  assert.deepEqual(await resultOf(() => ({ choices: [], error: { code: '404', message: 'Choose a type first' } })), {
    kind: 'failed',
    code: 'integration_failed',
    message: 'Choose a type first',
  })
  const bug = await resultOf(() => {
    throw new TypeError(`cannot read ${secret}`)
  })
  assert.deepEqual(bug, { kind: 'failed', code: 'integration_failed', message: 'cannot read (hidden)' })
})

test('a function that does not end is given up at the deadline', async (t) => {
  let arrived = (): void => {}
  const arrival = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const tool = await startTool(t, () => arrived())
  const deadline = new AbortController()
  const looking = look(integration({ list: (request) => request(tool.url) }), {}, { signal: deadline.signal })
  await arrival
  deadline.abort()
  const { result } = await looking
  assert.deepEqual(result.kind === 'failed' && result.code, 'timeout')
})

test('an access token is renewed for a stored destination, and never for settings that are not stored', async (t) => {
  let renewals = 0
  const tool = await startTool(t, (response, { path, headers }) => {
    if (path === '/token') return answerJson(response, 200, { access_token: `token-${++renewals}` })
    answerJson(response, headers.authorization === `Bearer token-${renewals}` && renewals > 0 ? 200 : 401, [{ value: 'l1', label: 'List' }])
  })
  const authentication = {
    scheme: 'oauth2',
    fields: {},
    refreshAccessToken: async (request: Request) => {
      const { data } = await request(`${tool.url}/token`, { method: 'POST' })
      return { accessToken: (data as { access_token: string }).access_token }
    },
  }
  const extendRequest = ({ auth }: { auth: { accessToken?: string } }) => ({ headers: { authorization: `Bearer ${auth.accessToken}` } })
  // As many definitions do, it returns the error.
  const list = async (request: Request): Promise<unknown> => {
    try {
      return { choices: (await request(`${tool.url}/lists`)).data }
    } catch (error) {
      const { message, response } = error as { message: string; response: { status: number } }
      return { choices: [], error: { message, code: String(response.status) } }
    }
  }
  const opened = (oauth: JsonObject) => integration({ list }, { oauth }, { authentication, extendRequest })
  const unsaved = await look(opened({ refreshToken: 'r' }), {}, { renewsTokens: false })
  assert.deepEqual(unsaved.result.kind === 'failed' && unsaved.result.code, 'invalid_authentication')
  assert.equal(tool.received.length, 0)
  const expired = await look(opened({ refreshToken: 'r', accessToken: 'old-token' }), {}, { renewsTokens: false })
  assert.deepEqual(expired.result.kind === 'status' && expired.result.status, 401)
  assert.equal(renewals, 0)
  const stored = await look(opened({ refreshToken: 'r', accessToken: 'old-token' }), {})
  assert.deepEqual([stored.choices, renewals], [[{ value: 'l1', label: 'List' }], 1])
})
