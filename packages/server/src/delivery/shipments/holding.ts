// The shipments that a lane holds, and how they end: recorded in the ledger, or given back to the store. Counts the memory that they
// take. The lane decides what is sent, and when. Invariants: what is held is settled or released once; a work has at most one
// settlement in progress; memory is given back when the store has recorded what it was held for.

import type { ClaimedShipment, DeliveryStore, Destination, IsDeleted, Settlement } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { type DeliveryEvents, settledEvent } from '../events.ts'
import type { Backlog } from '../lanes/backlog.ts'
import { chargeOf, type Memory } from '../lanes/memory.ts'
import type { SetTimer } from '../lanes/timers.ts'
import { Progress } from './progress.ts'
import { Recorder } from './recorder.ts'
import { expiry, type HeldShipment, type Work } from './work.ts'

export interface HoldingDeps {
  store: DeliveryStore
  memory: Memory
  clock: Clock
  setTimer: SetTimer
  random: () => number
  events: DeliveryEvents
  /** As it is now. */
  destination: () => Destination
  /** Told of what goes back to the store. */
  backlog: Backlog
  /** What had been refused by the store is claimable again. */
  released: () => void
  /** Something was recorded, or given up: there is room. */
  recorded: () => void
}

/** The most that one lane holds in memory. Shipments that do not fit stay in the store. */
const LANE_BYTES = 4 * 1024 * 1024
/** Deliveries in one settlement of those whose window is over. */
const EXPIRED_AT_ONCE = 5_000

export class Holding {
  readonly #deps: HoldingDeps
  readonly #recorder: Recorder
  readonly #progress: Progress
  /** Waiting or under way. */
  readonly #works = new Set<Work>()
  #bytes = 0
  /** Settlements that are under way. */
  #recording = 0

  constructor(deps: HoldingDeps) {
    this.#deps = deps
    const { store, setTimer, events, destination, released } = deps
    this.#recorder = new Recorder(store, setTimer, (error) => events.trouble(destination(), error), released)
    this.#progress = new Progress(setTimer, (work) => this.#settle(work))
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Nothing is held or being recorded. */
  get isIdle(): boolean {
    return this.#works.size === 0 && this.#recording === 0
  }

  // ── Memory ──

  /** How many more bytes the lane may hold. */
  get roomBytes(): number {
    return LANE_BYTES - this.#bytes
  }

  get isNearlyFull(): boolean {
    return this.#bytes > LANE_BYTES * 0.75
  }

  /** Takes room for what may come; false when there is none. */
  reserve(bytes: number): boolean {
    const charge = chargeOf(bytes)
    if (charge > this.roomBytes || !this.#deps.memory.take(charge)) return false
    this.#bytes += charge
    return true
  }

  /** For what was claimed already. */
  charge(shipments: readonly HeldShipment[]): void {
    const charge = chargeOfAll(shipments)
    this.#bytes += charge
    this.#deps.memory.add(charge)
  }

  giveBack(charge: number): void {
    this.#bytes -= charge
    this.#deps.memory.give(charge)
  }

  // ── Works ──

  add(work: Work): void {
    this.#works.add(work)
    this.#moved(work, work.unrecorded)
  }

  /** Messages of users who were deleted are not sent. */
  delete(isDeleted: IsDeleted): void {
    for (const work of this.#works) this.change(work, () => work.delete(isDeleted))
  }

  /** Makes a change that may bring outcomes, and has them recorded in time. */
  change(work: Work, make: () => void): void {
    const before = work.unrecorded
    try {
      make()
    } finally {
      this.#moved(work, work.unrecorded - before)
    }
  }

  /** What has not been started is not held any more; it is given back by the caller, or forgotten. */
  stopAll(): HeldShipment[] {
    const stopped: HeldShipment[] = []
    for (const work of this.#works) {
      work.stop()
      if (work.isOver && !work.isTouched && !work.isLost && !this.#progress.isRecording(work)) {
        this.#works.delete(work)
        stopped.push(...work.shipments)
      } else this.#endIfOver(work)
    }
    return stopped
  }

  release(shipments: readonly HeldShipment[]): void {
    if (shipments.length === 0) return
    const { store, backlog } = this.#deps
    this.forget(shipments)
    store.release(shipments.map(({ shipment }) => shipment))
    for (const { shipment } of shipments) backlog.left(shipment.attempt, shipment.dueAtMs)
  }

  /** They are no longer this process's. */
  forget(shipments: readonly HeldShipment[]): void {
    this.giveBack(chargeOfAll(shipments))
  }

  /** Ends those whose window is over. */
  expire(overdue: readonly ClaimedShipment[]): void {
    this.charge(overdue)
    const { destination, clock } = this.#deps
    // Together they may be hundreds of thousands of deliveries, too many for a store to record at once.
    for (const some of cut(overdue, EXPIRED_AT_ONCE)) this.#record(expiry(destination().id, some, clock.wallMs()), chargeOfAll(some))
  }

  /** Ends the waiting for a store that is away. */
  hurry(): void {
    this.#recorder.hurry()
  }

  /** Once idle, nothing rings any more. */
  close(): void {
    this.#progress.close()
  }

  // ── The ledger ──

  /** `more`: of its deliveries, that have an outcome. */
  #moved(work: Work, more: number): void {
    if (work.isOver) this.#endIfOver(work)
    else if (more > 0 && !work.isLost) this.#progress.came(work, more)
  }

  #endIfOver(work: Work): void {
    // What is being recorded leads here again.
    if (!work.isOver || this.#progress.isRecording(work) || !this.#works.delete(work)) return
    this.#progress.forget(work)
    if (work.isLost) this.forget(work.shipments)
    else if (work.isTouched) this.#settle(work)
    else this.release(work.shipments)
  }

  #settle(work: Work): void {
    const { destination, clock, random } = this.#deps
    const charge = chargeOfAll(work.shipments)
    const settlement = work.settlement(destination(), clock.scheduleMs(), clock.wallMs(), random)
    this.#record(settlement, charge - chargeOfAll(work.shipments), (recorded) => {
      if (!recorded) this.#lose(work)
      this.#progress.ended(work)
      this.#endIfOver(work)
      this.#progress.look()
    })
  }

  /** Its shipments are no longer this process's, or given back by the recorder. */
  #lose(work: Work): void {
    this.#progress.forget(work)
    work.lose()
  }

  #record(settlement: Settlement, charge: number, over: (recorded: boolean) => void = () => undefined): void {
    this.#recording++
    // Held until it is recorded, so that a store that falls behind does not get even more to record.
    this.#recorder.record(settlement, (recorded) => {
      this.#recording--
      this.giveBack(charge)
      if (recorded) {
        for (const { attempt, dueAtMs } of settlement.remaining) this.#deps.backlog.left(attempt, dueAtMs)
        this.#tell(settlement)
      }
      over(recorded)
      this.#deps.recorded()
    })
  }

  #tell(settlement: Settlement): void {
    const { events, destination } = this.#deps
    try {
      events.settled?.(settledEvent(destination(), settlement))
    } catch (error) {
      events.trouble(destination(), error)
    }
  }
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
