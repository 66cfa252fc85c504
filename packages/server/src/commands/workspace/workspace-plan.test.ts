import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConditionalFilter } from '../../model/configuration.ts'
import { destinationOf, exportedWorkspace, filterOf, sourceOf, subscriptionOf } from './fixtures/exported-workspace.ts'
import type { Existing, Secrets, WorkspacePlan } from './planned-workspace.ts'
import type { Catalog, CatalogIntegration } from './workspace-catalog.ts'
import { parseWorkspace } from './workspace-export.ts'
import { planWorkspace } from './workspace-plan.ts'

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
const NOTHING: Existing = { sources: [], destinations: [], plans: [] }

function plan(value: unknown, existing: Partial<Existing> = NOTHING, secrets: Secrets = new Map()): WorkspacePlan {
  return planWorkspace(parseWorkspace(JSON.stringify(value), 'x'), { ...NOTHING, ...existing }, CATALOG, secrets)
}

function existingOf(id: string, about: Partial<Existing['destinations'][number]>): Existing['destinations'][number] {
  const shown = {
    name: id,
    origin: null,
    type: 'integration',
    integration: 'actions-slack',
    subscriptions: [],
    conditionalFilters: [],
    ...about,
  }
  return { id, names: [shown.name], ...shown }
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
  assert.deepEqual([slack?.aliases, amplitude?.aliases], [['Slack (Actions)', 'Actions Slack'], ['Amplitude (Actions)']])
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
  const [warehouses] = planned.others
  assert.deepEqual([planned.others.length, warehouses?.part, warehouses?.count], [1, 'warehouses', 1])
  assert.match(warehouses?.reason ?? '', /^They are not imported\. .*create a destination of the type warehouse\.$/)
})

test('a source keeps its write keys and whether it is enabled', () => {
  const { sources } = plan(exportedWorkspace())
  assert.deepEqual(sources[0]?.body, { name: 'Web shop', enabled: true, origin: 'segment:src-web', writeKeys: ['key-of-web_shop'] })
  assert.deepEqual(sources[1]?.body, { name: 'App', enabled: false, origin: 'segment:src-app' })
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
      { id: 'src_1', name: 'renamed', origin: null, writeKeys: ['other', 'key-of-web_shop'] },
      { id: 'src_2', name: 'App', origin: null, writeKeys: ['x'] },
    ],
    destinations: [
      existingOf('dst_1', { name: 'Slack', names: ['Slack', 'Actions Slack'], subscriptions: ['Orders'] }),
      existingOf('dst_2', { name: 'HubSpot', type: 'webhook', integration: null }),
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
  // The API shows the keys in an order of its own.
  const [converted] = destinations.flatMap(({ conditionalFilters }) => conditionalFilters)
  assert.ok(converted !== undefined)
  const { name, ...rest } = converted
  const shown = { ...rest, name }
  const again = (filter: ConditionalFilter): string[] | undefined =>
    plan(
      { ...parts, filters },
      {
        destinations: [
          existingOf('dst_1', {
            name: 'One',
            names: ['One', 'Slack (Actions)', 'Actions Slack'],
            conditionalFilters: [filter],
          }),
        ],
      },
    ).destinations[0]?.notes.filter((note) => note.includes('filter'))
  assert.deepEqual(again(shown), [])
  assert.equal(again({ ...shown, when: 'event = "y"' })?.length, 1)
  assert.match(plan(parts).others[0]?.reason ?? '', /does not contain the answers to GET \/destination\/\{id\}\/filters/)
  assert.deepEqual(
    plan({ ...parts, filters: [filterOf('f', 'nobody', 'all', [])] }).others[0]?.reason,
    'Their destinations are not in the export.',
  )
})

test('what was imported is recognised by its id at Segment, whatever its name is now, and a name that is taken by something else is not', () => {
  const value = {
    sources: [sourceOf('src-web', 'web', { name: 'Shop', writeKeys: [] })],
    destinations: [destinationOf('d1', 'actions-slack', { name: 'Slack' }), destinationOf('d2', 'actions-slack', { name: 'Other' })],
    subscriptions: [],
    filters: [],
  }
  const existing = {
    sources: [{ id: 'src_1', name: 'Renamed', origin: 'segment:src-web', writeKeys: ['new'] }],
    destinations: [
      existingOf('dst_1', { name: 'Renamed', origin: 'segment:d1' }),
      existingOf('dst_2', { name: 'Other', origin: 'segment:d9' }),
    ],
  }
  const { sources, destinations } = plan(value, existing)
  assert.deepEqual(
    [...sources, ...destinations].map(({ name, outcome, id, adopts }) => [name, outcome, id, adopts]),
    [
      ['Shop', 'exists', 'src_1', false],
      ['Renamed', 'exists', 'dst_1', false],
      ['Other', 'not_supported', null, false],
    ],
  )
  const adopted = plan(value, {
    sources: [{ id: 'src_1', name: 'Shop', origin: null, writeKeys: [] }],
    destinations: [existingOf('dst_1', { name: 'Slack' })],
  })
  assert.deepEqual([adopted.sources[0]?.adopts, adopted.destinations[0]?.adopts, adopted.destinations[1]?.outcome], [true, true, 'create'])
})

test('a second run lists what the existing destination does not have', () => {
  const existing = { sources: [], destinations: [existingOf('dst_1', { name: 'Slack', subscriptions: ['Orders'] })] }
  const [slack] = plan(exportedWorkspace(), existing).destinations
  assert.deepEqual(
    slack?.subscriptions.map(({ name, outcome, reason }) => [name, outcome, reason?.slice(0, 44) ?? null]),
    [
      ['Orders', 'exists', null],
      ['Broken trigger', 'not_supported', 'The existing destination does not have it. A'],
    ],
  )
  assert.match(slack?.notes.join() ?? '', /does not have the filter Internal/)
})

test('only sources of libraries are imported: cloud sources, warehouses and audiences are listed, whatever isCloudEventSource says', () => {
  const rows: [categories: string[], isCloudEventSource: boolean, reason: RegExp | null][] = [
    [['Website'], false, null],
    [['Server', 'Mobile'], false, null],
    [['Ott'], false, null],
    [[], false, null],
    [['Payments'], false, /cloud source \(Kind\)/],
    [['CRM', 'Email Marketing'], false, /cloud source/],
    [['Website'], true, /cloud source/],
    [['Warehouse'], false, /Reverse ETL/],
    [['INTERNAL'], false, /source of Segment itself/],
  ]
  for (const [categories, isCloudEventSource, reason] of rows) {
    const { sources } = plan({ sources: [sourceOf('a', 'a', { kind: 'Kind', categories, isCloudEventSource })] })
    assert.equal(sources[0]?.outcome, reason === null ? 'create' : 'not_supported', categories.join())
    if (reason !== null) assert.match(sources[0]?.reason ?? '', reason)
  }
})

test('destinations and actions in device mode, and functions, are named as what they are', () => {
  const value = {
    sources: [sourceOf('src-web', 'a')],
    destinations: [
      destinationOf('d1', 'x-web', { kind: 'Web', actions: { a: 'web' } }),
      destinationOf('d2', 'x-mobile', { kind: 'Mobile', actions: { a: 'mobile' } }),
      destinationOf('d3', 'fn', { kind: 'My code', catalogId: 'catalog-of-function' }),
      destinationOf('d4', 'actions-slack', { name: 'Slack', actions: { postToChannel: 'cloud', plugin: 'mobile' } }),
    ],
    subscriptions: [subscriptionOf('s', 'd4', 'plugin')],
    filters: [],
    functions: [{ id: 'f', resourceType: 'DESTINATION', displayName: 'My code', catalogId: 'catalog-of-function' }],
  }
  const { destinations, others } = plan(value)
  for (const [index, pattern] of [/only in browsers/, /only in mobile apps/, /My code is a destination function/].entries())
    assert.match(destinations[index]?.reason ?? '', pattern)
  assert.equal(destinations[3]?.subscriptions[0]?.reason, 'Its action plugin runs in mobile apps (device mode).')
  assert.match(others[0]?.reason ?? '', /code runs at Segment/)
})

test('a classic Webhooks destination becomes a webhook, with its headers and its shared secret', () => {
  const settings = {
    globalHook: 'https://hooks.example.com/a',
    hooks: [
      {
        hook: 'https://hooks.example.com/a',
        headers: [
          { key: 'X-Team', value: 'shop' },
          { key: '', value: '' },
        ],
      },
      { hook: ' https://hooks.example.com/b', headers: [{ key: 'X-Team', value: 'shop' }] },
    ],
    sharedSecret: '••••••cret',
  }
  const about = (changes: object): object => ({
    sources: [sourceOf('src-web', 'a')],
    destinations: [destinationOf('d', 'webhooks', { name: 'Hooks', kind: 'Webhooks', settings: { ...settings, ...changes } })],
    filters: [],
  })
  const [masked] = plan(about({})).destinations
  assert.deepEqual([masked?.type, masked?.outcome, masked?.secrets, masked?.aliases], ['webhook', 'needs_secrets', ['sharedSecret'], []])
  const [given] = plan(about({}), NOTHING, new Map([['Hooks', { sharedSecret: 's' }]])).destinations
  assert.deepEqual(
    [given?.outcome, given?.settings],
    ['create', { urls: ['https://hooks.example.com/a', 'https://hooks.example.com/b'], headers: { 'X-Team': 'shop' }, sharedSecret: 's' }],
  )
  assert.equal(plan(about({ sharedSecret: '' })).destinations[0]?.outcome, 'create')
  assert.match(plan(about({ hooks: [], globalHook: '' })).destinations[0]?.reason ?? '', /no URL/)
  const different = [...settings.hooks, { hook: 'https://hooks.example.com/c', headers: [] }]
  assert.match(plan(about({ hooks: different })).destinations[0]?.reason ?? '', /different headers/)
})

test('fields of batches are no loss, the sync mode is kept, and subscriptions get names of their own', () => {
  const settings = { url: 'u', enable_batching: true, batch_size: 100, __segment_internal_sync_mode: 'upsert' }
  const [slack] = plan({
    sources: [sourceOf('src-web', 'a')],
    destinations: [destinationOf('d', 'actions-slack', { name: 'Slack' })],
    subscriptions: [
      subscriptionOf('s1', 'd', 'postToChannel', { name: 'Same', settings }),
      subscriptionOf('s2', 'd', 'postToChannel', { name: 'Same', settings: { url: 'u' } }),
    ],
    filters: [],
  }).destinations
  assert.deepEqual(
    slack?.subscriptions.map(({ name, notes }) => [name, notes]),
    [
      ['Same (s1)', []],
      ['Same (s2)', []],
    ],
  )
  assert.partialDeepStrictEqual(slack?.subscriptions[0]?.body, { mapping: { url: 'u' }, syncMode: 'upsert' })
  assert.match(slack?.hints.join() ?? '', /batch\.size/)
})

test('a mask anywhere in a setting or a mapping is a secret that is missing', () => {
  const value = {
    sources: [sourceOf('src-web', 'a')],
    destinations: [
      destinationOf('d', 'actions-amplitude', {
        name: 'Amplitude',
        settings: { apiKey: 'abc••••', secretKey: 'ab***yz', endpoint: { nested: ['x', '••••••dada'] } },
      }),
      destinationOf('e', 'actions-slack', { name: 'Slack' }),
    ],
    subscriptions: [
      subscriptionOf('s', 'e', 'postToChannel', { name: 'Post', settings: { url: { '@literal': 'https://x/••••' }, text: 'a • b' } }),
    ],
    filters: [],
  }
  const [amplitude, slack] = plan(value).destinations
  assert.deepEqual([amplitude?.secrets, amplitude?.settings], [['apiKey', 'secretKey', 'endpoint'], {}])
  assert.deepEqual(
    [slack?.outcome, slack?.reason, slack?.mappingSecrets],
    ['needs_secrets', 'Its subscription Post needs url.', new Map([['Post', ['url']]])],
  )
  const [, filled] = plan(value, NOTHING, new Map([['Slack', { subscriptions: { Post: { url: 'https://x/real' } } }]])).destinations
  assert.equal(filled?.outcome, 'create')
  assert.partialDeepStrictEqual(filled?.subscriptions[0]?.body, { mapping: { url: 'https://x/real', text: 'a • b' } })
})
