// Rate limit for guessing tokens, per network: some failures are free, then each costs a wait. When there are many failures in total, each
// network has only one free failure. A network without failures never waits, so attackers elsewhere cannot lock anybody out. IPv6 networks
// are counted in three sizes, because a customer of a provider usually has a /56 or a /48 and could send each guess from another /64 of it.
// Repeating the same wrong token costs nothing: that is a program with an outdated token. Memory is bounded; the oldest failures are
// forgotten first.

import { isIP } from 'node:net'

export interface AttemptLimitOptions {
  /** A monotonic clock in milliseconds. */
  nowMs: () => number
  maxAddresses?: number
}

/** The cost of one failure, and how much cost a network may accumulate before it has to wait. */
const USUAL = { costMs: 10_000, creditMs: 95_000 }
const TIGHT = { costMs: 60_000, creditMs: 0 }
/** Failures of all networks together: a burst of this many, refilled at this rate. */
const OVERALL_BURST = 200
const OVERALL_PER_SECOND = 1
const MAX_ADDRESSES = 10_000
const REMEMBERED_GUESSES = 8
/** Smallest network first. A larger network may have several customers, so a failure costs it only 1/share. */
const IPV6_NETWORKS = [
  { bits: 64, share: 1 },
  { bits: 56, share: 4 },
  { bits: 48, share: 16 },
]

interface Failures {
  /** The time until which the accumulated cost lasts. */
  costUntilMs: number
  /** Fingerprints of the most recent wrong tokens. */
  guesses: string[]
}

export class AttemptLimit {
  readonly #nowMs: () => number
  readonly #maxAddresses: number
  /** One map per size of network, ordered by the last failure. They are separate so that failures from many small networks do not evict a large one. */
  readonly #failures = IPV6_NETWORKS.map(() => new Map<string, Failures>())
  #overall = OVERALL_BURST
  #overallAtMs: number

  constructor({ nowMs, maxAddresses = MAX_ADDRESSES }: AttemptLimitOptions) {
    this.#nowMs = nowMs
    this.#maxAddresses = maxAddresses
    this.#overallAtMs = nowMs()
  }

  /** How long the address has to wait before its token is checked; 0 if it does not have to wait. */
  waitMs(address: string): number {
    const costUntilMs = networksOf(address).map((network, size) => this.#failures[size]?.get(network)?.costUntilMs ?? 0)
    const latestMs = Math.max(...costUntilMs)
    return latestMs === 0 ? 0 : Math.max(0, latestMs - this.#nowMs() - this.#rule().creditMs)
  }

  /** Counts a failure. `guess` is a fingerprint of the wrong token. Returns false if the same token failed from this network before. */
  failed(address: string, guess: string): boolean {
    const networks = networksOf(address)
    if (this.#failures[0]?.get(networks[0] as string)?.guesses.includes(guess)) return false
    const { costMs } = this.#rule()
    for (const [size, network] of networks.entries()) this.#charge(size, network, guess, costMs)
    this.#overall = Math.max(0, this.#overall - 1)
    return true
  }

  /** The largest number of networks of one size in memory. */
  get size(): number {
    return Math.max(...this.#failures.map(({ size }) => size))
  }

  #charge(size: number, network: string, guess: string, costMs: number): void {
    const failures = this.#failures[size] as Map<string, Failures>
    const before = failures.get(network)
    const costUntilMs = Math.max(before?.costUntilMs ?? 0, this.#nowMs()) + costMs / (IPV6_NETWORKS[size]?.share ?? 1)
    failures.delete(network)
    if (failures.size >= this.#maxAddresses) {
      const oldest = failures.keys().next()
      if (!oldest.done) failures.delete(oldest.value)
    }
    failures.set(network, { costUntilMs, guesses: [...(before?.guesses ?? []), guess].slice(-REMEMBERED_GUESSES) })
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
}

/** The networks in which an address is counted, smallest first. An IPv4 address, also in IPv6 form, is its own network. */
function networksOf(address: string): string[] {
  if (isIP(address) !== 6 || address.includes('.')) return [address]
  const [head = '', tail] = (address.split('%', 1)[0] as string).split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right]
  const digits = groups.map((group) => group.padStart(4, '0').toLowerCase()).join('')
  return IPV6_NETWORKS.map(({ bits }) => `${digits.slice(0, bits / 4)}/${bits}`)
}
