// The delivery stage: one lane per destination, kept up to date with the configuration. New shipments are handed to it as soon as they are
// committed. The control API imports types from this file.

import type { JsonObject } from '@switchyard/protocol'
import { kindOf } from '../destinations/kinds.ts'
import type { RequestAbout, RequestBuilder } from '../destinations/port/kind.ts'
import type { ArchiveAnswer, ArchiveRequest } from '../destinations/warehouse/archive-page.ts'
import { servedSources } from '../model/served-sources.ts'
import { outboundBytes } from '../outbound/merged-size.ts'
import { sharedTrace } from '../outbound/trace-context.ts'
import type {
  ClaimedShipment,
  Configuration,
  Destination,
  Nodes,
  RequestRecord,
  SegmentContent,
  ShipmentConsumer,
  Store,
} from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { IngestPacing } from '../timing/ingest-pacing.ts'
import { type SetTimer, systemTimer } from '../timing/timers.ts'
import { withTimeout } from '../timing/with-timeout.ts'
import type { BreakerState, DeliveryEvents } from './events/events.ts'
import type { Hold } from './lanes/gate.ts'
import type { Failure, FrequentFailure, HealthSummary } from './lanes/health.ts'
import { Lane, type LaneDeps } from './lanes/lane.ts'
import { type LaneState, Peers } from './lanes/peers.ts'
import { Slots } from './lanes/slots.ts'
import type { CopyRequest } from './link/copy-message.ts'
import type { FieldLookup } from './link/field-lookup.ts'
import { rejectionOutcome } from './link/outcome.ts'
import type { UpkeepAnswer } from './link/upkeep-message.ts'
import type { WarehouseCheck, WarehouseCheckRequest } from './link/warehouse-check.ts'
import { type FieldChoices, fieldChoices } from './previews/field-choices.ts'
import { previewRuns } from './previews/preview-runs.ts'
import { isSendable, type Previewed, ShownRequests, shownHeaders } from './previews/shown-requests.ts'
import { checkWarehouse } from './previews/warehouse-checks.ts'
import { chargeOf, Memory } from './recording/memory.ts'
import { StoreState } from './recording/store-state.ts'
import { builtMessage } from './sender/loaded-messages.ts'
import { ThreadTransformer } from './sender/transforming/thread-transformer.ts'
import { requestRecord, type UnitOutcome } from './shipments/part-record.ts'
import { copyFiles } from './supervision/loading/copy-files.ts'
import { keepUp } from './supervision/loading/keep-up.ts'
import { readArchive } from './supervision/loading/read-archive.ts'
import { type SentOnce, sendOnce } from './supervision/send-once.ts'
import type { Senders } from './supervision/senders.ts'

export interface DeliveryOptions {
  store: Pick<Store, 'delivery' | 'configuration' | 'onConfiguration' | 'nodes'>
  senders: Senders
  clock: Clock
  events: DeliveryEvents
  random?: () => number
  setTimer?: SetTimer
  slots?: Slots
  memory?: Memory
  pacing?: IngestPacing
  shown?: ShownRequests
  /** Why this node does not send to a destination for now. Asked again after holdsChanged(). */
  holdOf?: (destination: Destination) => Hold | null
}

export interface DestinationHealth extends HealthSummary {
  breaker: BreakerState
  /** As this node saw it, in schedule time; null when it is closed here. */
  openSinceMs: number | null
  inFlight: number
  /** In schedule time; null if nothing is waiting. */
  nextAttemptAtMs: number | null
  /** Why at least one node holds its deliveries; null if none does. */
  held: string | null
  /** Why the latest attempt of this node failed; null if it succeeded, or there was none. */
  failure: Failure | null
  /** The most frequent reason why recent attempts of this node failed; null if none failed. */
  mostFrequentFailure: FrequentFailure | null
  urls: readonly (HealthSummary & { url: string; inFlight: number })[]
}

/** A request as it was sent. Its headers include the values from the destination's settings, but no `secrets`. */
export interface SentRequest {
  headers: Record<string, string>
  body: string
  /** Whether the request contained secrets, which are replaced here. Then the signatures are not the ones that were sent. */
  hidesSecrets?: boolean
}

export type { WarehouseCheck } from './link/warehouse-check.ts'
export type { FieldChoices } from './previews/field-choices.ts'
export type { Previewed } from './previews/shown-requests.ts'

/** A test request. It is like any other, except that its message is not stored. */
export type TestAttempt = Omit<RequestRecord, 'indexes'> & { sent?: { headers: Readonly<Record<string, string>>; body: string } }

/** A recorded attempt whose request is to be reconstructed. */
export type PastAttempt = Omit<RequestAbout, 'id' | 'trace'> & { deliveryId: string }

/** What stop() did not wait for. The messages are sent again after the next start. */
export interface Unfinished {
  /** Requests without a response. */
  requests: number
  /** False if the store has not recorded all outcomes in time, or senders have not ended. */
  recorded: boolean
}

/** Sockets are cheap. Receivers that hang use up the slots, each lane up to its own limit. */
const SLOTS = 2_000
const MEMORY_BYTES = 24 * 1024 * 1024
/** A request that had more is not reconstructed. Batches are smaller, unless an earlier version sent them. */
const MAX_SHOWN_BYTES = 16 * 1024 * 1024
const RECORD_GRACE_MS = 2_000

export class Delivery {
  readonly #options: DeliveryOptions
  readonly #lanes = new Map<string, Lane>()
  readonly #removedLanes = new Set<Promise<void>>()
  readonly #deps: LaneDeps
  readonly #peers: Peers | null
  readonly #shown: ShownRequests
  #isStopping = false

  constructor(options: DeliveryOptions) {
    const { store, senders, clock, events, random = Math.random, setTimer = systemTimer } = options
    const { slots = new Slots(SLOTS), memory = new Memory(MEMORY_BYTES), pacing = new IngestPacing() } = options
    const storeState = new StoreState((isFailing) => {
      for (const lane of this.#lanes.values()) lane.storeStateChanged(isFailing)
    })
    this.#options = options
    this.#deps = {
      store: store.delivery,
      senders,
      slots,
      memory,
      clock,
      setTimer,
      random,
      events,
      pacing,
      storeState,
      holdOf: options.holdOf ?? (() => null),
    }
    this.#shown = options.shown ?? new ShownRequests(() => new ThreadTransformer())
    this.#peers = store.nodes === undefined ? null : this.#createPeers(store.nodes)
    store.delivery.attach(this.#consumer())
    store.onConfiguration((configuration) => this.#follow(configuration))
    this.#follow(store.configuration())
  }

  #follow({ destinations }: Configuration): void {
    if (this.#isStopping) return
    for (const [id, lane] of this.#lanes) {
      if (destinations.has(id)) continue
      this.#lanes.delete(id)
      const stopped = lane.stop().finally(() => {
        this.#removedLanes.delete(stopped)
        this.#options.senders.of(lane.destination).forget(id)
      })
      this.#removedLanes.add(stopped)
    }
    const served = servedSources({ destinations })
    for (const [id, destination] of destinations) {
      const sourceIds = served.get(id) as ReadonlySet<string>
      const lane = this.#lanes.get(id)
      if (lane === undefined) {
        const added = new Lane(destination, this.#deps, sourceIds)
        this.#lanes.set(id, added)
        added.pump()
        continue
      }
      // Also if only another destination has changed, whose dead letters it gets.
      lane.health.serve(sourceIds)
      if (lane.destination !== destination) lane.update(destination)
    }
  }

  /** Forgets what quotes messages that were accepted before this wall time, because they are no longer stored. */
  forgetBefore(atMs: number): void {
    for (const { health } of this.#lanes.values()) health.forgetBefore(atMs)
  }

  /** Loads everything that waits for a warehouse, without waiting until it is due, if this node makes its loads. See LoadGathering.loadNow(). */
  loadNow(destinationId: string, request: string, onGathered: () => void): void {
    this.#lanes.get(destinationId)?.loadNow(request, onGathered)
  }

  /** What `holdOf` returns may have changed. */
  holdsChanged(): void {
    for (const lane of this.#lanes.values()) lane.holdChanged()
  }

  /** Why a node holds the deliveries of a destination; null if none does. The problem is null while this node still finds out. */
  hold(destinationId: string): Hold | null {
    const held = this.health(destinationId)?.held ?? null
    return held === null ? (this.#lanes.get(destinationId)?.hold ?? null) : { problem: held }
  }

  #consumer(): ShipmentConsumer {
    const lanes = this.#lanes
    const { store, memory, storeState, clock } = this.#deps
    return {
      reserve: (destinationId, bytes, messages) => lanes.get(destinationId)?.waiting.reserve(bytes, messages) ?? false,
      deliver: (claimed: ClaimedShipment) => {
        const lane = lanes.get(claimed.shipment.destinationId)
        if (lane) lane.waiting.deliver(claimed)
        else {
          memory.release(chargeOf(claimed.bytes))
          store.release([claimed.shipment])
        }
      },
      cancelReservation: (destinationId, bytes) => {
        const lane = lanes.get(destinationId)
        if (lane) lane.waiting.cancelReservation(bytes)
        else memory.release(chargeOf(bytes))
      },
      dropMessages: (isDeleted) => {
        for (const lane of lanes.values()) {
          lane.health.messagesDeleted(clock.wallMs())
          lane.waiting.dropMessages(isDeleted)
        }
      },
      wake: (destinationId, work) => lanes.get(destinationId)?.waiting.wake(work),
      partitionsChanged: (change) => {
        for (const lane of lanes.values()) lane.partitionsChanged(change)
      },
      sharesChanged: () => {
        for (const lane of lanes.values()) lane.sharesChanged()
      },
      claimsLost: () => {
        for (const lane of lanes.values()) lane.claimsLost()
      },
      writable: (isWritable) => storeState.setWritable(isWritable),
    }
  }

  #createPeers(nodes: Nodes): Peers {
    return new Peers({
      nodes,
      laneStates: () => Array.from(this.#lanes, ([id, lane]) => [id, this.#stateOf(lane)]),
      onReport: (id, report, isFirst) => this.#lanes.get(id)?.onPeerReport(report, isFirst),
    })
  }

  #stateOf(lane: Lane): LaneState {
    const { breaker, inFlight, nextAttemptAtMs } = lane.state
    const nextInMs = nextAttemptAtMs === null ? null : Math.max(0, nextAttemptAtMs - this.#deps.clock.scheduleMs())
    return { breaker, inFlight, nextInMs, held: lane.hold?.problem ?? null, ...lane.report }
  }

  /** The state of each destination on this node, without values that are expensive to compute. */
  *states(): Iterable<{ destinationId: string; breaker: BreakerState; inFlight: number }> {
    for (const [destinationId, lane] of this.#lanes) {
      const { breaker, inFlight } = lane.state
      yield { destinationId, breaker, inFlight }
    }
  }

  /** Attempts the pending deliveries of a destination now instead of when they are due, until an attempt fails. False if it sends nothing. */
  retryNow(destinationId: string): boolean {
    const lane = this.#lanes.get(destinationId)
    if (lane === undefined || lane.isHeld) return false
    lane.retryNow()
    return true
  }

  /** The health of a destination across all nodes. Success, latency and the requests in flight per URL are of this node only. */
  health(destinationId: string): DestinationHealth | undefined {
    const lane = this.#lanes.get(destinationId)
    if (lane === undefined) return undefined
    const targets = kindOf(lane.destination).targets(lane.destination)
    const urls = targets.map((url) => Object.assign({ url, inFlight: lane.inFlightAt(url) }, lane.health.of(url)))
    const { failure, mostFrequentFailure } = lane.health
    const seen = { ...lane.health.all(), failure, mostFrequentFailure, urls }
    if (this.#peers === null) return { ...lane.state, ...seen, held: lane.hold?.problem ?? null }
    const { breaker, inFlight, nextInMs, held } = this.#peers.combine(destinationId, this.#stateOf(lane))
    const nextAttemptAtMs = nextInMs === null ? null : this.#deps.clock.scheduleMs() + nextInMs
    return { breaker, openSinceMs: lane.state.openSinceMs, inFlight, nextAttemptAtMs, held, ...seen }
  }

  /** Sends a message to each URL once, immediately, bypassing the queue and the breaker. Nothing is stored. For an integration, each attempt is a request of its own. */
  async test(destinationId: string, message: JsonObject): Promise<{ request: SentRequest | null; attempts: TestAttempt[] } | undefined> {
    const { store, senders } = this.#options
    const destination = store.configuration().destinations.get(destinationId)
    if (destination === undefined) return undefined
    const once = this.#once(destination)
    const { startedAtMs } = once
    const attempts = testAttempts(destination, await sendOnce(senders, destination, message, once), startedAtMs)
    const { requests } = kindOf(destination)
    if (requests === null) return { request: null, attempts }
    // After the attempts, because the destination may change while this waits, and a sender must not be given old settings again.
    const [item = null] = (await this.#shown.tryToPrepare(requests.masked(destination), [{ message, receivedAtMs: startedAtMs }])) ?? []
    // A message that is not sent is shown as it is.
    const prepared = isSendable(item) ? item : JSON.stringify(message)
    const about = { id: `test-${startedAtMs}`, attempt: 1, replay: false, atMs: startedAtMs, trace: null }
    const { headers, body } = requests.build(destination, [prepared], destination.batch.size > 1, about)
    return { request: shownRequest(destination, requests, headers, body), attempts }
  }

  /**
   * Returns what would be sent for messages, each the only one of its segment and in a request of its own. The destination need not be a stored
   * one. Sends nothing. Rejects with TooManyPreviews.
   */
  preview(destination: Destination, messages: readonly SegmentContent[]): Promise<Previewed[]> {
    const { requests } = kindOf(destination)
    const once = this.#once(destination)
    if (requests !== null) return this.#shown.preview(destination, requests, messages, once.startedAtMs)
    return previewRuns(this.#options.senders, destination, messages, once)
  }

  /**
   * Asks the tool of an integration which values a field can have. The destination need not be a stored one: without `isStored`, no access token is
   * requested. Rejects with TooManyPreviews.
   */
  choices(destination: Destination, lookup: FieldLookup & { isStored: boolean }): Promise<FieldChoices> {
    return fieldChoices(this.#options.senders, destination, lookup, this.#once(destination))
  }

  /**
   * Whether the tables of a warehouse can be written, and which tables some messages would make. The destination need not be a stored one. Rejects with
   * TooManyPreviews.
   */
  checkWarehouse(destination: Destination, request: WarehouseCheckRequest): Promise<WarehouseCheck> {
    return checkWarehouse(this.#options.senders, destination, request, this.#once(destination))
  }

  /** Does a part of the upkeep of a warehouse, in a process of its own. Rejects if it could not be done. */
  upkeep(destination: Destination, cursor: string | null): Promise<UpkeepAnswer> {
    return keepUp(this.#options.senders, destination, cursor, this.#once(destination))
  }

  /** Reads a page of the archive of a lake. Rejects with ArchiveProblem. */
  archive(destination: Destination, request: ArchiveRequest): Promise<ArchiveAnswer> {
    return readArchive(this.#options.senders, destination, request, this.#once(destination))
  }

  /** For a query of a lake in a bucket: lists its tables, or copies the files of one. Rejects with CopyProblem. */
  copyFiles(destination: Destination, request: CopyRequest): Promise<unknown> {
    return copyFiles(this.#options.senders, destination, request, this.#once(destination))
  }

  #once(destination: Destination): { startedAtMs: number; onBug: (text: string) => void } {
    const { clock, events } = this.#options
    return { startedAtMs: clock.wallMs(), onBug: (text) => events.trouble(destination, new Error(text)) }
  }

  /**
   * Reconstructs the request of an attempt from the stored messages: those of one segment, or of several in the order of `parts`. Null if it
   * cannot be built from them.
   */
  async describeRequest(
    given: Destination,
    parts: readonly { content: SegmentContent; indexes: readonly number[] }[],
    { deliveryId, ...about }: PastAttempt,
  ): Promise<SentRequest | null> {
    const { requests } = kindOf(given)
    // The requests of an integration are recorded with the attempt.
    if (requests === null) return null
    const destination = requests.masked(given)
    let bytes = 0
    for (const { content, indexes } of parts) {
      for (const index of indexes) bytes += content.items[index] == null ? 0 : outboundBytes(content, index)
      if (bytes > MAX_SHOWN_BYTES) return null
    }
    const messages = parts.flatMap(({ content, indexes }) =>
      indexes.map((index) => ({ message: builtMessage(destination, content, index), receivedAtMs: content.receivedAtMs })),
    )
    const items = (await this.#shown.tryToPrepare(destination, messages)) ?? []
    const prepared = items.filter(isSendable)
    if (prepared.length === 0 || items.includes(null)) return null
    const trace = sharedTrace(parts.map(({ content }) => content.trace))
    const isBatch = destination.batch.size > 1 || prepared.length > 1
    const { headers, body } = requests.build(destination, prepared, isBatch, { id: deliveryId, trace, ...about })
    return shownRequest(destination, requests, headers, body)
  }

  /**
   * Starts no more requests and waits for those in flight. After `answeredMs` they are aborted, and their messages are released. Resolves when
   * all outcomes are recorded, or `recordedMs` after the beginning; the default is 2 s later than `answeredMs`.
   */
  async stop(answeredMs: number, recordedMs = answeredMs + RECORD_GRACE_MS): Promise<Unfinished> {
    const beganAt = performance.now()
    this.#isStopping = true
    const lanes = [...this.#lanes.values()]
    const stopped = Promise.all([...lanes.map((lane) => lane.stop()), ...this.#removedLanes])
    await withTimeout(answeredMs, stopped)
    const requests = lanes.reduce((sum, lane) => sum + lane.state.inFlight, 0)
    // Requests still in flight end as `aborted`, which the lanes treat as not started.
    const ended = Promise.all([this.#options.senders.close(), this.#shown.close(), stopped]).then(() => true)
    const recorded = await withTimeout(Math.max(0, beganAt + recordedMs - performance.now()), ended, false)
    return { requests, recorded }
  }
}

function shownRequest(
  destination: Destination,
  requests: RequestBuilder<Destination>,
  headers: readonly string[],
  body: string,
): SentRequest {
  return { headers: shownHeaders(requests.credentials(destination), headers), body, hidesSecrets: requests.hidesSecrets(destination) }
}

function testAttempts(destination: Destination, sent: SentOnce, startedAtMs: number): TestAttempt[] {
  const { version } = destination
  const urls = kindOf(destination).targets(destination)
  const attempt = (result: Omit<UnitOutcome, 'version'>): TestAttempt => {
    const { indexes: _, ...record } = requestRecord({ ...result, version }, [])
    return record
  }
  if ('rejected' in sent) {
    return sent.rejected === null ? [] : [attempt({ url: urls[0] as string, startedAtMs, outcome: rejectionOutcome(sent.rejected) })]
  }
  const [first] = sent.outcomes
  if (first?.ran === undefined) return sent.outcomes.map((outcome, at) => attempt({ url: urls[at] as string, startedAtMs, outcome }))
  return first.ran.requests.map(({ subscription, method, sent: shown, ...result }) => {
    const made: TestAttempt = Object.assign(attempt(result), { step: { subscription, method } })
    if (shown !== null) made.sent = shown
    return made
  })
}
