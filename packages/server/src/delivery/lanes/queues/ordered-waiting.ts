// The ordered shipments of one destination: claims them from the store, and says which messages may be sent next. key-queues.ts decides that by key;
// this connects it with the tasks, the store and the memory of the lane. A lane whose destination has no ordered shipments claims once, at its start.
// Invariant: one claim at a time; what is claimed is in a task, and in the queue of its key, before the next claim begins.

import { kindOf } from '../../../destinations/kinds.ts'
import type { OrderKey } from '../../../model/order/order-key.ts'
import type { BatchSettings, ClaimedShipment, DeliveryStore, Destination, Part, RowId, Settlement, Shipment } from '../../../store/store.ts'
import type { Clock } from '../../../timing/clock.ts'
import { monotonicMs } from '../../../timing/monotonic.ts'
import type { CancelTimer, SetTimer } from '../../../timing/timers.ts'
import type { HeldShipments } from '../../recording/held-shipments.ts'
import type { Memory } from '../../recording/memory.ts'
import type { KeyOrder, Member, OrderedMember } from '../../shipments/member.ts'
import { Task } from '../../shipments/task.ts'
import { byShipment, splitIntoBatches, type Unit } from '../../shipments/unit.ts'
import { KeyQueues } from './key-queues.ts'

export interface OrderedWaitingDeps {
  store: Pick<DeliveryStore, 'claimOrdered' | 'orderedUntilMs'>
  memory: Pick<Memory, 'freeBytes' | 'isHalfFree'>
  clock: Pick<Clock, 'scheduleMs'>
  setTimer: SetTimer
  destination: () => Destination
  held: () => HeldShipments
  /**
   * Called with what was claimed in memory, before anything of it is sent. `probe` is the value given to claimIfNeeded. `mustLeave`: partitions began to
   * leave this node after the claim began, so what was claimed must go back.
   */
  onTaken: (probe: boolean, mustLeave: boolean) => void
  /** Called when something may be sent that could not be sent before. */
  wake: () => void
  /** Called when a claim has ended. */
  onEnd: () => void
}

/** What may start next: the messages of one request. */
export interface Startable<M extends Member = OrderedMember> {
  task: Task
  /** One of them. */
  first: M
  start(nowMs: number): Unit
}

const CLAIM_BYTES = 256 * 1024
const RESERVED_BYTES = 64 * 1024
const AHEAD_BYTES = 1536 * 1024
const CLAIM_FRESH = 256
const CLAIM_HEADS = 64
const CLAIM_WAITING = 64
const CLAIM_RETRY_MS = 1_000
const ASK_AGAIN_MS = 200

export class OrderedWaiting implements KeyOrder {
  readonly #deps: OrderedWaitingDeps
  readonly #queues = new KeyQueues<OrderedMember>()
  /** The tasks that have messages which were not started, in the order in which they came. */
  readonly #tasks = new Set<Task>()
  #isClaiming = false
  /** Whether partitions began to leave this node since the claim in progress began. */
  #mustLeave = false
  #hasClaimed = false
  #hasMore = true
  /** Whether the last claim left some, and whether there was no room for the next. */
  #leftSome = false
  #lacksRoom = false
  #nextHeadAtMs: number | null = null
  #notBeforeMs = 0
  /** Until then, only due heads are claimed, because everything that was claimed last is claimed again and refused again. */
  #refusedUntilMs = 0
  /** Whether, since the last claim began, something happened after which refused messages may be taken. */
  #hasGoneOn = false
  /** Ends the time in which messages wait for others to form a batch. */
  #cancelLinger: CancelTimer | null = null
  #hasLingered = false
  #cancelAsking: CancelTimer | null = null
  /** How many times the store has announced work since the last claim. */
  #announced = 0

  constructor(deps: OrderedWaitingDeps) {
    this.#deps = deps
  }

  get isClaiming(): boolean {
    return this.#isClaiming
  }

  /** Whether the store may have messages that could be sent now. */
  get hasMore(): boolean {
    return this.#hasMore
  }

  /** Whether the store has messages that could be sent now, and that are not in memory because there is no room, or because a claim takes only so many. */
  get hasBacklog(): boolean {
    return this.#hasMore && (this.#leftSome || this.#lacksRoom)
  }

  /** When the next head is due, or a failed claim may be made again; null if there is nothing to wait for. */
  get nextAtMs(): number | null {
    if (this.#hasMore && this.#notBeforeMs > 0) return this.#notBeforeMs
    if (this.#hasMore && this.#refusedUntilMs > 0) return Math.min(this.#refusedUntilMs, this.#nextHeadAtMs ?? Number.POSITIVE_INFINITY)
    return this.#nextHeadAtMs
  }

  /** Whether the store has a head that is not due yet, as far as is known. */
  get hasHead(): boolean {
    return this.#nextHeadAtMs !== null
  }

  /** Whether it has ever had ordered shipments. The setting may be removed while there are some. */
  get hasClaimed(): boolean {
    return this.#hasClaimed
  }

  /** The store has new work. */
  announce(): void {
    this.#mayGoOn()
    this.#announced++
  }

  /** Partitions leave this node. What a claim in progress brings may be of these. */
  partitionsLeave(): void {
    this.#mustLeave = this.#isClaiming
  }

  // ── Claims ──

  claimIfNeeded(nowMs: number, probe: boolean): void {
    const headsAreDue = this.#nextHeadAtMs !== null && this.#nextHeadAtMs <= nowMs
    const mayHaveMore = this.#hasMore && nowMs >= this.#refusedUntilMs
    if (this.#isClaiming || nowMs < this.#notBeforeMs || !(mayHaveMore || headsAreDue)) return
    const { store, memory, clock, destination, onEnd } = this.#deps
    const held = this.#deps.held()
    const { batch } = destination()
    if (!headsAreDue && !probe && this.#mustLinger(batch)) return
    const isBusy = this.#queues.next() !== undefined
    if (isBusy && probe) return
    const maxBytes = Math.min(CLAIM_BYTES, held.roomBytes, Math.max(memory.freeBytes, RESERVED_BYTES - held.bytes))
    // When a held shipment ends, the lane calls this again.
    this.#lacksRoom = maxBytes < 0 || (isBusy && (held.bytes >= AHEAD_BYTES || !memory.isHalfFree))
    if (this.#lacksRoom) return
    const limits = probe
      ? // The keys of all messages may be draining: if their heads expired or were skipped, for example.
        { maxHeads: headsAreDue ? 1 : 0, maxFresh: headsAreDue ? 0 : 1, maxWaiting: headsAreDue ? 0 : 1 }
      : { maxHeads: CLAIM_HEADS, maxFresh: CLAIM_FRESH, maxWaiting: CLAIM_WAITING }
    const known = this.#nextHeadAtMs
    this.#isClaiming = true
    this.#mustLeave = false
    this.#hasMore = false
    this.#refusedUntilMs = 0
    this.#hasGoneOn = false
    this.#nextHeadAtMs = null
    this.#announced = 0
    this.#hasLingered = false
    this.#queues.claimStarted()
    // A probe needs only one message that may start.
    const leaving = probe ? [] : this.#queues.leavingKeys
    store.claimOrdered({ destinationId: destination().id, nowMs, maxBytes, ...limits, leaving }).then(
      ({ shipments, more, nextHeadAtMs }) => {
        this.#isClaiming = false
        this.#hasClaimed ||= shipments.length > 0
        this.#notBeforeMs = 0
        this.#hasMore ||= more || (probe && shipments.length > 0)
        this.#leftSome = more
        // There is a backlog, so batches are full.
        this.#hasLingered = more
        this.#headIsDue(nextHeadAtMs)
        held.charge(shipments)
        this.#take(shipments, probe)
        onEnd()
      },
      () => {
        this.#isClaiming = false
        this.#queues.claimEnded()
        this.#hasMore = true
        this.#headIsDue(known)
        this.#notBeforeMs = clock.scheduleMs() + CLAIM_RETRY_MS
        onEnd()
      },
    )
  }

  /** A head was stored that is due at this time. */
  #headIsDue(atMs: number | null): void {
    if (atMs !== null) this.#nextHeadAtMs = Math.min(this.#nextHeadAtMs ?? Number.POSITIVE_INFINITY, atMs)
  }

  #take(shipments: readonly ClaimedShipment[], probe: boolean): void {
    const { clock, destination } = this.#deps
    const held = this.#deps.held()
    const tasks: Task[] = []
    const { batch } = destination()
    for (const group of groupsOf(shipments, batch.size, (key) => this.#queues.isLeaving(key))) {
      const task = new Task(group, destination(), 1, this)
      if (batch.size > 1) this.#tasks.add(task)
      tasks.push(task)
    }
    // In the order of the claim, not task by task: the shipments of several tasks may alternate in it.
    const members = byShipment(tasks.flatMap((task) => [...task.waiting])) as Map<RowId, OrderedMember[]>
    let [added, refused] = [0, 0]
    for (const { shipment } of shipments) {
      const isHead = shipment.order?.row === 'head'
      for (const member of members.get(shipment.id) ?? []) {
        if (this.#queues.add(member, isHead)) added++
        else {
          refused++
          member.task.leave(member)
        }
      }
    }
    this.#queues.claimEnded()
    // Asked before refused messages return to the store below, because that changes nothing for them.
    const isStuck = added === 0 && refused > 0 && !this.#hasGoneOn
    for (const task of tasks) held.add(task)
    if (isStuck) this.#refusedUntilMs = clock.scheduleMs() + ASK_AGAIN_MS
    if (tasks.length > 0) this.#deps.onTaken(probe, this.#mustLeave)
    this.#deps.wake()
    for (const { bodies } of shipments) for (const body of bodies.values()) body.forgetParsed()
  }

  // ── What may be sent ──

  /** Like next, if this process may start ordered requests. Otherwise the lane is woken soon, to ask again. */
  nextAllowed(): Startable | undefined {
    const next = this.next()
    if (next === undefined || monotonicMs() < this.#deps.store.orderedUntilMs()) return next
    const { setTimer, wake } = this.#deps
    this.#cancelAsking ??= setTimer(() => {
      this.#cancelAsking = null
      wake()
    }, ASK_AGAIN_MS)
    return undefined
  }

  next(): Startable | undefined {
    const destination = this.#deps.destination()
    const { batch } = destination
    if (batch.size === 1) {
      const first = this.#queues.next()
      if (first === undefined) return undefined
      const task = first.task as Task
      return { task, first, start: (nowMs) => this.#start(task, task.isUnit ? [...task.waiting] : [first], task.isUnit, nowMs) }
    }
    const perKey = kindOf(destination).keepsBatches ? Number.POSITIVE_INFINITY : 1
    for (const task of this.#tasks) {
      const startable = this.#queues.startable(task.waiting, perKey)
      if (task.waiting.size === 0) this.#tasks.delete(task)
      if (startable.length === 0 || (task.isUnit && startable.length < task.waiting.size)) continue
      const members = task.isUnit ? startable : (splitIntoBatches(startable, batch)[0]?.members as OrderedMember[])
      return { task, first: members[0] as OrderedMember, start: (nowMs) => this.#start(task, members, true, nowMs) }
    }
    return undefined
  }

  #start(task: Task, members: OrderedMember[], isBatch: boolean, nowMs: number): Unit {
    const isLate = this.#queues.start(members)
    const unit = task.startTogether(members, isBatch, nowMs)
    unit.isLate = isLate
    return unit
  }

  /** A batch that would not be full waits in the store for more messages, so that they are claimed together. */
  #mustLinger({ size, lingerMs }: BatchSettings): boolean {
    if (size === 1 || lingerMs === 0 || this.#hasLingered || this.#announced >= size) return false
    const { setTimer, wake } = this.#deps
    this.#cancelLinger ??= setTimer(() => {
      this.#cancelLinger = null
      this.#hasLingered = true
      wake()
    }, lingerMs)
    return true
  }

  // ── What became of messages ──

  delivered(members: readonly OrderedMember[]): void {
    this.#queues.end(members)
  }

  stopped(members: readonly OrderedMember[]): void {
    this.#leave(this.#queues.stop(members))
    // When the outcome is recorded, the store has a head, or the next message of the key.
    this.#hasMore = true
  }

  withdrawn(members: readonly OrderedMember[]): void {
    this.#queues.withdraw(members)
    if (this.#deps.destination().batch.size > 1) for (const { task } of members) this.#tasks.add(task as Task)
  }

  leave(members: Iterable<OrderedMember>): void {
    this.#leave(this.#queues.leave(members))
    this.#hasMore = true
  }

  returned(keys: readonly number[]): void {
    if (keys.length === 0) return
    this.#queues.returned(keys)
    this.#mayGoOn()
  }

  /** An ordered shipment is in the store, and can be claimed. */
  stored({ dueAtMs, order }: Pick<Shipment, 'dueAtMs' | 'order'>): void {
    if (order?.row === 'head') this.#headIsDue(dueAtMs)
    else this.#hasMore = true
  }

  /** If a head or a message that waited has ended, its key may have waiting messages that are next. */
  settled({ done, kept }: Settlement): void {
    const ends = ({ order }: Shipment): boolean => order !== undefined && order.row !== 'fresh'
    if (done.some(ends) || kept.some(({ shipment }) => ends(shipment))) this.#mayGoOn()
  }

  /** Messages that were refused before may be taken now. */
  #mayGoOn(): void {
    this.#hasMore = true
    this.#hasGoneOn = true
    this.#refusedUntilMs = 0
  }

  #leave(members: readonly OrderedMember[]): void {
    for (const member of members) member.task.leave(member)
    const tasks = new Set(members.map(({ task }) => task as Task))
    if (tasks.size === 0) return
    // Later, because the task that this call comes from is about to change.
    queueMicrotask(() => {
      for (const task of tasks) this.#deps.held().changed(task)
      // If all messages of a key are back, those that wait in the store can be claimed.
      this.#deps.wake()
      this.#deps.onEnd()
    })
  }

  clear(): void {
    this.#cancelLinger?.()
    this.#cancelLinger = null
    this.#cancelAsking?.()
    this.#cancelAsking = null
    this.#tasks.clear()
  }
}

/**
 * Heads are tasks of their own. With batches, other shipments share a task with as many as fit into one. Otherwise the new messages of one request share
 * a task, although each partition may have a shipment: they are parsed once, and recorded together. But a shipment with a message that must go back to the
 * store is alone, so that neither the message nor its key waits for other shipments.
 */
function groupsOf(shipments: readonly ClaimedShipment[], size: number, isLeaving: (key: OrderKey) => boolean): ClaimedShipment[][] {
  return size === 1 ? groupsByOrigin(shipments, isLeaving) : groupsBySize(shipments, size, isLeaving)
}

function groupsByOrigin(shipments: readonly ClaimedShipment[], isLeaving: (key: OrderKey) => boolean): ClaimedShipment[][] {
  const groups: ClaimedShipment[][] = []
  const byOrigin = new Map<RowId, ClaimedShipment[]>()
  for (const claimed of shipments) {
    const { order, parts } = claimed.shipment
    const [part] = parts as [Part]
    const isShared = order?.row === 'fresh' && parts.length === 1 && part.keys?.some(isLeaving) !== true
    const origin = isShared ? part.origin : undefined
    const group = origin === undefined ? undefined : byOrigin.get(origin)
    if (group !== undefined) {
      group.push(claimed)
      continue
    }
    const added = [claimed]
    groups.push(added)
    if (origin !== undefined) byOrigin.set(origin, added)
  }
  return groups
}

function groupsBySize(shipments: readonly ClaimedShipment[], size: number, isLeaving: (key: OrderKey) => boolean): ClaimedShipment[][] {
  const groups: ClaimedShipment[][] = []
  let room = 0
  for (const claimed of shipments) {
    const count = claimed.shipment.parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
    const { order, parts } = claimed.shipment
    const isAlone = order?.row === 'head' || parts.some(({ keys = [] }) => keys.some(isLeaving))
    if (isAlone || count > room) {
      groups.push([claimed])
      room = isAlone ? 0 : size - count
    } else {
      groups.at(-1)?.push(claimed)
      room -= count
    }
  }
  return groups
}
