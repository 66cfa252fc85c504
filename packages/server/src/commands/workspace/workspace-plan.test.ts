import assert from 'node:assert/strict'
import { test } from 'node:test'
import { destinationOf, exportedWorkspace, filterOf, sourceOf, subscriptionOf } from './fixtures/exported-workspace.ts'
import type { Catalog, CatalogIntegration } from './workspace-catalog.ts'
import { parseWorkspace } from './workspace-export.ts'
import { type Existing, planWorkspace, type Secrets, type WorkspacePlan } from './workspace-plan.ts'

function integration(settings: string[], required: string[], actions: Record<string, string[]>, available = true): CatalogIntegration {
  const properties = (names: readonly string[]): Record<string, unknown> => Object.fromEntries(names.map((name) => [name, {}]))
  return {
    available,
    problem: available ? null : 'It needs an OAuth app that only Segment has.',
    settings: { properties: properties(settings), required },
    actions: Object.entries(actions).map(([slug, fields]) => ({ slug, fields: { properties: properties(fields) } })),
  }
}

const CATALOG: Catalog = new Map([
  ['actions-slack', integration([], [], { postToChannel: ['url', 'text'] })],
  [
    'actions-amplitude',
    integration(['apiKey', 'secretKey', 'endpoint'], ['apiKey', 'secretKey'], { logEventV2: ['user_id', 'event_type'], identifyUser: [] }),
  ],
  ['actions-hubspot-cloud', integration(['portalId', 'oauth'], ['oauth'], { upsertContact: [] })],
  ['actions-attio', integration([], [], {}, false)],
])
const NOTHING: Existing = { sources: [], destinations: [] }

function plan(value: unknown, existing: Existing = NOTHING, secrets: Secrets = new Map()): WorkspacePlan {
  return planWorkspace(parseWorkspace(JSON.stringify(value), 'x'), existing, CATALOG, secrets)
}

const outcomes = ({ sources, destinations }: WorkspacePlan): Record<string, string> =>
  Object.fromEntries([...sources, ...destinations].map(({ name, outcome }) => [name, outcome]))

test('everything of an export is created or listed', () => {
  const planned = plan(exportedWorkspace())
  assert.deepEqual(outcomes(planned), {
    'Web shop': 'create',
    App: 'create',
    stripe: 'not_supported',
    Slack: 'create',
    'Amplitude (Actions)': 'needs_secrets',
    HubSpot: 'needs_secrets',
    Attio: 'not_supported',
    'Universal Analytics': 'not_supported',
    Fullstory: 'not_supported',
    'Brand new': 'not_supported',
    Payments: 'not_supported',
  })
  const reasons = planned.destinations.flatMap(({ outcome, reason }) => (outcome === 'not_supported' ? [reason] : []))
  for (const [index, pattern] of [
    /OAuth app/,
    /classic/,
    /only in browsers/,
    /no integration actions-not-yet-known/,
    /source stripe is not imported/,
  ].entries())
    assert.match(reasons[index] ?? '', pattern)
  const [slack, amplitude, hubspot] = planned.destinations
  assert.deepEqual([slack?.aliases, amplitude?.aliases], [['Slack (Actions)', 'Actions Slack'], []])
  assert.deepEqual(
    slack?.subscriptions.map(({ outcome, notes }) => [outcome, notes]),
    [
      ['create', ['Field sent_by is left out: the action does not have it.']],
      ['create', []],
    ],
  )
  assert.deepEqual(slack?.subscriptions[0]?.body, {
    name: 'Orders',
    action: 'postToChannel',
    subscribe: 'type = "track" and event = "Order Completed"',
    mapping: { url: 'https://hooks.slack.example.com/T/B', text: { '@template': '{{event}}' } },
    enabled: true,
  })
  assert.deepEqual([amplitude?.secrets, amplitude?.settings], [['apiKey', 'secretKey'], { endpoint: 'europe' }])
  assert.deepEqual(amplitude?.notes, ['Setting mapQueryParams is left out: the integration does not have it.'])
  assert.deepEqual(
    amplitude?.subscriptions.map(({ reason }) => reason),
    [
      null,
      'Its action sessionId runs in browsers (device mode).',
      'It belongs to Reverse ETL, which Switchyard does not have.',
      'The integration has no action makeCoffee.',
    ],
  )
  assert.deepEqual(hubspot?.secrets, ['oauth'])
  assert.match(hubspot?.notes[0] ?? '', /no subscriptions/)
  assert.deepEqual(planned.others, [{ part: 'warehouses', count: 1, reason: 'Switchyard does not load warehouses.' }])
})

test('a source keeps its write keys and whether it is enabled', () => {
  const { sources } = plan(exportedWorkspace())
  assert.deepEqual(sources[0]?.body, { name: 'Web shop', enabled: true, writeKeys: ['key-of-web_shop'] })
  assert.deepEqual(sources[1]?.body, { name: 'App', enabled: false })
  assert.match(sources[1]?.notes[0] ?? '', /Source Admin/)
})

test('secrets complete a destination; null leaves a setting out', () => {
  const secrets = new Map([['Amplitude (Actions)', { apiKey: 'a', secretKey: null, nonsense: 'c' }]])
  const [, amplitude] = plan(exportedWorkspace(), NOTHING, secrets).destinations
  assert.deepEqual([amplitude?.outcome, amplitude?.settings], ['create', { endpoint: 'europe', apiKey: 'a' }])
  assert.match(amplitude?.notes.join() ?? '', /Setting nonsense of --secrets/)
})

test('what exists is not created again: a source by write key or name, a destination by name', () => {
  const existing = {
    sources: [
      { id: 'src_1', name: 'renamed', writeKeys: ['other', 'key-of-web_shop'] },
      { id: 'src_2', name: 'App', writeKeys: ['x'] },
    ],
    destinations: [
      { name: 'Slack', integration: 'actions-slack', names: ['Slack', 'Actions Slack'], conditionalFilters: [] },
      { name: 'HubSpot', integration: null, names: ['HubSpot'], conditionalFilters: [] },
    ],
  }
  const { sources, destinations } = plan(exportedWorkspace(), existing)
  assert.deepEqual(
    sources.slice(0, 2).map(({ outcome, id }) => [outcome, id]),
    [
      ['exists', 'src_1'],
      ['exists', 'src_2'],
    ],
  )
  assert.equal(destinations[0]?.outcome, 'exists')
  assert.match(destinations[0]?.notes.join() ?? '', /does not have the filter Internal, or has changed it/)
  assert.match(destinations[0]?.notes.join() ?? '', /does not have the alias Slack \(Actions\), so messages/)
  assert.match(destinations[2]?.reason ?? '', /Another destination has this name/)
  const keyed = plan({ sources: [sourceOf('a', 'App', { writeKeys: ['new'] })] }, existing)
  assert.match(keyed.sources[0]?.notes[0] ?? '', /does not have the write key new/)
})

test('entries that share a name are told apart, in the same way in every run', () => {
  const value = {
    sources: [sourceOf('s1', 'one', { name: 'Shop' }), sourceOf('s2', 'two', { name: 'Shop' })],
    destinations: [
      destinationOf('d1', 'actions-slack', { name: 'Slack', sourceId: 's1' }),
      destinationOf('d2', 'actions-slack', { name: 'Slack', sourceId: 's2' }),
      destinationOf('d3', 'actions-slack', { name: 'Slack', sourceId: 's2' }),
    ],
  }
  const names = Object.keys(outcomes(plan(value)))
  assert.deepEqual(names, ['Shop (one)', 'Shop (two)', 'Slack (Shop (one))', 'Slack (d2)', 'Slack (d3)'])
  assert.deepEqual(Object.keys(outcomes(plan(value))), names)
})

test('keys of Object.prototype in settings and mappings are listed, not used', () => {
  const text = JSON.stringify({
    sources: [sourceOf('src-web', 'a')],
    destinations: [destinationOf('d', 'actions-slack', { settings: { x: 1 } })],
    subscriptions: [subscriptionOf('s', 'd', 'postToChannel', { settings: { y: 1, constructor: 2 } })],
  })
  const hostile = text.replace('"x":1', '"__proto__":{"apiKey":"x"},"toString":"y"').replace('"y":1', '"__proto__":1')
  const [destination] = planWorkspace(parseWorkspace(hostile, 'x'), NOTHING, CATALOG, new Map()).destinations
  assert.deepEqual(destination?.settings, {})
  assert.deepEqual(
    destination?.notes.map((note) => note.split(':')[0]),
    ['Setting __proto__ is left out', 'Setting toString is left out'],
  )
  assert.deepEqual(
    destination?.subscriptions[0]?.notes.map((note) => note.split(':')[0]),
    ['Field __proto__ is left out', 'Field constructor is left out'],
  )
})

test('filters are converted; a destination with a filter that cannot be converted is disabled, and an export without filters is incomplete', () => {
  const parts = {
    sources: [sourceOf('src-web', 'a')],
    destinations: [destinationOf('d', 'actions-slack', { name: 'One' }), destinationOf('e', 'actions-slack', { name: 'Two' })],
    subscriptions: [],
  }
  const filters = [
    filterOf('f1', 'd', 'event = "x"', [{ type: 'DROP' }]),
    filterOf('f2', 'e', 'event = "x"', [{ type: 'DROP' }]),
    filterOf('f3', 'e', 'lowercase(event) = "x"', [{ type: 'DROP' }], { title: 'Lower' }),
  ]
  const { destinations, others } = plan({ ...parts, filters })
  assert.deepEqual(
    destinations.map(({ outcome, enabled, conditionalFilters }) => [outcome, enabled, conditionalFilters.length]),
    [
      ['create', true, 1],
      ['create', false, 1],
    ],
  )
  assert.match(
    destinations[1]?.notes.join() ?? '',
    /created disabled, because a filter is missing\. Its filter Lower cannot be converted: the function lowercase/,
  )
  assert.deepEqual(others, [])
  assert.match(plan(parts).others[0]?.reason ?? '', /does not contain the answers to GET \/destination\/\{id\}\/filters/)
  assert.deepEqual(
    plan({ ...parts, filters: [filterOf('f', 'nobody', 'all', [])] }).others[0]?.reason,
    'Their destinations are not in the export.',
  )
})
