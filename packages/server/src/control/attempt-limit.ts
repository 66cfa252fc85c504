// Slows down guessing of tokens, by the address that guesses: some failures are free, then each costs a wait. When there
// are many failures in all, no address has more than one free. An address without failures of its own is never made to
// wait, whatever others do: so nobody can lock another out. The same wrong token again is no new guess but a program that
// was not told of a change, and costs nothing. Memory is bounded; the oldest failures are forgotten first.

import { isIP } from 'node:net'

export interface AttemptLimitOptions {
  /** Milliseconds that never go back. */
  nowMs: () => number
  maxAddresses?: number
}

/** What one failure costs an address, and how much of that it may owe before it has to wait. */
const USUAL = { costMs: 10_000, creditMs: 95_000 }
const TIGHT = { costMs: 60_000, creditMs: 0 }
/** In all: this many at once, and this many a second after. */
const OVERALL_BURST = 200
const OVERALL_PER_SECOND = 1
const MAX_ADDRESSES = 10_000
const REMEMBERED_GUESSES = 8

interface Failures {
  /** Until when they are paid for. */
  paidMs: number
  /** The last of them, by their fingerprints. */
  guesses: string[]
}

export class AttemptLimit {
  readonly #nowMs: () => number
  readonly #maxAddresses: number
  /** By address, in the order of the last failure. */
  readonly #failures = new Map<string, Failures>()
  #overall = OVERALL_BURST
  #overallAtMs: number

  constructor({ nowMs, maxAddresses = MAX_ADDRESSES }: AttemptLimitOptions) {
    this.#nowMs = nowMs
    this.#maxAddresses = maxAddresses
    this.#overallAtMs = nowMs()
  }

  /** How long the address has to wait before what it sends is looked at; 0: not at all. */
  waitMs(address: string): number {
    const failures = this.#failures.get(groupOf(address))
    if (failures === undefined) return 0
    return Math.max(0, failures.paidMs - this.#nowMs() - this.#rule().creditMs)
  }

  /** `guess` tells one wrong token from another, without being it. False when it was tried from there before. */
  failed(address: string, guess: string): boolean {
    const group = groupOf(address)
    const before = this.#failures.get(group)
    if (before?.guesses.includes(guess)) return false
    const paidMs = Math.max(before?.paidMs ?? 0, this.#nowMs()) + this.#rule().costMs
    this.#failures.delete(group)
    if (this.#failures.size >= this.#maxAddresses) this.#forgetOldest()
    this.#failures.set(group, { paidMs, guesses: [...(before?.guesses ?? []), guess].slice(-REMEMBERED_GUESSES) })
    this.#overall = Math.max(0, this.#overall - 1)
    return true
  }

  get size(): number {
    return this.#failures.size
  }

  #rule(): typeof USUAL {
    this.#refill()
    return this.#overall < 1 ? TIGHT : USUAL
  }

  #refill(): void {
    const nowMs = this.#nowMs()
    this.#overall = Math.min(OVERALL_BURST, this.#overall + ((nowMs - this.#overallAtMs) / 1_000) * OVERALL_PER_SECOND)
    this.#overallAtMs = nowMs
  }

  #forgetOldest(): void {
    const oldest = this.#failures.keys().next()
    if (!oldest.done) this.#failures.delete(oldest.value)
  }
}

/** One machine has all of a /64 of IPv6, and can send from any address of it; an IPv4 address in IPv6 form is its own. */
function groupOf(address: string): string {
  if (isIP(address) !== 6 || address.includes('.')) return address
  const [head = '', tail] = (address.split('%', 1)[0] as string).split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
