// The lane of one destination: decides what is sent when, and what follows from an outcome. The sections of this file follow a shipment: it waits
// (waiting.ts, to which the store hands it), it may be sent (gate.ts), it is in flight (flights.ts), it has an outcome. A lane never waits for another lane. Invariants:
// there are never more requests in flight than the destination, its breaker and the slots allow; what a sender reports comes in at one place,
// and goes to the task and to the receiver's health from there.

import { kindOf } from '../../destinations/kinds.ts'
import type { OrderKey } from '../../model/order/order-key.ts'
import type { DeliveryStore, Destination, PartitionChange } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import type { IngestPacing, LaneNeed } from '../../timing/ingest-pacing.ts'
import type { SetTimer } from '../../timing/timers.ts'
import type { BreakerState, DeliveryEvents } from '../events/events.ts'
import type { Unsent } from '../link/protocol.ts'
import type { Memory } from '../recording/memory.ts'
import type { StoreState } from '../recording/store-state.ts'
import { OrderedMember } from '../shipments/member.ts'
import type { Senders } from '../supervision/senders.ts'
import { emitAttempts, emitRejections } from './attempt-events.ts'
import type { PeerReport } from './breaker.ts'
import { type Flight, Flights } from './flights.ts'
import { Gate, type Hold } from './gate.ts'
import { Health } from './health.ts'
import type { Slots, SlotUser } from './slots.ts'
import { Waiting } from './waiting.ts'

/** What all lanes share. */
export interface LaneDeps {
  store: DeliveryStore
  senders: Senders
  slots: Slots
  memory: Memory
  clock: Clock
  setTimer: SetTimer
  random: () => number
  events: DeliveryEvents
  pacing: Pick<IngestPacing, 'report' | 'used'>
  storeState: StoreState
  holdOf: (destination: Destination) => Hold | null
}

/** How many times the work that may be in flight is handed to a sender: enough for the milliseconds in which the main thread is busy. */
const AHEAD = 4
/** No retry is due later than this. */
const LONGEST_RETRY_MS = 30 * 86_400_000

export class Lane implements SlotUser {
  destination: Destination
  readonly health: Health
  readonly waiting: Waiting
  readonly #deps: LaneDeps
  readonly #gate: Gate
  readonly #flights: Flights
  /** Whether deliveries could be sent after the last change, and what held them back if not. */
  #couldSend: boolean
  #lastHold: Hold | null
  /** The need that was last reported. */
  #need: LaneNeed = 'none'
  /** Resolve the promises returned by stop(). */
  #onStopped: (() => void)[] = []

  /** `sourceIds`: the sources that the destination serves. */
  constructor(destination: Destination, deps: LaneDeps, sourceIds: ReadonlySet<string>) {
    this.destination = destination
    this.health = new Health(sourceIds)
    this.#deps = deps
    const current = (): Destination => this.destination
    this.#gate = new Gate({ ...deps, destination: current, onBlocked: () => this.waiting.releaseUnstarted() })
    this.waiting = new Waiting({
      ...deps,
      destination: current,
      gate: this.#gate,
      wake: () => this.pump(),
      onEnd: () => this.#endIfIdle(),
    })
    this.#flights = new Flights({
      ...deps,
      onReport: (flight, unsent) => this.#onReport(flight, unsent),
      onRoom: () => {
        this.pump()
        this.#endIfIdle()
      },
      onError: (error) => deps.events.trouble(this.destination, error),
    })
    this.#couldSend = this.#gate.maySend
    this.#lastHold = this.#gate.hold
  }

  // ── Sending what may be sent ──

  update(destination: Destination): void {
    const before = this.destination
    this.destination = destination
    const targets = kindOf(destination).targets(destination)
    if (kindOf(before).targets(before).join(' ') !== targets.join(' ')) {
      this.health.keep(targets)
      this.#gate.reset()
    }
    // Waiting shipments were split by the old batch settings, or prepared by the old version. They are released and claimed again.
    if (!sameBatch(before, destination) || before.version !== destination.version) this.waiting.releaseUnstarted()
    this.waiting.loads?.look()
    if (before.order !== destination.order) this.waiting.ordered.announce()
    this.holdChanged()
  }

  /** Deliveries may have to be held back now, or may be sent again. What is held back goes to the store, where other nodes can claim it. */
  holdChanged(): void {
    const [couldSend, lastHold] = [this.#couldSend, this.#lastHold]
    this.#couldSend = this.#gate.maySend
    this.#lastHold = this.#gate.hold
    if (!this.#couldSend) this.waiting.releaseUnstarted()
    if (!couldSend) {
      this.waiting.backlog.wake()
      // Deliveries whose window ended during the pause get an attempt before they expire. A start is no pause.
      const wasPaused = lastHold === null || lastHold.problem !== null
      if (this.#couldSend && wasPaused) this.waiting.expiryCheck.postpone(this.#now, this.destination.retryWindowMs)
    }
    this.pump()
  }

  /** Attempts everything that waits for a retry, until an attempt fails. Messages in order still wait until the first of their key is due. */
  retryNow(): void {
    this.#gate.retryNow()
    this.waiting.backlog.hurry(this.#now + LONGEST_RETRY_MS)
    this.waiting.wake()
  }

  /** Loads everything that waits for a warehouse. Without a share of the destination, another node makes the loads. */
  loadNow(request: string, onGathered: () => void): void {
    if (this.#gate.share > 0) this.waiting.loads?.loadNow(request, onGathered)
  }

  /** This node's share of the limit may have changed. */
  sharesChanged(): void {
    if (this.#gate.share === 0) {
      this.waiting.releaseUnstarted()
      this.waiting.loads?.forget()
    } else this.waiting.backlog.wake()
    this.pump()
  }

  /** This node delivers other partitions of ordered destinations. */
  partitionsChanged(change: PartitionChange): void {
    if (change === 'leaving') this.waiting.releaseOrdered()
    this.waiting.ordered.announce()
    this.pump()
  }

  /** The held shipments no longer belong to this node, and others may have started them. Requests in flight end, and the store rejects their outcomes. */
  claimsLost(): void {
    this.waiting.forgetUnstarted()
    this.waiting.wake()
  }

  /** Outcomes cannot be recorded, so what waits in the sender is taken back; or they can be recorded again. */
  storeStateChanged(isFailing: boolean): void {
    if (!isFailing) this.pump()
    else if (this.#flights.count > 0) this.waiting.tellSender('recall')
  }

  /** What other nodes found out about the receiver. */
  onPeerReport(report: PeerReport, isFirst: boolean): void {
    const onlyProbed = this.#gate.onlyProbes
    this.#gate.onPeerReport(report, isFirst)
    if (onlyProbed || this.#gate.onlyProbes) this.pump()
  }

  pump(): void {
    if (this.#gate.isHeld) return this.#reportNeed('none')
    const { held } = this.waiting
    this.waiting.closeBatchIfFull()
    const now = this.#now
    const allowed = this.#gate.allowance(now)
    const mustWait = this.#deps.storeState.isFailing || held.isBehind(now)
    const handedOver = mustWait ? 0 : this.#runsAhead ? allowed * AHEAD : allowed
    while (this.#flights.count < handedOver) {
      const next = this.waiting.next(allowed, this.#flights.retries)
      if (next === undefined || !this.#flights.takeSlots(this, this.destination, next.first)) break
      const { task } = next
      const unit = next.start(now)
      this.#gate.breaker.started()
      this.#flights.start(this.destination, task, unit, allowed, this.#need !== 'none')
    }
    // Claims also while the limit of requests in flight is reached, because only shipments in memory can be started next. A probe needs no
    // more than the shipments that are held.
    const isProbing = this.#gate.onlyProbes && (this.#flights.count > 0 || held.bytes > 0)
    this.waiting.continue(now, allowed > 0 && !isProbing)
    const mayWait = (this.waiting.backlog.hasFresh || this.waiting.ordered.hasBacklog) && !this.#gate.isBlocked(now)
    this.#reportNeed(!mayWait ? 'none' : this.#flights.areSlowed ? 'behind' : 'waiting')
  }

  #reportNeed(need: LaneNeed): void {
    if (need === this.#need) return
    this.#need = need
    this.#deps.pacing.report(this.destination.id, need)
  }

  /**
   * Whether the sender gets more work than may be in flight. While this thread is busy, it can then go on by itself. Only for receivers
   * that answer quickly, because for others there is nothing to gain, and only while slots are plenty, because the waiting work has slots too.
   * If several senders share the destination, each needs work to use its share, also while the next messages belong to another one.
   */
  get #runsAhead(): boolean {
    const { senders, slots } = this.#deps
    return senders.runAhead && (this.health.isQuick || this.#isSpread) && slots.isHalfFree && !this.#gate.onlyProbes
  }

  get #isSpread(): boolean {
    return (this.#deps.senders.of(this.destination).widthOf?.(this.destination.id) ?? 1) > 1
  }

  // ── In flight ──

  /** Nothing is sent: it is paused, disabled or held back. */
  get isHeld(): boolean {
    return this.#gate.isHeld
  }

  /** Why this node holds deliveries back; null if it does not. */
  get hold(): Hold | null {
    return this.#gate.hold
  }

  get state(): { breaker: BreakerState; openSinceMs: number | null; inFlight: number; nextAttemptAtMs: number | null } {
    const { state: breaker, openSinceMs } = this.#gate.breaker
    // What waits in the sender is not in flight yet.
    const inFlight = Math.min(this.#flights.count, this.#gate.share)
    return { breaker, openSinceMs, inFlight, nextAttemptAtMs: this.waiting.schedule.nextAttemptAtMs(this.#now) }
  }

  /** The report to other nodes; see onPeerReport(). */
  get report(): PeerReport {
    return this.#gate.breaker.report(this.#now)
  }

  inFlightAt(url: string): number {
    return Math.min(this.#flights.at(url), this.#gate.share)
  }

  // ── Outcomes ──

  #onReport(flight: Flight, unsent: readonly Unsent[] | null): void {
    const { task, unit } = flight
    try {
      if (unsent !== null) this.#onUnsent(flight, unsent)
      else if (flight.isOver) this.#onAllAnswered(flight)
      else if (!flight.delivered && flight.results.at(-1)?.outcome.verdict === 'success') {
        // One URL has accepted the message, which is delivered thereby.
        flight.delivered = true
        task.deliver(unit, flight.results)
        this.#gate.succeeded()
      }
    } finally {
      this.waiting.held.changed(task)
    }
  }

  #onAllAnswered(flight: Flight): void {
    const { task, unit, results } = flight
    if (results.every(({ outcome }) => outcome.reason === 'aborted')) {
      this.#gate.breaker.withdrawn()
      task.withdraw(unit)
    } else {
      try {
        task.finish(unit, results)
        this.#judgeReceiver(flight)
      } finally {
        // After a temporary failure, the sender starts nothing that waits until it is told to. If nothing may be sent, that was recalled.
        if (results.every(({ outcome }) => outcome.verdict !== 'success')) this.waiting.tellSender('resume')
      }
    }
  }

  /** The sender does not send some messages: they were deleted, are damaged, or the settings of the destination do not let them pass. */
  #onUnsent(flight: Flight, unsent: readonly Unsent[]): void {
    const { task, unit } = flight
    try {
      emitRejections(this.#deps.events, this.destination, flight, unsent)
    } finally {
      if (flight.isOver) this.#gate.breaker.withdrawn()
      task.endUnsent(unit, unsent, flight)
      // Messages that did not fit into the request are sent in others.
      this.waiting.putBack(task)
    }
  }

  /** Applies the outcome to the health and the breaker of the destination. */
  #judgeReceiver(flight: Flight): void {
    const { results, delivered, unit } = flight
    const { destination } = this
    const judged = this.health.judge(results, kindOf(destination).targets(destination), unit.members)
    emitAttempts(this.#deps.events, destination, flight)
    // If one URL accepted the message early, the breaker was informed then.
    if (delivered) return
    if (judged) this.#gate.judge(results, onlyKeyOf(flight))
    else this.#gate.breaker.withdrawn()
    if (results.every(({ outcome }) => outcome.verdict === 'temporary')) this.waiting.backlog.endHurry()
  }

  /** Starts no more requests and releases what has not been started. Resolves when nothing is in flight or being recorded. */
  stop(): Promise<void> {
    this.#gate.stop()
    this.#reportNeed('none')
    this.#deps.slots.cancelWait(this)
    this.waiting.stop()
    return new Promise((resolve) => {
      this.#onStopped.push(resolve)
      this.#endIfIdle()
    })
  }

  #endIfIdle(): void {
    if (!this.#gate.isStopped || !this.waiting.isIdle) return
    this.waiting.held.close()
    for (const resolve of this.#onStopped.splice(0)) resolve()
  }

  get #now(): number {
    return this.#deps.clock.scheduleMs()
  }
}

/** The key of all messages of an ordered request; null if there are several, or none. */
function onlyKeyOf({ unit: { members } }: Flight): OrderKey | null {
  const [first] = members
  if (!(first instanceof OrderedMember)) return null
  return members.every((member) => (member as OrderedMember).key === first.key) ? first.key : null
}

function sameBatch({ batch: a }: Destination, { batch: b }: Destination): boolean {
  return a.size === b.size && a.bytes === b.bytes && a.lingerMs === b.lingerMs
}
