// What the map shows: sources, the tracking plans that check their messages, and destinations, with rates, health and backlogs; which of them
// are shown alone, and which are summed up. Pure.

import type { Answer, Schemas } from '../../api/client.ts'
import { type StatusHealth, type StatusName, statusOf } from '../../destination/destination-status.ts'
import { exactCount, plural } from '../../text/format.ts'

export type Kind = 'source' | 'gate' | 'destination'

/** How a node is doing. Each has a colour, a word and, for lines, a pattern. */
export type Mood = 'good' | 'quiet' | 'warning' | 'bad'

export interface Node {
  id: string
  kind: Kind
  name: string
  to: string
  mood: Mood
  /** One word or two, which is shown beside the colour. */
  status: string
  /** Why, in a sentence. */
  cause: string
  perMinute: number
  /** Per minute of the period, for a sparkline. */
  series: readonly number[]
  /** Pending deliveries of a destination, or messages in quarantine of a plan. */
  waiting: number
  /** How many sources or destinations are summed up; 1 if none. */
  size: number
}

export interface Edge {
  from: string
  to: string
  perMinute: number
  mood: Mood
}

export interface Pipeline {
  nodes: readonly Node[]
  edges: readonly Edge[]
}

export interface PipelineInput {
  nowMs: number
  minutes: number
  sources: readonly Pick<Schemas['Source'], 'id' | 'name' | 'enabled'>[]
  plans: readonly Pick<Schemas['TrackingPlan'], 'id' | 'name' | 'sourceIds'>[]
  destinations: readonly Pick<Schemas['Destination'], 'id' | 'name' | 'enabled' | 'paused' | 'sourceIds'>[]
  health: readonly (StatusHealth & { destinationId: string })[]
  totals: readonly Pick<Answer<'GET /api/stats/totals'>['data'][number], 'sourceId' | 'quarantined'>[]
  sourceStats: Answer<'GET /api/stats/sources'>['data']
  destinationStats: Answer<'GET /api/stats/destinations'>['data']
}

export interface Filter {
  /** The id of a source or a destination, or part of a name; empty for all. */
  source: string
  destination: string
  text: string
}

/** The gate of sources that no tracking plan checks. */
export const NO_PLAN = 'no-plan'

const MOODS: Readonly<Record<StatusName, Mood>> = {
  held: 'bad',
  failing: 'bad',
  degraded: 'warning',
  behind: 'warning',
  'no source': 'warning',
  paused: 'quiet',
  disabled: 'quiet',
  idle: 'quiet',
  healthy: 'good',
}
const BY_NEED: readonly Mood[] = ['bad', 'warning', 'good', 'quiet']

export function pipelineOf(input: PipelineInput): Pipeline {
  const { sources, plans, destinations, minutes } = input
  const planOf = new Map(plans.flatMap(({ id, sourceIds }) => sourceIds.map((sourceId) => [sourceId, id] as const)))
  const gateOf = (sourceId: string): string => planOf.get(sourceId) ?? NO_PLAN
  const sourceNodes = sources.map((source) => sourceNode(source, input))
  const rates = new Map(sourceNodes.map(({ id, perMinute }) => [id, perMinute]))
  const moods = new Map(sourceNodes.map(({ id, mood }) => [id, mood]))
  const held = new Map(input.totals.map(({ sourceId, quarantined }) => [sourceId, quarantined]))
  const gates = [...new Set(sources.map(({ id }) => gateOf(id)))].map((gate) => {
    const own = sources.filter(({ id }) => gateOf(id) === gate)
    return gateNode(
      gate,
      plans.find(({ id }) => id === gate)?.name,
      own.map(({ id }) => id),
      rates,
      held,
    )
  })
  const stats = new Map(input.destinationStats.map((row) => [row.destinationId, row]))
  const destinationNodes = destinations.map((destination) => destinationNode(destination, stats.get(destination.id), input))
  const known = new Set(sources.map(({ id }) => id))
  const edges: Edge[] = sources.map(({ id }) => ({
    from: id,
    to: gateOf(id),
    perMinute: rates.get(id) ?? 0,
    mood: moods.get(id) ?? 'quiet',
  }))
  for (const [at, { id, sourceIds }] of destinations.entries()) {
    const owed = stats.get(id)?.owedBySource ?? {}
    const byGate = new Map<string, number>()
    for (const sourceId of sourceIds.filter((each) => known.has(each)))
      byGate.set(gateOf(sourceId), (byGate.get(gateOf(sourceId)) ?? 0) + (owed[sourceId] ?? 0) / minutes)
    const mood = destinationNodes[at]?.mood ?? 'quiet'
    for (const [gate, perMinute] of byGate) edges.push({ from: gate, to: id, perMinute, mood })
  }
  return { nodes: [...sourceNodes, ...gates, ...destinationNodes], edges }
}

function sourceNode({ id, name, enabled }: PipelineInput['sources'][number], { sourceStats, minutes }: PipelineInput): Node {
  const stats = sourceStats.find(({ sourceId }) => sourceId === id)
  const { accepted = 0, rejected = 0, series } = stats ?? {}
  const period = `in the last ${minutes} minutes`
  const [mood, status, cause]: [Mood, string, string] = !enabled
    ? ['quiet', 'disabled', 'Disabled: its requests are rejected.']
    : rejected > 0 && rejected >= accepted / 20
      ? ['warning', 'rejecting', `${plural(rejected, 'message')} rejected ${period}, ${exactCount(accepted)} accepted.`]
      : accepted === 0
        ? ['quiet', 'quiet', `No messages ${period}.`]
        : [
            'good',
            'sending',
            `${plural(accepted, 'message')} accepted ${period}${rejected > 0 ? `, ${exactCount(rejected)} rejected` : ''}.`,
          ]
  const perMinute = accepted / minutes
  return {
    id,
    kind: 'source',
    name,
    to: `/sources/${id}`,
    mood,
    status,
    cause,
    perMinute,
    series: series?.accepted ?? [],
    waiting: 0,
    size: 1,
  }
}

function gateNode(
  id: string,
  plan: string | undefined,
  sourceIds: readonly string[],
  rates: ReadonlyMap<string, number>,
  quarantined: ReadonlyMap<string, number>,
): Node {
  const perMinute = sourceIds.reduce((sum, sourceId) => sum + (rates.get(sourceId) ?? 0), 0)
  const waiting = sourceIds.reduce((sum, sourceId) => sum + (quarantined.get(sourceId) ?? 0), 0)
  const held =
    waiting === 1 ? '1 message is in quarantine and sent nowhere.' : `${exactCount(waiting)} messages are in quarantine and sent nowhere.`
  const about = plan === undefined ? 'No tracking plan checks these sources.' : `Checks ${plural(sourceIds.length, 'source')}.`
  const to =
    waiting > 0
      ? plan === undefined
        ? '/plans?tab=quarantine'
        : `/plans/${id}?tab=quarantine`
      : plan === undefined
        ? '/plans'
        : `/plans/${id}`
  return {
    id,
    kind: 'gate',
    name: plan ?? 'No tracking plan',
    to,
    mood: waiting > 0 ? 'warning' : perMinute > 0 ? 'good' : 'quiet',
    status: waiting > 0 ? `${exactCount(waiting)} in quarantine` : plan === undefined ? 'all pass' : 'checking',
    cause: waiting > 0 ? `${about} ${held}` : about,
    perMinute,
    series: [],
    waiting,
    size: 1,
  }
}

function destinationNode(
  destination: PipelineInput['destinations'][number],
  stats: PipelineInput['destinationStats'][number] | undefined,
  { health, nowMs, minutes }: PipelineInput,
): Node {
  const { id, name } = destination
  const own = health.find(({ destinationId }) => destinationId === id)
  const status = own === undefined ? null : statusOf(destination, own, nowMs)
  const waiting = own?.pending ?? 0
  return {
    id,
    kind: 'destination',
    name,
    to: `/destinations/${id}`,
    mood: status === null ? 'quiet' : MOODS[status.name],
    status: status?.name ?? 'not shown',
    // A destination that is shared with sources that the caller may not see.
    cause: status?.summary ?? 'Its health is not shown to you, because it serves other sources, too.',
    perMinute: (stats?.delivered ?? 0) / minutes,
    series: stats?.series.delivered ?? [],
    waiting,
    size: 1,
  }
}

/** Leaves the nodes that match, and those that they are connected with. */
export function filtered({ nodes, edges }: Pipeline, { source, destination, text }: Filter): Pipeline {
  const wanted = text.trim().toLowerCase()
  const matches = ({ id, name }: Node): boolean => name.toLowerCase().includes(wanted) || id === wanted
  const found = new Set(nodes.filter((node) => wanted === '' || matches(node)).map(({ id }) => id))
  // A path from a source through its gate to a destination is shown if something on it was found.
  const into = edges.filter(({ from }) => source === '' || from === source)
  const outOf = edges.filter(({ to }) => destination === '' || to === destination)
  const kinds = new Map(nodes.map(({ id, kind }) => [id, kind]))
  const shown = new Set<string>()
  const kept = new Set<Edge>()
  for (const first of into.filter(({ from }) => kinds.get(from) === 'source')) {
    const others = outOf.filter(({ from }) => from === first.to)
    const isFirst = found.has(first.from) || found.has(first.to)
    if (destination === '' && isFirst) keep(first)
    for (const second of others) if (isFirst || found.has(second.to)) keep(first, second)
  }
  function keep(...path: Edge[]): void {
    for (const edge of path) {
      kept.add(edge)
      shown.add(edge.from).add(edge.to)
    }
  }
  // What is connected with nothing is found by its own name.
  const isConnected = new Set(edges.flatMap(({ from, to }) => [from, to]))
  const isLone = ({ id, kind }: Node): boolean =>
    !isConnected.has(id) &&
    found.has(id) &&
    (kind === 'source' ? source : kind === 'destination' ? destination : 'x') === '' &&
    source === ''
  return { nodes: nodes.filter((node) => shown.has(node.id) || isLone(node)), edges: edges.filter((edge) => kept.has(edge)) }
}

export const REST: Readonly<Record<Kind, string>> = {
  source: 'rest-of-sources',
  gate: 'rest-of-gates',
  destination: 'rest-of-destinations',
}
const NAMES: Readonly<Record<Kind, string>> = { source: 'source', gate: 'tracking plan', destination: 'destination' }
const LISTS: Readonly<Record<Kind, string>> = { source: '/sources', gate: '/plans', destination: '/destinations' }

/**
 * Shows at most so many nodes of each kind, in alphabetical order, and sums up the others. What was shown before stays, so that nothing moves when
 * numbers change. What needs attention is always shown.
 */
export function grouped({ nodes, edges }: Pipeline, most: number, before: ReadonlySet<string>): Pipeline {
  const places = new Map<string, string>()
  const shown: Node[] = []
  for (const kind of ['source', 'gate', 'destination'] as const) {
    const all = nodes.filter((node) => node.kind === kind)
    const alone = choose(all, most, before)
    shown.push(...all.filter(({ id }) => alone.has(id)).sort(byName))
    const rest = all.filter(({ id }) => !alone.has(id))
    if (rest.length === 0) continue
    for (const { id } of rest) places.set(id, REST[kind])
    shown.push(summedUp(kind, rest))
  }
  const merged = new Map<string, Edge>()
  for (const edge of edges) {
    const [from, to] = [places.get(edge.from) ?? edge.from, places.get(edge.to) ?? edge.to]
    const key = `${from} ${to}`
    const other = merged.get(key)
    const mood = other === undefined || BY_NEED.indexOf(edge.mood) < BY_NEED.indexOf(other.mood) ? edge.mood : other.mood
    merged.set(key, { from, to, perMinute: edge.perMinute + (other?.perMinute ?? 0), mood })
  }
  return { nodes: shown, edges: [...merged.values()] }
}

function choose(all: readonly Node[], most: number, before: ReadonlySet<string>): ReadonlySet<string> {
  // One that would be summed up alone is shown instead.
  if (all.length <= most + 1) return new Set(all.map(({ id }) => id))
  const needed = ({ mood }: Node): boolean => mood === 'bad' || mood === 'warning'
  const order = [...all].sort(
    (a, b) =>
      Number(needed(b)) - Number(needed(a)) ||
      Number(before.has(b.id)) - Number(before.has(a.id)) ||
      b.perMinute - a.perMinute ||
      byName(a, b),
  )
  const needy = all.filter(needed).length
  return new Set(order.slice(0, Math.max(most, Math.min(needy, 2 * most))).map(({ id }) => id))
}

function byName(a: Node, b: Node): number {
  return a.name.localeCompare(b.name, undefined, { numeric: true }) || (a.id < b.id ? -1 : 1)
}

function summedUp(kind: Kind, rest: readonly Node[]): Node {
  const mood = BY_NEED.find((each) => rest.some((node) => node.mood === each)) ?? 'quiet'
  const counts = new Map<string, number>()
  for (const { status } of rest) counts.set(status, (counts.get(status) ?? 0) + 1)
  const words = [...counts].sort(([, a], [, b]) => b - a).map(([status, count]) => `${exactCount(count)} ${status}`)
  const length = Math.max(0, ...rest.map(({ series }) => series.length))
  return {
    id: REST[kind],
    kind,
    name: `${exactCount(rest.length)} more ${NAMES[kind]}${rest.length === 1 ? '' : 's'}`,
    to: LISTS[kind],
    mood,
    status: words[0] ?? '',
    cause: `${words.join(', ')}.`,
    perMinute: rest.reduce((sum, { perMinute }) => sum + perMinute, 0),
    series: Array.from({ length }, (_, at) => rest.reduce((sum, { series }) => sum + (series[at] ?? 0), 0)),
    waiting: rest.reduce((sum, { waiting }) => sum + waiting, 0),
    size: rest.length,
  }
}

/** The nodes that a node is connected with, on both sides: what is highlighted with it. */
export function connected(edges: readonly Edge[], id: string): ReadonlySet<string> {
  const found = new Set([id])
  const follow = (at: string, side: 'from' | 'to'): void => {
    for (const edge of edges) {
      if (edge[side === 'from' ? 'to' : 'from'] !== at || found.has(edge[side])) continue
      found.add(edge[side])
      follow(edge[side], side)
    }
  }
  follow(id, 'from')
  follow(id, 'to')
  return found
}

/** `12/min`, `0.4/min`; empty if nothing happened. */
export function rateText(perMinute: number): string {
  if (perMinute === 0) return ''
  if (perMinute < 0.1) return '<0.1/min'
  return `${perMinute < 10 ? Math.round(perMinute * 10) / 10 : exactCount(Math.round(perMinute))}/min`
}
