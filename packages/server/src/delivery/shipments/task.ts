// A task is one shipment or, for a destination that receives batches, several. It is split into units; a unit is one request to each URL.
// A settlement records the outcomes known so far: the last one when every started unit has its outcome, and earlier ones while the task is
// still in progress under its claim. Pure: no clock, no network, no store. Invariant: every delivery of its shipments is in exactly one
// place of a settlement: ended, to be retried, or kept. Messages stay in their stored form; a sender parses them.

import { KINDS, kindOf } from '../../destinations/kinds.ts'
import type { DestinationKind } from '../../destinations/port/kind.ts'
import type { OrderKey } from '../../model/order/order-key.ts'
import type { SegmentBody } from '../../store/port/stored-messages.ts'
import { withoutDeleted } from '../../store/port/without-deleted.ts'
import {
  type ClaimedShipment,
  type Destination,
  type Gathered,
  type HeldKey,
  type IsDeleted,
  type KeptShipment,
  type Part,
  type RequestRecord,
  type RowId,
  type Settlement,
  type Shipment,
  type ShipmentDraft,
  type StateChange,
  SYSTEM_SOURCE,
} from '../../store/store.ts'
import { type Ran, type Rejected, rejectionOutcome } from '../link/outcome.ts'
import type { Unsent } from '../link/protocol.ts'
import { DeadLetterBuilder, type DeadLetterSettings } from './dead-letters.ts'
import { contentsOf, type KeyOrder, Member, OrderedMember, type PartContent } from './member.ts'
import { end, endOf, holdsOf, newRecord, type PartRecord, partsOf, requestRecord, takeRecords, type UnitOutcome } from './part-record.ts'
import { combineRetries, type PendingRetry } from './pending-retry.ts'
import { type Combined, combine, nextRetry } from './retry-policy.ts'
import { SharedParts } from './shared-parts.ts'
import { StoppedKeys } from './stopped-keys.ts'
import { byPart, byShipment, splitIntoBatches, type Unit, unitOf } from './unit.ts'

/** What is kept of a claimed shipment in a task. */
export type HeldShipment = Pick<ClaimedShipment, 'shipment' | 'bytes'>

/** What a settlement depends on. */
export type SettledDestination = Pick<Destination, 'retryWindowMs' | 'retry' | 'order'> & DeadLetterSettings

export class Task {
  readonly retry: boolean
  /** The number of messages that it started with. */
  readonly size: number
  /** The units not started yet, in order. */
  readonly units: Unit[]
  /** The messages not started yet, if they are delivered in order. Then there are no units before they start. */
  readonly waiting = new Set<OrderedMember>()
  /** Whether all its messages are one request. */
  readonly isUnit: boolean
  /** The messages to be sent. */
  readonly contents: PartContent[] = []
  /** The shipments as stored: without deliveries that were recorded as ended. */
  #shipments: readonly HeldShipment[]
  readonly #records: PartRecord[] = []
  readonly #shared: SharedParts | null
  #retries: PendingRetry[] = []
  readonly #unstarted: Unit[] = []
  /** The units in flight that no URL has accepted yet. */
  readonly #running = new Set<Unit>()
  /** The number of delivered units for which other URLs have not answered. */
  #trailing = 0
  #retryAfterMs: number | null = null
  #state: StateChange[] = []
  #hasChanges = false
  #unrecorded = 0
  #lost = false
  #isStopped = false
  /** The deletions since the task began. Messages in flight are not stopped, but they do not become dead letters, and the text of their attempts is not recorded. */
  readonly #deletions: IsDeleted[] = []
  readonly #kind: DestinationKind
  readonly #order: KeyOrder | null
  /** Informed when settlements are recorded, and when its shipments are back in the store. */
  readonly stops: StoppedKeys
  #system: Set<RowId> | undefined

  /**
   * `senders`: over how many senders the destination is spread. Each may then get a piece of the messages of a large part. `order`: if the messages
   * of the shipments have keys.
   */
  constructor(
    shipments: readonly ClaimedShipment[],
    { batch, type }: Pick<Destination, 'batch' | 'type'>,
    senders = 1,
    order: KeyOrder | null = null,
  ) {
    this.#kind = KINDS[type]
    this.#order = order
    // In a batch, a message of another request may be between two of the same request, and a retry must not move it.
    this.#shared = order === null || batch.size > 1 || shipments.length === 1 ? null : new SharedParts()
    this.stops = new StoppedKeys(order)
    this.#shipments = shipments.map(({ shipment, bytes }) => ({ shipment, bytes }))
    this.retry = shipments.some(({ shipment }) => shipment.attempt > 0)
    // A load stays the same set of messages, however many they are. They are read by the loader.
    const isLoad = this.#kind.place === 'loader'
    const isBatch = isLoad || shipments.some(({ shipment }) => shipment.unit)
    this.isUnit = isBatch
    // The size of a batch depends on its messages, so these are read here. A single message is read by its sender.
    const members = shipments.flatMap((claimed) => this.#membersOf(claimed, !isLoad && (isBatch || batch.size > 1), isLoad ? 1 : senders))
    this.size = members.length
    if (order !== null) {
      this.units = []
      for (const member of members) this.waiting.add(member as OrderedMember)
    } else if (isBatch) this.units = members.length === 0 ? [] : [unitOf(members, true)]
    else if (batch.size > 1) this.units = splitIntoBatches(members, batch)
    else this.units = members.map((member) => unitOf([member], false))
  }

  get shipments(): readonly HeldShipment[] {
    return this.#shipments
  }

  /** Starts messages that are delivered in order, in one request. */
  startTogether(members: OrderedMember[], isBatch: boolean, nowMs: number): Unit {
    const unit = unitOf(members, isBatch)
    for (const member of members) this.waiting.delete(member)
    this.#running.add(unit)
    unit.startedAtMs = nowMs
    return unit
  }

  /** The message goes back to the store with its shipment. */
  leave(member: OrderedMember): void {
    if (!this.waiting.delete(member)) return
    this.stops.leave(member)
    this.#unstarted.push(unitOf([member], false))
  }

  /** Takes the next unit to be sent. */
  start(nowMs: number): Unit | undefined {
    const unit = this.units.shift()
    if (unit === undefined) return undefined
    this.#running.add(unit)
    unit.startedAtMs = nowMs
    return unit
  }

  /** Called at most once for each unit, when the first URL has accepted it. The unit is then delivered, whatever the other URLs answer. */
  deliver(unit: Unit, results: readonly UnitOutcome[]): void {
    this.#running.delete(unit)
    this.#trailing++
    this.#record(unit, results, { kind: 'delivered' })
  }

  finish(unit: Unit, results: readonly UnitOutcome[]): void {
    if (!this.#running.delete(unit)) {
      this.#trailing--
      this.#record(unit, results, null)
      return
    }
    const ran = results[0]?.outcome.ran
    if (ran !== undefined) return this.#finishEach(unit, ran, results[0]?.version ?? 1)
    const combined = combine(results)
    this.#record(unit, results, combined)
    if (combined.kind !== 'retry') return
    this.stops.stop(unit.members)
    const { reason, retryAfterMs } = combined
    if (retryAfterMs !== null) this.#retryAfterMs = Math.max(this.#retryAfterMs ?? 0, retryAfterMs)
    const { shipment } = unit.members[0] as Member
    const { members, startedAtMs } = unit
    const progress = this.#kind.progressAfter(shipment.progress, combined.urls)
    this.#retries.push({ shipment, members, isBatch: unit.isBatch && this.#kind.keepsBatches, progress, reason, startedAtMs })
  }

  /** Ends or retries the messages of an integration one by one. */
  #finishEach({ members, startedAtMs }: Unit, { messages, requests, state = [] }: Ran, version: number): void {
    this.#hasChanges = true
    this.#unrecorded += members.length
    for (const { positions, subscription, method, ...request } of requests) {
      const about = positions.map((position) => members[position] as Member)
      const parts = byPart(about)
      for (const [at, [part, indexes]] of parts.entries()) {
        const record: RequestRecord = requestRecord({ ...request, version }, indexes, at === 0)
        if (subscription !== null) record.step = { subscription, method }
        if (parts.length > 1) record.gathered = this.#gathered(about, at === 0)
        ;(this.#records[part] as PartRecord).requests.push(record)
      }
    }
    for (const { position, ...entry } of state)
      this.#state.push({ ...entry, owner: position === null ? null : this.#ownerOf(members[position] as Member) })
    // Messages of several shipments are in a unit only at their first attempt. They are retried together if the same subscriptions succeeded.
    const { shipment } = members[0] as Member
    for (const [position, { verdict, reason, retryAfterMs, succeeded }] of messages.entries()) {
      const member = members[position] as Member
      const record = this.#records[member.part] as PartRecord
      if (verdict === 'success') {
        record.delivered.push(member.index)
        this.#order?.delivered([member as OrderedMember])
        continue
      }
      this.stops.stop([member])
      if (verdict === 'permanent') end(record, endOf(reason), reason ?? 'unknown', [member.index])
      else {
        if (retryAfterMs !== null) this.#retryAfterMs = Math.max(this.#retryAfterMs ?? 0, retryAfterMs)
        const progress = succeeded.length === 0 ? null : succeeded
        this.#retries.push({ shipment, members: [member], isBatch: false, progress, reason: reason ?? 'unknown', startedAtMs })
      }
    }
  }

  #ownerOf(member: Member): StateChange['owner'] {
    return { sourceId: member.sourceId, segment: (this.#records[member.part] as PartRecord).segment, message: member.owner }
  }

  /** Called when the sender does not send some messages of a unit. The others stay in flight. */
  endUnsent(unit: Unit, unsent: readonly Unsent[], { destination, startedAtMs }: { destination: Destination; startedAtMs: number }): void {
    const ended = new Set<Member>()
    const leftOut: Member[] = []
    const [url = ''] = kindOf(destination).targets(destination)
    for (const { position, why } of unsent) {
      const member = unit.members[position] as Member
      ended.add(member)
      if (why === 'left_out') leftOut.push(member)
      else if (typeof why === 'string') this.#unsent(member.part, member.index, why)
      else this.#reject(member, why, { url, startedAtMs, outcome: rejectionOutcome(why), version: destination.version })
    }
    unit.members = unit.members.filter((member) => !ended.has(member))
    this.stops.stop([...ended].filter((member) => !leftOut.includes(member)))
    if (leftOut.length > 0) this.#startLater(leftOut, Math.max(1, unit.members.length))
    if (unit.members.length === 0) this.#running.delete(unit)
  }

  /** Makes units of messages that did not fit into their request. As many as did fit are likely to fit again. */
  #startLater(members: readonly Member[], size: number): void {
    if (this.#order !== null) {
      this.#order.withdrawn(members as readonly OrderedMember[])
      // Before the others, which come later in the order of acceptance.
      const later = [...this.waiting]
      this.waiting.clear()
      for (const member of [...(members as readonly OrderedMember[]), ...later]) this.waiting.add(member)
      if (this.#isStopped) this.#order.leave(members as readonly OrderedMember[])
      return
    }
    const units: Unit[] = []
    for (let at = 0; at < members.length; at += size) units.push(unitOf(members.slice(at, at + size), true))
    if (this.#isStopped) this.#unstarted.push(...units)
    else this.units.unshift(...units)
  }

  /** Ends a message that the settings of the destination did not let pass. Its attempt is recorded like any other. */
  #reject({ part, index }: Member, { reason }: Rejected, result: UnitOutcome): void {
    const record = this.#records[part] as PartRecord
    record.requests.push(requestRecord(result, [index]))
    end(record, endOf(reason), reason, [index])
    this.#hasChanges = true
    this.#unrecorded++
  }

  /** Called when this node aborted the unit before there was a result. The unit then counts as not started. */
  withdraw(unit: Unit): void {
    this.#running.delete(unit)
    this.#unstarted.push(unit)
    this.stops.stop(unit.members)
  }

  /** Called when the settlement was rejected because the shipments no longer belong to this task. The task then sends nothing more. */
  lose(): void {
    this.#lost = true
    this.stop()
  }

  /** Drops the units that were not started; their deliveries stay pending, unchanged. */
  stop(): void {
    this.#isStopped = true
    this.#unstarted.push(...this.units.splice(0))
    if (this.waiting.size > 0) this.#order?.leave([...this.waiting])
  }

  /** Drops messages whose users were deleted while the task waited, and returns them. */
  delete(isDeleted: IsDeleted): Member[] {
    this.#deletions.push(isDeleted)
    const deleted: Member[] = []
    for (let at = this.units.length - 1; at >= 0; at--) {
      const unit = this.units[at] as Unit
      const left = unit.members.filter((member) => {
        const { segment } = this.#records[member.part] as PartRecord
        if (!isDeleted(member.sourceId, segment, member.owner)) return true
        this.#unsent(member.part, member.index, 'deleted')
        deleted.push(member)
        return false
      })
      if (left.length === 0) this.units.splice(at, 1)
      else unit.members = left
    }
    // They go back to the store, and are claimed again without their content.
    const gone = [...this.waiting].filter((member) =>
      isDeleted(member.sourceId, (this.#records[member.part] as PartRecord).segment, member.owner),
    )
    if (gone.length > 0) this.#order?.leave(gone)
    for (const { body } of this.contents) body.forgetParsed()
    return deleted
  }

  /** Whether nothing is waiting or in flight, so that it can be settled or released. */
  get isOver(): boolean {
    return this.#running.size === 0 && this.#trailing === 0 && this.units.length === 0 && this.waiting.size === 0
  }

  /** Whether anything has happened since the last settlement. If not, the shipments are released unchanged. */
  get hasChanges(): boolean {
    return this.#hasChanges
  }

  get isLost(): boolean {
    return this.#lost
  }

  /** The number of deliveries that have an outcome which is not recorded yet. */
  get unrecorded(): number {
    return this.#unrecorded
  }

  /** Returns what has happened since the last settlement. The task continues with the deliveries that it keeps, and is settled again. */
  settlement(destination: SettledDestination, nowMs: number, wallMs: number, random: () => number): Settlement {
    const { retryWindowMs: windowMs, retry: policy } = destination
    const remaining: ShipmentDraft[] = []
    for (const { shipment, members, isBatch, progress, reason, startedAtMs } of combineRetries(this.#retries, windowMs)) {
      const attempt = shipment.attempt + 1
      const firstAttemptAtMs = shipment.firstAttemptAtMs ?? startedAtMs
      const next = nextRetry({ attempt, firstAttemptAtMs, nowMs, windowMs, policy, retryAfterMs: this.#retryAfterMs, random })
      if (next.kind === 'expired') {
        for (const [part, indexes] of byPart(members)) end(this.#records[part] as PartRecord, 'expired', reason, indexes)
        continue
      }
      const { replay, destinationId } = shipment
      const dueAtMs = next.atMs
      const order = shipment.order && { order: { row: 'head' as const, ord: shipment.order.ord } }
      const parts = this.#partsOf(members)
      remaining.push({ destinationId, attempt, firstAttemptAtMs, dueAtMs, unit: isBatch, progress, replay, parts, ...order })
    }
    const kept: KeptShipment[] = []
    const done: Shipment[] = []
    const isOver = this.isOver
    const started = [...this.#unstarted, ...this.#running, ...this.units].flatMap(({ members }) => members)
    const left = byShipment([...started, ...this.waiting])
    this.#shipments = this.#shipments.flatMap(({ shipment, bytes }) => {
      const members = left.get(shipment.id)
      // Messages go back to the store in the order in which they were accepted.
      if (shipment.order !== undefined) members?.sort((a, b) => a.part - b.part || a.index - b.index)
      const parts = members === undefined ? [] : this.#partsOf(members)
      // An ordered shipment keeps its row, and so its place, until nothing is left of it.
      if (parts.length > 0 && (!isOver || shipment.order !== undefined)) {
        kept.push({ shipment, parts })
        return [{ shipment: { ...shipment, parts }, bytes }]
      }
      done.push(shipment)
      const { destinationId, attempt, firstAttemptAtMs, dueAtMs, unit, progress, replay } = shipment
      if (parts.length > 0) remaining.push({ destinationId, attempt, firstAttemptAtMs, dueAtMs, unit, progress, replay, parts })
      return []
    })
    const letters = DeadLetterBuilder.of(destination)
    const holds: HeldKey[] = []
    const records = this.#records.flatMap((record) => {
      const taken = takeRecords(record, wallMs)
      if (destination.order?.onFailure === 'hold') holds.push(...holdsOf(record, taken))
      return letters === null ? taken : taken.map((one) => letters.add(one, record.body))
    })
    this.#retries = []
    this.#hasChanges = false
    this.#unrecorded = 0
    this.stops.settled()
    const { id: destinationId } = destination
    const bodyOf = (segment: RowId): SegmentBody | undefined => this.#records.find((record) => record.segment === segment)?.body
    const state = this.#state
    this.#state = []
    const settlement: Settlement = {
      destinationId,
      done,
      kept,
      remaining,
      records,
      letters: letters?.letters,
      holds,
      system: this.#system,
      bodyOf,
    }
    if (state.length > 0) settlement.state = state
    if (this.#deletions.length === 0) return settlement
    return withoutDeleted(settlement, (...message) => this.#deletions.some((isDeleted) => isDeleted(...message)))
  }

  #record(unit: Unit, results: readonly UnitOutcome[], combined: Combined | null): void {
    this.#hasChanges = true
    if (combined !== null) this.#unrecorded += unit.members.length
    const parts = byPart(unit.members)
    for (const [at, [part, indexes]] of parts.entries()) {
      const record = this.#records[part] as PartRecord
      for (const result of results.slice(unit.recorded)) {
        const request = requestRecord(result, indexes, at === 0)
        if (parts.length > 1) request.gathered = this.#gathered(unit.members, at === 0)
        record.requests.push(request)
      }
      if (combined?.kind === 'delivered') record.delivered.push(...indexes)
      else if (combined?.kind === 'failed') end(record, 'failed', combined.reason, indexes)
    }
    unit.recorded = results.length
    if (combined?.kind === 'delivered') this.#order?.delivered(unit.members as OrderedMember[])
    else if (combined?.kind === 'failed') this.stops.stop(unit.members)
  }

  /** `reads`: whether the messages are read now, to find those that cannot be sent. If they are in memory, that costs nothing. */
  #membersOf({ shipment, bodies }: ClaimedShipment, reads: boolean, senders: number): Member[] {
    const members: Member[] = []
    for (const { origin, segment, indexes, keys } of shipment.parts) {
      const body = bodies.get(segment)
      if (body?.about.sourceId === SYSTEM_SOURCE) this.#system = (this.#system ?? new Set()).add(origin)
      const shared = this.#shared?.find(shipment, origin, segment, body)
      const record = shared?.record ?? newRecord(shipment, origin, segment, body)
      const part = shared?.part ?? this.#records.push(record) - 1
      if (keys !== undefined) for (const [at, index] of indexes.entries()) (record.keys ??= new Map()).set(index, keys[at] as OrderKey)
      const known = reads ? body?.content : body?.parsed
      const contents = shared?.contents ?? (body === undefined ? [] : contentsOf(origin, body, indexes, reads ? 1 : senders))
      shared?.add(indexes)
      const before = members.length
      for (let at = 0; at < indexes.length; at++) {
        const index = indexes[at] as number
        const content = contents[at % contents.length]
        if (known?.isUnreadable) this.#unsent(part, index, 'unreadable')
        else if (content === undefined || content.body.absent.includes(index) || (known && known.items[index] == null))
          this.#unsent(part, index, 'deleted')
        else if (record.keys === undefined) members.push(new Member(shipment, part, content, index))
        else members.push(new OrderedMember(shipment, part, content, index, record.keys.get(index) as OrderKey, this))
      }
      if (members.length === before || shared !== undefined) continue
      this.contents.push(...contents)
      this.#shared?.set(part, record, contents)
    }
    return members
  }

  #unsent(part: number, index: number, why: 'deleted' | 'unreadable'): void {
    const { purged, unreadable } = this.#records[part] as PartRecord
    ;(why === 'deleted' ? purged : unreadable).push(index)
    this.#hasChanges = true
    this.#unrecorded++
  }

  /** Only the first part lists all parts: if each of a thousand parts listed them all, there would be a million entries. */
  #gathered(members: readonly Member[], isFirst: boolean): Gathered {
    return { lead: (members[0] as Member).content.origin, parts: isFirst ? this.#partsOf(members) : null }
  }

  #partsOf(members: readonly Member[]): Part[] {
    return partsOf(this.#records, members)
  }
}
