// The shipments of one destination. The sections of this file follow a shipment: it waits in memory, it may be sent (gate.ts), it is
// in flight, it has an outcome. A lane holds no more than its share of memory. The other shipments stay in the store until there is room and
// the lane claims them (claiming.ts). A timer wakes the lane when only time has to pass (schedule.ts). A lane never waits for another
// lane. Invariants: there are never more requests in flight than the destination, its breaker and the slots allow; every claimed shipment is
// settled or released; a lane that may not send holds no shipment except its probe; for every shipment that can be sent later
// there is an event or a timer that calls pump().

import { kindOf } from '../../destinations/kinds.ts'
import type { ClaimedShipment, DeliveryStore, Destination, IsDeleted } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import type { IngestPacing, LaneNeed } from '../../timing/ingest-pacing.ts'
import { type DeliveryEvents, emitAttempts, emitRejections } from '../events.ts'
import type { Unsent } from '../senders/protocol.ts'
import type { Senders } from '../senders/senders.ts'
import { type Flight, Flights, slotsFor } from '../sending/flights.ts'
import { isOwnFault, isRefusedUnasked } from '../sending/outcome.ts'
import { HeldShipments } from '../shipments/held-shipments.ts'
import { type HeldShipment, Task, type Unit } from '../shipments/task.ts'
import { Backlog } from './backlog.ts'
import { BatchBuffer } from './batch-buffer.ts'
import type { BreakerState, PeerReport } from './breaker.ts'
import { Claiming } from './claiming.ts'
import { ExpiryCheck } from './expiry-check.ts'
import { Gate, maySend } from './gate.ts'
import { Health } from './health.ts'
import { chargeOf, type Memory } from './memory.ts'
import { Schedule } from './schedule.ts'
import { SendQueue } from './send-queue.ts'
import type { Slots, SlotUser } from './slots.ts'
import { Slowdown } from './slowdown.ts'
import type { StoreState } from './store-state.ts'
import type { SetTimer } from './timers.ts'

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
}

/** How many times the work that may be in flight is handed to a sender: enough for the milliseconds in which the main thread is busy. */
const AHEAD = 4
/** A receiver that takes less than this on average answers quickly. */
const QUICK_MS = 20
/** The weight of the latest answer in the average. */
const LATEST = 0.05

/** The most requests to URLs that have not answered although another URL has accepted the message. Above that, their deliveries count as in flight. */
const MAX_TRAILING = 500

export class Lane implements SlotUser {
  destination: Destination
  readonly health = new Health()
  readonly #deps: LaneDeps
  readonly #backlog = new Backlog()
  readonly #queue = new SendQueue()
  readonly #batchBuffer: BatchBuffer
  readonly #held: HeldShipments
  readonly #gate: Gate
  readonly #claiming: Claiming
  readonly #expiryCheck: ExpiryCheck
  readonly #schedule: Schedule
  readonly #flights: Flights
  readonly #slowdown: Slowdown
  /** The need that was last reported. */
  #need: LaneNeed = 'none'
  /** Handed to the sender and not answered. */
  #inFlight = 0
  #inFlightRetries = 0
  /** The average duration of successful requests, the latest ones most. */
  #averageMs = Number.POSITIVE_INFINITY
  #trailing = 0
  /** Resolve the promises returned by stop(). */
  #onStopped: (() => void)[] = []

  constructor(destination: Destination, deps: LaneDeps) {
    this.destination = destination
    this.#deps = deps
    const { store, senders, clock, setTimer, events, pacing } = deps
    this.#slowdown = new Slowdown(pacing)
    const own = { ...deps, destination: () => this.destination, backlog: this.#backlog, queue: this.#queue }
    this.#batchBuffer = new BatchBuffer(
      setTimer,
      (shipments) => this.#hold(new Task(shipments, this.destination)),
      () => this.pump(),
    )
    this.#held = new HeldShipments({
      ...own,
      onReleased: () => this.wake(),
      onRecorded: () => {
        this.pump()
        this.#endIfIdle()
      },
    })
    this.#gate = new Gate({ ...own, onBlocked: () => this.#releaseUnstarted() })
    this.#claiming = new Claiming({
      ...own,
      destinationId: destination.id,
      held: this.#held,
      claimed: (shipments, probe) => this.#claimed(shipments, probe),
      failed: () => {
        this.#schedule.set(this.destination, clock.scheduleMs())
        this.#endIfIdle()
      },
    })
    this.#expiryCheck = new ExpiryCheck(store, (overdue) => {
      this.#held.expire(overdue)
      this.#endIfIdle()
    })
    this.#schedule = new Schedule({
      ...own,
      gate: this.#gate,
      claiming: this.#claiming,
      expiryCheck: this.#expiryCheck,
      wake: () => this.pump(),
    })
    this.#flights = new Flights({
      senders,
      clock,
      onAnswer: (flight) => this.#onAnswer(flight),
      onAllAnswered: (flight, slots) => this.#onAllAnswered(flight, slots),
      onUnsent: (flight, unsent, slots) => this.#onUnsent(flight, unsent, slots),
      onError: (error) => events.trouble(this.destination, error),
    })
  }

  // ── Waiting ──

  reserve(bytes: number): boolean {
    if (this.#backlog.hasFresh || this.#gate.isBlocked(this.#now) || !this.#held.reserve(bytes)) {
      // Until this shipment has been claimed, later ones stay in the store as well.
      this.#backlog.wake()
      return false
    }
    return true
  }

  cancelReservation(bytes: number): void {
    this.#held.giveBack(chargeOf(bytes))
    this.pump()
  }

  deliver(claimed: ClaimedShipment): void {
    this.#add(claimed)
    if (this.#gate.isBlocked(this.#now)) this.#releaseUnstarted()
    this.#batchBuffer.linger(this.destination.batch.lingerMs)
    this.pump()
    forgetParsed(claimed)
  }

  /** Called when the store has work that was not handed to this lane. */
  wake(): void {
    this.#backlog.wake()
    this.pump()
  }

  dropMessages(isDeleted: IsDeleted): void {
    // Closes the batch now, so that only Task has to know how to leave out a message.
    if (this.#batchBuffer.hasAny(isDeleted)) this.#batchBuffer.close()
    // What waits in the sender is claimed again, without the deleted messages.
    this.#deps.senders.recall(this.destination.id)
    this.#held.delete(isDeleted)
  }

  #claimed(shipments: readonly ClaimedShipment[], probe: boolean): void {
    for (const claimed of shipments) this.#add(claimed)
    const now = this.#now
    if (this.#gate.isBlocked(now) && !(probe && this.#gate.mayProbe(now))) this.#releaseUnstarted()
    this.#batchBuffer.linger(this.destination.batch.lingerMs)
    this.pump()
    for (const claimed of shipments) forgetParsed(claimed)
    this.#endIfIdle()
  }

  #add(claimed: ClaimedShipment): void {
    const { shipment } = claimed
    const { batch } = this.destination
    if (batch.size > 1 && shipment.attempt === 0 && !shipment.replay && !shipment.unit) this.#batchBuffer.add(claimed, batch)
    else this.#hold(new Task([claimed], this.destination))
  }

  #hold(task: Task): void {
    this.#held.add(task)
    if (task.isOver) return
    this.#queue.push(task)
    this.#deps.senders.preload(this.destination, task.contents)
  }

  /** Returns everything that has not been started to the store. */
  #releaseUnstarted(): void {
    this.#held.release(this.#stopAll())
  }

  /** Stops all tasks. Returns the shipments that were not started; the caller releases or forgets them. */
  #stopAll(): HeldShipment[] {
    this.#queue.clear()
    this.#deps.senders.recall(this.destination.id)
    return [...this.#batchBuffer.takeAll(), ...this.#held.stopAll()]
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
    if (!maySend(destination) || !sameBatch(before, destination) || before.version !== destination.version) this.#releaseUnstarted()
    if (!maySend(before)) {
      this.#backlog.wake()
      // Deliveries whose window ended during the pause get an attempt before they expire.
      if (maySend(destination)) this.#expiryCheck.postpone(this.#now, destination.retryWindowMs)
    }
    this.pump()
  }

  /** This node's share of the limit may have changed. */
  sharesChanged(): void {
    if (this.#gate.share === 0) this.#releaseUnstarted()
    else this.#backlog.wake()
    this.pump()
  }

  /** The held shipments no longer belong to this node, and others may have started them. Requests in flight end, and the store rejects their outcomes. */
  claimsLost(): void {
    this.#held.forget(this.#stopAll())
    this.wake()
  }

  /** Outcomes cannot be recorded, so what waits in the sender is taken back; or they can be recorded again. */
  storeStateChanged(isFailing: boolean): void {
    if (!isFailing) this.pump()
    else if (this.#inFlight > 0) this.#deps.senders.recall(this.destination.id)
  }

  /** What other nodes found out about the receiver. */
  onPeerReport(report: PeerReport, isFirst: boolean): void {
    const onlyProbed = this.#gate.onlyProbes
    this.#gate.onPeerReport(report, isFirst)
    if (onlyProbed || this.#gate.onlyProbes) this.pump()
  }

  useSlot(): void {
    this.pump()
  }

  pump(): void {
    if (this.#gate.isHeld) return this.#reportNeed('none')
    // With no room for more shipments, waiting would not make the batch larger.
    if (this.#held.isNearlyFull) this.#batchBuffer.close()
    const now = this.#now
    const allowed = this.#gate.allowance(now)
    const mustWait = this.#deps.storeState.isFailing || this.#held.isBehind(now)
    const handedOver = mustWait ? 0 : this.#runsAhead ? allowed * AHEAD : allowed
    while (this.#inFlight < handedOver) {
      const task = this.#queue.next(allowed, this.#inFlightRetries)
      if (task === undefined || !this.#deps.slots.take(this, slotsFor(this.destination, task.units[0] as Unit))) break
      this.#start(task, now, allowed)
    }
    const { onlyProbes } = this.#gate
    // Claims also while the limit of requests in flight is reached, because only shipments in memory can be started next. A probe needs no
    // more than the shipments that are held.
    if (allowed > 0 && !(onlyProbes && (this.#inFlight > 0 || this.#held.bytes > 0))) this.#claiming.claimIfNeeded(now, onlyProbes)
    this.#schedule.set(this.destination, now)
    const mayWait = this.#backlog.hasFresh && !this.#gate.isBlocked(now)
    this.#reportNeed(!mayWait ? 'none' : this.#slowdown.isSlowed ? 'behind' : 'waiting')
  }

  #reportNeed(need: LaneNeed): void {
    if (need === this.#need) return
    this.#need = need
    this.#deps.pacing.report(this.destination.id, need)
  }

  // ── In flight ──

  /**
   * Whether the sender gets more work than may be in flight. While this thread is busy, it can then go on by itself. Only for receivers
   * that answer quickly, because for others there is nothing to gain, and only while slots are plenty, because the waiting work has slots too.
   */
  get #runsAhead(): boolean {
    const { senders, slots } = this.#deps
    return senders.runAhead && this.#averageMs < QUICK_MS && slots.isHalfFree && !this.#gate.onlyProbes
  }

  #start(task: Task, now: number, limit: number): void {
    const unit = task.start(now) as Unit
    this.#inFlight++
    if (task.retry) this.#inFlightRetries++
    this.#gate.started()
    if (this.#need !== 'none') this.#slowdown.started(unit)
    this.#flights.start(this.destination, task, unit, limit)
  }

  /** One URL has answered, and others have not yet. After a success the message is delivered, and nothing waits for the other URLs. */
  #onAnswer(flight: Flight): void {
    const { task, unit, results, left, trailing } = flight
    if (trailing) this.#trailing--
    this.#deps.slots.release(1, trailing)
    this.#slowdown.answered(unit, flight.senderMs)
    if (!flight.delivered && results.at(-1)?.outcome.verdict === 'success') {
      flight.delivered = true
      this.#held.change(task, () => task.deliver(unit, results))
      this.#gate.succeeded()
    }
    if (flight.delivered && !trailing && this.#trailing + left <= MAX_TRAILING && this.#deps.slots.trail(left)) {
      flight.trailing = true
      this.#trailing += left
      this.#leftFlight(flight)
    }
    this.pump()
  }

  #leftFlight({ task }: Flight): void {
    this.#inFlight--
    if (task.retry) this.#inFlightRetries--
  }

  get state(): { breaker: BreakerState; openSinceMs: number | null; inFlight: number; nextAttemptAtMs: number | null } {
    const { breaker, openSinceMs } = this.#gate
    // What waits in the sender is not in flight yet.
    const inFlight = Math.min(this.#inFlight, this.#gate.share)
    return { breaker, openSinceMs, inFlight, nextAttemptAtMs: this.#schedule.nextAttemptAtMs(this.#now) }
  }

  /** The report to other nodes; see onPeerReport(). */
  get report(): PeerReport {
    return this.#gate.report
  }

  inFlightAt(url: string): number {
    return Math.min(this.#flights.inFlightAt(url), this.#gate.share)
  }

  // ── Outcomes ──

  #onAllAnswered(flight: Flight, slots: number): void {
    const { task, unit, results, trailing } = flight
    this.#slowdown.answered(unit, flight.senderMs)
    if (trailing) this.#trailing--
    else this.#leftFlight(flight)
    try {
      this.#held.change(task, () => {
        if (results.every(({ outcome }) => outcome.reason === 'aborted')) {
          this.#gate.withdrawn()
          task.withdraw(unit)
        } else {
          task.finish(unit, results)
          this.#judgeReceiver(flight)
        }
      })
    } catch (error) {
      // A bug here or in a listener must not stop this lane or the process.
      this.#deps.events.trouble(this.destination, error)
    }
    this.#deps.slots.release(slots, trailing)
    // After a temporary failure, the sender starts nothing that waits until it is told to. If nothing may be sent, that was recalled.
    if (results.every(({ outcome }) => outcome.verdict !== 'success')) this.#deps.senders.resume(this.destination.id)
    this.pump()
    this.#endIfIdle()
  }

  /** The sender does not send some messages: they were deleted, are damaged, or the settings of the destination do not let them pass. */
  #onUnsent(flight: Flight, unsent: readonly Unsent[], slots: number | null): void {
    const { task, unit } = flight
    try {
      emitRejections(this.#deps.events, this.destination, flight, unsent)
    } catch (error) {
      // A bug in a listener must not stop this lane or the process.
      this.#deps.events.trouble(this.destination, error)
    }
    if (slots === null) {
      this.#held.change(task, () => task.endUnsent(unit, unsent, flight))
      if (task.units.length === 0) return
      // Messages that did not fit into the request are sent in others.
      this.#queue.push(task)
      return this.pump()
    }
    this.#slowdown.answered(unit, flight.senderMs)
    this.#leftFlight(flight)
    this.#gate.withdrawn()
    this.#held.change(task, () => task.endUnsent(unit, unsent, flight))
    if (task.units.length > 0) this.#queue.push(task)
    this.#deps.slots.release(slots, false)
    this.pump()
    this.#endIfIdle()
  }

  /** Applies the outcome to the health and the breaker of the destination. */
  #judgeReceiver(flight: Flight): void {
    const { results, delivered } = flight
    const { destination } = this
    let judged = false
    for (const { url, outcome } of results) {
      // The result of a URL that has been replaced says nothing about the new URLs.
      if (isOwnFault(outcome) || !kindOf(destination).targets(destination).includes(url)) continue
      judged ||= !isRefusedUnasked(outcome)
      const { totalMs } = outcome.timings
      const { reason, error } = outcome
      this.health.attempted(url, outcome.verdict === 'success', totalMs)
      this.health.failure = reason === null || error === null ? null : { reason, error }
      if (outcome.verdict !== 'success') continue
      this.#averageMs = this.#averageMs === Number.POSITIVE_INFINITY ? totalMs : this.#averageMs + LATEST * (totalMs - this.#averageMs)
    }
    emitAttempts(this.#deps.events, destination, flight)
    // If one URL accepted the message early, the breaker was informed then.
    if (delivered) return
    if (judged) this.#gate.judge(results)
    else this.#gate.withdrawn()
  }

  /** Starts no more requests and releases what has not been started. Resolves when nothing is in flight or being recorded. */
  stop(): Promise<void> {
    this.#gate.stop()
    this.#reportNeed('none')
    this.#deps.slots.cancelWait(this)
    this.#schedule.cancel()
    this.#releaseUnstarted()
    this.#held.stopWaiting()
    return new Promise((resolve) => {
      this.#onStopped.push(resolve)
      this.#endIfIdle()
    })
  }

  #endIfIdle(): void {
    if (!this.#gate.isStopped || !this.#held.isIdle || this.#claiming.isUnderWay || this.#expiryCheck.isUnderWay) return
    this.#held.close()
    for (const resolve of this.#onStopped.splice(0)) resolve()
  }

  get #now(): number {
    return this.#deps.clock.scheduleMs()
  }
}

/** Called when everything that may start has started. Otherwise the garbage collector would copy the parsed messages of waiting shipments again and again. */
function forgetParsed({ bodies }: ClaimedShipment): void {
  for (const body of bodies.values()) body.forgetParsed()
}

function sameBatch({ batch: a }: Destination, { batch: b }: Destination): boolean {
  return a.size === b.size && a.bytes === b.bytes && a.lingerMs === b.lingerMs
}
