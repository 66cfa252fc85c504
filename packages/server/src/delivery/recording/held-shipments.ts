// The shipments that a lane holds, and how they end: recorded in the ledger, or given back to the store. Counts the memory that they
// take. The lane decides what is sent, and when. Invariants: every held shipment is settled or released once; a task has at most one
// settlement in progress; memory is freed when the store has recorded the outcome.

import type { ClaimedShipment, DeliveryStore, Destination, IsDeleted, Settlement, Shipment, ShipmentDraft } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import type { SetTimer } from '../../timing/timers.ts'
import { type DeliveryEvents, settledEvent } from '../events/events.ts'
import { dropLoaded } from '../link/work.ts'
import { type EndedShipment, endingWithoutAttempt, type WithoutAttempt } from '../shipments/expiry.ts'
import type { HeldShipment, Task } from '../shipments/task.ts'
import type { Backlog } from './backlog.ts'
import { InterimSettlements } from './interim-settlements.ts'
import { chargeOf, type Memory } from './memory.ts'
import { SettlementRecorder } from './settlement-recorder.ts'
import type { StoreState } from './store-state.ts'

export interface HeldShipmentsDeps {
  store: DeliveryStore
  memory: Memory
  clock: Clock
  setTimer: SetTimer
  random: () => number
  events: DeliveryEvents
  /** Returns the current version of the destination. */
  destination: () => Destination
  storeState: StoreState
  /** Informed about shipments that are returned to the store. */
  backlog: Backlog
  /** The same for ordered ones. */
  ordered: { stored(shipment: Pick<Shipment, 'dueAtMs' | 'order'>): void; settled(settlement: Settlement): void }
  /** Called when shipments whose settlement the store rejected can be claimed again. */
  onReleased: () => void
  /** Called when a settlement was recorded or abandoned, so there is room again. */
  onRecorded: () => void
}

/** The most that one lane holds in memory. Shipments that do not fit stay in the store. */
const LANE_BYTES = 4 * 1024 * 1024
/** If an outcome could not be recorded for this long, nothing more is sent: it would all be sent again if another node took over. */
const RECORD_LATE_MS = 1_000
/** The most expired deliveries in one settlement, and the most that their segments have: their dead letters are about as large. */
const EXPIRED_AT_ONCE = 5_000
const EXPIRED_BYTES = 2 * 1024 * 1024

export class HeldShipments {
  readonly #deps: HeldShipmentsDeps
  readonly #recorder: SettlementRecorder
  readonly #interim: InterimSettlements
  /** Waiting or in progress. */
  readonly #tasks = new Set<Task>()
  #bytes = 0
  /** The deletions since shipments that expire were claimed. Their messages do not become dead letters. */
  readonly #expiring = new Set<IsDeleted[]>()
  /** The settlements in progress, the oldest first. */
  readonly #recordings = new Set<{ sinceMs: number }>()

  constructor(deps: HeldShipmentsDeps) {
    this.#deps = deps
    const { setTimer, events, destination } = deps
    this.#recorder = new SettlementRecorder({ ...deps, onError: (error) => events.trouble(destination(), error) })
    this.#interim = new InterimSettlements(setTimer, (task) => this.#settle(task))
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether nothing is held or being recorded. */
  get isIdle(): boolean {
    return this.#tasks.size === 0 && this.#recordings.size === 0
  }

  /** Whether the store has not recorded an outcome in time. When it has, `onRecorded` is called. */
  isBehind(nowMs: number): boolean {
    for (const { sinceMs } of this.#recordings) return nowMs - sinceMs > RECORD_LATE_MS
    return false
  }

  // ── Memory ──

  /** How many more bytes the lane may hold. */
  get roomBytes(): number {
    return LANE_BYTES - this.#bytes
  }

  get isNearlyFull(): boolean {
    return this.#bytes > LANE_BYTES * 0.75
  }

  /** Reserves room for a shipment; returns false if there is none. */
  reserve(bytes: number): boolean {
    const charge = chargeOf(bytes)
    if (charge > this.roomBytes || !this.#deps.memory.tryReserve(charge)) return false
    this.#bytes += charge
    return true
  }

  /** Charges shipments that have been claimed already. */
  charge(shipments: readonly HeldShipment[]): void {
    const charge = chargeOfAll(shipments)
    this.#bytes += charge
    this.#deps.memory.add(charge)
  }

  giveBack(charge: number): void {
    this.#bytes -= charge
    this.#deps.memory.release(charge)
  }

  // ── Tasks ──

  add(task: Task): void {
    this.#tasks.add(task)
    this.changed(task)
  }

  /** Messages of users who were deleted are not sent. */
  delete(isDeleted: IsDeleted): void {
    for (const deletions of this.#expiring) deletions.push(isDeleted)
    for (const task of this.#tasks) {
      for (const { content, index } of task.delete(isDeleted)) dropLoaded(content, [index])
      this.changed(task)
    }
  }

  /** Called when a task may have new outcomes, or be over. Schedules their recording. */
  changed(task: Task): void {
    if (task.isOver) this.#endIfOver(task)
    else if (!task.isLost) this.#interim.add(task)
  }

  /** Stops all tasks. Returns the shipments that were not started; the caller releases or forgets them. */
  stopAll(): HeldShipment[] {
    const stopped: HeldShipment[] = []
    for (const task of this.#tasks) {
      task.stop()
      if (task.isOver && !task.hasChanges && !task.isLost && !this.#interim.isRecording(task)) {
        this.#remove(task)
        stopped.push(...task.shipments)
        task.stops.returned()
      } else this.#endIfOver(task)
    }
    return stopped
  }

  release(shipments: readonly HeldShipment[]): void {
    if (shipments.length === 0) return
    const { store } = this.#deps
    this.forget(shipments)
    store.release(shipments.map(({ shipment }) => shipment))
    for (const { shipment } of shipments) this.#stored(shipment)
  }

  /** Frees the memory of shipments that no longer belong to this process. */
  forget(shipments: readonly HeldShipment[]): void {
    this.giveBack(chargeOfAll(shipments))
  }

  /** Records shipments as expired because their retry window is over. */
  expire(overdue: readonly ClaimedShipment[]): void {
    this.endWithoutAttempt(
      overdue.map((claimed) => ({ claimed, keys: null })),
      'overdue',
    )
  }

  /** Records shipments, or the messages of them with some keys, as ended without another attempt. The rest goes back to the store. */
  endWithoutAttempt(ended: readonly EndedShipment[], why: WithoutAttempt): void {
    this.charge(ended.map(({ claimed }) => claimed))
    // There may be hundreds of thousands of deliveries, too many to record at once.
    const groups = split(ended, EXPIRED_AT_ONCE, EXPIRED_BYTES)
    const { destination, clock } = this.#deps
    const deletions: IsDeleted[] = []
    const isDeleted: IsDeleted = (...message) => deletions.some((isOne) => isOne(...message))
    this.#expiring.add(deletions)
    const next = (): void => {
      const some = groups.shift()
      // Each is built when the one before it is recorded.
      if (some === undefined) {
        this.#expiring.delete(deletions)
        return
      }
      const settlement = endingWithoutAttempt(destination(), some, why, clock.wallMs(), isDeleted)
      const left = settlement.kept.flatMap(({ shipment, parts }) => {
        const found = some.find(({ claimed }) => claimed.shipment === shipment)
        return found === undefined ? [] : [{ shipment: { ...shipment, parts }, bytes: found.claimed.bytes }]
      })
      this.#record(settlement, chargeOfAll(some.map(({ claimed }) => claimed)) - chargeOfAll(left), () => {
        this.release(left)
        next()
      })
    }
    next()
  }

  /** Stops waiting for an unavailable store; see SettlementRecorder. */
  stopWaiting(): void {
    this.#recorder.stopWaiting()
  }

  /** Called once idle: cancels the timer. */
  close(): void {
    this.#interim.close()
  }

  // ── The ledger ──

  #endIfOver(task: Task): void {
    // If a settlement is in progress, this is called again when it ends.
    if (!task.isOver || this.#interim.isRecording(task) || !this.#remove(task)) return
    this.#interim.forget(task)
    if (!task.isLost && task.hasChanges) return this.#settle(task)
    this.#giveUp(task)
  }

  /** Returns false if it was removed before. */
  #remove(task: Task): boolean {
    for (const content of task.contents) dropLoaded(content)
    return this.#tasks.delete(task)
  }

  #settle(task: Task): void {
    const { destination, clock, random } = this.#deps
    const charge = chargeOfAll(task.shipments)
    const settlement = task.settlement(destination(), clock.scheduleMs(), clock.wallMs(), random)
    this.#record(settlement, charge - chargeOfAll(task.shipments), (recorded) => {
      task.stops.recorded()
      if (!recorded) this.#lose(task)
      // What is left of ordered shipments goes back to the store.
      if (task.isOver && !this.#tasks.has(task)) this.#giveUp(task)
      this.#interim.recordingEnded(task)
      this.#endIfOver(task)
      this.#interim.recordIfDue()
    })
  }

  /** Gives back what is left of the task, if it still belongs to this process. */
  #giveUp(task: Task): void {
    if (task.isLost) this.forget(task.shipments)
    else this.release(task.shipments)
    task.stops.returned()
  }

  /** Called when its shipments no longer belong to this process, or the recorder releases them. */
  #lose(task: Task): void {
    this.#interim.forget(task)
    task.lose()
  }

  #record(settlement: Settlement, charge: number, onEnd: (recorded: boolean) => void = () => undefined): void {
    const recording = { sinceMs: this.#deps.clock.scheduleMs() }
    this.#recordings.add(recording)
    // The memory is held until the settlement is recorded, so that a slow store is not given even more to record.
    this.#recorder.record(settlement, (recorded) => {
      this.#recordings.delete(recording)
      this.giveBack(charge)
      if (recorded) {
        for (const draft of settlement.remaining) this.#stored(draft)
        this.#deps.ordered.settled(settlement)
        this.#emitSettled(settlement)
      }
      onEnd(recorded)
      this.#deps.onRecorded()
    })
  }

  #stored(shipment: ShipmentDraft): void {
    const { backlog, ordered } = this.#deps
    if (shipment.order === undefined) backlog.returned(shipment.attempt, shipment.dueAtMs)
    else ordered.stored(shipment)
  }

  #emitSettled(settlement: Settlement): void {
    const { events, destination } = this.#deps
    try {
      events.settled?.(settledEvent(destination(), settlement))
    } catch (error) {
      events.trouble(destination(), error)
    }
  }
}

/** Splits the shipments in order into groups of at most `most` deliveries and about `mostBytes`, but at least one shipment each. */
function split(shipments: readonly EndedShipment[], most: number, mostBytes: number): EndedShipment[][] {
  const groups: EndedShipment[][] = []
  let room = 0
  let roomBytes = 0
  for (const ended of shipments) {
    const { claimed } = ended
    const count = claimed.shipment.parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
    if (groups.length === 0 || count > room || roomBytes <= 0) {
      groups.push([])
      room = most
      roomBytes = mostBytes
    }
    groups.at(-1)?.push(ended)
    room -= count
    roomBytes -= claimed.bytes
  }
  return groups
}

function chargeOfAll(shipments: readonly HeldShipment[]): number {
  let charge = 0
  for (const { bytes } of shipments) charge += chargeOf(bytes)
  return charge
}
