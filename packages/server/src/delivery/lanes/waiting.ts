// The shipments of one destination that wait to be sent: in memory, in a batch that is not complete, or in the store. A lane holds no more than
// its share of memory. The other shipments stay in the store until there is room and they are claimed (claiming.ts). A timer wakes the lane
// when only time has to pass (schedule.ts). Invariants: every claimed shipment is settled or released; a lane that may not send holds no
// shipment except its probe; for every shipment that can be sent later there is an event or a timer that wakes the lane.

import { kindOf } from '../../destinations/kinds.ts'
import type { ClaimedShipment, IsDeleted } from '../../store/store.ts'
import { Backlog } from '../recording/backlog.ts'
import { HeldShipments, type HeldShipmentsDeps } from '../recording/held-shipments.ts'
import { chargeOf } from '../recording/memory.ts'
import type { Member } from '../shipments/member.ts'
import { type HeldShipment, Task } from '../shipments/task.ts'
import type { Unit } from '../shipments/unit.ts'
import type { Senders } from '../supervision/senders.ts'
import { BatchBuffer } from './batch-buffer.ts'
import { Claiming } from './claiming.ts'
import { CrowdedCheck } from './crowded-check.ts'
import { ExpiryCheck } from './expiry-check.ts'
import type { Gate } from './gate.ts'
import { LoadGathering } from './load-gathering.ts'
import { OrderedWaiting, type Startable } from './queues/ordered-waiting.ts'
import { SendQueue } from './queues/send-queue.ts'
import { Schedule } from './schedule.ts'

export interface WaitingDeps extends Omit<HeldShipmentsDeps, 'backlog' | 'ordered' | 'onReleased' | 'onRecorded'> {
  senders: Pick<Senders, 'of'>
  gate: Gate
  /** Called when something may be sent that could not be sent before. */
  wake: () => void
  /** Called when a claim, a check or a recording has ended. */
  onEnd: () => void
}

export class Waiting {
  readonly held: HeldShipments
  readonly #deps: WaitingDeps
  /** What is known about the shipments in the store. */
  readonly backlog = new Backlog()
  readonly queue = new SendQueue()
  readonly ordered: OrderedWaiting
  #orderedLast = false
  readonly #batchBuffer: BatchBuffer
  readonly #claiming: Claiming
  /** Null unless its messages are loaded into a warehouse. */
  readonly loads: LoadGathering | null
  readonly expiryCheck: ExpiryCheck
  readonly #crowdedCheck: CrowdedCheck
  readonly schedule: Schedule

  constructor(deps: WaitingDeps) {
    this.#deps = deps
    const { store, clock, setTimer, destination, wake, onEnd } = deps
    this.ordered = new OrderedWaiting({
      ...deps,
      held: () => this.held,
      onTaken: (probe, mustLeave) => (mustLeave ? this.releaseUnstarted() : this.#releaseIfBlocked(probe)),
    })
    const own = { ...deps, backlog: this.backlog, ordered: this.ordered, queue: this.queue }
    this.#batchBuffer = new BatchBuffer(setTimer, (shipments) => this.#hold(new Task(shipments, destination())), wake)
    this.held = new HeldShipments({
      ...own,
      onReleased: () => this.wake(),
      onRecorded: () => {
        wake()
        onEnd()
      },
    })
    this.#claiming = new Claiming({
      ...own,
      destinationId: destination().id,
      held: this.held,
      claimed: (shipments, probe) => {
        this.#take(shipments, probe)
        onEnd()
      },
      failed: () => {
        this.schedule.set(destination(), clock.scheduleMs())
        onEnd()
      },
    })
    const isLoaded = kindOf(destination()).place === 'loader'
    this.loads = !isLoaded
      ? null
      : new LoadGathering({
          ...own,
          held: this.held,
          mayNotSend: () => deps.gate.isBlocked(this.#now) && !deps.gate.mayProbe(this.#now),
          claimed: (shipments) => this.#take(shipments, deps.gate.onlyProbes),
          wake,
          onEnd,
          onError: (error) => deps.events.trouble(destination(), error),
        })
    this.expiryCheck = new ExpiryCheck(store, (overdue) => {
      this.held.expire(overdue)
      onEnd()
    })
    this.#crowdedCheck = new CrowdedCheck(store, (heads) => {
      this.held.endWithoutAttempt(heads, 'crowded')
      onEnd()
    })
    this.schedule = new Schedule({
      ...own,
      claiming: this.#claiming,
      expiryCheck: this.expiryCheck,
      crowdedCheck: this.#crowdedCheck,
      loadAtMs: () => {
        const dueAtMs = this.loads?.dueAtMs ?? null
        return dueAtMs === null ? null : dueAtMs - clock.wallMs() + clock.scheduleMs()
      },
    })
  }

  // ── What comes ──

  reserve(bytes: number, messages = 1): boolean {
    if (this.loads !== null) {
      // They stay in the store until they are due. Without a share of the destination, another node makes the loads.
      if (this.#deps.gate.share === 0) this.loads.forget()
      else this.loads.accepted(bytes, messages)
      this.backlog.wake()
      return false
    }
    if (this.backlog.hasFresh || this.#deps.gate.isBlocked(this.#now) || !this.held.reserve(bytes)) {
      // Until this shipment has been claimed, later ones stay in the store as well.
      this.backlog.wake()
      return false
    }
    return true
  }

  cancelReservation(bytes: number): void {
    this.held.giveBack(chargeOf(bytes))
    this.#deps.wake()
  }

  deliver(claimed: ClaimedShipment): void {
    this.#take([claimed], false)
  }

  /** Called when the store has work that was not handed to this lane. */
  wake(work?: 'ordered'): void {
    if (work !== 'ordered') {
      this.backlog.wake()
      if (this.loads?.dueAtMs === null) this.loads.look()
    }
    if (work === 'ordered' || this.#deps.destination().order != null || this.ordered.hasClaimed) this.ordered.announce()
    this.#deps.wake()
  }

  #take(shipments: readonly ClaimedShipment[], probe: boolean): void {
    const { destination, wake } = this.#deps
    for (const claimed of shipments) this.#add(claimed)
    this.#releaseIfBlocked(probe)
    this.#batchBuffer.linger(destination().batch.lingerMs)
    wake()
    // Everything that may start has started. Otherwise the garbage collector would copy the parsed messages of waiting shipments again and again.
    for (const { bodies } of shipments) for (const body of bodies.values()) body.forgetParsed()
  }

  #releaseIfBlocked(probe: boolean): void {
    const { gate } = this.#deps
    const now = this.#now
    if (gate.isBlocked(now) && !(probe && gate.mayProbe(now))) this.releaseUnstarted()
  }

  #add(claimed: ClaimedShipment): void {
    const { shipment } = claimed
    const destination = this.#deps.destination()
    const { batch } = destination
    if (batch.size > 1 && shipment.attempt === 0 && !shipment.replay && !shipment.unit) this.#batchBuffer.add(claimed, batch)
    else this.#hold(new Task([claimed], destination, this.#deps.senders.of(destination).widthOf?.(destination.id)))
  }

  #hold(task: Task): void {
    const { senders, destination } = this.#deps
    this.held.add(task)
    if (task.isOver) return
    this.queue.push(task)
    senders.of(destination()).preload?.(destination(), task.contents)
  }

  // ── What goes ──

  /** What is sent next: ordered and other messages in turn. */
  next(allowed: number, inFlightRetries: number): Startable<Member> | undefined {
    const task = this.queue.next(allowed, inFlightRetries)
    const ordered = this.#orderedLast && task !== undefined ? undefined : this.ordered.nextAllowed()
    this.#orderedLast = ordered !== undefined
    if (ordered !== undefined) return ordered
    if (task === undefined) return undefined
    return { task, first: task.units[0]?.members[0] as Member, start: (nowMs) => task.start(nowMs) as Unit }
  }

  /** Takes back a task that has units again. */
  putBack(task: Task): void {
    if (task.units.length > 0) this.queue.push(task)
  }

  dropMessages(isDeleted: IsDeleted): void {
    // Closes the batch now, so that only Task has to know how to leave out a message.
    if (this.#batchBuffer.hasAny(isDeleted)) this.#batchBuffer.close()
    // What waits in the sender is claimed again, without the deleted messages.
    this.tellSender('recall')
    this.held.delete(isDeleted)
  }

  /** `recall`: takes back what waits in the sender. `resume`: lets it go on. */
  tellSender(command: 'recall' | 'resume'): void {
    const { senders, destination } = this.#deps
    senders.of(destination()).tell(destination().id, command)
  }

  /** Returns everything that has not been started to the store. */
  releaseUnstarted(): void {
    this.held.release(this.#stopAll())
  }

  /** Returns ordered messages that have not been started to the store. */
  releaseOrdered(): void {
    this.ordered.partitionsLeave()
    if (this.ordered.hasClaimed) this.releaseUnstarted()
  }

  /** The shipments no longer belong to this node. */
  forgetUnstarted(): void {
    this.held.forget(this.#stopAll())
  }

  /** Stops all tasks. Returns the shipments that were not started; the caller releases or forgets them. */
  #stopAll(): HeldShipment[] {
    this.queue.clear()
    this.ordered.clear()
    this.tellSender('recall')
    return [...this.#batchBuffer.takeAll(), ...this.held.stopAll()]
  }

  // ── What to do next ──

  /** Called before what may be sent is sent. */
  closeBatchIfFull(): void {
    // With no room for more shipments, waiting would not make the batch larger.
    if (this.held.isNearlyFull) this.#batchBuffer.close()
  }

  /** Called when everything that may be sent was sent: claims more, and sets the timer. `claims`: whether more could be sent. */
  continue(nowMs: number, claims: boolean): void {
    const { onlyProbes } = this.#deps.gate
    if (claims) this.#claiming.claimIfNeeded(nowMs, onlyProbes, this.loads === null)
    if (claims && !this.#claiming.isUnderWay) this.loads?.continue()
    if (claims && !(onlyProbes && this.#claiming.isUnderWay)) this.ordered.claimIfNeeded(nowMs, onlyProbes)
    this.schedule.set(this.#deps.destination(), nowMs)
  }

  get isIdle(): boolean {
    const isChecking = this.expiryCheck.isUnderWay || this.#crowdedCheck.isUnderWay || this.loads?.isUnderWay === true
    return this.held.isIdle && !this.#claiming.isUnderWay && !this.ordered.isClaiming && !isChecking
  }

  stop(): void {
    this.schedule.cancel()
    this.loads?.stop()
    this.releaseUnstarted()
    this.held.stopWaiting()
  }

  get #now(): number {
    return this.#deps.clock.scheduleMs()
  }
}
