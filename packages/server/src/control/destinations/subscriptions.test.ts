// Subscriptions of integrations over the control API: sync modes, ids and names, and mappings that are refused.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openCatalog } from '../../installation/integrations-catalog.ts'
import { type Answer, type Fixture, startControl } from '../fixtures/start-control.ts'

const BRAZE = {
  type: 'integration',
  integration: 'actions-braze-cloud',
  name: 'Braze',
  settings: { app_id: 'a', api_key: 'k', endpoint: 'https://rest.iad-01.braze.com' },
}

interface Shown {
  id: string
  name: string
  action: string
  subscribe: string
  mapping: Record<string, unknown>
  syncMode: string | null
  enabled: boolean
}

async function start(t: TestContext): Promise<Fixture> {
  return await startControl(t, { catalog: () => openCatalog('nowhere') })
}

function subscriptionsOf({ status, body }: Answer): Shown[] {
  assert.ok(status === 200 || status === 201, JSON.stringify(body))
  return body.subscriptions as Shown[]
}

test('a subscription has the sync mode of its action, unless another one is given', async (t) => {
  const { call } = await start(t)
  const created = await call('POST', '/api/destinations', BRAZE)
  const presets = subscriptionsOf(created)
  const modes = new Map(presets.map(({ name, syncMode }) => [name, syncMode]))
  assert.equal(modes.get('Order Placed (beta)'), 'add')
  assert.equal(modes.get('Track Calls'), null)
  const { actions } = (await call('GET', '/api/catalog/actions-braze-cloud')).body
  const { syncMode } = actions.find(({ slug }: { slug: string }) => slug === 'ecommerce')
  assert.deepEqual([syncMode.default, syncMode.oneOf.map((choice: { const: string }) => choice.const)], ['add', ['add', 'update']])

  const patch = (subscriptions: object[]): Promise<Answer> => call('PATCH', `/api/destinations/${created.body.id}`, { subscriptions })
  const [order] = presets.filter(({ name }) => name === 'Order Placed (beta)') as [Shown]
  const changed = subscriptionsOf(await patch([{ ...order, syncMode: 'update' }]))
  assert.equal(changed[0]?.syncMode, 'update')
  const { syncMode: _, ...without } = order
  assert.equal(subscriptionsOf(await patch([without]))[0]?.syncMode, 'update', 'a client that does not know the field keeps the mode')
  assert.equal(
    subscriptionsOf(await patch([{ ...without, action: 'identifyUser2', mapping: undefined, enabled: false }]))[0]?.syncMode,
    'add',
  )
})

test('a mapping from Segment may contain the sync mode: it becomes that of the subscription', async (t) => {
  const { call } = await start(t)
  const created = await call('POST', '/api/destinations', BRAZE)
  const [order] = subscriptionsOf(created).filter(({ name }) => name === 'Order Placed (beta)') as [Shown]
  const { syncMode: _, id: __, ...exported } = order
  const mapping = { ...order.mapping, __segment_internal_sync_mode: 'update' }
  const answer = await call('POST', '/api/destinations', { ...BRAZE, name: 'Other', subscriptions: [{ ...exported, mapping }] })
  const [moved] = subscriptionsOf(answer) as [Shown]
  assert.equal(moved.syncMode, 'update')
  assert.ok(!('__segment_internal_sync_mode' in moved.mapping))
})

test('a sync mode that the action does not have is refused', async (t) => {
  const { call } = await start(t)
  const created = await call('POST', '/api/destinations', BRAZE)
  const presets = subscriptionsOf(created)
  const refused = async (name: string, syncMode: string): Promise<unknown[]> => {
    const subscriptions = presets.filter((each) => each.name === name).map((each) => Object.assign({}, each, { syncMode }))
    const { status, body } = await call('PATCH', `/api/destinations/${created.body.id}`, { subscriptions })
    return [status, body.field, body.message]
  }
  const [status, field, message] = await refused('Order Placed (beta)', 'mirror')
  assert.deepEqual([status, field], [400, 'subscriptions[0].syncMode'])
  assert.match(String(message), /must be one of add, update/)
  assert.match(String((await refused('Track Calls', 'add'))[2]), /this action has no sync modes/)
})

const SLACK = {
  type: 'integration',
  integration: 'actions-slack',
  name: 'Slack',
}
const post = (name: string | undefined, channel: string) => ({
  ...(name !== undefined && { name }),
  action: 'postToChannel',
  subscribe: 'type = "track"',
  mapping: { url: 'https://hooks.slack.com/services/T0/B0/x', text: 'hello', channel },
  enabled: true,
})

test('two subscriptions cannot have one name, also if both get it from their action', async (t) => {
  const { call } = await start(t)
  for (const names of [
    ['Post', 'Post'],
    [undefined, undefined],
    ['Post Message', undefined],
  ]) {
    const subscriptions = [post('First', '#other'), ...names.map((name) => post(name, '#sales'))]
    const { status, body } = await call('POST', '/api/destinations', { ...SLACK, subscriptions })
    assert.deepEqual([status, body.field], [400, 'subscriptions[2].name'], JSON.stringify(names))
  }
  const created = await call('POST', '/api/destinations', { ...SLACK, subscriptions: [post('One', '#a'), post('Two', '#b')] })
  const renamed = subscriptionsOf(created).map((each) => Object.assign(each, { name: 'One' }))
  const { status, body } = await call('PATCH', `/api/destinations/${created.body.id}`, { subscriptions: renamed })
  assert.deepEqual([status, body.field], [400, 'subscriptions[1].name'])
})

test('a required field without a value is refused with the field, unless it has a default or the subscription is off', async (t) => {
  const { call } = await start(t)
  const create = (integration: string, subscription: object): Promise<Answer> =>
    call('POST', '/api/destinations', { type: 'integration', integration, name: 'x', settings: {}, subscriptions: [subscription] })
  const hook = { name: 'Send', action: 'send', subscribe: 'type = "track"' }
  for (const mapping of [{ method: 'POST' }, { method: 'POST', url: '' }, { method: 'POST', url: null }, undefined]) {
    const { status, body } = await create('actions-webhook', { ...hook, mapping })
    assert.deepEqual([status, body.field], [400, 'subscriptions[0].mapping.url'], JSON.stringify(mapping))
  }
  const off = await create('actions-webhook', { ...hook, mapping: { method: 'POST' }, enabled: false })
  assert.equal(off.status, 201)
  const [saved] = subscriptionsOf(off)
  const on = await call('PATCH', `/api/destinations/${off.body.id}`, { subscriptions: [{ ...saved, enabled: true }] })
  assert.deepEqual([on.status, on.body.field], [400, 'subscriptions[0].mapping.url'])
  const filled = subscriptionsOf(await create('actions-webhook', { ...hook, mapping: { url: 'https://receiver.example/' } }))
  assert.equal(filled[0]?.mapping['method'], 'POST', 'a required field that is left out gets its default')
})

test('mappings of integrations may use @transform and @excludeWhenNull, and their parts are checked', async (t) => {
  const { call } = await start(t)
  const transform = { '@transform': { apply: { id: { '@path': '$.userId' } }, mapping: { who: { '@path': '$.id' } } } }
  const data = { text: transform, other: { '@excludeWhenNull': { '@path': '$.properties.coupon' } } }
  const subscription = (value: object) => ({
    name: 'Send',
    action: 'send',
    subscribe: 'type = "track"',
    mapping: { url: 'https://receiver.example/', method: 'POST', data: value },
  })
  const create = (value: object): Promise<Answer> =>
    call('POST', '/api/destinations', {
      type: 'integration',
      integration: 'actions-webhook',
      name: 'x',
      subscriptions: [subscription(value)],
    })
  assert.equal((await create(data)).status, 201)
  for (const [value, field] of [
    [{ '@transform': { apply: { id: 1 } } }, '@transform.mapping'],
    [{ '@transform': { apply: { id: { '@path': 5 } }, mapping: {} } }, '@transform.apply.id.@path'],
    [{ '@excludeWhenNull': { '@eval': 'x' } }, '@excludeWhenNull.@eval'],
  ] as const) {
    const { status, body } = await create({ text: value })
    assert.deepEqual([status, body.field], [400, `subscriptions[0].mapping.data.text.${field}`])
  }
})

test('a @transform around or beside all fields is saved beside them, and checked with them', async (t) => {
  const { call } = await start(t)
  const apply = { place: { '@path': '$.properties.url' } }
  const fields = { url: { '@path': '$.place' }, method: 'POST' }
  const create = (mapping: object): Promise<Answer> =>
    call('POST', '/api/destinations', {
      type: 'integration',
      integration: 'actions-webhook',
      name: 'x',
      subscriptions: [{ name: 'Send', action: 'send', subscribe: 'type = "track"', mapping }],
    })
  const saved = { __segment_internal_directive: { '@transform': { apply } }, ...fields }
  for (const mapping of [
    { '@transform': { apply, mapping: fields } },
    { '@transform': { apply, mapping: { url: { '@path': '$.place' } } }, _metadata: {} },
    saved,
    { ...fields, __segment_internal_directive: { '@transform': { apply, mapping: { url: 'ignored' } } } },
  ]) {
    const created = await create(mapping)
    assert.equal(created.status, 201, JSON.stringify(created.body))
    assert.deepEqual(subscriptionsOf(created)[0]?.mapping, saved)
  }
  const root = '__segment_internal_directive'
  const grown = (value: unknown) => ({ '@replace': { pattern: 'a', replacement: 'bbbbbb', value } })
  for (const [mapping, field] of [
    [{ '@transform': { apply, mapping: { method: 'POST' } } }, 'url'],
    [{ '@transform': { apply, mapping: { ...fields, extra: 1 } } }, 'extra'],
    [{ '@transform': { apply, mapping: { '@path': '$.x' } } }, '@transform'],
    [{ '@merge': { objects: [], direction: 'left' } }, '@merge'],
    [{ ...fields, '@transform': { apply, mapping: {} } }, 'url'],
    [{ '@transform': { mapping: fields } }, `${root}.@transform.apply`],
    [{ '@transform': { apply: { x: { '@eval': 1 } }, mapping: fields } }, `${root}.@transform.apply.x.@eval`],
    [{ '@transform': { apply, mapping: { ...fields, url: { '@path': 5 } } } }, 'url.@path'],
    [{ ...saved, [root]: { '@merge': {} } }, root],
    [{ ...saved, [root]: 'text' }, root],
    [
      { '@transform': { apply: { [root]: { '@transform': { apply, mapping: {} } } }, mapping: fields } },
      `${root}.@transform.apply.${root}`,
    ],
    // Each makes a text six times as long.
    [
      { '@transform': { apply: { x: grown({ '@path': '$.event' }) }, mapping: { ...fields, data: { x: grown({ '@path': '$.x' }) } } } },
      `${root}.@transform`,
    ],
  ] as const) {
    const { status, body } = await create(mapping)
    assert.deepEqual([status, body.field], [400, `subscriptions[0].mapping.${field}`], JSON.stringify(mapping))
  }
})
