// The recent health of a destination: the last attempts per URL, in a ring buffer, from which rates and percentiles are computed on
// request. In memory only; the attempts themselves are in the store. Errors and responses may quote messages, so they are kept only while every source of these
// messages is served by the destination, and no longer than the messages.

import { usualSentence } from '../../api/attempt-reasons.ts'
import { isOwnFault, isRefusedUnasked } from '../link/outcome.ts'
import type { Member } from '../shipments/member.ts'
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

/** The most frequent reason why recent attempts failed. */
export interface FrequentFailure extends Failure {
  /** The number of recent attempts that failed with this reason. */
  attempts: number
  /** The start of the last response with this reason; null if there was none, or if it is not kept. */
  responseStart: string | null
}

interface Kept extends Failure {
  responseStart: string | null
  /** When the oldest message that the texts may quote was accepted, in wall time; null if they quote none. */
  receivedAtMs: number | null
}

/** The messages of a request, which its outcome may quote. */
type Quoted = readonly Pick<Member, 'sourceId' | 'receivedAtMs'>[]

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
  #latest: Kept | null = null
  readonly #rings = new Map<string, Ring>()
  /** The wall time of the last deletion of messages. What was sent before may contain them. */
  #deletedAtMs = 0
  /** The last failure with each reason. */
  readonly #reasons: Kept[] = []
  #sourceIds: ReadonlySet<string>
  /** The average duration of successful requests, the latest ones most. */
  #averageMs = Number.POSITIVE_INFINITY

  constructor(sourceIds: ReadonlySet<string>) {
    this.#sourceIds = sourceIds
  }

  get isQuick(): boolean {
    return this.#averageMs < QUICK_MS
  }

  /** Why the latest attempt failed; null if it succeeded. */
  get failure(): Failure | null {
    return this.#latest === null ? null : { reason: this.#latest.reason, error: this.#latest.error }
  }

  /** Adds the results of a request to URLs that are among the targets. Returns whether they say anything about the receiver. */
  judge(results: readonly UnitOutcome[], targets: readonly string[], messages: Quoted): boolean {
    let judged = false
    for (const { url, outcome, startedAtMs } of results) {
      // The result of a URL that has been replaced says nothing about the new URLs.
      if (isOwnFault(outcome) || !targets.includes(url)) continue
      judged ||= !isRefusedUnasked(outcome)
      const { totalMs } = outcome.timings
      const isOk = outcome.verdict === 'success'
      this.#latest = this.#keptOf(outcome, startedAtMs, messages)
      const why = this.#latest === null ? 0 : this.#remember(this.#latest)
      this.attempted(url, isOk, isOk || outcome.status !== null ? totalMs : null, why)
      if (outcome.verdict !== 'success') continue
      this.#averageMs = this.#averageMs === Number.POSITIVE_INFINITY ? totalMs : this.#averageMs + LATEST * (totalMs - this.#averageMs)
    }
    return judged
  }

  #keptOf({ reason, error, responseStart }: UnitOutcome['outcome'], startedAtMs: number, messages: Quoted): Kept | null {
    if (reason === null || error === null) return null
    let receivedAtMs = Number.POSITIVE_INFINITY
    for (const message of messages) receivedAtMs = Math.min(receivedAtMs, message.receivedAtMs)
    const kept = { reason, error, responseStart: responseStart?.slice(0, RESPONSE_CHARACTERS) ?? null, receivedAtMs }
    // Messages of a source that the destination no longer serves may still be pending.
    const mayQuote = startedAtMs > this.#deletedAtMs && messages.every(({ sourceId }) => this.#sourceIds.has(sourceId))
    return mayQuote ? kept : withoutTexts(kept)
  }

  /** Returns the place of its reason, from 1. */
  #remember(kept: Kept): number {
    const found = this.#reasons.findIndex((each) => each.reason === kept.reason)
    const at = found === -1 ? Math.min(this.#reasons.length, MAX_REASONS - 1) : found
    this.#reasons[at] = kept
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
    if (attempts === 0) return null
    const { reason, error, responseStart } = this.#reasons[most - 1] as Kept
    return { reason, error, responseStart, attempts }
  }

  /** Messages were deleted. Errors and responses may repeat them, also those of requests that were started before. */
  messagesDeleted(atMs: number): void {
    this.#deletedAtMs = atMs
    this.#forgetTexts(() => true)
  }

  /** Messages that were accepted before this wall time are no longer kept. */
  forgetBefore(atMs: number): void {
    this.#forgetTexts(({ receivedAtMs }) => receivedAtMs !== null && receivedAtMs < atMs)
  }

  /** The sources that the destination serves now. A caller with access to all of these may have no access to other sources. */
  serve(sourceIds: ReadonlySet<string>): void {
    const before = this.#sourceIds
    this.#sourceIds = sourceIds
    for (const id of before) if (!sourceIds.has(id)) return this.#forgetTexts(() => true)
  }

  #forgetTexts(isGone: (kept: Kept) => boolean): void {
    for (const [at, kept] of this.#reasons.entries()) if (isGone(kept)) this.#reasons[at] = withoutTexts(kept)
    if (this.#latest !== null && isGone(this.#latest)) this.#latest = withoutTexts(this.#latest)
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

function withoutTexts({ reason }: Failure): Kept {
  return { reason, error: usualSentence(reason) ?? 'The attempt failed.', responseStart: null, receivedAtMs: null }
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
