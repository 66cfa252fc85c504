import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layoutOf, nextNode } from './layout.ts'
import { connected, filtered, grouped, NO_PLAN, type Pipeline, type PipelineInput, pipelineOf, REST, rateText } from './pipeline.ts'

const NOW_MS = Date.UTC(2026, 10, 14, 9)
const ALL = { source: '', destination: '', text: '' }
const NONE: ReadonlySet<string> = new Set()
const HEALTHY = {
  breaker: 'closed',
  success: 1,
  pending: 0,
  oldestPendingAt: null,
  held: null,
  openSince: null,
  failure: null,
  mostFrequentFailure: null,
} as const

function health(destinationId: string, change: Partial<PipelineInput['health'][number]> = {}): PipelineInput['health'][number] {
  return { destinationId, ...HEALTHY, ...change }
}

function destination(id: string, sourceIds: string[]): PipelineInput['destinations'][number] {
  return { id, name: `Destination ${id}`, enabled: true, paused: false, sourceIds }
}

function owed(destinationId: string, owedBySource: Record<string, number>, delivered = 0): PipelineInput['destinationStats'][number] {
  const none = { failed: 0, expired: 0, cancelled: 0, retried: 0 }
  return { destinationId, owed: 0, delivered, ...none, owedBySource, series: { delivered: [delivered], unsuccessful: [0] } }
}

function sent(sourceId: string, accepted: number, rejected = 0): PipelineInput['sourceStats'][number] {
  const none = { duplicates: 0, suppressed: 0, quarantined: 0 }
  return { sourceId, accepted, rejected, ...none, series: { accepted: [accepted], rejected: [rejected] } }
}

const SHOP: PipelineInput = {
  nowMs: NOW_MS,
  minutes: 10,
  sources: [
    { id: 'web', name: 'Web', enabled: true },
    { id: 'pos', name: 'Tills', enabled: true },
    { id: 'old', name: 'Old', enabled: false },
  ],
  plans: [{ id: 'plan', name: 'Shop events', sourceIds: ['web'] }],
  destinations: [destination('crm', ['web', 'pos']), destination('mail', ['pos']), destination('lone', [])],
  health: [
    health('crm', {
      breaker: 'open',
      pending: 40,
      openSince: new Date(NOW_MS - 60_000).toISOString(),
      failure: { reason: 'x', error: 'Connection refused.' },
    }),
    health('mail'),
    health('lone'),
  ],
  totals: [{ sourceId: 'web', quarantined: 7 }],
  sourceStats: [sent('web', 100), sent('pos', 50, 25)],
  destinationStats: [owed('crm', { web: 90, pos: 50 }), owed('mail', { pos: 20 }, 20)],
}

const node = ({ nodes }: Pipeline, id: string) => nodes.find((each) => each.id === id) ?? assert.fail(id)
const ids = ({ nodes }: Pipeline): string[] => nodes.map(({ id }) => id)

test('sources lead through their tracking plan to destinations, with what each sent', () => {
  const { edges } = pipelineOf(SHOP)
  assert.deepEqual(
    edges.map(({ from, to, perMinute, mood }) => [from, to, perMinute, mood]),
    [
      ['web', 'plan', 10, 'good'],
      ['pos', NO_PLAN, 5, 'warning'],
      ['old', NO_PLAN, 0, 'quiet'],
      ['plan', 'crm', 9, 'bad'],
      [NO_PLAN, 'crm', 5, 'bad'],
      [NO_PLAN, 'mail', 2, 'good'],
    ],
  )
})

test('each node says in words how it is doing, and why', () => {
  const shop = pipelineOf(SHOP)
  assert.match(node(shop, 'crm').cause, /^Connection refused\. Failing for 1 min/)
  assert.deepEqual([node(shop, 'crm').status, node(shop, 'crm').waiting, node(shop, 'mail').perMinute], ['failing', 40, 2])
  assert.equal(node(shop, 'pos').cause, '25 messages rejected in the last 10 minutes, 50 accepted.')
  assert.equal(node(shop, 'plan').cause, 'Checks 1 source. 7 messages are in quarantine and sent nowhere.')
  assert.equal(node(shop, 'plan').to, '/plans/plan?tab=quarantine')
  assert.equal(node(shop, 'lone').status, 'no source')
  assert.deepEqual([node(shop, 'old').mood, node(shop, 'old').status], ['quiet', 'disabled'])
})

test('a destination that is shared with sources of others shows nothing about them', () => {
  const { status, waiting, cause } = node(pipelineOf({ ...SHOP, health: [], destinationStats: [] }), 'crm')
  assert.deepEqual([status, waiting], ['not shown', 0])
  assert.match(cause, /serves other sources/)
})

test('a filter leaves what matches, and what it is connected with', () => {
  const shop = pipelineOf(SHOP)
  assert.deepEqual(ids(filtered(shop, ALL)), ids(shop))
  assert.deepEqual(ids(filtered(shop, { ...ALL, source: 'web' })), ['web', 'plan', 'crm'])
  assert.deepEqual(ids(filtered(shop, { ...ALL, destination: 'mail' })), ['pos', 'old', NO_PLAN, 'mail'])
  assert.deepEqual(ids(filtered(shop, { ...ALL, text: 'TILLS' })), ['pos', NO_PLAN, 'crm', 'mail'])
  assert.deepEqual(ids(filtered(shop, { ...ALL, text: 'lone' })), ['lone'])
  assert.deepEqual(ids(filtered(shop, { ...ALL, text: 'nothing' })), [])
})

const LARGE: PipelineInput = {
  ...SHOP,
  destinations: Array.from({ length: 300 }, (_, at) => destination(`d${at}`, ['web', 'pos'])),
  health: Array.from({ length: 300 }, (_, at) => health(`d${at}`, at === 250 ? { held: 'x', pending: 3 } : { pending: 1 })),
  destinationStats: Array.from({ length: 300 }, (_, at) => owed(`d${at}`, { web: at }, at)),
}

test('of many, those that need attention and the busiest are shown, and the others summed up', () => {
  const shown = grouped(pipelineOf(LARGE), 5, NONE)
  assert.deepEqual(
    shown.nodes.filter(({ kind }) => kind === 'destination').map(({ name }) => name),
    ['Destination d250', 'Destination d296', 'Destination d297', 'Destination d298', 'Destination d299', '295 more destinations'],
  )
  const rest = node(shown, REST.destination)
  assert.deepEqual([rest.waiting, rest.size, rest.cause], [295, 295, '295 healthy.'])
  const total = (of: Pipeline) => of.edges.filter(({ from }) => from === 'plan').reduce((sum, { perMinute }) => sum + perMinute, 0)
  assert.ok(Math.abs(total(shown) - total(pipelineOf(LARGE))) < 1e-6)
})

test('what is shown stays where it is when other destinations become busier', () => {
  const before = grouped(pipelineOf(LARGE), 5, NONE)
  const busier = {
    ...LARGE,
    destinationStats: LARGE.destinationStats.map((row, at) => owed(row.destinationId, { web: 300 - at }, 300 - at)),
  }
  const after = grouped(pipelineOf(busier), 5, new Set(ids(before)))
  assert.deepEqual(ids(after), ids(before))
  const places = (of: Pipeline) => layoutOf(of, 1_000).boxes.map(({ node: { id }, x, y }) => [id, x, y])
  assert.deepEqual(places(after), places(before))
})

test('boxes of a column do not overlap, columns have room for lines between them, and lines begin and end at boxes', () => {
  for (const most of [3, 40, 1_000]) {
    const { boxes, lines, height } = layoutOf(grouped(pipelineOf(LARGE), most, NONE), 900)
    for (const [at, box] of boxes.entries()) {
      assert.ok(box.y >= 0 && box.y + box.height <= height + 1e-6)
      const next = boxes[at + 1]
      if (next?.node.kind === box.node.kind) assert.ok(next.y >= box.y + box.height + 8)
      else if (next !== undefined) assert.ok(next.x > box.x + box.width + 60)
    }
    for (const { edge, path, width } of lines) {
      const [x1, y1, x2, y2] = (/^M(\S+),(\S+) C.* (\S+),(\S+)$/.exec(path) ?? assert.fail(path)).slice(1).map(Number) as [
        number,
        number,
        number,
        number,
      ]
      const [from, to] = [edge.from, edge.to].map((id) => boxes.find((box) => box.node.id === id) ?? assert.fail(id)) as [
        (typeof boxes)[number],
        (typeof boxes)[number],
      ]
      assert.ok(Math.abs(x1 - from.x - from.width) < 0.1 && Math.abs(x2 - to.x) < 0.1)
      assert.ok(y1 > from.y && y1 < from.y + from.height && y2 > to.y && y2 < to.y + to.height)
      assert.ok(width >= 1.5 && width <= 14)
    }
  }
  assert.deepEqual(layoutOf({ nodes: [], edges: [] }, 900), { boxes: [], lines: [], height: 0 })
})

test('arrow keys lead to every node', () => {
  const { boxes } = layoutOf(pipelineOf(SHOP), 900)
  assert.equal(nextNode(boxes, 'web', 'ArrowDown'), 'pos')
  assert.equal(nextNode(boxes, 'web', 'ArrowUp'), null)
  assert.equal(nextNode(boxes, 'web', 'ArrowLeft'), null)
  assert.equal(nextNode(boxes, 'web', 'End'), 'old')
  const reached = new Set(['web'])
  for (const from of reached)
    for (const key of ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight']) {
      const next = nextNode(boxes, from, key)
      if (next !== null) reached.add(next)
    }
  assert.equal(reached.size, boxes.length)
})

test('with a node, everything before and behind it is highlighted, and nothing beside it', () => {
  const { edges } = pipelineOf(SHOP)
  assert.deepEqual([...connected(edges, 'crm')].sort(), ['crm', NO_PLAN, 'old', 'plan', 'pos', 'web'].sort())
  assert.deepEqual([...connected(edges, 'web')].sort(), ['crm', 'plan', 'web'])
})

test('rates are short', () => {
  assert.deepEqual([0, 0.04, 0.44, 9.96, 12.4, 1_234.5].map(rateText), ['', '<0.1/min', '0.4/min', '10/min', '12/min', '1,235/min'])
})
