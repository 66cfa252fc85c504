// Collects and serves the metrics. Work per message or per attempt is limited to adding to numbers in memory; labels, names and text
// are only created for a scrape. The number of series is bounded, however many sources and destinations there are
// (named-series.ts), and the series of deleted sources and destinations disappear.

import { collectDefaultMetrics, Registry } from 'prom-client'
import type { AttemptEvent, BreakerState, DeliveredEvent, SettledEvent, Verdict } from '../delivery/events/events.ts'
import type { AcceptedEvent, WarnedEvent } from '../ingest/events.ts'
import type { Configuration, OrderCounts, OrderCountsRow } from '../store/store.ts'
import type { PacingState } from '../timing/ingest-pacing.ts'
import type { Watcher } from './events/events.ts'
import { exposition } from './exposition.ts'
import { Histogram, type Sample } from './histogram.ts'
import { METRICS, type Metric, type MetricKey, PROCESS_METRICS } from './metric-table.ts'
import { CounterWithOther, NamedSeries, OTHER } from './named-series.ts'
import type { StoreCounts } from './store-counts.ts'

export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

export interface MetricSources {
  configuration: () => Configuration
  states: () => Iterable<{ destinationId: string; breaker: BreakerState; inFlight: number }>
  pacing: () => PacingState
  counts: () => Promise<StoreCounts | null>
  listeners: () => number
  wallMs: () => number
  version: string
}

interface DestinationTimes {
  attempts: Record<Verdict, Histogram>
  delivery: Histogram
}

type Timed = readonly { destination: string; times: DestinationTimes }[]

/**
 * How many destinations and sources have their own series, and how many destinations have histograms, which are 61 of their 73 lines. These limits
 * keep the response under 1 MB.
 */
const MAX_DESTINATIONS = 300
const MAX_HISTOGRAMS = 70
const MAX_SOURCES = 50
/** A destination with a delivery that has been pending for longer needs attention. */
const LONG_PENDING_MS = 60_000

type Snapshot = Partial<Record<MetricKey, Iterable<Sample>>>

const LAG_EVERY_MS = 100
const VERDICTS: readonly Verdict[] = ['success', 'temporary', 'permanent']
const UNKNOWN = 'unknown'
const LEDGER_STATES = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'] as const
const BREAKER_STATES: readonly BreakerState[] = ['closed', 'open', 'probing']

export class Metrics implements Watcher {
  readonly #names = {
    destinations: new NamedSeries(MAX_DESTINATIONS),
    histograms: new NamedSeries(MAX_HISTOGRAMS),
    sources: new NamedSeries(MAX_SOURCES),
  }
  /** By destination id, or `other` for destinations without their own series. */
  readonly #retried = new Map<string, number>()
  /** Likewise. */
  readonly #keyless = new Map<string, number>()
  readonly #times = new Map<string, DestinationTimes>()
  /** By code, then by source id. */
  readonly #warned = new Map<string, Map<string, number>>()
  readonly #counters = new Map<string, CounterWithOther>()
  readonly #sourceTotals = new Map<string, number>()
  readonly #commit = new Histogram(METRICS.commitSeconds.bounds as readonly number[])
  readonly #group = new Histogram(METRICS.groupSize.bounds as readonly number[])
  readonly #lag = new Histogram(METRICS.eventLoopLag.bounds as readonly number[])
  readonly #lagTimer: NodeJS.Timeout
  #writable = true
  #roundTrips = 0

  constructor() {
    processRegistry()
    let expectedMs = performance.now() + LAG_EVERY_MS
    this.#lagTimer = setInterval(() => {
      const nowMs = performance.now()
      this.#lag.observe(Math.max(0, nowMs - expectedMs) / 1_000)
      expectedMs = nowMs + LAG_EVERY_MS
    }, LAG_EVERY_MS).unref()
  }

  close(): void {
    clearInterval(this.#lagTimer)
  }

  accepted({ keyless = [] }: AcceptedEvent): void {
    for (const { destinationId, messages } of keyless) this.#count(this.#keyless, destinationId, messages)
  }

  warned({ sourceId, code, messages }: WarnedEvent): void {
    const own = this.#warned.get(code) ?? new Map<string, number>()
    own.set(sourceId, (own.get(sourceId) ?? 0) + messages)
    this.#warned.set(code, own)
  }

  attempted({ destination, outcome }: AttemptEvent): void {
    this.#timesOf(destination.id).attempts[outcome.verdict].observe(outcome.timings.totalMs / 1_000)
  }

  delivered({ destination, messages, replay, atMs }: DeliveredEvent): void {
    if (replay) return
    const { delivery } = this.#timesOf(destination.id)
    // Never negative, even if the wall clock was set back.
    for (const { receivedAtMs } of messages) delivery.observe(Math.max(0, atMs - receivedAtMs) / 1_000)
  }

  settled({ destination, retried }: SettledEvent): void {
    if (retried > 0) this.#count(this.#retried, destination.id, retried)
  }

  #count(counts: Map<string, number>, destinationId: string, count: number): void {
    const key = this.#names.destinations.labelFor(destinationId, performance.now())
    counts.set(key, (counts.get(key) ?? 0) + count)
  }

  readonly committed = (commitMs: number, commands: number): void => {
    this.#commit.observe(commitMs / 1_000)
    this.#group.observe(commands)
  }

  readonly roundTrip = (): void => {
    this.#roundTrips++
  }

  storeState(problem: string | null): void {
    this.#writable = problem === null
  }

  /** Returns all metrics in the Prometheus text format. */
  async text(sources: MetricSources): Promise<string> {
    const counts = await sources.counts()
    this.#assignSeries(sources, counts)
    const snapshot: Snapshot = { ...this.#ofProcess(sources, counts !== null), ...(counts === null ? {} : this.#ofStore(sources, counts)) }
    const metrics = Object.entries(METRICS) as [MetricKey, Metric][]
    const own = await exposition(metrics.map(([key, { name, help, type }]) => ({ name, help, type, samples: snapshot[key] ?? [] })))
    return own + (await processRegistry().metrics())
  }

  #ofProcess({ configuration, states, pacing, listeners, version }: MetricSources, readable: boolean): Snapshot {
    const { isActive, delayed, refused } = pacing()
    const { sources, destinations } = configuration()
    const { destinations: names } = this.#names
    // A destination that loses its series also loses their counts; from then on it is counted under `other`.
    for (const counts of [this.#retried, this.#keyless])
      for (const id of counts.keys()) if (id !== OTHER && !names.has(id)) counts.delete(id)
    for (const id of this.#times.keys()) if (id !== OTHER && !this.#names.histograms.has(id)) this.#times.delete(id)
    const timed = Array.from(this.#times, ([destination, times]) => ({ destination, times }))
    const retried = sums(destinations.values(), 'id', () => 0, names)
    for (const [destination, count] of this.#retried) retried.set(destination, count)
    const keyless = sums(orderedIn(destinations), 'id', () => 0, names)
    for (const [destination, count] of this.#keyless) keyless.set(destination, count)
    const known = [...states()].filter(({ destinationId }) => destinations.has(destinationId))
    const inState = (state: BreakerState): Map<string, number> =>
      sums(known, 'destinationId', ({ breaker }) => (breaker === state ? 1 : 0), names)
    return {
      sourceInfo: infos('source', sources, this.#names.sources),
      destinationInfo: infos('destination', destinations, names),
      retried: gauge(retried),
      keyless: gauge(keyless),
      warned: this.#warnedSamples(sources),
      attemptSeconds: attemptSamples(timed),
      deliverySeconds: deliverySamples(timed),
      inFlight: gauge(sums(known, 'destinationId', ({ inFlight }) => inFlight, names)),
      breaker: BREAKER_STATES.flatMap((state) =>
        Array.from(inState(state), ([destination, value]) => ({ labels: { destination, state }, value })),
      ),
      ingestPaced: [{ labels: {}, value: isActive ? 1 : 0 }],
      requestsDelayed: [{ labels: {}, value: delayed }],
      requestsRefused: [{ labels: {}, value: refused }],
      storeWritable: [{ labels: {}, value: this.#writable ? 1 : 0 }],
      storeReadable: [{ labels: {}, value: readable ? 1 : 0 }],
      commitSeconds: this.#commit.samples(METRICS.commitSeconds.name, {}),
      groupSize: this.#group.samples(METRICS.groupSize.name, {}),
      roundTrips: [{ labels: {}, value: this.#roundTrips }],
      eventLoopLag: this.#lag.samples(METRICS.eventLoopLag.name, {}),
      processes: [
        { labels: { state: 'answered' }, value: 1 },
        { labels: { state: 'missing' }, value: 0 },
      ],
      liveListeners: [{ labels: {}, value: listeners() }],
      build: [{ labels: { version }, value: 1 }],
    }
  }

  #ofStore({ configuration, wallMs }: MetricSources, { ledger, oldest, sources, rejections, order }: StoreCounts): Snapshot {
    const known = configuration()
    const names = this.#names
    const rows = ledger.filter(({ destinationId }) => known.destinations.has(destinationId))
    const sourceRows = sources.filter(({ sourceId }) => known.sources.has(sourceId))
    const now = wallMs()
    const ofLedger = (name: 'owed' | 'delivered' | 'failed' | 'expired' | 'cancelled'): Sample[] => {
      const values = rows.map((row) => [row.destinationId, row[name]] as const)
      return this.#counter(name).samples('destination', values, names.destinations)
    }
    const ofSources = (name: 'accepted' | 'duplicates' | 'suppressed' | 'released' | 'deleted'): Sample[] => {
      const values = sourceRows.map((row) => [row.sourceId, row[name]] as const)
      return this.#counter(name).samples('source', values, names.sources)
    }
    const waits = sums(rows, 'destinationId', () => 0, names.destinations)
    for (const { destinationId, atMs } of oldest) {
      const key = names.destinations.has(destinationId) ? destinationId : OTHER
      if (waits.has(key)) waits.set(key, Math.max(waits.get(key) ?? 0, (now - atMs) / 1_000))
    }
    return {
      accepted: ofSources('accepted'),
      duplicates: ofSources('duplicates'),
      suppressed: ofSources('suppressed'),
      quarantined: gauge(
        sums(sourceRows, 'sourceId', ({ quarantined }) => quarantined, names.sources),
        'source',
      ),
      released: ofSources('released'),
      deleted: ofSources('deleted'),
      rejected: this.#rejected(rejections, known),
      owed: ofLedger('owed'),
      delivered: ofLedger('delivered'),
      failed: ofLedger('failed'),
      expired: ofLedger('expired'),
      cancelled: ofLedger('cancelled'),
      pending: gauge(sums(rows, 'destinationId', ({ pending }) => pending, names.destinations)),
      oldestPending: gauge(waits),
      ...(order === null ? {} : this.#ofOrder(known, order)),
      ledger: LEDGER_STATES.map((state) => ({ labels: { state }, value: ledger.reduce((sum, row) => sum + row[state], 0) })),
    }
  }

  /** Destinations with the setting `order` have series, and others while keys of theirs wait. */
  #ofOrder({ destinations }: Configuration, counts: readonly OrderCountsRow[]): Snapshot {
    const none = orderedIn(destinations).map(({ id }) => ({ destinationId: id, waitingKeys: 0, heldKeys: 0, waitingMessages: 0 }))
    const rows = [...none, ...counts.filter(({ destinationId }) => destinations.has(destinationId))]
    const of = (name: keyof OrderCounts): Sample[] => gauge(sums(rows, 'destinationId', (row) => row[name], this.#names.destinations))
    return { orderWaitingKeys: of('waitingKeys'), orderHeldKeys: of('heldKeys'), orderWaitingMessages: of('waitingMessages') }
  }

  #warnedSamples(known: Configuration['sources']): Sample[] {
    for (const bySource of this.#warned.values()) for (const id of bySource.keys()) if (!known.has(id)) bySource.delete(id)
    return this.#byCode('warned', this.#warned, this.#names.sources)
  }

  #rejected(rejections: StoreCounts['rejections'], known: Configuration): Sample[] {
    const byCode = new Map<string, [id: string, value: number][]>()
    for (const { sourceId, code, count } of rejections) {
      if (sourceId !== null && !known.sources.has(sourceId)) continue
      const rows = byCode.get(code) ?? []
      rows.push([sourceId ?? UNKNOWN, count])
      byCode.set(code, rows)
    }
    const names = { has: (id: string): boolean => id === UNKNOWN || this.#names.sources.has(id) }
    return this.#byCode('rejected', byCode, names)
  }

  #byCode(
    name: string,
    counts: ReadonlyMap<string, Iterable<readonly [sourceId: string, value: number]>>,
    names: Pick<NamedSeries, 'has'>,
  ): Sample[] {
    return Array.from(counts, ([code, rows]) => {
      const samples = this.#counter(`${name} ${code}`).samples('source', rows, names)
      return samples.map(({ labels, value }) => ({ labels: { ...labels, code }, value }))
    }).flat()
  }

  #counter(name: string): CounterWithOther {
    let counter = this.#counters.get(name)
    if (counter === undefined) {
      counter = new CounterWithOther()
      this.#counters.set(name, counter)
    }
    return counter
  }

  /** Gives series to destinations that need attention or have recent traffic. For sources, traffic is detected from the counts of the store. */
  #assignSeries({ configuration, states, wallMs }: MetricSources, counts: StoreCounts | null): void {
    const { sources, destinations } = configuration()
    const nowMs = performance.now()
    const attention = new Set<string>()
    for (const id of this.#sourceTotals.keys()) if (!sources.has(id)) this.#sourceTotals.delete(id)
    for (const { destinationId, breaker } of states()) if (breaker !== 'closed') attention.add(destinationId)
    for (const { destinationId, atMs } of counts?.oldest ?? []) {
      if (wallMs() - atMs > LONG_PENDING_MS) attention.add(destinationId)
    }
    for (const { sourceId, accepted, duplicates, rejected, suppressed } of counts?.sources ?? []) {
      const total = accepted + duplicates + rejected + suppressed
      if (!sources.has(sourceId)) continue
      if (this.#sourceTotals.get(sourceId) !== total) this.#names.sources.labelFor(sourceId, nowMs)
      this.#sourceTotals.set(sourceId, total)
    }
    this.#names.destinations.reassign(destinations, attention, nowMs)
    this.#names.histograms.reassign(destinations, attention, nowMs)
    this.#names.sources.reassign(sources, new Set(), nowMs)
  }

  #timesOf(destinationId: string): DestinationTimes {
    const key = this.#names.histograms.labelFor(destinationId, performance.now())
    let times = this.#times.get(key)
    if (times === undefined) {
      const attempts = (): Histogram => new Histogram(METRICS.attemptSeconds.bounds as readonly number[])
      times = {
        attempts: { success: attempts(), temporary: attempts(), permanent: attempts() },
        delivery: new Histogram(METRICS.deliverySeconds.bounds as readonly number[]),
      }
      this.#times.set(key, times)
    }
    return times
  }
}

function orderedIn(destinations: Configuration['destinations']): { id: string }[] {
  return [...destinations.values()].filter(({ order }) => order != null)
}

/** Returns a sum for each id that has its own series, and one for all others, if there are any. */
function sums<Id extends string, Row extends Readonly<Record<Id, string>>>(
  rows: Iterable<Row>,
  id: Id,
  valueOf: (row: Row) => number,
  names: Pick<NamedSeries, 'has'>,
): Map<string, number> {
  const found = new Map<string, number>()
  for (const row of rows) {
    const key = names.has(row[id]) ? row[id] : OTHER
    found.set(key, (found.get(key) ?? 0) + valueOf(row))
  }
  return found
}

function gauge(found: ReadonlyMap<string, number>, label = 'destination'): Sample[] {
  return Array.from(found, ([id, value]) => ({ labels: { [label]: id }, value }))
}

/** `other` also has an info series, so that a join with the names does not drop it. */
function infos(label: string, known: ReadonlyMap<string, { id: string; name: string }>, names: NamedSeries): Sample[] {
  const named = [...known.values()].filter(({ id }) => names.has(id))
  const samples = named.map(({ id, name }) => ({ labels: { [label]: id, name }, value: 1 }))
  return named.length < known.size ? [...samples, { labels: { [label]: OTHER, name: `all other ${label}s` }, value: 1 }] : samples
}

// Generators, so that the samples are created in chunks together with the text: creating all at once would block the event loop. A
// histogram appears with its first value; otherwise those of a thousand idle destinations would be most of the text.

function* attemptSamples(timed: Timed): Generator<Sample> {
  const { name } = METRICS.attemptSeconds
  for (const { destination, times } of timed) {
    for (const outcome of VERDICTS) {
      const histogram = times.attempts[outcome]
      if (!histogram.isEmpty) yield* histogram.samples(name, { destination, outcome })
    }
  }
}

function* deliverySamples(timed: Timed): Generator<Sample> {
  const { name } = METRICS.deliverySeconds
  for (const { destination, times } of timed) {
    if (!times.delivery.isEmpty) yield* times.delivery.samples(name, { destination })
  }
}

let ofProcess: Registry | undefined

/**
 * One registry per process, however many services run in it, because the collectors that prom-client starts are never stopped. Only the
 * metrics in the table are served: prom-client's percentiles of the event loop lag are reset by every scrape, so
 * switchyard_event_loop_lag_seconds replaces them.
 */
function processRegistry(): Registry {
  if (ofProcess === undefined) {
    const registry = new Registry()
    collectDefaultMetrics({ register: registry })
    for (const { name } of registry.getMetricsAsArray()) if (!Object.hasOwn(PROCESS_METRICS, name)) registry.removeSingleMetric(name)
    ofProcess = registry
  }
  return ofProcess
}
