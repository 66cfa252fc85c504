// One destination's way out: what waits for it in memory, what is in flight, its breaker, its retries. It holds no more
// than its share of memory; what does not fit stays in the store and is claimed when there is room. Nothing here waits on
// another lane. Invariants: never more in flight than the destination, its breaker and the slots allow; what was claimed is
// settled or released; a lane that may not send holds nothing but its probe; whatever can be sent later has an event or a
// timer that leads to pump().

import type { ClaimedShipment, DeliveryStore, Destination, IsDeleted } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { type DeliveryEvents, tellAttempts } from '../events.ts'
import type { Sender } from '../sending/attempt.ts'
import { type Flight, Flights, slotsFor, UNWRITABLE } from '../sending/flights.ts'
import { Holding } from '../shipments/holding.ts'
import { type HeldShipment, type Unit, type UnitOutcome, Work } from '../shipments/work.ts'
import { Alarm } from './alarm.ts'
import { Backlog } from './backlog.ts'
import { Breaker, type BreakerState, type Heard } from './breaker.ts'
import { Gathering } from './gathering.ts'
import { Health } from './health.ts'
import { chargeOf, type Memory } from './memory.ts'
import { Overdue } from './overdue.ts'
import type { Slots, SlotUser } from './slots.ts'
import type { SetTimer } from './timers.ts'
import { Waiting } from './waiting.ts'

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
/** The most requests to URLs that have not answered although another URL has accepted the message. Above that, their deliveries count as in flight. */
const MAX_TRAILING = 500
const CLAIM_FRESH = 256
const CLAIM_RETRIES = 64
const CLAIM_AGAIN_MS = 1_000

export class Lane implements SlotUser {
  destination: Destination
  readonly health = new Health()
  readonly #deps: LaneDeps
  readonly #breaker: Breaker
  readonly #backlog = new Backlog()
  readonly #flights: Flights
  readonly #holding: Holding
  readonly #gathering: Gathering
  readonly #waiting = new Waiting()
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
    this.#breaker = new Breaker(random)
    this.#alarm = new Alarm(setTimer, () => this.pump())
    this.#overdue = new Overdue(
      store,
      () => this.#asking++,
      (overdue) => {
        this.#asking--
        this.#holding.expire(overdue)
        this.#endIfIdle()
      },
    )
    this.#flights = new Flights({
      sender,
      clock,
      answered: (flight) => this.#answered(flight),
      came: (flight, slots) => this.#came(flight, slots),
      trouble: (error) => events.trouble(this.destination, error),
    })
    this.#holding = new Holding({
      ...deps,
      destination: () => this.destination,
      backlog: this.#backlog,
      released: () => this.wake(),
      recorded: () => {
        this.pump()
        this.#endIfIdle()
      },
    })
    this.#gathering = new Gathering(
      setTimer,
      (shipments) => this.#hold(new Work(shipments, this.destination)),
      () => this.pump(),
    )
  }

  // ── New work ──

  wants(bytes: number): boolean {
    if (
      this.#backlog.hasFresh ||
      this.#isBlocked(this.#deps.clock.scheduleMs()) ||
      this.#holding.bytes + chargeOf(bytes) > LANE_BYTES ||
      !this.#holding.reserve(bytes)
    ) {
      // Until this one has been claimed, those that come after it go the same way.
      this.#backlog.wake()
      return false
    }
    return true
  }

  lost(bytes: number): void {
    this.#holding.giveBack(chargeOf(bytes))
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
    this.#holding.delete(isDeleted)
  }

  // ── Changes ──

  update(destination: Destination): void {
    const before = this.destination
    this.destination = destination
    if (before.urls.join(' ') !== destination.urls.join(' ')) {
      this.health.keep(destination.urls)
      const state = this.#breaker.state
      this.#breaker.reset()
      this.#tellBreaker(state)
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
    this.#holding.forget(this.#stopAll())
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
    this.#holding.hurry()
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
    if (this.#holding.bytes > LANE_BYTES * 0.75) this.#gathering.close()
    const now = this.#deps.clock.scheduleMs()
    const allowed = now < this.#pausedUntilMs ? 0 : this.#breaker.allowance(now, this.#share)
    while (this.#inFlight < allowed) {
      const work = this.#waiting.next(allowed, this.#inFlightRetries)
      if (work === undefined || !this.#deps.slots.take(this, slotsFor(this.destination, work.units[0] as Unit))) break
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

  /** One URL has answered, and others have not yet. After a success the message is delivered, and nothing waits for the other URLs. */
  #answered(flight: Flight): void {
    const { work, unit, results, left, trailing } = flight
    if (trailing) this.#trailing--
    this.#deps.slots.give(1, trailing)
    if (!flight.delivered && results.at(-1)?.outcome.verdict === 'success') {
      flight.delivered = true
      this.#holding.change(work, () => work.deliver(unit, results))
      this.#succeeded()
    }
    if (flight.delivered && !trailing && this.#trailing + left <= MAX_TRAILING && this.#deps.slots.trail(left)) {
      flight.trailing = true
      this.#trailing += left
      this.#landed(flight)
    }
    this.pump()
  }

  #landed({ work }: Flight): void {
    this.#inFlight--
    if (work.retry) this.#inFlightRetries--
  }

  #came(flight: Flight, slots: number): void {
    const { work, unit, results, trailing } = flight
    if (trailing) this.#trailing--
    else this.#landed(flight)
    try {
      this.#holding.change(work, () => {
        if (results.every(({ outcome }) => outcome.reason === 'aborted')) {
          this.#breaker.withdrawn()
          work.withdraw(unit)
        } else {
          work.finish(unit, results)
          this.#judge(flight)
        }
      })
    } catch (error) {
      // A bug, here or with a listener, and no reason for this lane or the process to stop.
      this.#deps.events.trouble(this.destination, error)
    }
    this.#deps.slots.give(slots, trailing)
    this.pump()
    this.#endIfIdle()
  }

  /** What the outcome says about the destination, beyond this one delivery. */
  #judge(flight: Flight): void {
    const { results, delivered } = flight
    const { destination } = this
    let judged = false
    for (const { url, outcome } of results) {
      // A URL that has been replaced meanwhile says nothing about those in its place.
      if (outcome === UNWRITABLE || !destination.urls.includes(url)) continue
      judged = true
      this.health.attempted(url, outcome.verdict === 'success', outcome.timings.totalMs)
    }
    tellAttempts(this.#deps.events, destination, flight)
    // One that was delivered while others had not answered was judged by that, then.
    if (delivered) return
    if (judged) this.#judgeReceiver(results)
    else this.#breaker.withdrawn()
  }

  #succeeded(): void {
    const before = this.#breaker.state
    this.#breaker.succeeded(this.#share, this.#deps.clock.scheduleMs())
    this.#tellBreaker(before)
  }

  #judgeReceiver(results: readonly UnitOutcome[]): void {
    const hasFailed =
      results.every(({ outcome }) => outcome.verdict !== 'success') && results.some(({ outcome }) => outcome.verdict === 'temporary')
    // An answer that refuses this message for good comes from a receiver that is alive.
    if (!hasFailed) {
      this.#succeeded()
      return
    }
    const now = this.#deps.clock.scheduleMs()
    const before = this.#breaker.state
    this.#breaker.failed(now)
    for (const { outcome } of results) {
      if (outcome.retryAfterMs === null) continue
      this.#pausedUntilMs = Math.max(this.#pausedUntilMs, now + Math.min(outcome.retryAfterMs, this.destination.retryWindowMs))
    }
    if (this.#isBlocked(now)) this.#letGo()
    this.#tellBreaker(before)
  }

  #tellBreaker(before: BreakerState): void {
    const after = this.#breaker.state
    if ((before === 'closed') !== (after === 'closed')) this.#deps.events.breaker(this.destination, after)
  }

  // ── Ending ──

  /** Everything that has not been started goes back to the store. */
  #letGo(): void {
    this.#holding.release(this.#stopAll())
  }

  /** What has not been started is not held any more; it is given back by the caller, or forgotten. */
  #stopAll(): HeldShipment[] {
    this.#waiting.clear()
    return [...this.#gathering.takeAll(), ...this.#holding.stopAll()]
  }

  #endIfIdle(): void {
    if (!this.#stopped || !this.#holding.isIdle || this.#asking > 0) return
    this.#holding.close()
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
    if (probe && (this.#inFlight > 0 || this.#holding.bytes > 0)) return
    const maxRetries = !this.#backlog.hasDueRetries(now) || this.#waiting.hasRetries ? 0 : probe ? 1 : CLAIM_RETRIES
    // A probe is better made with a retry: a first attempt would begin a window.
    const freshWait = this.#backlog.hasFresh && !this.#waiting.hasFresh && !(probe && maxRetries > 0)
    const maxFresh = !freshWait ? 0 : probe ? 1 : CLAIM_FRESH
    if (maxRetries + maxFresh === 0) return
    const { memory, store } = this.#deps
    const maxBytes = Math.min(
      CLAIM_BYTES,
      LANE_BYTES - this.#holding.bytes,
      Math.max(memory.freeBytes, RESERVED_BYTES - this.#holding.bytes),
    )
    // Whatever is held ends some time, and then there is another look.
    if (maxBytes < 0) return
    const known = this.#backlog.asking(maxFresh > 0)
    this.#claiming = true
    this.#asking++
    store.claim({ destinationId: this.destination.id, nowMs: now, maxFresh, maxRetries, maxBytes }).then(
      (claim) => {
        this.#claimed()
        this.#backlog.answered(claim)
        this.#holding.charge(claim.shipments)
        for (const claimed of claim.shipments) this.#add(claimed)
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
    this.#holding.add(work)
    if (!work.isOver) this.#waiting.push(work)
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
}

function maySend({ enabled, paused }: Destination): boolean {
  return enabled && !paused
}

function sameBatch({ batch: a }: Destination, { batch: b }: Destination): boolean {
  return a.size === b.size && a.bytes === b.bytes && a.lingerMs === b.lingerMs
}
