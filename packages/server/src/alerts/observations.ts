// Collects what the rules need to know, from what all nodes share: counts per minute, the ledger, and which nodes are alive. Only what no store
// keeps is remembered here: the sizes of backlogs, free disk space, and nodes that were seen.

import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { usualSentence } from '../api/attempt-reasons.ts'
import { readNotices } from '../store/port/warehouse-tables.ts'
import { type LedgerRow, type Store, SYSTEM_SOURCE } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import type { Incident } from './incidents.ts'
import type { AttemptOutcomes } from './rules/attempts-failing.ts'
import type { Backlog } from './rules/backlog-growing.ts'
import type { Waiting } from './rules/deliveries-delayed.ts'
import type { Expiries } from './rules/deliveries-expired.ts'
import type { Failures } from './rules/deliveries-failed.ts'
import { type DestinationOutcomes, destinationFailing } from './rules/destination-failing.ts'
import type { DestinationHold } from './rules/destination-held.ts'
import type { StoppedDestination } from './rules/destination-stopped.ts'
import type { Disk } from './rules/disk-almost-full.ts'
import type { LedgerBalance } from './rules/ledger-unbalanced.ts'
import type { QuarantinedMessages } from './rules/messages-quarantined.ts'
import type { Rejections } from './rules/messages-rejected.ts'
import type { NodePresence } from './rules/node-lost.ts'
import type { OrderBacklog } from './rules/order-backlog-growing.ts'
import type { PlanViolations } from './rules/plan-violated.ts'
import type { Quarantine } from './rules/quarantine-expiring.ts'
import {
  DAY_MS,
  type DestinationMinute,
  destinationMinute,
  HOUR_MS,
  MINUTE_MS,
  minuteOf,
  type SourceMinute,
  type Subject,
  sourceMinute,
} from './rules/rule.ts'
import { RECENT_MINUTES, type SourceTraffic } from './rules/source-silent.ts'
import type { NodeVersions } from './rules/versions-differ.ts'
import type { WarehouseNotices } from './rules/warehouse-tables.ts'
import { recentCounts, usualTrafficOf } from './traffic.ts'

export interface ObservationParts {
  store: Pick<Store, 'books' | 'configuration' | 'nodes' | 'documents' | 'history' | 'order' | 'quarantine'>
  /** Why the last attempt of this node to a destination failed, as a code. The error itself may quote messages, so no incident contains it. */
  failureOf: (destinationId: string) => { reason: string } | null
  /** Why a node holds the deliveries of a destination. */
  holdOf: (destinationId: string) => DestinationHold['hold']
  /** The violations of tracking plans by source id; sources without any are missing. */
  violations: (nowMs: number) => Promise<ReadonlyMap<string, Omit<PlanViolations, 'nowMs'>>>
  /** The file of a SQLite store; null for PostgreSQL. */
  storePath: string | null
  /** After this many days, messages in quarantine are deleted; 0 if they are not. */
  quarantineDays: number
  clock: Pick<Clock, 'scheduleMs'>
  startedAtMs: number
  closedSince: (sinceMs: number) => Promise<Incident[]>
}

export type AboutDestination = DestinationOutcomes &
  DestinationHold &
  Expiries &
  Failures &
  Backlog &
  AttemptOutcomes &
  Waiting &
  StoppedDestination &
  OrderBacklog &
  WarehouseNotices
export type AboutSource = SourceTraffic & Rejections & PlanViolations & QuarantinedMessages
export type AboutService = Disk & Quarantine & LedgerBalance & NodeVersions
export type About = AboutDestination | AboutSource | AboutService | NodePresence

export interface Observed {
  subject: Subject
  about: About
}

const DESTINATION_MINUTES = 61
/** A source that paused for fewer whole minutes is not silent, whatever its history. */
const LEAST_PAUSE_MINUTES = 1
const KEPT_READINGS_MS = 61 * MINUTE_MS
const FORGET_NODE_MS = 24 * HOUR_MS
const LEFT = 'node-left'
const SERVICE: Subject = { kind: 'service', id: 'service', name: 'Switchyard' }

interface SeenNode {
  seenAtMs: number
  nodes: number
}

export class Observations {
  readonly #parts: ObservationParts
  readonly #readSources: ReturnType<typeof recentCounts<SourceMinute>>
  readonly #readDestinations: ReturnType<typeof recentCounts<DestinationMinute>>
  readonly #usual: ReturnType<typeof usualTrafficOf>
  readonly #pending = new Map<string, { atMs: number; count: number }[]>()
  readonly #disk: Disk['readings'][number][] = []
  readonly #nodes = new Map<string, SeenNode>()
  #differSinceMs: number | null = null
  #upSinceMs: number

  constructor(parts: ObservationParts) {
    const { store, startedAtMs } = parts
    this.#parts = parts
    this.#readSources = recentCounts(store.books, { kind: 'source', stepMs: MINUTE_MS, kept: RECENT_MINUTES }, sourceMinute)
    this.#readDestinations = recentCounts(
      store.books,
      { kind: 'destination', stepMs: MINUTE_MS, kept: DESTINATION_MINUTES },
      destinationMinute,
    )
    this.#usual = usualTrafficOf(store.books)
    this.#upSinceMs = startedAtMs
  }

  /** What happened until now says nothing about the sources: nobody could count it. */
  interrupted(nowMs: number): void {
    this.#upSinceMs = nowMs
  }

  /** Must be called regularly, on every node: the node that evaluates the rules may be the one that is lost. */
  seeNodes(nowMs: number): void {
    const nodes = this.#parts.store.nodes?.nodes ?? []
    for (const { name } of nodes) this.#nodes.set(name, { seenAtMs: nowMs, nodes: nodes.length })
    for (const [name, { seenAtMs }] of this.#nodes) if (nowMs - seenAtMs > FORGET_NODE_MS) this.#nodes.delete(name)
  }

  /** Remembers a node that another node has seen. */
  rememberNode(name: string, seen: SeenNode): void {
    if (!this.#nodes.has(name)) this.#nodes.set(name, seen)
  }

  /** Tells the others that this node stops, so that it is not lost. */
  async leave(nowMs: number): Promise<void> {
    const self = this.#parts.store.nodes?.nodes.find(({ isSelf }) => isSelf)
    if (self !== undefined) await this.#parts.store.documents.update(LEFT, [], () => new Map([[self.name, { atMs: nowMs, doc: {} }]]))
  }

  async read(nowMs: number): Promise<Observed[]> {
    const { books } = this.#parts.store
    const ledger = await books.ledger()
    const quarantined = new Map((await books.sourceCounts()).map((row) => [row.sourceId, row.quarantined]))
    return [
      ...(await this.#aboutDestinations(nowMs, ledger)),
      ...(await this.#aboutSources(nowMs, quarantined)),
      await this.#aboutService(nowMs, ledger, quarantined),
      ...(await this.#aboutNodes(nowMs)),
    ]
  }

  async #aboutDestinations(nowMs: number, ledger: readonly LedgerRow[]): Promise<Observed[]> {
    const { store, clock, failureOf, holdOf } = this.#parts
    // Failures of messages about the service cause no messages about the service.
    const watched = [...store.configuration().destinations.values()].filter(({ sourceIds }) => sourceIds.some((id) => id !== SYSTEM_SOURCE))
    const ids = watched.map(({ id }) => id)
    const minutes = await this.#readDestinations(ids, nowMs)
    const pending = new Map(ledger.map((row) => [row.destinationId, row.pending]))
    const hasPending = ids.some((id) => (pending.get(id) ?? 0) > 0)
    const oldest = new Map(hasPending ? (await store.books.oldestPending()).map((each) => [each.destinationId, each]) : [])
    for (const id of this.#pending.keys()) if (!pending.has(id)) this.#pending.delete(id)
    const ordered = new Map<string, OrderBacklog['ordered']>()
    for (const { id, order } of watched) if (order != null) ordered.set(id, await this.#orderBacklogOf(id, order.maxWaiting, nowMs))
    const failingUntil = await this.#failingUntil(minutes, nowMs)
    const notices = new Map<string, WarehouseNotices['notices']>()
    for (const { id, type } of watched) if (type === 'warehouse') notices.set(id, await readNotices(store.documents, id))
    const nowInScheduleMs = clock.scheduleMs()
    return watched.map(({ id, name, enabled, paused, retryWindowMs }) => {
      const own = minutes.get(id) ?? new Map<number, DestinationMinute>()
      const failure = failureOf(id)
      const hold = holdOf(id)
      const waiting = oldest.get(id)
      const firstAttemptAtMs = enabled && !paused && hold === null ? (waiting?.firstAttemptAtMs ?? null) : null
      const about: AboutDestination = {
        nowMs,
        minutes: own,
        isActive: enabled && !paused,
        isFailing: isFailing(own),
        failingUntilMs: failingUntil.get(id) ?? null,
        stopped: !enabled ? 'disabled' : paused ? 'paused' : null,
        reason: failure?.reason ?? null,
        cause: failure === null ? null : usualSentence(failure.reason),
        hold,
        pendingNow: pending.get(id) ?? 0,
        pending: this.#pendingOf(id, pending.get(id) ?? 0, nowMs),
        oldestPendingAtMs: waiting?.atMs ?? null,
        nextExpiryAtMs: firstAttemptAtMs === null ? null : Math.round(nowMs + firstAttemptAtMs + retryWindowMs - nowInScheduleMs),
        ordered: ordered.get(id) ?? null,
        notices: notices.get(id) ?? null,
      }
      return { subject: { kind: 'destination', id, name }, about }
    })
  }

  /** When the last `destination_failing` incident about each destination was closed. Only the rule `deliveries_failed` uses it. */
  async #failingUntil(
    minutes: ReadonlyMap<string, ReadonlyMap<number, DestinationMinute>>,
    nowMs: number,
  ): Promise<ReadonlyMap<string, number>> {
    const until = new Map<string, number>()
    const anyFailed = [...minutes.values()].some((own) => [...own.values()].some(({ failedForGood }) => failedForGood > 0))
    if (!anyFailed) return until
    for (const { rule, subject, closedAtMs } of await this.#parts.closedSince(nowMs - DESTINATION_MINUTES * MINUTE_MS))
      if (rule === destinationFailing.id) until.set(subject.id, Math.max(closedAtMs ?? 0, until.get(subject.id) ?? 0))
    return until
  }

  /** With `onFailure: skip`, a key is above the limit only for seconds, so the deliveries that it gave up count too. */
  async #orderBacklogOf(destinationId: string, maxWaiting: number, nowMs: number): Promise<OrderBacklog['ordered']> {
    const { order, history } = this.#parts.store
    const keys = await order.crowded(destinationId, maxWaiting)
    const { causes } = await history.failureCauses({ destinationId, state: 'failed', fromMs: nowMs - MINUTE_MS })
    const skipped = causes.filter(({ reason }) => reason === 'order_backlog').reduce((sum, { count }) => sum + count, 0)
    return { keys, maxWaiting, skipped }
  }

  #pendingOf(id: string, count: number, nowMs: number): readonly { atMs: number; count: number }[] {
    const before = this.#pending.get(id)
    // Nothing was pending and nothing is: no need to remember it.
    if (before === undefined && count === 0) return []
    const readings = (before ?? []).filter(({ atMs }) => nowMs - atMs < KEPT_READINGS_MS)
    readings.push({ atMs: nowMs, count })
    if (readings.some((reading) => reading.count > 0)) this.#pending.set(id, readings)
    else this.#pending.delete(id)
    return readings
  }

  async #aboutSources(nowMs: number, quarantined: ReadonlyMap<string, number>): Promise<Observed[]> {
    const { store, violations } = this.#parts
    const watched = [...store.configuration().sources.values()].filter(({ builtIn, enabled }) => builtIn === undefined && enabled)
    const ids = watched.map(({ id }) => id)
    const minutes = await this.#readSources(ids, nowMs)
    await this.#usual.read(ids, nowMs)
    const violated = await violations(nowMs)
    const upSinceMs = Math.min(this.#upSinceMs, ...(store.nodes?.others() ?? []).map(({ startedAtMs }) => startedAtMs))
    const observed: Observed[] = []
    for (const { id, name } of watched) {
      const own = minutes.get(id) ?? new Map<number, SourceMinute>()
      const usual =
        pauseOf(own, nowMs) > LEAST_PAUSE_MINUTES && own.size > 0 ? await this.#usual.withSamples(id, nowMs) : this.#usual.of(id)
      const plan = violated.get(id) ?? { violations: 0, planRule: null, planId: '' }
      observed.push({
        subject: { kind: 'source', id, name },
        about: { nowMs, minutes: own, usual, upSinceMs, quarantinedNow: quarantined.get(id) ?? 0, ...plan },
      })
    }
    return observed
  }

  async #aboutService(nowMs: number, ledger: readonly LedgerRow[], quarantined: ReadonlyMap<string, number>): Promise<Observed> {
    const { store } = this.#parts
    const { destinations } = store.configuration()
    const wrong = ledger.filter(
      ({ owed, delivered, pending, failed, expired, cancelled }) => owed !== delivered + pending + failed + expired + cancelled,
    )
    const versions = [...new Set((store.nodes?.nodes ?? []).map(({ version }) => version))].sort()
    this.#differSinceMs = versions.length < 2 ? null : (this.#differSinceMs ?? nowMs)
    const about: AboutService = {
      nowMs,
      readings: await this.#diskReadings(nowMs),
      ...(await this.#quarantine(sum(quarantined.values()))),
      unbalanced: wrong.map(({ destinationId }) => destinations.get(destinationId)?.name ?? destinationId),
      versions,
      differSinceMs: this.#differSinceMs,
    }
    return { subject: SERVICE, about }
  }

  /** Empty if the disk cannot be read. */
  async #diskReadings(nowMs: number): Promise<Disk['readings']> {
    const { storePath } = this.#parts
    if (storePath === null) return []
    try {
      const { bavail, blocks, bsize } = await statfs(dirname(storePath))
      this.#disk.push({ atMs: nowMs, freeBytes: bavail * bsize, totalBytes: blocks * bsize })
    } catch {
      return []
    }
    while (nowMs - (this.#disk[0]?.atMs ?? nowMs) > KEPT_READINGS_MS) this.#disk.shift()
    return this.#disk
  }

  async #quarantine(quarantined: number): Promise<Omit<Quarantine, 'nowMs'>> {
    const { store, quarantineDays } = this.#parts
    if (quarantined === 0 || quarantineDays === 0) return { quarantined, oldest: null }
    const [first] = (await store.quarantine.list({}, { limit: 1, cursor: null, oldestFirst: true })).data
    if (first === undefined) return { quarantined, oldest: null }
    const { sourceId, receivedAtMs } = first.content
    const sourceName = store.configuration().sources.get(sourceId)?.name ?? sourceId
    return { quarantined, oldest: { sourceName, expiresAtMs: receivedAtMs + quarantineDays * DAY_MS } }
  }

  async #aboutNodes(nowMs: number): Promise<Observed[]> {
    const { nodes, documents } = this.#parts.store
    if (nodes === undefined) return []
    this.seeNodes(nowMs)
    const observed: Observed[] = []
    for (const [name, { seenAtMs, nodes: nodesBefore }] of this.#nodes) {
      const isAlive = seenAtMs === nowMs
      const left = isAlive ? undefined : await documents.get(LEFT, name)
      const hasLeft = left !== undefined && left.atMs > seenAtMs - MINUTE_MS
      const lastSeenAtMs = isAlive ? null : seenAtMs
      observed.push({ subject: { kind: 'node', id: name, name }, about: { nowMs, lastSeenAtMs, hasLeft, nodes: nodes.count, nodesBefore } })
      if (hasLeft) this.#nodes.delete(name)
    }
    return observed
  }
}

function sum(counts: Iterable<number>): number {
  let total = 0
  for (const count of counts) total += count
  return total
}

/** Whether most of the outcomes of the last minute that has any are failures. */
function isFailing(minutes: ReadonlyMap<number, DestinationMinute>): boolean {
  const latest = [...minutes].filter(([, { delivered, failed }]) => delivered + failed > 0).sort(([a], [b]) => b - a)[0]
  return latest !== undefined && latest[1].failed >= latest[1].delivered
}

/** The whole minutes since the last message. */
function pauseOf(minutes: ReadonlyMap<number, SourceMinute>, nowMs: number): number {
  let last = Number.NEGATIVE_INFINITY
  for (const [minute, { accepted }] of minutes) if (accepted > 0 && minute > last) last = minute
  return minuteOf(nowMs) - last - 1
}
