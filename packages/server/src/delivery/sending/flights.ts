// Units in flight. A unit is one request, which a sender builds and sends to every URL at the same time. Collects the outcomes and counts
// the requests in flight per URL. The lane decides what may be sent and what follows from an outcome.

import { kindOf } from '../../destinations/kinds.ts'
import { hiddenUrl } from '../../secrets/hidden-url.ts'
import type { Destination } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { UNWRITABLE } from '../senders/executor.ts'
import type { Unsent } from '../senders/protocol.ts'
import type { Senders, Work } from '../senders/senders.ts'
import type { Member } from '../shipments/member.ts'
import type { UnitOutcome } from '../shipments/part-record.ts'
import { deliveryIdOf, type Task, type Unit } from '../shipments/task.ts'
import type { Outcome } from './outcome.ts'

export interface FlightDeps {
  senders: Pick<Senders, 'start'>
  clock: Clock
  /** Called when one URL has answered and others have not yet. */
  onAnswer: (flight: Flight) => void
  /** Called when all URLs have answered, never during start(). `slots`: the number of slots that the flight still holds. */
  onAllAnswered: (flight: Flight, slots: number) => void
  /** Called before that if messages of the unit are not sent. `slots`: null if others are, otherwise the flight is over. Never during start(). */
  onUnsent: (flight: Flight, unsent: readonly Unsent[], slots: number | null) => void
  onError: (error: unknown) => void
}

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
  readonly results: UnitOutcome[] = []
  /** The number of URLs that have not answered. Each has a request in flight, which holds a slot. */
  left: number
  /** How long the sender had the unit, until the last answer. */
  senderMs = 0
  /** Whether one URL has accepted it. */
  delivered = false
  /** Whether the lane no longer waits for the URLs that have not answered. */
  trailing = false
  readonly #flights: Flights

  constructor(flights: Flights, destination: Destination, task: Task, unit: Unit, startedAtMs: number, limit: number) {
    this.#flights = flights
    this.destination = destination
    this.task = task
    this.unit = unit
    this.startedAtMs = startedAtMs
    this.limit = limit
    const hasSteps = kindOf(destination).steps(destination) !== null
    this.steps = hasSteps ? this.#first.shipment.urls : null
    this.urls = urlsFor(destination, unit)
    this.left = this.urls.length
  }

  get deliveryId(): string {
    return deliveryIdOf(this.unit)
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

  answered(url: number, outcome: Outcome, waitedMs: number): void {
    this.#flights.answered(this, this.urlAt(url), outcome, waitedMs)
  }

  unsent(unsent: readonly Unsent[], isOver: boolean): void {
    this.#flights.unsent(this, unsent, isOver)
  }

  bug(message: string): void {
    this.#flights.bug(message)
  }

  urlAt(url: number): string {
    return kindOf(this.destination).targets(this.destination)[url] as string
  }

  get #first(): Member {
    return this.unit.members[0] as Member
  }
}

export class Flights {
  readonly #deps: FlightDeps
  readonly #byUrl = new Map<string, number>()

  constructor(deps: FlightDeps) {
    this.#deps = deps
  }

  inFlightAt(url: string): number {
    return this.#byUrl.get(url) ?? 0
  }

  start(destination: Destination, task: Task, unit: Unit, limit: number): void {
    const { senders, clock } = this.#deps
    const flight = new Flight(this, destination, task, unit, clock.wallMs(), limit)
    for (const url of flight.urls) this.#count(flight.urlAt(url), 1)
    try {
      if (flight.urls.length === 0) throw new Error(`destination ${destination.id} has no URL`)
      senders.start(flight)
    } catch (error) {
      this.#deps.onError(error)
      queueMicrotask(() => this.#fail(flight))
    }
  }

  answered(flight: Flight, url: string, outcome: Outcome, waitedMs: number): void {
    this.#count(url, -1)
    flight.results.push({ url, startedAtMs: flight.startedAtMs + waitedMs, outcome, version: flight.destination.version })
    flight.senderMs = waitedMs + outcome.timings.totalMs
    if (--flight.left === 0) this.#deps.onAllAnswered(flight, 1)
    else this.#deps.onAnswer(flight)
  }

  bug(message: string): void {
    this.#deps.onError(new Error(message))
  }

  unsent(flight: Flight, unsent: readonly Unsent[], isOver: boolean): void {
    if (!isOver) return this.#deps.onUnsent(flight, unsent, null)
    for (const url of flight.urls) this.#count(flight.urlAt(url), -1)
    this.#deps.onUnsent(flight, unsent, flight.left)
  }

  /** Ends a flight that could not be started, which is a bug. */
  #fail(flight: Flight): void {
    for (const url of flight.urls) this.#count(flight.urlAt(url), -1)
    const urls = flight.urls.length > 0 ? flight.urls.map((url) => flight.urlAt(url)) : ['']
    flight.results.push(
      ...urls.map((url) => ({ url, startedAtMs: flight.startedAtMs, outcome: UNWRITABLE, version: flight.destination.version })),
    )
    this.#deps.onAllAnswered(flight, urls.length)
  }

  #count(url: string, change: 1 | -1): void {
    const count = this.inFlightAt(url) + change
    if (count > 0) this.#byUrl.set(url, count)
    else this.#byUrl.delete(url)
  }
}

/** The number of requests that a unit needs. */
export function slotsFor(destination: Destination, unit: Unit): number {
  return Math.max(1, urlsFor(destination, unit).length)
}

const allOf = new WeakMap<readonly string[], readonly number[]>()

/**
 * The destination's current URLs that are still to be tried, as indexes; all of them if the URLs were replaced. Compares URLs without
 * query values, which the store does not keep.
 */
function urlsFor(destination: Destination, unit: Unit): readonly number[] {
  const { shipment } = unit.members[0] as Member
  const targets = kindOf(destination).targets(destination)
  let all = allOf.get(targets)
  if (all === undefined) {
    all = targets.map((_, at) => at)
    allOf.set(targets, all)
  }
  if (shipment.urls === null) return all
  const pending = new Set(shipment.urls.map(hiddenUrl))
  const left = all.filter((at) => pending.has(hiddenUrl(targets[at] as string)))
  return left.length > 0 ? left : all
}
