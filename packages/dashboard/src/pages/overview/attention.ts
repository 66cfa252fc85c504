// What somebody should look at, the worst first: from how the destinations do, the books, the last hour against the hour before, and the
// nodes. The last hour, whatever period is looked at: what began a quarter of an hour ago is lost in a day. Pure; times are the service's.

import type { Answer, Schemas } from '../../api/client.ts'
import { duration, exactCount, share } from '../../text/format.ts'
import { holdOf } from '../destinations/destination-status.ts'
import { deliveriesPath, type LedgerEntry, missingFrom } from './ledger.ts'
import { failureRate, type Point, type Totals, totalsOf } from './periods.ts'

export type Severity = 'critical' | 'warning' | 'notice'

export interface Finding {
  /** Stable while it lasts. */
  id: string
  severity: Severity
  /** What it is about: the name of a destination or a node, or a part of the service. */
  subject: string
  /** One sentence. */
  text: string
  since: string | null
  /** Of a step of some minutes, and not of a moment. */
  isRough?: boolean
  /** To its cause. */
  href: string
  /** What is there. */
  link: string
}

export interface HourAndBefore {
  now: Totals
  before: Totals
  /** The first step of the last hour in which a try failed, and in which a message was rejected. */
  failingSince: string | null
  rejectingSince: string | null
}

export interface AttentionInput {
  nowMs: number
  destinations: readonly (Pick<Schemas['Destination'], 'id' | 'name' | 'enabled' | 'paused'> &
    Partial<Pick<Schemas['Destination'], 'createdAt'>>)[]
  sources: readonly Pick<Schemas['Source'], 'id' | 'name'>[]
  health: Answer<'GET /api/destinations/health'>['data']
  /** By destination that is held: what was pending when this page saw it first. */
  heldBefore: ReadonlyMap<string, number>
  ledger: readonly LedgerEntry[]
  /** All together. */
  hour: HourAndBefore
  /** By destination, of those that were asked for. */
  hours: ReadonlyMap<string, HourAndBefore>
  /** By destination: what expired in the last day, and the beginning of the hour in which that began. */
  expired: ReadonlyMap<string, { count: number; since: string | null }>
  rejections: Answer<'GET /api/rejections'>['data']
  nodes: readonly Schemas['Node'][]
  /** Seen before by this page, and no more. */
  goneNodes: readonly Schemas['Node'][]
  /** Null while it is not known. */
  store: { isWell: boolean; message: string } | null
}

export const OLD_PENDING_MS = 5 * 60_000
/** Most retry windows are over after some hours: what waits so long may soon expire. */
export const VERY_OLD_PENDING_MS = 60 * 60_000
/** Of fewer tries a share says nothing. */
export const MIN_TRIES = 20
/** A share that is bad whatever it was before. */
export const BAD_RATE = 0.2
/** How much it must have grown to be worth a word: twice, and by this much. */
export const RATE_STEP = 0.05
export const MIN_REJECTED = 20
/** Nodes give a sign of life every second or two. */
export const SILENT_NODE_MS = 5_000

const ORDER: Readonly<Record<Severity, number>> = { critical: 0, warning: 1, notice: 2 }

export function findAttention(input: AttentionInput): Finding[] {
  const findings = [
    ...ofStore(input),
    ...ofBooks(input),
    ...ofBreakers(input),
    ...ofWaiting(input),
    ...ofFailures(input),
    ...ofExpired(input),
    ...ofRejections(input),
    ...ofNodes(input),
    ...ofHeld(input),
  ]
  // Stable: within a severity the order above, and there the largest first.
  return findings.sort((a, b) => ORDER[a.severity] - ORDER[b.severity])
}

function ofStore({ store }: AttentionInput): Finding[] {
  if (store === null || store.isWell) return []
  const text = `Nothing can be stored, so every call is refused until it can: ${store.message}`
  return [{ id: 'store', severity: 'critical', subject: 'Store', text, since: null, href: '/settings/about', link: 'The installation' }]
}

function ofBooks({ ledger, destinations }: AttentionInput): Finding[] {
  const wrong = ledger.filter((entry) => missingFrom(entry) !== 0)
  if (wrong.length === 0) return []
  const names = nameList(wrong.map(({ destinationId }) => nameOf(destinations, destinationId)))
  const text = `What is owed is not the sum of what became of it for ${names}: run switchyard doctor, and keep a copy of the store.`
  return [{ id: 'books', severity: 'critical', subject: 'Ledger', text, since: null, href: '#ledger', link: 'The ledger' }]
}

function isFailing(row: AttentionInput['health'][number]): boolean {
  return row.breaker !== 'closed'
}

function ofBreakers({ health, destinations, nowMs }: AttentionInput): Finding[] {
  return sendingOf({ health, destinations })
    .filter(isFailing)
    .sort((a, b) => b.pending - a.pending)
    .map(({ destinationId, pending, openSince, oldestPendingAt }): Finding => {
      const oldest = oldestPendingAt === null ? '' : `, the oldest for ${age(oldestPendingAt, nowMs)}`
      const waiting = pending === 0 ? 'nothing waits for it' : `${deliveries(pending)} ${pending === 1 ? 'waits' : 'wait'}${oldest}`
      return {
        id: `breaker ${destinationId}`,
        severity: 'critical',
        subject: nameOf(destinations, destinationId),
        text: `Breaker open: attempts fail again and again, so one request at a time probes it; ${waiting}.`,
        since: openSince,
        href: `/destinations/${encodeURIComponent(destinationId)}`,
        link: 'The destination',
      }
    })
}

function ofWaiting({ health, destinations, nowMs }: AttentionInput): Finding[] {
  return sendingOf({ health, destinations })
    .filter((row) => !isFailing(row) && row.oldestPendingAt !== null && nowMs - Date.parse(row.oldestPendingAt) > OLD_PENDING_MS)
    .sort((a, b) => Date.parse(a.oldestPendingAt as string) - Date.parse(b.oldestPendingAt as string))
    .map(({ destinationId, pending, oldestPendingAt }): Finding => {
      const since = oldestPendingAt as string
      return {
        id: `waiting ${destinationId}`,
        severity: nowMs - Date.parse(since) > VERY_OLD_PENDING_MS ? 'critical' : 'warning',
        subject: nameOf(destinations, destinationId),
        text: `The oldest pending delivery has waited for ${age(since, nowMs)}; ${deliveries(pending)} ${pending === 1 ? 'is' : 'are'} pending.`,
        since,
        href: deliveriesPath({ destination: destinationId, state: 'pending' }),
        link: 'Pending deliveries',
      }
    })
}

function ofFailures({ hours, health, destinations }: AttentionInput): Finding[] {
  const failing = new Set(health.filter(isFailing).map(({ destinationId }) => destinationId))
  const worstFirst = [...hours].sort(([, a], [, b]) => (failureRate(b.now)?.rate ?? 0) - (failureRate(a.now)?.rate ?? 0))
  const findings: Finding[] = []
  for (const [destinationId, { now, before, failingSince }] of worstFirst) {
    const is = failureRate(now)
    if (is === null) continue
    const was = failureRate(before)
    const wasRate = was !== null && was.tries >= MIN_TRIES ? was.rate : null
    const isUp = wasRate !== null && is.rate >= wasRate * 2 && is.rate >= wasRate + RATE_STEP
    // Where they are only put off, the pending ones tell why.
    const state = now.failed > 0 ? 'failed' : now.expired > 0 ? 'expired' : 'pending'
    const about = {
      subject: nameOf(destinations, destinationId),
      since: sinceCreated(destinations, destinationId, failingSince),
      isRough: true,
      href: deliveriesPath({ destination: destinationId, state }),
      link: `${state[0]?.toUpperCase()}${state.slice(1)} deliveries`,
    }
    // An open breaker says it already.
    if (is.tries >= MIN_TRIES && (isUp || is.rate >= BAD_RATE) && !failing.has(destinationId)) {
      const against = wasRate === null ? '' : `, ${isUp ? 'up from' : 'after'} ${share(wasRate)} in the hour before`
      const text = `${share(is.rate)} of ${exactCount(is.tries)} tries to deliver failed in the last hour${against}.`
      findings.push({ ...about, id: `rate ${destinationId}`, severity: 'warning', text })
    } else if (now.failed > 0) {
      const text = `${deliveries(now.failed)} failed for good in the last hour.`
      findings.push({ ...about, id: `failed ${destinationId}`, severity: 'notice', text })
    }
  }
  return findings
}

function ofExpired({ expired, destinations }: AttentionInput): Finding[] {
  return [...expired]
    .filter(([, { count }]) => count > 0)
    .sort(([, a], [, b]) => b.count - a.count)
    .map(([destinationId, { count, since }]): Finding => {
      const they = count === 1 ? 'it was tried until its' : 'they were tried until their'
      return {
        id: `expired ${destinationId}`,
        severity: 'warning',
        subject: nameOf(destinations, destinationId),
        text: `${deliveries(count)} expired in the last 24 hours: ${they} retry window was over. Replay ${count === 1 ? 'it' : 'them'} when the receiver is well.`,
        since: sinceCreated(destinations, destinationId, since),
        isRough: true,
        href: deliveriesPath({ destination: destinationId, state: 'expired' }),
        link: 'Expired deliveries',
      }
    })
}

/** A step may have begun long before a destination that is new. */
function sinceCreated(destinations: AttentionInput['destinations'], destinationId: string, since: string | null): string | null {
  const createdAt = destinations.find(({ id }) => id === destinationId)?.createdAt
  return since !== null && createdAt !== undefined && Date.parse(createdAt) > Date.parse(since) ? createdAt : since
}

function ofRejections({ hour: { now, before, rejectingSince }, rejections, sources }: AttentionInput): Finding[] {
  const isUp = now.rejected >= MIN_REJECTED && now.rejected >= before.rejected * 2
  if (!isUp) return []
  const last = [...rejections].sort((a, b) => Date.parse(b.lastAt) - Date.parse(a.lastAt))[0]
  const source = last?.sourceId == null ? undefined : sources.find(({ id }) => id === last.sourceId)
  const by = last === undefined ? '' : `, the last as ${last.code}${source === undefined ? '' : ` from ${source.name}`}`
  return [
    {
      id: 'rejected',
      severity: 'warning',
      subject: 'Rejected messages',
      text: `${exactCount(now.rejected)} messages were rejected in the last hour, ${exactCount(before.rejected)} in the hour before${by}.`,
      since: rejectingSince,
      isRough: true,
      href: source === undefined ? '/sources' : `/sources/${encodeURIComponent(source.id)}`,
      link: source === undefined ? 'Sources' : 'The source',
    },
  ]
}

function ofNodes({ nodes, goneNodes }: AttentionInput): Finding[] {
  const about = (id: string, severity: Severity, subject: string, text: string, since: string | null): Finding => {
    return { id, severity, subject, text, since, href: '/settings/nodes', link: 'The nodes' }
  }
  // Both times are the store's.
  const lastMs = Math.max(...nodes.map(({ seenAt }) => Date.parse(seenAt)))
  const silent = nodes
    .filter(({ seenAt }) => lastMs - Date.parse(seenAt) > SILENT_NODE_MS)
    .map(({ name, seenAt }) => {
      const text = `No sign of life for ${duration(lastMs - Date.parse(seenAt))}; other nodes take over what it had in hand.`
      return about(`node ${name}`, 'warning', `Node ${name}`, text, seenAt)
    })
  const gone = goneNodes.map(({ name, seenAt }) =>
    about(
      `node ${name}`,
      'warning',
      `Node ${name}`,
      'It was there while this page was open, and is not seen any more: stopped, or lost.',
      seenAt,
    ),
  )
  const versions = [...new Set(nodes.map(({ version }) => version))].sort()
  const mixed =
    versions.length < 2 ? [] : [about('versions', 'notice', 'Nodes', `They run different versions: ${versions.join(', ')}.`, null)]
  return [...silent, ...gone, ...mixed]
}

function ofHeld({ health, destinations, heldBefore }: AttentionInput): Finding[] {
  const holds = new Map(destinations.map((destination) => [destination.id, holdOf(destination)]))
  return health
    .filter(({ destinationId, pending }) => holds.get(destinationId) != null && pending > 0)
    .sort((a, b) => b.pending - a.pending)
    .map(({ destinationId, pending, oldestPendingAt }): Finding => {
      const held = `${deliveries(pending)} ${pending === 1 ? 'is' : 'are'} held until it is`
      const isPaused = holds.get(destinationId) === 'paused'
      const more = pending - (heldBefore.get(destinationId) ?? pending)
      const grows = more > 0 ? `, ${exactCount(more)} more than when this page was opened` : ''
      return {
        id: `${isPaused ? 'paused' : 'disabled'} ${destinationId}`,
        severity: isPaused && more > 0 ? 'warning' : 'notice',
        subject: nameOf(destinations, destinationId),
        text: isPaused ? `Paused: ${held} resumed${grows}.` : `Disabled: ${held} enabled; new messages skip it.`,
        since: oldestPendingAt,
        href: `/destinations/${encodeURIComponent(destinationId)}`,
        link: 'The destination',
      }
    })
}

/** What was pending at each held destination when it was first seen held; forgotten when it may send again. */
export function followHeld(
  before: ReadonlyMap<string, number>,
  { health, destinations }: Pick<AttentionInput, 'health' | 'destinations'>,
): ReadonlyMap<string, number> {
  const held = new Set(destinations.filter((destination) => holdOf(destination) !== null).map(({ id }) => id))
  return new Map(
    health
      .filter(({ destinationId }) => held.has(destinationId))
      .map(({ destinationId, pending }) => [destinationId, before.get(destinationId) ?? pending]),
  )
}

/** Those that may send. */
function sendingOf({ health, destinations }: Pick<AttentionInput, 'health' | 'destinations'>): AttentionInput['health'] {
  const held = new Set(destinations.filter((destination) => holdOf(destination) !== null).map(({ id }) => id))
  return health.filter(({ destinationId }) => !held.has(destinationId))
}

function nameOf(destinations: AttentionInput['destinations'], id: string): string {
  return destinations.find((destination) => destination.id === id)?.name ?? id
}

function nameList(names: readonly string[]): string {
  return names.length <= 3 ? names.join(', ') : `${names.slice(0, 2).join(', ')} and ${names.length - 2} more`
}

function deliveries(count: number): string {
  return count === 1 ? '1 delivery' : `${exactCount(count)} deliveries`
}

function age(iso: string, nowMs: number): string {
  return duration(Math.max(1_000, Math.floor((nowMs - Date.parse(iso)) / 1_000) * 1_000))
}

/** What was seen before and is not there now, as long as it is news; and what is remembered for the next time. */
export function followNodes(
  remembered: ReadonlyMap<string, Schemas['Node']>,
  nodes: readonly Schemas['Node'][],
  forgetMs: number,
): { remembered: Map<string, Schemas['Node']>; gone: Schemas['Node'][] } {
  const lastMs = Math.max(...nodes.map(({ seenAt }) => Date.parse(seenAt)))
  const next = new Map([...remembered].filter(([, { seenAt }]) => lastMs - Date.parse(seenAt) < forgetMs))
  for (const node of nodes) next.set(node.name, node)
  const alive = new Set(nodes.map(({ name }) => name))
  return { remembered: next, gone: [...next.values()].filter(({ name }) => !alive.has(name)) }
}

/** Of the steps of two hours. */
export function hourAndBefore(points: readonly Point[]): HourAndBefore {
  const middle = Math.floor(points.length / 2)
  const last = points.slice(middle)
  return {
    now: totalsOf(last),
    before: totalsOf(points.slice(0, middle)),
    failingSince: last.find(({ failed = 0, retried = 0, expired = 0 }) => failed + retried + expired > 0)?.at ?? null,
    rejectingSince: last.find(({ rejected = {} }) => Object.values(rejected).some((count) => count > 0))?.at ?? null,
  }
}

export function expiredIn(points: readonly Point[]): { count: number; since: string | null } {
  return { count: totalsOf(points).expired, since: points.find(({ expired = 0 }) => expired > 0)?.at ?? null }
}
