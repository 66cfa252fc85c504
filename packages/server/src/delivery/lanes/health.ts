// The recent health of a destination: the last attempts per URL, in a ring buffer, from which rates and percentiles are computed on
// request. In memory only; the attempts themselves are in the store.

import { isOwnFault, isRefusedUnasked } from '../link/outcome.ts'
import type { UnitOutcome } from '../shipments/part-record.ts'

const KEPT = 512
/** A receiver that takes less than this on average answers quickly. */
const QUICK_MS = 20
/** The weight of the latest answer in the average. */
const LATEST = 0.05

export interface Percentiles {
  p50: number
  p95: number
  p99: number
}

export interface HealthSummary {
  /** Share of the recent attempts that succeeded, 0 to 1; null if there was no attempt. */
  success: number | null
  /** Of the recent attempts that were answered: how quickly a connection is refused says nothing about the receiver. */
  latencyMs: Percentiles | null
}

/** Why an attempt failed. */
export interface Failure {
  reason: string
  error: string
}

/** Why most of the recent attempts that failed did so. */
export interface FrequentFailure extends Failure {
  /** The number of recent attempts that failed with this reason. */
  attempts: number
  /** The start of the last response with this reason; null if there was none, or if it may contain what was deleted since. */
  responseStart: string | null
}

/** Distinct reasons of one destination. There are rarely more than ten. */
const MAX_REASONS = 255
const RESPONSE_CHARACTERS = 300

class Ring {
  readonly #ms = new Float32Array(KEPT)
  readonly #ok = new Uint8Array(KEPT)
  /** From 1, in the list of reasons; 0 for none. */
  readonly #reasons = new Uint8Array(KEPT)
  #count = 0

  /** `ms` is null without an answer. */
  add(ok: boolean, ms: number | null, reason: number): void {
    const place = this.#count++ % KEPT
    this.#ms[place] = ms ?? Number.NaN
    this.#ok[place] = ok ? 1 : 0
    this.#reasons[place] = reason
  }

  countReasons(counts: Uint32Array): void {
    for (const reason of this.#reasons) counts[reason] = (counts[reason] as number) + 1
  }

  recent(): { size: number; ok: number; ms: number[] } {
    const size = Math.min(this.#count, KEPT)
    let ok = 0
    for (let at = 0; at < size; at++) ok += this.#ok[at] as number
    return { size, ok, ms: [...this.#ms.subarray(0, size)].filter((ms) => !Number.isNaN(ms)) }
  }
}

export class Health {
  /** Of the latest attempt; null if it succeeded. */
  failure: Failure | null = null
  readonly #rings = new Map<string, Ring>()
  /** The wall time of the last deletion of messages. What was sent before may contain them. */
  #deletedAtMs = 0
  /** The last failure with each reason. */
  readonly #reasons: Omit<FrequentFailure, 'attempts'>[] = []
  /** The average duration of successful requests, the latest ones most. */
  #averageMs = Number.POSITIVE_INFINITY

  get isQuick(): boolean {
    return this.#averageMs < QUICK_MS
  }

  /** Adds the results of a request to URLs that are among the targets. Returns whether they say anything about the receiver. */
  judge(results: readonly UnitOutcome[], targets: readonly string[]): boolean {
    let judged = false
    for (const { url, outcome, startedAtMs } of results) {
      // The result of a URL that has been replaced says nothing about the new URLs.
      if (isOwnFault(outcome) || !targets.includes(url)) continue
      judged ||= !isRefusedUnasked(outcome)
      const { totalMs } = outcome.timings
      const { reason, error } = outcome
      const isOk = outcome.verdict === 'success'
      this.failure = reason === null || error === null ? null : { reason, error }
      const why = this.failure === null ? 0 : this.#remember(this.failure, startedAtMs > this.#deletedAtMs ? outcome.responseStart : null)
      this.attempted(url, isOk, isOk || outcome.status !== null ? totalMs : null, why)
      if (outcome.verdict !== 'success') continue
      this.#averageMs = this.#averageMs === Number.POSITIVE_INFINITY ? totalMs : this.#averageMs + LATEST * (totalMs - this.#averageMs)
    }
    return judged
  }

  /** Returns the place of its reason, from 1. */
  #remember({ reason, error }: Failure, response: string | null): number {
    const found = this.#reasons.findIndex((each) => each.reason === reason)
    const at = found === -1 ? Math.min(this.#reasons.length, MAX_REASONS - 1) : found
    this.#reasons[at] = { reason, error, responseStart: response === null ? null : response.slice(0, RESPONSE_CHARACTERS) }
    return at + 1
  }

  /** Null if no recent attempt failed. */
  get mostFrequentFailure(): FrequentFailure | null {
    if (this.#reasons.length === 0) return null
    const counts = new Uint32Array(MAX_REASONS + 1)
    for (const ring of this.#rings.values()) ring.countReasons(counts)
    let most = 0
    for (let at = 1; at <= this.#reasons.length; at++) if (most === 0 || (counts[at] as number) > (counts[most] as number)) most = at
    const attempts = counts[most] as number
    return attempts === 0 ? null : { ...(this.#reasons[most - 1] as Omit<FrequentFailure, 'attempts'>), attempts }
  }

  /** A deletion reaches responses too, because receivers may repeat what they were sent. */
  forgetResponses(atMs: number): void {
    this.#deletedAtMs = atMs
    for (const each of this.#reasons) each.responseStart = null
  }

  /** `answeredMs` is null without an answer; `reason` is the place of the reason of a failure. */
  attempted(url: string, ok: boolean, answeredMs: number | null, reason = 0): void {
    let ring = this.#rings.get(url)
    if (ring === undefined) {
      ring = new Ring()
      this.#rings.set(url, ring)
    }
    ring.add(ok, answeredMs, reason)
  }

  /** Forgets URLs that are no longer used. */
  keep(urls: readonly string[]): void {
    for (const url of this.#rings.keys()) if (!urls.includes(url)) this.#rings.delete(url)
  }

  of(url: string): HealthSummary {
    return summary([this.#rings.get(url)])
  }

  all(): HealthSummary {
    return summary([...this.#rings.values()])
  }
}

function summary(rings: readonly (Ring | undefined)[]): HealthSummary {
  let size = 0
  let ok = 0
  const ms: number[] = []
  for (const ring of rings) {
    const recent = ring?.recent()
    size += recent?.size ?? 0
    ok += recent?.ok ?? 0
    ms.push(...(recent?.ms ?? []))
  }
  if (size === 0) return { success: null, latencyMs: null }
  if (ms.length === 0) return { success: ok / size, latencyMs: null }
  ms.sort((a, b) => a - b)
  const at = (share: number): number => Math.round((ms[Math.min(ms.length - 1, Math.floor(ms.length * share))] as number) * 100) / 100
  return { success: ok / size, latencyMs: { p50: at(0.5), p95: at(0.95), p99: at(0.99) } }
}
