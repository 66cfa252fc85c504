// Routing, compared with a table of all values of `integrations`, and with a model that checks each pair of message and destination by itself.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import fc from 'fast-check'
import { integrationOf, subscriptionOf } from '../destinations/fixtures/integration.ts'
import { webhookOf } from '../destinations/fixtures/webhook.ts'
import {
  type Configuration,
  type Destination,
  type FilterRule,
  type IntegrationDestination,
  type NameFilter,
  NO_FILTER,
  type SegmentContent,
  type SkipReason,
  type WebhookDestination,
} from '../store/store.ts'
import { routeMessages } from './route-messages.ts'

const NOW = Date.parse('2026-11-14T09:00:00.000Z')
const HOUR_MS = 3_600_000

function destination(id: string, about: Partial<WebhookDestination> = {}): WebhookDestination {
  return webhookOf({ id, name: id, sourceIds: ['s'], ...about })
}

function configured(...destinations: Destination[]): Configuration {
  return {
    sources: new Map(),
    destinations: new Map(destinations.map((each) => [each.id, each])),
    suppressions: new Map(),
    oauthApps: new Map(),
    tokens: new Map(),
    plans: new Map(),
  }
}

function content(items: (JsonObject | null)[], about: Partial<SegmentContent> = {}): SegmentContent {
  const call = { sourceId: 's', receivedAtMs: NOW, ip: null, browser: false, sentAt: null, context: null, integrations: null, trace: null }
  return { ...call, items, ...about }
}

function message(integrations?: unknown, ageMs = 0): JsonObject {
  const timestamp = new Date(NOW - ageMs).toISOString()
  return { type: 'identify', userId: 'u', timestamp, ...(integrations === undefined ? {} : { integrations }) }
}

test('messages are planned for a paused destination as for any other', () => {
  const plan = routeMessages(configured(destination('a', { paused: true })), 's', content([message(), message()]))
  assert.deepEqual([plan.shipments, plan.skips], [[{ destinationId: 'a', indexes: null }], []])
})

test('a message without integrations goes to every destination of its source', () => {
  const plan = routeMessages(
    configured(destination('a'), destination('b'), destination('c', { sourceIds: ['other'] })),
    's',
    content([message(), message()]),
  )
  assert.deepEqual(plan, {
    shipments: [
      { destinationId: 'a', indexes: null },
      { destinationId: 'b', indexes: null },
    ],
    skips: [],
  })
})

test('messages of a source without destinations are skipped with a reason', () => {
  const nowhere = { shipments: [], skips: [{ destinationId: null, reason: 'no_destination', indexes: null }] }
  assert.deepEqual(routeMessages(configured(), 's', content([message()])), nowhere)
  assert.deepEqual(routeMessages(configured(destination('a', { sourceIds: [] })), 's', content([message({ All: false })])), nowhere)
})

test('a disabled destination is skipped, whatever the integrations of the message', () => {
  const plan = routeMessages(configured(destination('a', { enabled: false })), 's', content([message({ a: true }), message()]))
  assert.deepEqual(plan, { shipments: [], skips: [{ destinationId: 'a', reason: 'destination_disabled', indexes: null }] })
})

test('integrations select by the name of the destination, then by Webhooks, then by All', () => {
  const rows: [integrations: unknown, sent: boolean][] = [
    [{}, true],
    [null, true],
    [{ All: true }, true],
    [{ All: false }, false],
    [{ Webhooks: false }, false],
    [{ Billing: false }, false],
    [{ All: false, Webhooks: true }, true],
    [{ All: false, Billing: true }, true],
    [{ All: false, Billing: { mode: 'x' } }, true],
    [{ All: false, Webhooks: {} }, true],
    [{ All: true, Webhooks: false }, false],
    [{ Webhooks: false, Billing: true }, true],
    [{ Webhooks: true, Billing: false }, false],
    [{ All: false, Webhooks: null }, false],
    [{ All: false, billing: true, webhooks: true, WEBHOOKS: true }, false],
    [{ all: false }, false],
    [{ ALL: false }, false],
    [{ all: false, Webhooks: true }, true],
    [{ all: false, Billing: {} }, true],
    [{ all: false, billing: true, webhooks: true }, false],
    // The first of several spellings counts, as in Segment's facade.
    [{ all: false, All: true }, false],
    [{ All: true, all: false }, true],
    [{ Other: false }, true],
    [{ All: false, Other: true }, false],
    [JSON.parse('{"__proto__":{"Webhooks":false}}'), true],
  ]
  const configuration = configured(destination('d', { name: 'Billing' }))
  for (const [integrations, sent] of rows) {
    const skips = sent ? [] : [{ destinationId: 'd', reason: 'integrations_disabled', indexes: null }]
    const plan = { shipments: sent ? [{ destinationId: 'd', indexes: null }] : [], skips }
    assert.deepEqual(routeMessages(configuration, 's', content([message(integrations)])), plan, JSON.stringify(integrations))
    if (integrations !== null) {
      assert.deepEqual(routeMessages(configuration, 's', content([message()], { integrations: integrations as JsonObject })), plan)
    }
  }
})

test('names that every object inherits select nothing by themselves', () => {
  for (const name of ['constructor', 'toString', '__proto__']) {
    const plan = routeMessages(configured(destination('d', { name })), 's', content([message({ All: false })]))
    assert.deepEqual(plan.shipments, [], name)
  }
})

test('a destination named all is only one destination, and names are case-sensitive', () => {
  const configuration = configured(destination('a', { name: 'all' }), destination('b'))
  const chosen = (integrations: JsonObject): string[] =>
    routeMessages(configuration, 's', content([message(integrations)])).shipments.map(({ destinationId }) => destinationId)
  assert.deepEqual(chosen({ Webhooks: false, all: true }), ['a'])
  assert.deepEqual(chosen({ Webhooks: false, All: true }), [])
})

test("a message's integrations override its batch's", () => {
  const items = [message({ Webhooks: true }), message(), message({ Other: true })]
  assert.deepEqual(routeMessages(configured(destination('d')), 's', content(items, { integrations: { Webhooks: false } })), {
    shipments: [{ destinationId: 'd', indexes: [0] }],
    skips: [{ destinationId: 'd', reason: 'integrations_disabled', indexes: [1, 2] }],
  })
})

test('old messages skip destinations that do not accept historical data, with a reason', () => {
  const items = [message(undefined, 25 * HOUR_MS), message(undefined, 24 * HOUR_MS), message({ All: false }, 25 * HOUR_MS), message()]
  const { shipments, skips } = routeMessages(configured(destination('d', { historical: false }), destination('e')), 's', content(items))
  assert.deepEqual(shipments, [
    { destinationId: 'd', indexes: [1, 3] },
    { destinationId: 'e', indexes: [0, 1, 3] },
  ])
  assert.deepEqual(skips, [
    { destinationId: 'd', reason: 'integrations_disabled', indexes: [2] },
    { destinationId: 'd', reason: 'historical', indexes: [0] },
    { destinationId: 'e', reason: 'integrations_disabled', indexes: [2] },
  ])
})

const FILTER_ROWS: [
  title: string,
  filter: { types?: Partial<NameFilter>; events?: Partial<NameFilter> },
  kept: Record<number, FilterRule>,
][] = [
  ['a denied type is filtered', { types: { deny: ['page'] } }, { 2: 'type_denied' }],
  ['with allowed types, all others are filtered', { types: { allow: ['track'] } }, { 2: 'type_not_allowed', 3: 'type_not_allowed' }],
  [
    'deny takes precedence over allow',
    { types: { allow: ['track', 'page'], deny: ['page'] } },
    { 2: 'type_denied', 3: 'type_not_allowed' },
  ],
  ['a denied event is filtered', { events: { deny: ['Paid'] } }, { 0: 'event_denied' }],
  ['allowed events filter other events, but no other types', { events: { allow: ['Paid'] } }, { 1: 'event_not_allowed' }],
  ['an event that is both is denied', { events: { allow: ['Paid'], deny: ['Paid'] } }, { 0: 'event_denied', 1: 'event_not_allowed' }],
  ['an event name is exact', { events: { deny: ['paid', 'Paid ', 'Pai'] } }, {}],
  ['the type comes before the event', { types: { deny: ['track'] }, events: { deny: ['Paid'] } }, { 0: 'type_denied', 1: 'type_denied' }],
  ['names that every object inherits are names like others', { events: { deny: ['constructor', '__proto__'] } }, {}],
]
test('a filter removes what it denies and what it does not allow, with the rule', () => {
  const said = { userId: 'u', timestamp: new Date(NOW).toISOString() }
  const items = [
    { ...said, type: 'track', event: 'Paid' },
    { ...said, type: 'track', event: 'Viewed' },
    // The name of a page is not an event name.
    { ...said, type: 'page', name: 'Paid', event: 'Paid' },
    { ...said, type: 'identify' },
  ]
  for (const [title, { types, events }, kept] of FILTER_ROWS) {
    const filter = { types: { ...NO_FILTER.types, ...types }, events: { ...NO_FILTER.events, ...events } }
    const { shipments, skips } = routeMessages(configured(destination('d', { filter }), destination('e')), 's', content(items))
    const sent = [0, 1, 2, 3].filter((index) => kept[index] === undefined)
    assert.deepEqual(shipments, [
      { destinationId: 'd', indexes: sent.length === 4 ? null : sent },
      { destinationId: 'e', indexes: null },
    ])
    const found = skips.flatMap(({ destinationId, reason, rule, indexes }) => {
      assert.deepEqual([destinationId, reason], ['d', 'filtered'], title)
      return (indexes ?? [0, 1, 2, 3]).map((index) => [index, rule])
    })
    assert.deepEqual(Object.fromEntries(found), kept, title)
  }
})

test('a filter that removes everything produces one skip for all, and a disabled destination is reported as disabled', () => {
  const filter = { ...NO_FILTER, types: { allow: ['group'], deny: [] } }
  const plan = routeMessages(
    configured(destination('d', { filter }), destination('e', { filter, enabled: false })),
    's',
    content([message()]),
  )
  assert.deepEqual(plan, {
    shipments: [],
    skips: [
      { destinationId: 'd', reason: 'filtered', rule: 'type_not_allowed', indexes: null },
      { destinationId: 'e', reason: 'destination_disabled', indexes: null },
    ],
  })
})

test('a message that does not match the subscribe expression is filtered; the filter is checked first', () => {
  const filter = { ...NO_FILTER, types: { allow: [], deny: ['page'] } }
  const subscribe = 'type = "page" or context.app = "shop" and properties.total > 100'
  const said = { type: 'track', userId: 'u', timestamp: new Date(NOW).toISOString() }
  const items = [
    { ...said, properties: { total: 101 } },
    { ...said, properties: { total: 101 }, context: { app: 'other' } },
    { ...said, type: 'page' },
    { ...said, properties: { total: 101 }, integrations: { d: false } },
    null,
    { ...said, type: 'delete' },
  ]
  const plan = routeMessages(configured(destination('d', { filter, subscribe })), 's', content(items, { context: { app: 'shop' } }))
  assert.deepEqual(plan, {
    shipments: [{ destinationId: 'd', indexes: [0, 5] }],
    skips: [
      { destinationId: 'd', reason: 'integrations_disabled', indexes: [3] },
      { destinationId: 'd', reason: 'filtered', rule: 'type_denied', indexes: [2] },
      { destinationId: 'd', reason: 'filtered', rule: 'subscribe', indexes: [1] },
    ],
  })
})

test('a request to delete a user passes every filter', () => {
  const filter = { types: { allow: ['group'], deny: ['track'] }, events: { allow: ['x'], deny: ['y'] } }
  const plan = routeMessages(configured(destination('d', { filter })), 's', content([{ type: 'delete', userId: 'u' }]))
  assert.deepEqual(plan, { shipments: [{ destinationId: 'd', indexes: null }], skips: [] })
})

function integration(id: string, about: Partial<IntegrationDestination> = {}): Destination {
  return integrationOf({ id, name: id, sourceIds: ['s'], ...about })
}

test('an integration gets the messages that match an enabled subscription, after its filter and its expression', () => {
  const said = { userId: 'u', timestamp: new Date(NOW).toISOString() }
  const items = [
    { ...said, type: 'track', event: 'Paid' },
    { ...said, type: 'track', event: 'Viewed' },
    { ...said, type: 'page', context: { app: 'shop' } },
    { ...said, type: 'identify' },
    { ...said, type: 'group' },
  ]
  const one = integration('i', {
    filter: { ...NO_FILTER, types: { allow: [], deny: ['group'] } },
    subscribe: 'type != "identify"',
    subscriptions: [
      subscriptionOf('a', { subscribe: 'type = "track" and event = "Paid"' }),
      subscriptionOf('b', { subscribe: 'context.app = "shop"' }),
      subscriptionOf('c', { subscribe: 'type = "track"', enabled: false }),
    ],
  })
  assert.deepEqual(routeMessages(configured(one), 's', content(items)), {
    shipments: [{ destinationId: 'i', indexes: [0, 2] }],
    skips: [
      { destinationId: 'i', reason: 'filtered', rule: 'type_denied', indexes: [4] },
      { destinationId: 'i', reason: 'filtered', rule: 'subscribe', indexes: [3] },
      { destinationId: 'i', reason: 'filtered', rule: 'no_subscription', indexes: [1] },
    ],
  })
  const none = routeMessages(configured(integration('i', { subscriptions: [] })), 's', content(items))
  assert.deepEqual(none, { shipments: [], skips: [{ destinationId: 'i', reason: 'filtered', rule: 'no_subscription', indexes: null }] })
})

test('a request to delete a user goes to integrations that can delete one, or have a subscription for it', () => {
  const subscriptions = [subscriptionOf('a', { subscribe: 'type = "delete"' })]
  const all = configured(
    integration('can', { integration: { slug: 'x', name: 'X', deletes: true } }),
    integration('cannot'),
    integration('asked', { subscriptions }),
  )
  const { shipments } = routeMessages(all, 's', content([{ type: 'delete', userId: 'u' }]))
  assert.deepEqual(
    shipments.map(({ destinationId }) => destinationId),
    ['can', 'asked'],
  )
})

test('integrations select an integration by its own name, then by the name of its definition, then by All', () => {
  const rows: [integrations: unknown, sent: boolean][] = [
    [{ Webhooks: false }, true],
    [{ All: false }, false],
    [{ 'Tool (Actions)': false }, false],
    [{ All: false, Webhooks: true }, false],
    [{ All: false, 'Tool (Actions)': true }, true],
    [{ All: false, 'Tool (Actions)': { session: 1 } }, true],
    [{ 'Tool (Actions)': false, Mine: true }, true],
    [{ 'Tool (Actions)': true, Mine: false }, false],
  ]
  const configuration = configured(
    integration('i', { name: 'Mine', subscriptions: [subscriptionOf('a', { subscribe: 'type = "identify"' })] }),
  )
  for (const [integrations, sent] of rows) {
    const { shipments, skips } = routeMessages(configuration, 's', content([message(integrations)]))
    assert.deepEqual(
      [shipments.length, skips[0]?.reason],
      [sent ? 1 : 0, sent ? undefined : 'integrations_disabled'],
      JSON.stringify(integrations),
    )
  }
})

test('false under any other name of a destination deselects it, whichever of them is true; its own name decides before them', () => {
  const aliases = ['Slack (EU)', 'constructor']
  const one = integration('i', {
    name: 'Mine',
    aliases,
    integration: { slug: 'actions-slack', name: 'Slack' },
    subscriptions: [subscriptionOf('a', { subscribe: 'type = "identify"' })],
  })
  // The names that Segment has published for actions-slack count without being set.
  const names = [...aliases, 'Slack', 'Slack (Actions)', 'Actions Slack']
  const isSent = (configured: Configuration, own: unknown, batch: JsonObject | null = null): boolean =>
    routeMessages(configured, 's', content([message(own)], { integrations: batch })).shipments.length === 1
  const configuration = configured(one)
  assert.equal(isSent(configuration, { All: false }), false)
  assert.equal(isSent(configuration, { slack: false, 'Slack ': false }), true, 'names are exact')
  for (const name of names) {
    assert.equal(isSent(configuration, { [name]: false }), false, name)
    assert.equal(isSent(configuration, { All: false, [name]: true }), true, name)
    assert.equal(isSent(configuration, { Mine: true, [name]: false }), true, name)
    assert.equal(isSent(configuration, { Mine: false, [name]: true }), false, name)
    for (const other of names.filter((each) => each !== name)) {
      assert.equal(isSent(configuration, { [other]: true, [name]: false }), false, `${other}, ${name}`)
      assert.equal(isSent(configuration, { [other]: true }, { [name]: false }), false, `${other}, ${name} of the batch`)
    }
  }
  const hook = configured(destination('d', { aliases: ['Webhooks (Actions)'] }))
  assert.equal(isSent(hook, { 'Webhooks (Actions)': false, Webhooks: true }), false)
})

test('without a filter, all batches without integrations share one plan', () => {
  const configuration = configured(destination('a', { filter: { ...NO_FILTER } }), destination('b'))
  const first = routeMessages(configuration, 's', content([message()]))
  assert.equal(routeMessages(configuration, 's', content([message(), message()])), first)
})

test('the plan matches a model that checks each message and destination', () => {
  const word = fc.constantFrom(true, false, null, {}, 'x')
  const integrations = fc.option(fc.dictionary(fc.constantFrom('All', 'all', 'Webhooks', 'one', 'two', 'Other'), word), { nil: undefined })
  const items = fc.array(
    fc.oneof(
      fc
        .tuple(integrations, fc.constantFrom(0, 25 * HOUR_MS), fc.constantFrom('track', 'page'), fc.constantFrom('x', 'y'))
        .map(([said, age, type, event]): JsonObject => Object.assign(message(said, age), { type, event })),
      fc.constant(null),
    ),
    { minLength: 1, maxLength: 5 },
  )
  const names = (all: string[]) => fc.record({ allow: fc.subarray(all), deny: fc.subarray(all) })
  const about = {
    name: fc.constantFrom('one', 'two'),
    enabled: fc.boolean(),
    historical: fc.boolean(),
    sourceIds: fc.subarray(['s', 't']),
    subscribe: fc.constantFrom(null, 'event = "x"'),
    filter: fc.oneof(fc.constant(NO_FILTER), fc.record({ types: names(['track', 'page', 'group']), events: names(['x', 'y', 'z']) })),
  }
  const destinations = fc.array(fc.record(about), { maxLength: 4 })
  fc.assert(
    fc.property(items, destinations, integrations, (items, abouts, batch) => {
      const destinations = abouts.map((each, index) => destination(`d${index}`, each))
      const plan = routeMessages(configured(...destinations), 's', content(items, { integrations: batch ?? null }))
      const attached = destinations.filter(({ sourceIds }) => sourceIds.includes('s'))
      if (attached.length === 0) assert.equal(plan.skips[0]?.reason, 'no_destination')
      for (const each of attached) {
        for (const [index, item] of items.entries()) {
          if (item === null) continue
          const has = ({ destinationId, indexes }: { destinationId: string | null; indexes: readonly number[] | null }): boolean =>
            destinationId === each.id && (indexes === null || indexes.includes(index))
          const skips = plan.skips.filter(has).map(({ reason, rule }) => rule ?? reason)
          const places = [...plan.shipments.filter(has).map(() => 'sent'), ...skips]
          assert.deepEqual(places, [modelled(each, sayings(batch, item['integrations']), item)])
        }
      }
    }),
    { numRuns: 1_000 },
  )
})

/** The message overrides the batch; in each, the first key that means all counts. */
function sayings(batch: JsonObject | undefined, own: JsonObject | null | undefined): JsonObject {
  const all = [own, batch].flatMap((each) => Object.entries(each ?? {}).filter(([key]) => key.toLowerCase() === 'all'))[0]
  return { ...batch, ...own, All: all?.[1] as unknown }
}

function modelled(destination: Destination, integrations: JsonObject, item: JsonObject): 'sent' | SkipReason | FilterRule {
  if (!destination.enabled) return 'destination_disabled'
  const said = [destination.name, 'Webhooks', 'All'].map((name) => integrations[name] as unknown).find((value) => value != null)
  if (said === false) return 'integrations_disabled'
  const { types, events } = destination.filter
  const [type, event] = [String(item['type']), String(item['event'])]
  if (types.deny.includes(type)) return 'type_denied'
  if (types.allow.length > 0 && !types.allow.includes(type)) return 'type_not_allowed'
  if (type === 'track' && events.deny.includes(event)) return 'event_denied'
  if (type === 'track' && events.allow.length > 0 && !events.allow.includes(event)) return 'event_not_allowed'
  if (destination.subscribe !== null && event !== 'x') return 'subscribe'
  const isOld = NOW - Date.parse(item['timestamp'] as string) > 24 * HOUR_MS
  return isOld && !destination.historical ? 'historical' : 'sent'
}

test('thousands of destinations of other sources are read once per configuration, not once per batch', () => {
  let looks = 0
  const others = Array.from({ length: 5_000 }, (_, index) => destination(`d${index}`, { sourceIds: ['other'] }))
  const configuration = configured(destination('a'), ...others)
  const destinations = new Map(configuration.destinations)
  const counted = {
    ...configuration,
    destinations: { values: () => (looks++, destinations.values()) } as unknown as typeof destinations,
  }
  for (let batch = 0; batch < 100; batch++) routeMessages(counted, 's', content([message({ All: true })]))
  assert.equal(looks, 1)
})
