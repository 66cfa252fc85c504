// The metrics as they are kept and served. What happens per message or per attempt only adds to numbers in memory; labels,
// names and text are made when somebody asks. Series exist for the sources and destinations that are configured, so their
// number is bounded by the configuration, and what was deleted disappears.

import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Configuration } from '../store/store.ts'
import type { Books } from './books.ts'
import type { Attempted, BreakerState, Delivered, Settled, Verdict, Watcher } from './events.ts'
import { exposition } from './exposition.ts'
import { Histogram, type Sample } from './histogram.ts'
import { METRICS, type Metric, type MetricKey, PROCESS_METRICS } from './metric-table.ts'

export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

export interface MetricSources {
  configuration: () => Configuration
  states: () => Iterable<{ destinationId: string; breaker: BreakerState; inFlight: number }>
  books: () => Promise<Books | null>
  listeners: () => number
  wallMs: () => number
  version: string
}

interface DestinationCounts {
  retried: number
  attempts: Record<Verdict, Histogram>
  delivery: Histogram
}

type Counted = readonly { destination: string; counts: DestinationCounts }[]

type Snapshot = Partial<Record<MetricKey, Iterable<Sample>>>

const LAG_EVERY_MS = 100
const VERDICTS: readonly Verdict[] = ['success', 'temporary', 'permanent']
const BREAKER_STATES: readonly BreakerState[] = ['closed', 'open', 'probing']

export class Metrics implements Watcher {
  readonly #destinations = new Map<string, DestinationCounts>()
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

  attempted({ destination, outcome }: Attempted): void {
    this.#of(destination.id).attempts[outcome.verdict].observe(outcome.timings.totalMs / 1_000)
  }

  delivered({ destination, messages, replay, atMs }: Delivered): void {
    if (replay) return
    const { delivery } = this.#of(destination.id)
    // A wall clock that was set back would make it less than nothing.
    for (const { receivedAtMs } of messages) delivery.observe(Math.max(0, atMs - receivedAtMs) / 1_000)
  }

  settled({ destination, retried }: Settled): void {
    if (retried > 0) this.#of(destination.id).retried += retried
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

  /** In Prometheus' text format. */
  async text(sources: MetricSources): Promise<string> {
    const books = await sources.books()
    const snapshot: Snapshot = { ...this.#ofProcess(sources, books !== null), ...(books === null ? {} : ofStore(sources, books)) }
    const metrics = Object.entries(METRICS) as [MetricKey, Metric][]
    const own = await exposition(metrics.map(([key, { name, help, type }]) => ({ name, help, type, samples: snapshot[key] ?? [] })))
    return own + (await processRegistry().metrics())
  }

  #ofProcess({ configuration, states, listeners, version }: MetricSources, readable: boolean): Snapshot {
    const { sources, destinations } = configuration()
    for (const id of this.#destinations.keys()) if (!destinations.has(id)) this.#destinations.delete(id)
    const counted = [...destinations.keys()].map((destination) => ({ destination, counts: this.#of(destination) }))
    const standing = [...states()].filter(({ destinationId }) => destinations.has(destinationId))
    return {
      sourceInfo: [...sources.values()].map(({ id, name }) => ({ labels: { source: id, name }, value: 1 })),
      destinationInfo: [...destinations.values()].map(({ id, name }) => ({ labels: { destination: id, name }, value: 1 })),
      retried: counted.map(({ destination, counts }) => ({ labels: { destination }, value: counts.retried })),
      attemptSeconds: attemptSamples(counted),
      deliverySeconds: deliverySamples(counted),
      inFlight: standing.map(({ destinationId, inFlight }) => ({ labels: { destination: destinationId }, value: inFlight })),
      breaker: standing.flatMap(({ destinationId, breaker }) =>
        BREAKER_STATES.map((state) => ({ labels: { destination: destinationId, state }, value: state === breaker ? 1 : 0 })),
      ),
      storeWritable: [{ labels: {}, value: this.#writable ? 1 : 0 }],
      storeReadable: [{ labels: {}, value: readable ? 1 : 0 }],
      commitSeconds: this.#commit.samples(METRICS.commitSeconds.name, {}),
      groupSize: this.#group.samples(METRICS.groupSize.name, {}),
      roundTrips: [{ labels: {}, value: this.#roundTrips }],
      eventLoopLag: this.#lag.samples(METRICS.eventLoopLag.name, {}),
      liveListeners: [{ labels: {}, value: listeners() }],
      build: [{ labels: { version }, value: 1 }],
    }
  }

  #of(destinationId: string): DestinationCounts {
    let counts = this.#destinations.get(destinationId)
    if (counts === undefined) {
      const attempts = (): Histogram => new Histogram(METRICS.attemptSeconds.bounds as readonly number[])
      counts = {
        retried: 0,
        attempts: { success: attempts(), temporary: attempts(), permanent: attempts() },
        delivery: new Histogram(METRICS.deliverySeconds.bounds as readonly number[]),
      }
      this.#destinations.set(destinationId, counts)
    }
    return counts
  }
}

function ofStore({ configuration, wallMs }: MetricSources, { ledger, oldest, sources, rejections }: Books): Snapshot {
  const known = configuration()
  const owing = ledger.filter(({ destinationId }) => known.destinations.has(destinationId))
  const sending = sources.filter(({ sourceId }) => known.sources.has(sourceId))
  const since = new Map(oldest.map(({ destinationId, atMs }) => [destinationId, atMs]))
  const now = wallMs()
  const ofLedger = (name: 'owed' | 'delivered' | 'failed' | 'expired' | 'cancelled' | 'pending'): Sample[] =>
    owing.map((row) => ({ labels: { destination: row.destinationId }, value: row[name] }))
  const ofSources = (name: 'accepted' | 'duplicates' | 'suppressed'): Sample[] =>
    sending.map((row) => ({ labels: { source: row.sourceId }, value: row[name] }))
  return {
    accepted: ofSources('accepted'),
    duplicates: ofSources('duplicates'),
    suppressed: ofSources('suppressed'),
    rejected: rejections
      .filter(({ sourceId }) => sourceId === null || known.sources.has(sourceId))
      .map(({ sourceId, code, count }) => ({ labels: { source: sourceId ?? 'unknown', code }, value: count })),
    owed: ofLedger('owed'),
    delivered: ofLedger('delivered'),
    failed: ofLedger('failed'),
    expired: ofLedger('expired'),
    cancelled: ofLedger('cancelled'),
    pending: ofLedger('pending'),
    oldestPending: owing.map(({ destinationId }) => {
      const atMs = since.get(destinationId)
      return { labels: { destination: destinationId }, value: atMs === undefined ? 0 : Math.max(0, now - atMs) / 1_000 }
    }),
  }
}

// Written out destination by destination, as the text is: all at once they would be most of the work, in one go. A
// histogram is there from its first value on: those of a thousand destinations that are idle would be most of the text.

function* attemptSamples(counted: Counted): Generator<Sample> {
  const { name } = METRICS.attemptSeconds
  for (const { destination, counts } of counted) {
    for (const outcome of VERDICTS) {
      const histogram = counts.attempts[outcome]
      if (!histogram.isEmpty) yield* histogram.samples(name, { destination, outcome })
    }
  }
}

function* deliverySamples(counted: Counted): Generator<Sample> {
  const { name } = METRICS.deliverySeconds
  for (const { destination, counts } of counted) {
    if (!counts.delivery.isEmpty) yield* counts.delivery.samples(name, { destination })
  }
}

let ofProcess: Registry | undefined

/**
 * One for the process, however many services it has: what prom-client starts for these is never stopped. Of what it has, only
 * the table's: its percentiles of the event loop's lag begin anew with every scrape, whoever makes it, and have one of ours
 * in their place.
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
