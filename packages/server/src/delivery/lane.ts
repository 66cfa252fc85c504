// One destination's way out: what waits for it in memory, what is in flight, its breaker, its retries. It holds no more
// than its share of memory; what does not fit stays in the store and is claimed when there is room. Nothing here waits on
// another lane. Invariants: never more in flight than the destination, its breaker and the slots allow; what was claimed is
// settled or released; a lane that may not send holds nothing but its probe; whatever can be sent later has an event or a
// timer that leads to pump().

import type { Clock } from '../clock.ts'
import type { ClaimedShipment, DeliveryStore, Destination, IsDeleted, Settlement } from '../store/store.ts'
import { Alarm } from './alarm.ts'
import type { Sender } from './attempt.ts'
import { Backlog } from './backlog.ts'
import { Breaker, type BreakerState, type Heard } from './breaker.ts'
import { type DeliveryEvents, settledEvent, tellAttempts } from './events.ts'
import { type Flight, Flights, UNWRITABLE } from './flights.ts'
import { Gathering } from './gathering.ts'
import { Health } from './health.ts'
import { chargeOf, type Memory } from './memory.ts'
import { Overdue } from './overdue.ts'
import { Recorder } from './recorder.ts'
import type { Slots, SlotUser } from './slots.ts'
import type { SetTimer } from './timers.ts'
import { Waiting } from './waiting.ts'
import { expiry, type HeldShipment, type Unit, type UnitOutcome, Work } from './work.ts'

/** What all lanes share. */
export interface LaneDeps {
  store: DeliveryStore
  sender: Sender
  slots: Slots
  memory: Memory
  clock: Clock
  setTimer: SetTimer
  random: () => number
  events: DeliveryEvents
}

const LANE_BYTES = 4 * 1024 * 1024
/** What a lane may claim at once: so much that others' turn at the store is not held up, and retries leave room for new ones. */
const CLAIM_BYTES = 256 * 1024
/** What a lane may claim though others have filled the memory. */
const RESERVED_BYTES = 64 * 1024
/** Deliveries that one URL has taken and another has not answered; beyond, they count as in flight. */
const MAX_TRAILING = 500
const CLAIM_FRESH = 256
const CLAIM_RETRIES = 64
const CLAIM_AGAIN_MS = 1_000
/** Deliveries in one settlement of those whose window is over. */
const EXPIRED_AT_ONCE = 5_000

export class Lane implements SlotUser {
  destination: Destination
  readonly health = new Health()
  readonly #deps: LaneDeps
  readonly #breaker: Breaker
  readonly #backlog = new Backlog()
  readonly #flights: Flights
  readonly #recorder: Recorder
  readonly #gathering: Gathering
  readonly #waiting = new Waiting()
  /** All that are held, waiting or under way. */
  readonly #works = new Set<Work>()
  #heldBytes = 0
  #inFlight = 0
  #inFlightRetries = 0
  #trailing = 0
  #claiming = false
  #claimNotBeforeMs = 0
  #pausedUntilMs = 0
  readonly #alarm: Alarm
  readonly #overdue: Overdue
  /** Questions to the store that are under way. */
  #asking = 0
  #stopped = false
  #idle: (() => void)[] = []

  constructor(destination: Destination, deps: LaneDeps) {
    this.destination = destination
    this.#deps = deps
    const { store, sender, clock, setTimer, random, events } = deps
    const trouble = (error: unknown): void => events.trouble(this.destination, error)
    this.#breaker = new Breaker(random)
    this.#alarm = new Alarm(setTimer, () => this.pump())
    this.#overdue = new Overdue(
      store,
      () => this.#asking++,
      (overdue) => {
        this.#asking--
        this.#expire(overdue)
        this.#endIfIdle()
      },
    )
    this.#flights = new Flights({ sender, clock, taken: (flight) => this.#taken(flight), came: (flight) => this.#came(flight), trouble })
    this.#recorder = new Recorder(store, setTimer, trouble, () => this.wake())
    this.#gathering = new Gathering(
      setTimer,
      (shipments) => this.#hold(new Work(shipments, this.destination)),
      () => this.pump(),
    )
  }

  // ── New work ──

  wants(bytes: number): boolean {
    const charge = chargeOf(bytes)
    if (
      this.#backlog.hasFresh ||
      this.#isBlocked(this.#deps.clock.scheduleMs()) ||
      this.#heldBytes + charge > LANE_BYTES ||
      !this.#deps.memory.take(charge)
    ) {
      // Until this one has been claimed, those that come after it go the same way.
      this.#backlog.wake()
      return false
    }
    this.#heldBytes += charge
    return true
  }

  lost(bytes: number): void {
    this.#giveBack(chargeOf(bytes))
    this.pump()
  }

  take(claimed: ClaimedShipment): void {
    this.#add(claimed)
    if (this.#isBlocked(this.#deps.clock.scheduleMs())) this.#letGo()
    this.#gathering.linger(this.destination.batch.lingerMs)
    this.pump()
  }

  /** There is work in the store that this lane was not handed. */
  wake(): void {
    this.#backlog.wake()
    this.pump()
  }

  deleted(isDeleted: IsDeleted): void {
    // The gathered become a work now, so that there is one place that knows how to leave a message out.
    if (this.#gathering.hasAny(isDeleted)) this.#gathering.close()
    for (const work of this.#works) {
      work.delete(isDeleted)
      this.#finishIfOver(work)
    }
  }

  // ── Changes ──

  update(destination: Destination): void {
    const before = this.destination
    this.destination = destination
    if (before.urls.join(' ') !== destination.urls.join(' ')) {
      this.health.keep(destination.urls)
      this.#breaker.reset()
      this.#pausedUntilMs = 0
    }
    // What waits has been cut into batches, or not, by the old settings; claimed again, it is cut by the new.
    if (!maySend(destination) || !sameBatch(before, destination)) this.#letGo()
    if (!maySend(before)) {
      this.#backlog.wake()
      // What ran out of its window while it was held has its attempt first, if the receiver is there.
      if (maySend(destination)) this.#overdue.wait(this.#deps.clock.scheduleMs(), destination.retryWindowMs)
    }
    this.pump()
  }

  /** This node may have another share than before. */
  reshare(): void {
    if (this.#share === 0) this.#letGo()
    else this.#backlog.wake()
    this.pump()
  }

  /** What is held is no longer this node's: others may have begun it. What is in flight ends, and the store refuses it. */
  fenced(): void {
    this.#giveBack(chargeOfAll(this.#stopAll()))
    this.wake()
  }

  /** What other nodes found out about the receiver. */
  heard(heard: Heard, isFirst: boolean): void {
    const before = this.#breaker.state
    this.#breaker.heard(heard, isFirst, this.#deps.clock.scheduleMs())
    this.#tellBreaker(before)
    if (before === 'closed' && this.#breaker.state !== 'closed') this.#letGo()
    if (before !== 'closed' || this.#breaker.state !== 'closed') this.pump()
  }

  /** Starts nothing more and gives back what has not been started. Resolves when nothing is in flight or being recorded. */
  stop(): Promise<void> {
    this.#stopped = true
    this.#deps.slots.leave(this)
    this.#alarm.cancel()
    this.#letGo()
    this.#recorder.hurry()
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#endIfIdle()
    })
  }

  /** For other nodes: see heard(). */
  get news(): Heard {
    return this.#breaker.news(this.#deps.clock.scheduleMs())
  }

  get state(): { breaker: BreakerState; openSinceMs: number | null; inFlight: number; nextAttemptAtMs: number | null } {
    const now = this.#deps.clock.scheduleMs()
    const blockedUntilMs = Math.max(this.#blockedUntilMs, now)
    const dueAtMs = this.#isHeld ? null : this.#isWaiting(now) ? now : this.#backlog.nextRetryAtMs
    return {
      breaker: this.#breaker.state,
      openSinceMs: this.#breaker.openSinceMs,
      inFlight: this.#inFlight,
      nextAttemptAtMs: dueAtMs === null ? null : Math.max(dueAtMs, blockedUntilMs),
    }
  }

  inFlightAt(url: string): number {
    return this.#flights.at(url)
  }

  // ── Sending ──

  useSlot(): void {
    this.pump()
  }

  pump(): void {
    if (this.#isHeld) return
    // A batch that has all the room there is will not become larger by waiting.
    if (this.#heldBytes > LANE_BYTES * 0.75) this.#gathering.close()
    const now = this.#deps.clock.scheduleMs()
    const allowed = now < this.#pausedUntilMs ? 0 : this.#breaker.allowance(now, this.#share)
    while (this.#inFlight < allowed) {
      const work = this.#waiting.next(allowed, this.#inFlightRetries)
      if (work === undefined || !this.#deps.slots.take(this)) break
      this.#startUnit(work, now)
    }
    // Also while all is in flight: what is not in memory cannot take its turn.
    if (allowed > 0) this.#claimIfNeeded(now)
    this.#setTimer(now)
  }

  #startUnit(work: Work, now: number): void {
    const unit = work.start(now) as Unit
    this.#inFlight++
    if (work.retry) this.#inFlightRetries++
    this.#breaker.started()
    this.#flights.start(this.destination, work, unit)
  }

  /** Delivered; the URLs that have not answered have their time, and what comes next does not wait for them. */
  #taken(flight: Flight): void {
    if (this.#trailing >= MAX_TRAILING) return
    flight.trailing = true
    this.#trailing++
    this.#landed(flight)
    this.#breaker.succeeded(this.#share, this.#deps.clock.scheduleMs())
    this.#deps.slots.give()
    this.pump()
  }

  #landed({ work }: Flight): void {
    this.#inFlight--
    if (work.retry) this.#inFlightRetries--
  }

  #came(flight: Flight): void {
    const { work, unit, results, trailing } = flight
    if (trailing) this.#trailing--
    else this.#landed(flight)
    try {
      if (results.every(({ outcome }) => outcome.reason === 'aborted')) {
        this.#breaker.withdrawn()
        work.withdraw(unit)
      } else {
        work.finish(unit, results)
        this.#judge(flight)
      }
    } catch (error) {
      // A bug, here or with a listener, and no reason for this lane or the process to stop.
      this.#deps.events.trouble(this.destination, error)
    }
    this.#finishIfOver(work)
    if (!trailing) this.#deps.slots.give()
    this.pump()
    this.#endIfIdle()
  }

  /** What the outcome says about the destination, beyond this one delivery. */
  #judge(flight: Flight): void {
    const { results } = flight
    const { destination } = this
    let judged = false
    for (const { url, outcome } of results) {
      // A URL that has been replaced meanwhile says nothing about those in its place.
      if (outcome === UNWRITABLE || !destination.urls.includes(url)) continue
      judged = true
      this.health.attempted(url, outcome.verdict === 'success', outcome.timings.totalMs)
    }
    tellAttempts(this.#deps.events, destination, flight)
    if (judged) this.#judgeReceiver(results)
    else this.#breaker.withdrawn()
  }

  #judgeReceiver(results: readonly UnitOutcome[]): void {
    const { clock } = this.#deps
    const now = clock.scheduleMs()
    const before = this.#breaker.state
    const hasFailed =
      results.every(({ outcome }) => outcome.verdict !== 'success') && results.some(({ outcome }) => outcome.verdict === 'temporary')
    // An answer that refuses this message for good comes from a receiver that is alive.
    if (!hasFailed) this.#breaker.succeeded(this.#share, now)
    else {
      this.#breaker.failed(now)
      for (const { outcome } of results) {
        if (outcome.retryAfterMs === null) continue
        this.#pausedUntilMs = Math.max(this.#pausedUntilMs, now + Math.min(outcome.retryAfterMs, this.destination.retryWindowMs))
      }
      if (this.#isBlocked(now)) this.#letGo()
    }
    this.#tellBreaker(before)
  }

  #tellBreaker(before: BreakerState): void {
    const after = this.#breaker.state
    if ((before === 'closed') !== (after === 'closed')) this.#deps.events.breaker(this.destination, after)
  }

  // ── Ending ──

  #finishIfOver(work: Work): void {
    if (!work.isOver || !this.#works.delete(work)) return
    if (!work.isTouched) {
      this.#release(work.shipments)
      return
    }
    const { clock, random } = this.#deps
    this.#record(work.settlement(this.destination, clock.scheduleMs(), clock.wallMs(), random), chargeOfAll(work.shipments))
  }

  #record(settlement: Settlement, charge: number): void {
    this.#asking++
    // Held until it is recorded: a store that falls behind is not sent still more to record.
    this.#recorder.record(settlement, (recorded) => {
      this.#asking--
      this.#giveBack(charge)
      if (recorded) {
        for (const { attempt, dueAtMs } of settlement.remaining) this.#backlog.left(attempt, dueAtMs)
        this.#tellSettled(settlement)
      }
      this.pump()
      this.#endIfIdle()
    })
  }

  #tellSettled(settlement: Settlement): void {
    try {
      this.#deps.events.settled?.(settledEvent(this.destination, settlement))
    } catch (error) {
      this.#deps.events.trouble(this.destination, error)
    }
  }

  /** Everything that has not been started goes back to the store. */
  #letGo(): void {
    const released = this.#stopAll()
    if (released.length > 0) this.#release(released)
  }

  /** What has not been started is not held any more; it is given back by the caller, or forgotten. */
  #stopAll(): HeldShipment[] {
    const released: HeldShipment[] = this.#gathering.takeAll()
    this.#waiting.clear()
    for (const work of this.#works) {
      work.stop()
      if (work.isOver && !work.isTouched) {
        this.#works.delete(work)
        released.push(...work.shipments)
      } else this.#finishIfOver(work)
    }
    return released
  }

  #release(shipments: readonly HeldShipment[]): void {
    this.#giveBack(chargeOfAll(shipments))
    this.#deps.store.release(shipments.map(({ shipment }) => shipment))
    for (const { shipment } of shipments) this.#backlog.left(shipment.attempt, shipment.dueAtMs)
  }

  #giveBack(charge: number): void {
    this.#heldBytes -= charge
    this.#deps.memory.give(charge)
  }

  #endIfIdle(): void {
    if (!this.#stopped || this.#works.size > 0 || this.#asking > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  // ── Claiming ──

  get #isHeld(): boolean {
    return this.#stopped || !maySend(this.destination)
  }

  /** What may be in flight from this node, of what may be in flight from all. */
  get #share(): number {
    return this.#deps.store.share(this.destination.id, this.destination.maxInFlight)
  }

  /** Whether new work is of no use now: it would lie in memory. */
  #isBlocked(now: number): boolean {
    return this.#isHeld || this.#breaker.state !== 'closed' || now < this.#pausedUntilMs || this.#share === 0
  }

  #claimIfNeeded(now: number): void {
    if (this.#claiming || now < this.#claimNotBeforeMs) return
    const probe = this.#breaker.state !== 'closed'
    if (probe && (this.#inFlight > 0 || this.#heldBytes > 0)) return
    const maxRetries = !this.#backlog.hasDueRetries(now) || this.#waiting.hasRetries ? 0 : probe ? 1 : CLAIM_RETRIES
    // A probe is better made with a retry: a first attempt would begin a window.
    const freshWait = this.#backlog.hasFresh && !this.#waiting.hasFresh && !(probe && maxRetries > 0)
    const maxFresh = !freshWait ? 0 : probe ? 1 : CLAIM_FRESH
    if (maxRetries + maxFresh === 0) return
    const { memory, store } = this.#deps
    const maxBytes = Math.min(CLAIM_BYTES, LANE_BYTES - this.#heldBytes, Math.max(memory.freeBytes, RESERVED_BYTES - this.#heldBytes))
    // Whatever is held ends some time, and then there is another look.
    if (maxBytes < 0) return
    const known = this.#backlog.asking(maxFresh > 0)
    this.#claiming = true
    this.#asking++
    store.claim({ destinationId: this.destination.id, nowMs: now, maxFresh, maxRetries, maxBytes }).then(
      (claim) => {
        this.#claimed()
        this.#backlog.answered(claim)
        for (const claimed of claim.shipments) {
          const charge = chargeOf(claimed.bytes)
          this.#heldBytes += charge
          memory.add(charge)
          this.#add(claimed)
        }
        const blocked = this.#isBlocked(this.#deps.clock.scheduleMs())
        if (blocked && !(probe && this.#mayProbe)) this.#letGo()
        this.#gathering.linger(this.destination.batch.lingerMs)
        this.pump()
        this.#endIfIdle()
      },
      () => {
        // The store is away, and says so itself.
        this.#claimed()
        this.#backlog.failed(known)
        const againAt = this.#deps.clock.scheduleMs()
        this.#claimNotBeforeMs = againAt + CLAIM_AGAIN_MS
        this.#setTimer(againAt)
        this.#endIfIdle()
      },
    )
  }

  #claimed(): void {
    this.#claiming = false
    this.#asking--
  }

  get #mayProbe(): boolean {
    return !this.#isHeld && this.#breaker.state === 'open' && this.#deps.clock.scheduleMs() >= this.#blockedUntilMs
  }

  #add(claimed: ClaimedShipment): void {
    const { shipment } = claimed
    const { batch } = this.destination
    if (batch.size > 1 && shipment.attempt === 0 && !shipment.replay && !shipment.unit) this.#gathering.add(claimed, batch)
    else this.#hold(new Work([claimed], this.destination))
  }

  #hold(work: Work): void {
    this.#works.add(work)
    if (work.isOver) this.#finishIfOver(work)
    else this.#waiting.push(work)
  }

  // ── Time ──

  get #blockedUntilMs(): number {
    return Math.max(this.#pausedUntilMs, this.#breaker.state === 'open' ? (this.#breaker.probeAtMs ?? 0) : 0)
  }

  /** Whether there is something that could be sent, were it allowed. */
  #isWaiting(now: number): boolean {
    if (this.#backlog.hasFresh || this.#backlog.hasDueRetries(now)) return true
    return this.#waiting.hasFresh || this.#waiting.hasRetries
  }

  /** Only for what time alone brings: an attempt that ends, a slot, an answer of the store each lead to pump() by themselves. */
  #setTimer(now: number): void {
    if (this.#isHeld) return
    const notBeforeMs = Math.max(this.#blockedUntilMs, this.#claimNotBeforeMs)
    if (notBeforeMs > now && this.#isWaiting(now)) this.#alarm.set(notBeforeMs, now)
    const { nextRetryAtMs } = this.#backlog
    if (nextRetryAtMs === null) return
    if (nextRetryAtMs > now) this.#alarm.set(Math.max(nextRetryAtMs, notBeforeMs), now)
    // A node without a share of the destination leaves that to those that send.
    if (this.#share > 0 && this.#isBlocked(now)) this.#alarm.set(this.#overdue.look(this.destination, now), now)
  }

  #expire(overdue: readonly ClaimedShipment[]): void {
    const charge = chargeOfAll(overdue)
    this.#heldBytes += charge
    this.#deps.memory.add(charge)
    // Together they may be hundreds of thousands of deliveries, which no store records at once in good time.
    for (const some of cut(overdue, EXPIRED_AT_ONCE)) {
      this.#record(expiry(this.destination.id, some, this.#deps.clock.wallMs()), chargeOfAll(some))
    }
  }
}

function maySend({ enabled, paused }: Destination): boolean {
  return enabled && !paused
}

function sameBatch({ batch: a }: Destination, { batch: b }: Destination): boolean {
  return a.size === b.size && a.bytes === b.bytes && a.lingerMs === b.lingerMs
}

/** In their order, each with no more deliveries than this, but always one shipment. */
function cut(shipments: readonly ClaimedShipment[], most: number): ClaimedShipment[][] {
  const cuts: ClaimedShipment[][] = []
  let room = 0
  for (const claimed of shipments) {
    const count = claimed.shipment.parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
    if (cuts.length === 0 || count > room) {
      cuts.push([])
      room = most
    }
    cuts.at(-1)?.push(claimed)
    room -= count
  }
  return cuts
}

function chargeOfAll(shipments: readonly HeldShipment[]): number {
  let charge = 0
  for (const { bytes } of shipments) charge += chargeOf(bytes)
  return charge
}
