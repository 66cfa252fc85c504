// Finds what needs attention, the most severe first: from the health of the destinations, the ledger, the nodes, and the last hour
// compared with the hour before. Always the last hour, whatever period the page shows: a failure that began 15 minutes ago would not be
// noticeable in the numbers of a day. Pure; times are the service's.

import type { Answer, Schemas } from '../../api/client.ts'
import { deliveriesAddress } from '../../delivery/filters.ts'
import { holdOf } from '../../destination/destination-status.ts'
import { duration, exactCount, plural, share } from '../../text/format.ts'
import { type LedgerEntry, missingFrom, quarantinePath } from './ledger.ts'
import { failureRate, type Point, type Totals, totalsOf } from './periods.ts'

export type Severity = 'critical' | 'warning' | 'notice'

export interface Finding {
  /** Stays the same while the finding lasts. */
  id: string
  severity: Severity
  /** What it is about: the name of a destination or a node, or a part of the service. */
  subject: string
  /** One sentence. */
  text: string
  since: string | null
  /** Whether `since` is the start of a time step of some minutes rather than an exact time. */
  isRough?: boolean
  /** The page that shows the cause. */
  href: string
  /** The text of the link. */
  link: string
}

export interface HourAndBefore {
  now: Totals
  before: Totals
  /** The first time step of the last hour in which an attempt failed, and in which a message was rejected. */
  failingSince: string | null
  rejectingSince: string | null
}

export interface AttentionInput {
  nowMs: number
  destinations: readonly (Pick<Schemas['Destination'], 'id' | 'name' | 'enabled' | 'paused'> &
    Partial<Pick<Schemas['Destination'], 'createdAt'>>)[]
  sources: readonly Pick<Schemas['Source'], 'id' | 'name'>[]
  health: Answer<'GET /api/destinations/health'>['data']
  /** By paused or disabled destination: how many deliveries were pending when this page first saw it paused or disabled. */
  heldBefore: ReadonlyMap<string, number>
  ledger: readonly LedgerEntry[]
  /** All destinations together. */
  hour: HourAndBefore
  /** By destination, for the destinations that were queried one by one. */
  hours: ReadonlyMap<string, HourAndBefore>
  /** By destination: the number of deliveries that expired in the last 24 hours, and the start of the first hour in which one did. */
  expired: ReadonlyMap<string, { count: number; since: string | null }>
  rejections: Answer<'GET /api/rejections'>['data']
  /** By source. */
  totals: readonly Pick<Answer<'GET /api/stats/totals'>['data'][number], 'sourceId' | 'quarantined'>[]
  nodes: readonly Schemas['Node'][]
  /** Nodes that this page has seen before and that are no longer listed. */
  goneNodes: readonly Schemas['Node'][]
  /** Null until the check has answered. */
  store: { isAvailable: boolean; message: string } | null
}

export const OLD_PENDING_MS = 5 * 60_000
/** Most retry windows last a few hours: a delivery that is pending for this long may expire soon. */
export const VERY_OLD_PENDING_MS = 60 * 60_000
/** With fewer attempts, a failure rate is not meaningful. */
export const MIN_ATTEMPTS = 20
/** A failure rate that needs attention even if it has not risen. */
export const BAD_RATE = 0.2
/** A rising failure rate needs attention if it has at least doubled and risen by at least this much. */
export const RATE_STEP = 0.05
export const MIN_REJECTED = 20
/** Nodes send a heartbeat every second or two. */
export const SILENT_NODE_MS = 5_000

const ORDER: Readonly<Record<Severity, number>> = { critical: 0, warning: 1, notice: 2 }

export function findAttention(input: AttentionInput): Finding[] {
  const findings = [
    ...storeFindings(input),
    ...ledgerFindings(input),
    ...misfitFindings(input),
    ...breakerFindings(input),
    ...backlogFindings(input),
    ...failureFindings(input),
    ...expiryFindings(input),
    ...rejectionFindings(input),
    ...quarantineFindings(input),
    ...nodeFindings(input),
    ...heldFindings(input),
  ]
  // The sort is stable: findings of one severity stay in the order above, the largest first within each kind.
  return findings.sort((a, b) => ORDER[a.severity] - ORDER[b.severity])
}

function storeFindings({ store }: AttentionInput): Finding[] {
  if (store === null || store.isAvailable) return []
  const text = `The store is unavailable, so the service rejects every message: ${store.message}`
  return [{ id: 'store', severity: 'critical', subject: 'Store', text, since: null, href: '/settings/about', link: 'View installation' }]
}

function ledgerFindings({ ledger, destinations }: AttentionInput): Finding[] {
  const wrong = ledger.filter((entry) => missingFrom(entry) !== 0)
  if (wrong.length === 0) return []
  const names = nameList(wrong.map(({ destinationId }) => nameOf(destinations, destinationId)))
  const text = `The ledger does not balance for ${names}: the number owed differs from the sum of the states. Keep a copy of the store and run \`switchyard doctor\`.`
  return [{ id: 'books', severity: 'critical', subject: 'Ledger', text, since: null, href: '#ledger', link: 'View ledger' }]
}

function misfitFindings({ health, destinations }: AttentionInput): Finding[] {
  return sendingOf({ health, destinations })
    .filter(({ held }) => held !== null)
    .sort((a, b) => b.pending - a.pending)
    .map(({ destinationId, held, pending, oldestPendingAt }): Finding => {
      const backlog = `${pending === 0 ? 'no deliveries' : deliveries(pending)} pending`
      return {
        id: `misfit ${destinationId}`,
        severity: 'critical',
        subject: nameOf(destinations, destinationId),
        text: `Held: the destination does not fit the installed version of its integration. ${held} Backlog: ${backlog}.`,
        since: oldestPendingAt,
        href: `/destinations/${encodeURIComponent(destinationId)}?tab=subscriptions`,
        link: 'View destination',
      }
    })
}

function isBreakerOpen(row: AttentionInput['health'][number]): boolean {
  return row.breaker !== 'closed'
}

function breakerFindings({ health, destinations, nowMs }: AttentionInput): Finding[] {
  return sendingOf({ health, destinations })
    .filter(isBreakerOpen)
    .sort((a, b) => b.pending - a.pending)
    .map(({ destinationId, pending, openSince, oldestPendingAt, nextAttemptAt }): Finding => {
      const leftMs = nextAttemptAt === null ? 0 : Date.parse(nextAttemptAt) - nowMs
      const next = leftMs <= 0 ? '' : `; next probe in ${duration(Math.ceil(leftMs / 1_000) * 1_000)}`
      const oldest = oldestPendingAt === null ? '' : `, the oldest for ${age(oldestPendingAt, nowMs)}`
      const backlog = `${pending === 0 ? 'no deliveries' : deliveries(pending)} pending${oldest}`
      return {
        id: `breaker ${destinationId}`,
        severity: 'critical',
        subject: nameOf(destinations, destinationId),
        text: `Circuit breaker open: recent attempts failed. Sending one probe at a time${next}. Backlog: ${backlog}.`,
        since: openSince,
        href: `/destinations/${encodeURIComponent(destinationId)}`,
        link: 'View destination',
      }
    })
}

function backlogFindings({ health, destinations, nowMs }: AttentionInput): Finding[] {
  return sendingOf({ health, destinations })
    .filter(
      (row) =>
        !isBreakerOpen(row) &&
        row.held === null &&
        row.oldestPendingAt !== null &&
        nowMs - Date.parse(row.oldestPendingAt) > OLD_PENDING_MS,
    )
    .sort((a, b) => Date.parse(a.oldestPendingAt as string) - Date.parse(b.oldestPendingAt as string))
    .map(({ destinationId, pending, oldestPendingAt }): Finding => {
      const since = oldestPendingAt as string
      return {
        id: `waiting ${destinationId}`,
        severity: nowMs - Date.parse(since) > VERY_OLD_PENDING_MS ? 'critical' : 'warning',
        subject: nameOf(destinations, destinationId),
        text: `${deliveries(pending)} pending, the oldest for ${age(since, nowMs)}.`,
        since,
        href: deliveriesAddress({ destinationId, state: 'pending' }),
        link: 'View pending deliveries',
      }
    })
}

function failureFindings({ hours, health, destinations }: AttentionInput): Finding[] {
  const failing = new Set(health.filter(isBreakerOpen).map(({ destinationId }) => destinationId))
  const worstFirst = [...hours].sort(([, a], [, b]) => (failureRate(b.now)?.rate ?? 0) - (failureRate(a.now)?.rate ?? 0))
  const findings: Finding[] = []
  for (const [destinationId, { now, before, failingSince }] of worstFirst) {
    const current = failureRate(now)
    if (current === null) continue
    const previous = failureRate(before)
    const previousRate = previous !== null && previous.attempts >= MIN_ATTEMPTS ? previous.rate : null
    const isRising = previousRate !== null && current.rate >= previousRate * 2 && current.rate >= previousRate + RATE_STEP
    // If attempts failed but all deliveries will be retried, the pending deliveries show why.
    const state = now.failed > 0 ? 'failed' : now.expired > 0 ? 'expired' : 'pending'
    const about = {
      subject: nameOf(destinations, destinationId),
      since: sinceCreated(destinations, destinationId, failingSince),
      isRough: true,
      href: deliveriesAddress({ destinationId, state }),
      link: `View ${state} deliveries`,
    }
    // An open circuit breaker is a finding of its own.
    if (current.attempts >= MIN_ATTEMPTS && (isRising || current.rate >= BAD_RATE) && !failing.has(destinationId)) {
      const comparison = previousRate === null ? '' : `, ${isRising ? 'up from' : 'after'} ${share(previousRate)} in the hour before`
      const text = `${share(current.rate)} of ${exactCount(current.attempts)} delivery attempts failed in the last hour${comparison}.`
      findings.push({ ...about, id: `rate ${destinationId}`, severity: 'warning', text })
    } else if (now.failed > 0) {
      const text = `${deliveries(now.failed)} failed permanently in the last hour.`
      findings.push({ ...about, id: `failed ${destinationId}`, severity: 'notice', text })
    }
  }
  return findings
}

function expiryFindings({ expired, destinations }: AttentionInput): Finding[] {
  return [...expired]
    .filter(([, { count }]) => count > 0)
    .sort(([, a], [, b]) => b.count - a.count)
    .map(([destinationId, { count, since }]): Finding => {
      return {
        id: `expired ${destinationId}`,
        severity: 'warning',
        subject: nameOf(destinations, destinationId),
        text: `${deliveries(count)} expired in the last 24 hours: the retry window ended. Replay ${count === 1 ? 'it' : 'them'} when the receiver works again.`,
        since: sinceCreated(destinations, destinationId, since),
        isRough: true,
        href: deliveriesAddress({ destinationId, state: 'expired' }),
        link: 'View expired deliveries',
      }
    })
}

/** The later of `since` and the creation of the destination: a time step may have begun before the destination existed. */
function sinceCreated(destinations: AttentionInput['destinations'], destinationId: string, since: string | null): string | null {
  const createdAt = destinations.find(({ id }) => id === destinationId)?.createdAt
  return since !== null && createdAt !== undefined && Date.parse(createdAt) > Date.parse(since) ? createdAt : since
}

function rejectionFindings({ hour: { now, before, rejectingSince }, rejections, sources }: AttentionInput): Finding[] {
  const isRising = now.rejected >= MIN_REJECTED && now.rejected >= before.rejected * 2
  if (!isRising) return []
  const last = [...rejections].sort((a, b) => Date.parse(b.lastAt) - Date.parse(a.lastAt))[0]
  const source = last?.sourceId == null ? undefined : sources.find(({ id }) => id === last.sourceId)
  const by = last === undefined ? '' : `. Last: ${last.code}${source === undefined ? '' : ` from ${source.name}`}`
  return [
    {
      id: 'rejected',
      severity: 'warning',
      subject: 'Rejected messages',
      text: `${exactCount(now.rejected)} messages were rejected in the last hour, ${exactCount(before.rejected)} in the hour before${by}.`,
      since: rejectingSince,
      isRough: true,
      href: source === undefined ? '/sources' : `/sources/${encodeURIComponent(source.id)}`,
      link: source === undefined ? 'View sources' : 'View source',
    },
  ]
}

function quarantineFindings({ totals, sources }: AttentionInput): Finding[] {
  return totals
    .filter(({ quarantined }) => quarantined > 0)
    .sort((a, b) => b.quarantined - a.quarantined)
    .map(({ sourceId, quarantined }): Finding => {
      const source = sources.find(({ id }) => id === sourceId)
      const one = quarantined === 1
      const next =
        source === undefined
          ? `The source was deleted, so ${one ? 'it' : 'they'} cannot be released, only deleted.`
          : `Release or delete ${one ? 'it' : 'them'}.`
      return {
        id: `quarantine ${sourceId}`,
        severity: 'warning',
        subject: source?.name ?? `${sourceId} (deleted)`,
        text: `${one ? '1 message is' : `${exactCount(quarantined)} messages are`} in quarantine: stored, but not sent to any destination. ${next}`,
        since: null,
        href: quarantinePath(sourceId),
        link: 'View quarantine',
      }
    })
}

function nodeFindings({ nodes, goneNodes }: AttentionInput): Finding[] {
  const about = (id: string, severity: Severity, subject: string, text: string, since: string | null): Finding => {
    return { id, severity, subject, text, since, href: '/settings/nodes', link: 'View nodes' }
  }
  // Both times come from the store's clock.
  const lastMs = Math.max(...nodes.map(({ seenAt }) => Date.parse(seenAt)))
  const silent = nodes
    .filter(({ seenAt }) => lastMs - Date.parse(seenAt) > SILENT_NODE_MS)
    .map(({ name, seenAt }) => {
      const text = `No heartbeat for ${duration(lastMs - Date.parse(seenAt))}. Other nodes take over its deliveries in flight.`
      return about(`node ${name}`, 'warning', `Node ${name}`, text, seenAt)
    })
  const gone = goneNodes.map(({ name, seenAt }) =>
    about(
      `node ${name}`,
      'warning',
      `Node ${name}`,
      'This node was running when the page was opened and is no longer listed: it was stopped, or its heartbeats stopped.',
      seenAt,
    ),
  )
  const versions = [...new Set(nodes.map(({ version }) => version))].sort()
  const mixed =
    versions.length < 2 ? [] : [about('versions', 'notice', 'Nodes', `The nodes run different versions: ${versions.join(', ')}.`, null)]
  return [...silent, ...gone, ...mixed]
}

function heldFindings({ health, destinations, heldBefore }: AttentionInput): Finding[] {
  const holds = new Map(destinations.map((destination) => [destination.id, holdOf(destination)]))
  return health
    .filter(({ destinationId, pending }) => holds.get(destinationId) != null && pending > 0)
    .sort((a, b) => b.pending - a.pending)
    .map(({ destinationId, pending, oldestPendingAt }): Finding => {
      const isPaused = holds.get(destinationId) === 'paused'
      const more = pending - (heldBefore.get(destinationId) ?? pending)
      const growth = more > 0 ? `, ${exactCount(more)} more than when this page was opened` : ''
      return {
        id: `${isPaused ? 'paused' : 'disabled'} ${destinationId}`,
        severity: isPaused && more > 0 ? 'warning' : 'notice',
        subject: nameOf(destinations, destinationId),
        text: isPaused
          ? `Paused: ${deliveries(pending)} pending${growth}. Resume the destination to send them.`
          : `Disabled: ${deliveries(pending)} pending. Enable the destination to send them; new messages skip it.`,
        since: oldestPendingAt,
        href: `/destinations/${encodeURIComponent(destinationId)}`,
        link: 'View destination',
      }
    })
}

/** How many deliveries were pending for each paused or disabled destination when this page first saw it in that state. Entries are dropped when it sends again. */
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

/** The health of the destinations that are neither paused nor disabled. */
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
  return plural(count, 'delivery')
}

function age(iso: string, nowMs: number): string {
  return duration(Math.max(1_000, Math.floor((nowMs - Date.parse(iso)) / 1_000) * 1_000))
}

/** Returns the nodes that were seen within `forgetMs` and are no longer listed, and the nodes to remember for the next call. */
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

/** Splits the time steps of two hours into the last hour and the hour before. */
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
