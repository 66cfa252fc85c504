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

class Ring {
  readonly #ms = new Float32Array(KEPT)
  readonly #ok = new Uint8Array(KEPT)
  #count = 0

  /** `ms` is null without an answer. */
  add(ok: boolean, ms: number | null): void {
    const place = this.#count++ % KEPT
    this.#ms[place] = ms ?? Number.NaN
    this.#ok[place] = ok ? 1 : 0
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
  /** The average duration of successful requests, the latest ones most. */
  #averageMs = Number.POSITIVE_INFINITY

  get isQuick(): boolean {
    return this.#averageMs < QUICK_MS
  }

  /** Adds the results of a request to URLs that are among the targets. Returns whether they say anything about the receiver. */
  judge(results: readonly UnitOutcome[], targets: readonly string[]): boolean {
    let judged = false
    for (const { url, outcome } of results) {
      // The result of a URL that has been replaced says nothing about the new URLs.
      if (isOwnFault(outcome) || !targets.includes(url)) continue
      judged ||= !isRefusedUnasked(outcome)
      const { totalMs } = outcome.timings
      const { reason, error } = outcome
      const isOk = outcome.verdict === 'success'
      this.attempted(url, isOk, isOk || outcome.status !== null ? totalMs : null)
      this.failure = reason === null || error === null ? null : { reason, error }
      if (outcome.verdict !== 'success') continue
      this.#averageMs = this.#averageMs === Number.POSITIVE_INFINITY ? totalMs : this.#averageMs + LATEST * (totalMs - this.#averageMs)
    }
    return judged
  }

  /** `answeredMs` is null without an answer. */
  attempted(url: string, ok: boolean, answeredMs: number | null): void {
    let ring = this.#rings.get(url)
    if (ring === undefined) {
      ring = new Ring()
      this.#rings.set(url, ring)
    }
    ring.add(ok, answeredMs)
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
