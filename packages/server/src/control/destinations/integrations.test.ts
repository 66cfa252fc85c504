// Integration destinations over the control API, with the real catalogue: creating, updating, showing, and every way to get the settings wrong.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { asIntegration } from '../../destinations/fixtures/integration.ts'
import { openCatalog } from '../../installation/integrations-catalog.ts'
import { type Answer, type Fixture, STILL, startControl } from '../fixtures/start-control.ts'
import type { ControlDelivery } from '../routes/route.ts'

const SLACK_URL = 'https://hooks.slack.com/services/T0/B0/very-secret-path'
const AMPLITUDE = {
  integration: 'actions-amplitude',
  settings: { apiKey: 'api-key-1', secretKey: 'secret-key-1', endpoint: 'north_america' },
}
const SLACK = {
  integration: 'actions-slack',
  subscriptions: [
    {
      name: 'Orders',
      action: 'postToChannel',
      subscribe: 'type = "track" and event = "Order Completed"',
      mapping: { url: SLACK_URL, text: { '@template': '{{event}} by {{userId}}' }, channel: 'orders' },
      enabled: true,
    },
  ],
}

async function start(t: TestContext): Promise<Fixture> {
  return await startControl(t, { catalog: () => openCatalog('nowhere') })
}

function create({ call }: Fixture, body: object): Promise<Answer> {
  return call('POST', '/api/destinations', { type: 'integration', name: 'x', ...body })
}

test('without subscriptions, an integration gets the automatic presets, and its secrets are not shown', async (t) => {
  const fixture = await start(t)
  const { status, body } = await create(fixture, AMPLITUDE)
  assert.equal(status, 201, JSON.stringify(body))
  assert.deepEqual(
    [body.type, body.integration, body.timeoutMs, body.batch.size, body.version],
    ['integration', 'actions-amplitude', 30_000, 1, 1],
  )
  assert.deepEqual(body.settings, { endpoint: 'north_america' })
  assert.deepEqual(body.secretSettings, ['apiKey', 'secretKey'])
  for (const field of ['urls', 'headers', 'hasSharedSecret', 'request', 'transformation', 'auth', 'tls']) assert.ok(!(field in body), field)
  const { presets } = (await fixture.call('GET', '/api/catalog/actions-amplitude')).body
  const names = (list: { name: string; type?: string }[]): string[] =>
    list.filter(({ type = 'automatic' }) => type === 'automatic').map(({ name }) => name)
  assert.deepEqual(names(body.subscriptions), names(presets))
  for (const { id, enabled } of body.subscriptions) assert.ok(String(id).startsWith('sub_') && enabled)
  assert.ok(!JSON.stringify(body).includes('api-key-1'))
})

test('what every destination has works for integrations', async (t) => {
  const fixture = await start(t)
  const { call } = fixture
  const letters = (await call('POST', '/api/destinations', { name: 'letters', urls: ['https://receiver.example/'] })).body
  const more = {
    timeoutMs: 10_000,
    maxInFlight: 3,
    historical: false,
    subscribe: 'userId != null',
    filter: { types: { allow: ['track'], deny: [] } },
    retry: { windowMs: 60_000, failStatuses: [503] },
    batch: { size: 50 },
    deadLetter: letters.id,
  }
  const { body } = await create(fixture, { ...AMPLITUDE, ...more })
  assert.deepEqual([body.timeoutMs, body.maxInFlight, body.historical, body.subscribe], [10_000, 3, false, 'userId != null'])
  assert.deepEqual([body.retry.windowMs, body.retry.failStatuses, body.batch.size, body.deadLetter], [60_000, [503], 50, letters.id])
  const patched = await call('PATCH', `/api/destinations/${body.id}`, { timeoutMs: 30_000, batch: { lingerMs: 0 }, paused: true })
  assert.deepEqual([patched.body.timeoutMs, patched.body.batch, patched.body.paused], [30_000, { ...body.batch, lingerMs: 0 }, true])
  assert.deepEqual((await call('GET', `/api/destinations/${body.id}`)).body, patched.body)
  assert.equal((await call('GET', `/api/destinations/${body.id}/health`)).status, 200)
  assert.equal((await call('DELETE', `/api/destinations/${body.id}`)).status, 204)
})

test('an update merges settings by key, and null removes one', async (t) => {
  const fixture = await start(t)
  const { id } = (await create(fixture, AMPLITUDE)).body
  const stored = (): unknown => asIntegration(fixture.store.configuration().destinations.get(id)).settings
  const patch = (settings: object): Promise<Answer> => fixture.call('PATCH', `/api/destinations/${id}`, { settings })
  assert.equal((await patch({ endpoint: 'europe' })).status, 200)
  assert.deepEqual(stored(), { apiKey: 'api-key-1', secretKey: 'secret-key-1', endpoint: 'europe' })
  assert.deepEqual((await patch({ secretKey: 'secret-key-2', endpoint: null })).body.secretSettings, ['apiKey', 'secretKey'])
  assert.deepEqual(stored(), { apiKey: 'api-key-1', secretKey: 'secret-key-2' })
  const refused = await patch({ apiKey: null })
  assert.deepEqual([refused.status, refused.body.field], [400, 'settings.apiKey'])
})

test('the tokens of OAuth are settings too: merged by key, and not shown', async (t) => {
  const fixture = await start(t)
  const oauth = { clientId: 'client-1', clientSecret: 'client-secret-1', refreshToken: 'refresh-token-1' }
  const created = await create(fixture, { integration: 'actions-google-sheets', settings: { oauth } })
  assert.equal(created.status, 201, created.text)
  const { id } = created.body
  const patched = await fixture.call('PATCH', `/api/destinations/${id}`, {
    settings: { oauth: { refreshToken: 'refresh-token-2', accessToken: 'access-1' } },
  })
  assert.deepEqual(asIntegration(fixture.store.configuration().destinations.get(id)).settings['oauth'], {
    ...oauth,
    refreshToken: 'refresh-token-2',
    accessToken: 'access-1',
  })
  assert.ok(!/secret-1|token-|access-1/.test(patched.text), patched.text)
  assert.deepEqual(patched.body.secretSettings, ['oauth'])
})

test('an access token is enough for an integration that uses OAuth, and one without it needs what requests a token', async (t) => {
  const fixture = await start(t)
  const hubspot = (oauth: object): Promise<Answer> => create(fixture, { integration: 'actions-hubspot-cloud', settings: { oauth } })
  const created = await hubspot({ accessToken: 'pat-1' })
  assert.deepEqual([created.status, created.body.secretSettings], [201, ['oauth']], created.text)
  for (const oauth of [{}, { refreshToken: 'r' }, { accessToken: 'a', refreshToken: 'r' }, { accessToken: '' }]) {
    const refused = await hubspot(oauth)
    assert.deepEqual([refused.status, refused.body.field], [400, 'settings.oauth.clientId'], refused.text)
    assert.match(refused.body.error.message ?? refused.text, /is required if accessToken is missing or refreshToken is given/)
  }
  const linkedIn = await create(fixture, { integration: 'actions-linkedin-conversions', settings: { oauth: { accessToken: 'a' } } })
  assert.equal(linkedIn.status, 201, linkedIn.text)
})

test('a destination that would send nothing, or fail, is accepted with a warning that says what to do', async (t) => {
  const fixture = await start(t)
  const empty = await create(fixture, { integration: 'actions-hubspot-cloud', settings: { oauth: { accessToken: 'a' } } })
  assert.deepEqual(
    empty.body.warnings?.map(({ code, field }: { code: string; field: string }) => [code, field]),
    [['no_subscription', 'subscriptions']],
    empty.text,
  )
  assert.match(empty.body.warnings[0].message, /nothing is sent\. Add one for each action.*upsertContact/)
  const read = await fixture.call('GET', `/api/destinations/${empty.body.id}`)
  assert.equal(read.body.warnings, undefined)
  assert.equal(read.headers.get('etag'), empty.headers.get('etag'), 'warnings do not change the ETag')
  const linkedIn = async (mapping: object): Promise<unknown[]> => {
    const subscriptions = [{ name: 'Convert', action: 'streamConversion', subscribe: 'type = "track"', mapping, enabled: true }]
    const body = { integration: 'actions-linkedin-conversions', name: `LinkedIn ${Object.keys(mapping).length}`, subscriptions }
    const created = await create(fixture, { ...body, settings: { oauth: { accessToken: 'a' } } })
    assert.equal(created.status, 201, created.text)
    return (created.body.warnings ?? []).map(({ code, field }: { code: string; field: string }) => [code, field])
  }
  const filled = { conversionHappenedAt: { '@path': '$.timestamp' } }
  assert.deepEqual(await linkedIn(filled), [['hook_outputs_missing', 'subscriptions[0].mapping.onMappingSave.outputs']])
  assert.deepEqual(await linkedIn({ ...filled, onMappingSave: { outputs: { id: '1' } } }), [])
  assert.equal((await create(fixture, SLACK)).body.warnings, undefined)
})

test('subscriptions are replaced as a whole, and keep their ids by id or by name', async (t) => {
  const fixture = await start(t)
  const [first] = SLACK.subscriptions
  const second = { ...first, name: 'Sign-ups', subscribe: 'type = "identify"' }
  const created = (await create(fixture, { ...SLACK, subscriptions: [first, second] })).body
  const [one, two] = created.subscriptions.map(({ id }: { id: string }) => id)
  const patch = (subscriptions: object[]): Promise<Answer> => fixture.call('PATCH', `/api/destinations/${created.id}`, { subscriptions })
  const renamed = await patch([
    { ...second, name: 'Sign-ups' },
    { ...first, id: one, name: 'Sales' },
  ])
  assert.deepEqual(
    renamed.body.subscriptions.map(({ id, name }: { id: string; name: string }) => [id, name]),
    [
      [two, 'Sign-ups'],
      [one, 'Sales'],
    ],
  )
  assert.equal(renamed.body.version, 2)
  const shorter = await patch([{ ...first, name: 'Other' }])
  assert.ok(![one, two].includes(shorter.body.subscriptions[0].id))
  const gone = await patch([{ ...first, id: one }])
  assert.deepEqual([gone.status, gone.body.field], [400, 'subscriptions[0].id'])
  const { data } = (await fixture.call('GET', `/api/destinations/${created.id}/versions`)).body
  assert.deepEqual(
    data.map(({ version, changed }: { version: number; changed: string[] }) => [version, changed[0]]),
    [
      [3, 'subscriptions'],
      [2, 'subscriptions[0].id'],
      [1, undefined],
    ],
  )
  const restored = await fixture.call('PATCH', `/api/destinations/${created.id}`, { version: 1 })
  assert.deepEqual([restored.body.version, restored.body.subscriptions], [4, created.subscriptions])
  const both = await fixture.call('PATCH', `/api/destinations/${created.id}`, { version: 1, subscriptions: [] })
  assert.equal(both.body.field, 'version')
})

test('a subscription may leave out its name and its mapping: the action has defaults', async (t) => {
  const fixture = await start(t)
  const { body } = await create(fixture, { ...AMPLITUDE, subscriptions: [{ action: 'identifyUser', subscribe: 'type = "identify"' }] })
  const [{ name, mapping, enabled }] = body.subscriptions
  assert.deepEqual([name, enabled], ['Identify User', true])
  assert.ok('user_id' in mapping && Object.keys(mapping).length > 5)
})

const subscription = (changes: object): object => ({
  ...SLACK,
  subscriptions: [SLACK.subscriptions[0], { ...SLACK.subscriptions[0], ...changes }],
})
const BAD: [title: string, body: object, field: string, code?: string][] = [
  ['no integration', { settings: {} }, 'integration'],
  ['an unknown slug', { integration: 'actions-nothing' }, 'integration'],
  ['a slug that leaves the folder', { integration: '../index' }, 'integration'],
  ['an integration that is not available', { integration: 'actions-apolloio' }, 'integration'],
  [
    'OAuth without its fields',
    { integration: 'actions-google-sheets', settings: { oauth: { clientId: 'x' } } },
    'settings.oauth.clientSecret',
  ],
  ['OAuth for an integration without it', { ...AMPLITUDE, settings: { ...AMPLITUDE.settings, oauth: {} } }, 'settings.oauth'],
  ['no settings', { integration: 'actions-amplitude' }, 'settings.apiKey'],
  ['an empty required setting', { ...AMPLITUDE, settings: { ...AMPLITUDE.settings, apiKey: '' } }, 'settings.apiKey'],
  ['a setting of another type', { ...AMPLITUDE, settings: { ...AMPLITUDE.settings, apiKey: 5 } }, 'settings.apiKey'],
  ['a setting that is no choice', { ...AMPLITUDE, settings: { ...AMPLITUDE.settings, endpoint: 'mars' } }, 'settings.endpoint'],
  ['an unknown setting', { ...AMPLITUDE, settings: { ...AMPLITUDE.settings, apikey: 'x' } }, 'settings.apikey'],
  ['an inherited name as a setting', { ...AMPLITUDE, settings: { ...AMPLITUDE.settings, constructor: 'x' } }, 'settings.constructor'],
  [
    '__proto__ as a setting',
    JSON.parse(JSON.stringify(AMPLITUDE).replace('{"apiKey"', '{"__proto__":{"apiKey":"y"},"apiKey"')) as object,
    'settings.__proto__',
  ],
  ['the placeholder as a setting', { ...AMPLITUDE, settings: { ...AMPLITUDE.settings, apiKey: '(hidden)' } }, 'settings.apiKey'],
  ['settings that are a list', { ...AMPLITUDE, settings: [] }, 'settings'],
  ['large settings', { ...AMPLITUDE, settings: { ...AMPLITUDE.settings, apiKey: 'x'.repeat(66_000) } }, 'settings'],
  ['unknown action', subscription({ action: 'send' }), 'subscriptions[1].action'],
  ['an inherited name as an action', subscription({ action: 'constructor' }), 'subscriptions[1].action'],
  ['a field that does not exist', subscription({ mapping: { uri: SLACK_URL } }), 'subscriptions[1].mapping.uri'],
  ['a field of the prototype', subscription({ mapping: JSON.parse('{"__proto__":{"url":"x"}}') }), 'subscriptions[1].mapping.__proto__'],
  ['a malformed directive', subscription({ mapping: { url: { '@path': 5 } } }), 'subscriptions[1].mapping.url.@path'],
  ['an unknown directive', subscription({ mapping: { url: { '@eval': 'x' } } }), 'subscriptions[1].mapping.url.@eval'],
  ['a directive instead of fields', subscription({ mapping: { '@path': '$.x' } }), 'subscriptions[1].mapping.@path'],
  ['the placeholder in a mapping', subscription({ mapping: { url: '(hidden)' } }), 'subscriptions[1].mapping.url'],
  ['a large mapping', subscription({ mapping: { url: 'x'.repeat(66_000) } }), 'subscriptions[1].mapping'],
  ['a malformed expression', subscription({ subscribe: 'type =' }), 'subscriptions[1].subscribe'],
  ['no expression', subscription({ subscribe: undefined }), 'subscriptions[1].subscribe'],
  ['an id of its own', subscription({ id: 'sub_x' }), 'subscriptions[1].id'],
  ['an unknown field of a subscription', subscription({ trigger: 'x' }), 'subscriptions[1].trigger', 'unknown_field'],
  ['too many subscriptions', { ...SLACK, subscriptions: Array.from({ length: 101 }, () => SLACK.subscriptions[0]) }, 'subscriptions'],
  ['urls', { ...AMPLITUDE, urls: ['https://receiver.example/'] }, 'urls'],
  ['headers', { ...AMPLITUDE, headers: {} }, 'headers'],
  ['a transformation', { ...AMPLITUDE, transformation: null }, 'transformation'],
  ['a longer timeout', { ...AMPLITUDE, timeoutMs: 30_001 }, 'timeoutMs'],
  ['another type', { ...AMPLITUDE, type: 'carrier pigeon' }, 'type'],
]

test('bad input is refused with the field, and without quoting values', async (t) => {
  const fixture = await start(t)
  for (const [title, body, field, code = 'invalid_field'] of BAD) {
    const answer = await create(fixture, body)
    assert.deepEqual([answer.status, answer.body.code, answer.body.field], [400, code, field], `${title}: ${answer.text}`)
    for (const secret of ['api-key-1', 'secret-key-1', 'very-secret', 'mars']) assert.ok(!answer.text.includes(secret), title)
  }
  assert.equal(fixture.store.configuration().destinations.size, 0)
})

test('neither kind takes the settings of the other, and neither becomes the other', async (t) => {
  const fixture = await start(t)
  const { call } = fixture
  const one = (await create(fixture, SLACK)).body
  const hook = (await call('POST', '/api/destinations', { name: 'hook', urls: ['https://receiver.example/'] })).body
  const rows: [id: string, change: object, field: string][] = [
    [one.id, { urls: ['https://receiver.example/'] }, 'urls'],
    [one.id, { request: null }, 'request'],
    [one.id, { sharedSecret: 'x' }, 'sharedSecret'],
    [one.id, { type: 'webhook' }, 'type'],
    [one.id, { integration: 'actions-amplitude' }, 'integration'],
    [one.id, { timeoutMs: 60_000 }, 'timeoutMs'],
    [hook.id, { settings: {} }, 'settings'],
    [hook.id, { subscriptions: [] }, 'subscriptions'],
    [hook.id, { integration: 'actions-slack' }, 'integration'],
    [hook.id, { type: 'integration' }, 'type'],
    [hook.id, { timeoutMs: 10_000 }, 'timeoutMs'],
  ]
  for (const [id, change, field] of rows) {
    const { status, body } = await call('PATCH', `/api/destinations/${id}`, change)
    assert.deepEqual([status, body.field], [400, field], JSON.stringify(change))
  }
  // What was read can be sent back.
  const same = await call('PATCH', `/api/destinations/${one.id}`, {
    type: 'integration',
    integration: 'actions-slack',
    subscriptions: one.subscriptions,
  })
  assert.deepEqual(same.body, one)
  const refused = await call('POST', '/api/destinations', { name: 'hook', urls: ['https://receiver.example/'], settings: {} })
  assert.equal(refused.body.field, 'settings')
})

test('a viewer and the audit log see neither secrets nor URLs in mappings, and changed secrets by name', async (t) => {
  const fixture = await start(t)
  const { call } = fixture
  const { token } = (await call('POST', '/api/tokens', { name: 'curious', role: 'viewer' })).body
  const slack = (await create(fixture, { ...SLACK, name: 'slack' })).body
  const amplitude = (await create(fixture, { ...AMPLITUDE, name: 'amplitude' })).body
  const changed = { ...slack.subscriptions[0], mapping: { ...slack.subscriptions[0].mapping, url: `${SLACK_URL}-2` } }
  await call('PATCH', `/api/destinations/${slack.id}`, { subscriptions: [changed] })
  await call('PATCH', `/api/destinations/${amplitude.id}`, { settings: { apiKey: 'api-key-2' } })
  const paths = [
    '/api/destinations',
    `/api/destinations/${slack.id}`,
    `/api/destinations/${slack.id}/versions`,
    '/api/audit',
    `/api/destinations/${slack.id}/health`,
  ]
  const texts = await Promise.all(paths.map(async (path) => (await call('GET', path, undefined, { token })).text))
  texts.push((await call('GET', '/api/audit')).text)
  for (const text of texts) for (const secret of ['api-key', 'secret-key-1', 'very-secret']) assert.ok(!text.includes(secret), text)
  const shown = (await call('GET', `/api/destinations/${slack.id}`, undefined, { token })).body.subscriptions[0].mapping
  assert.deepEqual(shown, { ...SLACK.subscriptions[0]?.mapping, url: '(hidden)' })
  const { data } = (await call('GET', '/api/audit')).body
  const secrets = data.flatMap(({ after }: { after: { changedSecrets?: string[] } | null }) => after?.changedSecrets ?? [])
  assert.deepEqual(secrets.sort(), ['settings.apiKey', 'subscriptions[0].mapping'])
  const back = await call('PATCH', `/api/destinations/${slack.id}`, { subscriptions: [{ ...changed, mapping: shown }] })
  assert.deepEqual([back.status, back.body.field], [400, 'subscriptions[0].mapping.url'])
})

test('a viewer who previews an integration does not see the constants that the mapping hides', async (t) => {
  const sent = { subscription: 'Orders', method: 'POST', url: SLACK_URL, headers: { 'x-from': SLACK_URL }, body: `{"to":"${SLACK_URL}"}` }
  const preview: ControlDelivery['preview'] = async () => [{ kind: 'requests', requests: [sent], error: null, logs: null }]
  const fixture = await startControl(t, { catalog: () => openCatalog('nowhere'), delivery: { ...STILL, preview } })
  const { token } = (await fixture.call('POST', '/api/tokens', { name: 'curious', role: 'viewer' })).body
  const { id } = (await create(fixture, SLACK)).body
  const message = { message: { type: 'track', userId: 'u', event: 'Order Completed' } }
  const path = `/api/destinations/${id}/preview`
  const [hidden] = (await fixture.call('POST', path, message, { token })).body.data
  const expected = { subscription: 'Orders', method: 'POST', url: '(hidden)', headers: { 'x-from': '(hidden)' }, body: '{"to":"(hidden)"}' }
  assert.deepEqual(hidden.requests, [expected])
  assert.deepEqual((await fixture.call('POST', path, message)).body.data[0].requests, [sent])
})

test('the catalogue is listed in pages, found by words and by auth, and one integration is shown with its schemas', async (t) => {
  const { call } = await start(t)
  const slugs: string[] = []
  for (let next = ''; ; ) {
    const { body } = await call('GET', `/api/catalog?limit=100${next === '' ? '' : `&cursor=${next}`}`)
    slugs.push(...body.data.map(({ slug }: { slug: string }) => slug))
    if (body.next === null) break
    next = body.next
  }
  assert.ok(slugs.length > 200 && new Set(slugs).size === slugs.length, String(slugs.length))
  const found = (await call('GET', '/api/catalog?query=slack')).body.data
  assert.deepEqual([found[0].slug, found[0].available], ['actions-slack', true])
  const withOAuth = (await call('GET', '/api/catalog?auth=oauth2&limit=1000')).body.data
  assert.ok(withOAuth.length > 30 && withOAuth.every(({ auth }: { auth: string }) => auth === 'oauth2'))
  assert.deepEqual((await call('GET', '/api/catalog?query=no%20such%20tool%20anywhere')).body, { data: [], next: null })
  assert.equal((await call('GET', '/api/catalog?auth=magic')).body.field, 'auth')
  const slack = (await call('GET', '/api/catalog/actions-slack')).body
  assert.equal(slack.actions[0].slug, 'postToChannel')
  assert.equal(slack.actions[0].fields.properties.url.format, 'uri')
  for (const slug of ['nothing', 'constructor', '..%2findex', 'index']) {
    const { status, body } = await call('GET', `/api/catalog/${slug}`)
    assert.deepEqual([status, body.code], [404, 'integration_not_found'], slug)
  }
})

test('without the package, the catalogue is empty with a hint, and only common settings of an integration can be changed', async (t) => {
  let isInstalled = true
  const fixture = await startControl(t, { catalog: async () => (isInstalled ? await openCatalog('nowhere') : null) })
  const { call } = fixture
  const { id } = (await create(fixture, AMPLITUDE)).body
  isInstalled = false
  const { body } = await call('GET', '/api/catalog')
  assert.deepEqual([body.data, body.next], [[], null])
  assert.match(body.hint, /switchyard catalog install/)
  assert.equal((await call('GET', '/api/catalog/actions-slack')).status, 404)
  const refused = await create(fixture, SLACK)
  assert.deepEqual([refused.status, refused.body.field], [400, 'integration'])
  assert.match(refused.body.message, /switchyard catalog install/)
  assert.equal((await call('PATCH', `/api/destinations/${id}`, { paused: true, name: 'y' })).status, 200)
  const changed = await call('PATCH', `/api/destinations/${id}`, { settings: { apiKey: 'z' } })
  assert.deepEqual([changed.status, changed.body.field], [400, 'settings'])
  assert.deepEqual((await call('GET', `/api/destinations/${id}`)).body.settings, { endpoint: 'north_america' })
})

test('a slug that is almost right gets a suggestion', async (t) => {
  const fixture = await start(t)
  const said = async (integration: string): Promise<string> => (await create(fixture, { ...AMPLITUDE, integration })).body.message
  assert.match(await said('amplitude'), /Did you mean actions-amplitude\b/)
  assert.match(await said('actions-amplitud'), /Did you mean actions-amplitude\b/)
  assert.match(await said('zzzzzz-nothing'), /GET \/api\/catalog lists them/)
  const { body } = await fixture.call('GET', '/api/catalog/Slack')
  assert.match(body.message, /Did you mean [^?]*\bslack\b/)
})
