// Collects what the rules need to know, from what all nodes share: counts per minute, the ledger, and which nodes are alive. Only what no store
// keeps is remembered here: the sizes of backlogs, free disk space, and nodes that were seen.

import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Store, SYSTEM_SOURCE } from '../store/store.ts'
import type { Backlog } from './rules/backlog-growing.ts'
import type { Expiries } from './rules/deliveries-expired.ts'
import type { DestinationOutcomes } from './rules/destination-failing.ts'
import type { DestinationHold } from './rules/destination-held.ts'
import type { Disk } from './rules/disk-almost-full.ts'
import type { Rejections } from './rules/messages-rejected.ts'
import type { NodePresence } from './rules/node-lost.ts'
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
import { recentCounts, usualTrafficOf } from './traffic.ts'

export interface ObservationParts {
  store: Pick<Store, 'books' | 'configuration' | 'nodes' | 'documents' | 'quarantine'>
  /** Why the last attempt of this node to a destination failed. */
  failureOf: (destinationId: string) => string | null
  /** Why a node holds the deliveries of a destination. */
  holdOf: (destinationId: string) => DestinationHold['hold']
  /** The violations of tracking plans by source id; sources without any are missing. */
  violations: (nowMs: number) => Promise<ReadonlyMap<string, Omit<PlanViolations, 'nowMs'>>>
  /** The file of a SQLite store; null for PostgreSQL. */
  storePath: string | null
  /** After this many days, messages in quarantine are deleted; 0 if they are not. */
  quarantineDays: number
  startedAtMs: number
}

export type AboutDestination = DestinationOutcomes & DestinationHold & Expiries & Backlog
export type AboutSource = SourceTraffic & Rejections & PlanViolations
export type AboutService = Disk & Quarantine
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
    return [
      ...(await this.#aboutDestinations(nowMs)),
      ...(await this.#aboutSources(nowMs)),
      await this.#aboutService(nowMs),
      ...(await this.#aboutNodes(nowMs)),
    ]
  }

  async #aboutDestinations(nowMs: number): Promise<Observed[]> {
    const { store, failureOf, holdOf } = this.#parts
    // Failures of messages about the service cause no messages about the service.
    const watched = [...store.configuration().destinations.values()].filter(({ sourceIds }) => sourceIds.some((id) => id !== SYSTEM_SOURCE))
    const ids = watched.map(({ id }) => id)
    const minutes = await this.#readDestinations(ids, nowMs)
    const pending = new Map((await store.books.ledger()).map((row) => [row.destinationId, row.pending]))
    const hasPending = ids.some((id) => (pending.get(id) ?? 0) > 0)
    const oldest = new Map(hasPending ? (await store.books.oldestPending()).map(({ destinationId, atMs }) => [destinationId, atMs]) : [])
    for (const id of this.#pending.keys()) if (!pending.has(id)) this.#pending.delete(id)
    return watched.map(({ id, name, enabled, paused }) => {
      const own = minutes.get(id) ?? new Map<number, DestinationMinute>()
      const about: AboutDestination = {
        nowMs,
        minutes: own,
        isActive: enabled && !paused,
        isFailing: isFailing(own),
        reason: failureOf(id),
        hold: holdOf(id),
        pendingNow: pending.get(id) ?? 0,
        pending: this.#pendingOf(id, pending.get(id) ?? 0, nowMs),
        oldestPendingAtMs: oldest.get(id) ?? null,
      }
      return { subject: { kind: 'destination', id, name }, about }
    })
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

  async #aboutSources(nowMs: number): Promise<Observed[]> {
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
      observed.push({ subject: { kind: 'source', id, name }, about: { nowMs, minutes: own, usual, upSinceMs, ...plan } })
    }
    return observed
  }

  async #aboutService(nowMs: number): Promise<Observed> {
    return { subject: SERVICE, about: { nowMs, readings: await this.#diskReadings(nowMs), ...(await this.#quarantine()) } }
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

  async #quarantine(): Promise<Omit<Quarantine, 'nowMs'>> {
    const { store, quarantineDays } = this.#parts
    const quarantined = (await store.books.sourceCounts()).reduce((sum, counts) => sum + counts.quarantined, 0)
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
