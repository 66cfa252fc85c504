// Units in flight. A unit is one request, which a sender builds and sends to every URL at the same time. Collects the outcomes, counts what is in
// flight, and keeps its slots. The lane decides what may be sent and what follows from an outcome. Invariant: a flight holds one slot for
// each URL that has not answered.

import { kindOf } from '../../destinations/kinds.ts'
import type { DeliveryStore, Destination } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import type { IngestPacing } from '../../timing/ingest-pacing.ts'
import { type Outcome, UNWRITABLE } from '../link/outcome.ts'
import type { Unsent } from '../link/protocol.ts'
import type { Work } from '../link/work.ts'
import { type Member, OrderedMember } from '../shipments/member.ts'
import type { UnitOutcome } from '../shipments/part-record.ts'
import type { Task } from '../shipments/task.ts'
import type { Unit } from '../shipments/unit.ts'
import type { Senders } from '../supervision/senders.ts'
import type { Slots, SlotUser } from './slots.ts'
import { Slowdown } from './slowdown.ts'

export interface FlightsDeps {
  store: Pick<DeliveryStore, 'orderedUntilMs'>
  senders: Pick<Senders, 'of'>
  slots: Slots
  clock: Clock
  pacing: Pick<IngestPacing, 'used'>
  /** Called for every report about a flight, never during start(). `unsent`: the messages that are not sent, if the report is about these. */
  onReport: (flight: Flight, unsent: readonly Unsent[] | null) => void
  /** Called after that: there may be room for other flights. */
  onRoom: () => void
  onError: (error: unknown) => void
}

/** The most requests to URLs that have not answered although another URL has accepted the message. Above that, their deliveries count as in flight. */
const MAX_TRAILING = 500

export class Flight implements Work {
  readonly destination: Destination
  readonly task: Task
  readonly unit: Unit
  readonly startedAtMs: number
  readonly urls: readonly number[]
  /** For an integration: the ids of the subscriptions that succeeded before; null for none. */
  readonly steps: readonly string[] | null
  readonly keepAnswer = false
  readonly limit: number
  /** Null unless its messages are delivered in order, and another process could deliver them later. */
  readonly notAfterMs: number | null
  readonly isLate: boolean
  readonly results: UnitOutcome[] = []
  /** The number of URLs that have not answered. */
  left: number
  /** How long the sender had the unit, until the last answer. */
  senderMs = 0
  /** Whether one URL has accepted it. */
  delivered = false
  /** Whether the lane no longer waits for the URLs that have not answered. */
  trailing = false
  readonly #flights: Flights

  constructor(flights: Flights, destination: Destination, task: Task, unit: Unit, startedAtMs: number, limit: number) {
    this.notAfterMs = unit.members[0] instanceof OrderedMember ? flights.orderedUntilMs : null
    this.isLate = unit.isLate
    this.#flights = flights
    this.destination = destination
    this.task = task
    this.unit = unit
    this.startedAtMs = startedAtMs
    this.limit = limit
    const { progress } = this.#first.shipment
    this.steps = kindOf(destination).stepsDone(progress)
    this.urls = targetsLeft(destination, this.#first)
    this.left = this.urls.length
  }

  get isBatch(): boolean {
    return this.unit.isBatch
  }

  get attempt(): number {
    return this.#first.shipment.attempt + 1
  }

  get replay(): boolean {
    return this.#first.shipment.replay
  }

  get messages(): readonly Member[] {
    return this.unit.members
  }

  /** Whether no URL is still to answer. */
  get isOver(): boolean {
    return this.left === 0
  }

  answered(url: number, outcome: Outcome, waitedMs: number): void {
    const target = this.urlAt(url)
    this.#flights.add(target, -1)
    this.results.push({ url: target, startedAtMs: this.startedAtMs + waitedMs, outcome, version: this.destination.version })
    this.senderMs = waitedMs + outcome.timings.totalMs
    this.#flights.report(this, 1, null)
  }

  unsent(unsent: readonly Unsent[], isOver: boolean): void {
    if (isOver) for (const url of this.urls) this.#flights.add(this.urlAt(url), -1)
    this.#flights.report(this, isOver ? this.left : 0, unsent)
  }

  bug(message: string): void {
    this.#flights.onBug(message)
  }

  urlAt(url: number): string {
    return kindOf(this.destination).targets(this.destination)[url] as string
  }

  get #first(): Member {
    return this.unit.members[0] as Member
  }
}

export class Flights {
  /** The number of units that were handed to the sender and are not answered. Only read from outside, like the next one. */
  count = 0
  /** How many of them are retries. */
  retries = 0
  readonly #deps: FlightsDeps
  readonly #slowdown: Slowdown
  readonly #byUrl = new Map<string, number>()
  #trailing = 0

  constructor(deps: FlightsDeps) {
    this.#deps = deps
    this.#slowdown = new Slowdown(deps.pacing)
  }

  get areSlowed(): boolean {
    return this.#slowdown.isSlowed
  }

  get orderedUntilMs(): number | null {
    const untilMs = this.#deps.store.orderedUntilMs()
    return untilMs === Number.POSITIVE_INFINITY ? null : untilMs
  }

  /** The number of requests to a URL that are in flight. */
  at(url: string): number {
    return this.#byUrl.get(url) ?? 0
  }

  /**
   * Counts requests, and keeps no list of the flights: that would be one more old object that refers to every new one, which the garbage
   * collector has to follow.
   */
  add(url: string, change: 1 | -1): void {
    const count = this.at(url) + change
    if (count > 0) this.#byUrl.set(url, count)
    else this.#byUrl.delete(url)
  }

  /** Takes slots for the next unit, of which `first` is a message; false if there are too few. The user of the slots is then called when there are some. */
  takeSlots(user: SlotUser, destination: Destination, first: Member): boolean {
    return this.#deps.slots.take(user, Math.max(1, targetsLeft(destination, first).length))
  }

  /** `watched`: whether it may be the request by which a slowdown is measured. */
  start(destination: Destination, task: Task, unit: Unit, limit: number, watched: boolean): void {
    const { senders, clock, onError } = this.#deps
    const flight = new Flight(this, destination, task, unit, clock.wallMs(), limit)
    for (const url of flight.urls) this.add(flight.urlAt(url), 1)
    this.count++
    if (task.retry) this.retries++
    if (watched) this.#slowdown.started(unit)
    try {
      if (flight.urls.length === 0) throw new Error(`destination ${destination.id} has no URL`)
      senders.of(destination).start(flight)
    } catch (error) {
      onError(error)
      queueMicrotask(() => this.#fail(flight))
    }
  }

  onBug(message: string): void {
    this.#deps.onError(new Error(message))
  }

  /** `ended`: how many of its requests have ended. */
  report(flight: Flight, ended: number, unsent: readonly Unsent[] | null): void {
    const { slots, onReport, onRoom, onError } = this.#deps
    const { trailing } = flight
    flight.left -= ended
    if (ended > 0) this.#slowdown.answered(flight.unit, flight.senderMs)
    if (trailing) this.#trailing -= ended
    else if (flight.isOver) this.#leave(flight)
    try {
      onReport(flight, unsent)
    } catch (error) {
      // A bug in the lane or in a listener must not stop this lane or the process.
      onError(error)
    }
    if (ended > 0) slots.release(ended, trailing)
    if (!flight.isOver && flight.delivered && !trailing) this.#trail(flight)
    onRoom()
  }

  /** After a success, nothing waits for the other URLs. */
  #trail(flight: Flight): void {
    const { left } = flight
    if (this.#trailing + left > MAX_TRAILING || !this.#deps.slots.trail(left)) return
    flight.trailing = true
    this.#trailing += left
    this.#leave(flight)
  }

  #leave({ task }: Flight): void {
    this.count--
    if (task.retry) this.retries--
  }

  /** Ends a flight that could not be started, which is a bug. */
  #fail(flight: Flight): void {
    for (const url of flight.urls) this.add(flight.urlAt(url), -1)
    const urls = flight.urls.length > 0 ? flight.urls.map((url) => flight.urlAt(url)) : ['']
    flight.results.push(
      ...urls.map((url) => ({ url, startedAtMs: flight.startedAtMs, outcome: UNWRITABLE, version: flight.destination.version })),
    )
    flight.left = urls.length
    this.report(flight, urls.length, null)
  }
}

function targetsLeft(destination: Destination, { shipment }: Member): readonly number[] {
  return kindOf(destination).targetsLeft(destination, shipment.progress)
}
