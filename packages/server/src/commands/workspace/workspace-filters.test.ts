import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { subscribeJudge } from '../../destinations/subscribe/subscribe-judge.ts'
import type { SegmentContent } from '../../model/messages.ts'
import { filterOf } from './fixtures/exported-workspace.ts'
import { parseWorkspace } from './workspace-export.ts'
import { type ConvertedFilters, convertFilters, expressionOf } from './workspace-filters.ts'

const CONTENT: SegmentContent = {
  sourceId: 's',
  receivedAtMs: 0,
  ip: null,
  browser: false,
  sentAt: null,
  context: null,
  integrations: null,
  trace: null,
  items: [],
}
const MESSAGE: JsonObject = {
  type: 'track',
  event: 'Button Clicked',
  context: { library: { name: 'analytics.js', version: '1.0' }, page: { path: '/login' } },
  properties: { total: 5, internal: true, 'product 1': { price: '19.99' } },
}

// The examples of the documentation, and combinations of them, with what Segment makes of them.
const CONDITIONS: [condition: string, matches: boolean][] = [
  ["event = 'Button Clicked'", true],
  ["event = 'Screen Tapped'", false],
  ["context.path.path = '/login'", false],
  ["type = 'identify' or type = 'track'", true],
  ["event = 'Button Clicked' and type = 'track'", true],
  ["match( context.library.version, '1.*' )", true],
  ["match( context.library.version, '2.*' )", false],
  ["type = 'track' and ( event = 'Click' or match( event, 'Button *' ) )", true],
  ["!contains( context.library.name, 'js' )", false],
  ["!contains( context.library.missing, 'js' )", true],
  ["!match( properties.missing, 'a*' )", true],
  ["!( type in ['track', 'identify'] )", false],
  ["type in ['page', 'identify']", false],
  ["!( type = 'page' and event = 'x' )", true],
  ["!(type = 'page' or (event != 'Button Clicked' and properties.total > 3))", true],
  ['length( userId ) < 1', true],
  ['length( userId ) > 0', false],
  ['length( event ) != 0', true],
  ["typeof( userId ) = 'null'", true],
  ['userId = null', true],
  ['properties.total >= 5', true],
  ['5 < properties.total', false],
  ['!(properties.total < 5)', true],
  ['!(properties.missing < 5)', true],
  ['properties.internal', true],
  ['properties.internal = false', false],
  ["properties.product\\ 1.price = '19.99'", true],
  ["match(event, '*lick*')", true],
  ["match(event, '*')", true],
  ["match(userId, '*')", false],
  ["match(event, 'Button Clicked')", true],
]

test('conditions match the same messages as at Segment', () => {
  for (const [condition, matches] of CONDITIONS) {
    const expression = expressionOf(condition)
    assert.ok(expression !== null)
    assert.equal(subscribeJudge(expression)(MESSAGE, CONTENT), matches, `${condition} became ${expression}`)
  }
  assert.equal(expressionOf(' all '), null)
})

const NOT_CONVERTIBLE: [condition: string, reason: RegExp][] = [
  ["'dark-mode' in properties.features", /searches a list/],
  ["lowercase(event) = 'x'", /function lowercase/],
  ['length(properties.list) > 2', /function length/],
  ["match(event, 'a?c')", /pattern "a\?c"/],
  ["match(event, 'a*d')", /pattern/],
  ["match(event, 'ab[cC]')", /pattern/],
  ['properties.internal != true', /no equivalent/],
  ['!properties.internal', /no equivalent/],
  ['event = userId', /two fields/],
  ["anonymousId = 'x'", /unknown field "anonymousId"/],
  ["properties.a\\.b = 'x'", /contains a dot/],
  ['userId = oops"', /unexpected/],
  ['type =', /ends too early/],
  ['(type = "track"', /ends too early/],
  [`${'('.repeat(60)}type = "track"${')'.repeat(60)}`, /nested too deeply/],
  ['properties.toString = "x"', /every object has it/],
]

function converted(...filters: object[]): ConvertedFilters {
  const { filters: parsed } = parseWorkspace(
    JSON.stringify({ sources: [], destinations: [{ id: 'd', sourceId: 's', metadata: { slug: 'x' } }], filters }),
    'x',
  )
  return convertFilters(parsed?.get('d') ?? [])
}

test('a negated condition also matches a value of another type, as at Segment', () => {
  const rows: [condition: string, matching: unknown[], others: unknown[]][] = [
    ['properties.n != 5', [undefined, null, '5', 6, true, false], [5]],
    ['!(properties.n = 5)', [undefined, null, 'abc', 4, true], [5]],
    ['!(properties.n in [1, 2])', [undefined, null, '1', 3, false], [1, 2]],
    ['!(properties.n < 5)', [undefined, null, 'abc', 5, true], [4]],
    ["!contains(properties.n, 'x')", [undefined, null, 'a', 0, -1, true, false], ['ax']],
    ["!match(properties.n, 'x*')", [undefined, null, 'ax', 0, -1, false], ['xa']],
    ["!match(properties.n, '*')", [undefined, null, 7, false], ['a', '']],
    ["!contains(event, 'x')", [undefined], []],
  ]
  for (const [condition, matching, others] of rows) {
    const expression = expressionOf(condition) ?? ''
    const matches = (n: unknown): boolean => subscribeJudge(expression)({ type: 'track', properties: { n } }, CONTENT)
    for (const n of matching) assert.equal(matches(n), true, `${condition} with ${JSON.stringify(n)}: ${expression}`)
    for (const n of others) assert.equal(matches(n), false, `${condition} with ${JSON.stringify(n)}: ${expression}`)
  }
})

test('a condition that would keep back other messages is not converted, with the reason', () => {
  for (const [condition, reason] of NOT_CONVERTIBLE) {
    const { filters, problems } = converted(filterOf('f', 'd', condition, [{ type: 'DROP' }]))
    assert.deepEqual([filters, problems.length], [[], 1], condition)
    assert.match(problems[0] ?? '', reason)
    assert.match(problems[0] ?? '', /^Its filter Filter f cannot be converted: /)
  }
  assert.deepEqual(converted(filterOf('f', 'd', 'oops"', [{ type: 'DROP' }], { enabled: false })), { filters: [], problems: [] })
})

test('each action becomes a conditional filter', () => {
  const actions = [
    { type: 'DROP' },
    { type: 'SAMPLE', percent: 0.25, path: 'userId' },
    { type: 'SAMPLE', percent: 1 },
    { type: 'DROP_PROPERTIES', fields: { '': ['userId'], properties: ['email', 'products.price'], context: { fields: ['ip'] } } },
    { type: 'ALLOW_PROPERTIES', fields: { traits: ['plan'] } },
  ]
  const { filters, problems } = converted(filterOf('f', 'd', 'type = "track"', actions, { title: 'Rules', enabled: false }))
  assert.deepEqual(problems, [])
  const about = { name: 'Rules', enabled: false, when: 'type = "track"', share: null, path: null, fields: null }
  assert.deepEqual(filters, [
    { ...about, action: 'drop' },
    { ...about, action: 'sample', share: 0.25, path: 'userId' },
    { ...about, action: 'sample', share: 1 },
    {
      ...about,
      action: 'drop_properties',
      fields: { '': ['userId'], properties: ['email', 'products.price'], 'properties.products': ['price'], context: ['ip'] },
    },
    { ...about, action: 'allow_properties', fields: { traits: ['plan'] } },
  ])
  for (const [action, reason] of [
    [{ type: 'SAMPLE' }, /no percent/],
    [{ type: 'SAMPLE', percent: 50 }, /no percent/],
    [{ type: 'DROP_PROPERTIES' }, /no fields/],
    [{ type: 'ALLOW_PROPERTIES', fields: { '': ['userId'] } }, /message itself/],
    [{ type: 'ALLOW_PROPERTIES', fields: { properties: ['a.b'] } }, /contains a dot/],
    [{ type: 'ENCRYPT' }, /action ENCRYPT/],
    [
      { type: 'DROP_PROPERTIES', fields: { '': ['timestamp'] } },
      /cannot be converted: its fields must not remove timestamp, which every message needs\.$/,
    ],
    [{ type: 'DROP_PROPERTIES', fields: { 'a..b': ['c'] } }, /its fields.*must be keys with dots between them/],
    [{ type: 'SAMPLE', percent: 0.5, path: 'a..b' }, /its path must be keys with dots between them/],
  ] as const)
    assert.match(converted(filterOf('f', 'd', 'all', [action])).problems.join(), reason)
  const untitled = converted(filterOf('f', 'd', 'all', [{ type: 'DROP' }], { title: '' }))
  assert.deepEqual([untitled.filters.map(({ name }) => name), untitled.problems], [['f'], []])
})
