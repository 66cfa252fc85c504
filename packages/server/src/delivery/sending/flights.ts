// Units in flight. A unit is one request, created once and sent to every URL at the same time. Collects the outcomes and counts the
// requests in flight per URL. The lane decides what may be sent and what follows from an outcome.

import { kindOf } from '../../destinations/kinds.ts'
import { hiddenUrl } from '../../secrets/hidden-url.ts'
import type { Destination, Shipment } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { deliveryIdOf, jsonOf, type Member, type Task, traceOf, type Unit, type UnitOutcome } from '../shipments/task.ts'
import type { Sender } from './attempt.ts'
import { type Outcome, REASONS } from './outcome.ts'

export interface Flight {
  task: Task
  unit: Unit
  deliveryId: string
  results: UnitOutcome[]
  /** The number of URLs that have not answered. Each has a request in flight, which holds a slot. */
  left: number
  /** Whether one URL has accepted it. */
  delivered: boolean
  /** Whether the lane no longer waits for the URLs that have not answered. */
  trailing: boolean
}

export interface FlightDeps {
  sender: Sender
  clock: Clock
  /** Called when one URL has answered and others have not yet. */
  onAnswer: (flight: Flight) => void
  /** Called when all URLs have answered, never during start(). `slots`: the number of slots that the flight still holds. */
  onAllAnswered: (flight: Flight, slots: number) => void
  onError: (error: unknown) => void
}

/** The outcome of a request that could not be created, which is a bug. It is retried like a failure: the message is not lost, and there is no loop. */
export const UNWRITABLE: Outcome = {
  verdict: REASONS.internal_error[0],
  status: null,
  reason: 'internal_error',
  error: REASONS.internal_error[1],
  address: null,
  timings: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 },
  retryAfterMs: null,
  responseStart: null,
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

  start(destination: Destination, task: Task, unit: Unit): void {
    const { shipment } = unit.members[0] as Member
    const urls = urlsFor(destination, unit)
    const flight: Flight = {
      task,
      unit,
      deliveryId: deliveryIdOf(unit),
      results: [],
      left: urls.length,
      delivered: false,
      trailing: false,
    }
    try {
      this.#send(flight, destination, shipment, urls)
    } catch (error) {
      this.#deps.onError(error)
      const startedAtMs = this.#deps.clock.wallMs()
      flight.results = (urls.length > 0 ? urls : ['']).map((url) => ({ url, startedAtMs, outcome: UNWRITABLE }))
      queueMicrotask(() => this.#deps.onAllAnswered(flight, slotsFor(destination, unit)))
    }
  }

  #send(flight: Flight, destination: Destination, shipment: Shipment, urls: readonly string[]): void {
    const { sender, clock } = this.#deps
    const { unit, deliveryId } = flight
    if (urls.length === 0) throw new Error(`destination ${destination.id} has no URL`)
    const startedAtMs = clock.wallMs()
    const about = { id: deliveryId, attempt: shipment.attempt + 1, replay: shipment.replay, atMs: startedAtMs, trace: traceOf(unit) }
    const kind = kindOf(destination)
    const { headers, body } = kind.request(destination, unit.members.map(jsonOf), unit.isBatch, about)
    const { timeoutMs } = destination
    const verdictOf = kind.verdicts(destination)
    // No async function here: this is the hottest path, and each would add a promise per attempt.
    for (const url of urls) {
      this.#byUrl.set(url, this.inFlightAt(url) + 1)
      void sender
        .send({ url, headers, body, timeoutMs, verdictOf })
        .then((outcome) => this.#answered(flight, { url, startedAtMs, outcome }))
    }
  }

  #answered(flight: Flight, result: UnitOutcome): void {
    const others = this.inFlightAt(result.url) - 1
    if (others > 0) this.#byUrl.set(result.url, others)
    else this.#byUrl.delete(result.url)
    flight.results.push(result)
    if (--flight.left === 0) this.#deps.onAllAnswered(flight, 1)
    else this.#deps.onAnswer(flight)
  }
}

/** The number of requests that a unit needs. */
export function slotsFor(destination: Destination, unit: Unit): number {
  return Math.max(1, urlsFor(destination, unit).length)
}

/** The destination's current URLs that are still to be tried; all of them if the URLs were replaced. Compares URLs without query values, which the store does not keep. */
function urlsFor(destination: Destination, unit: Unit): readonly string[] {
  const { shipment } = unit.members[0] as Member
  const all = kindOf(destination).targets(destination)
  if (shipment.urls === null) return all
  const pending = new Set(shipment.urls.map(hiddenUrl))
  const left = all.filter((url) => pending.has(hiddenUrl(url)))
  return left.length > 0 ? left : all
}
