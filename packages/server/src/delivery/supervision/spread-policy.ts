// Decides when a destination is spread over one more sender thread, and when over one fewer. It is spread if its senders are all busy for some time and
// another one has room, so only a destination that is the bottleneck loses the reuse of connections in one thread.
// This is undone only after fewer threads could have handled the load for a longer time, so it does not alternate. Pure except
// for its own counts: the pool measures and carries out.

export interface SpreadSettings {
  /** A sender is busy from this utilization on, from 0 to 1. */
  busyFrom: number
  /** A sender up to this utilization can take a part of a destination. */
  roomUpTo: number
  /** If n senders of a destination together have a utilization of at most this × (n − 1), one of them is not needed. */
  calmUpTo: number
  /** For how many samples in a row the senders of a destination have to be busy, or calm. */
  busySamples: number
  calmSamples: number
  /** The fewest units in a sample of a destination that is spread. A thread that starts is busy, too. */
  minUnits: number
}

/** With a sample every half second: busy for 2 s, calm for 10 s. */
export const SPREAD_SETTINGS: SpreadSettings = {
  busyFrom: 0.85,
  roomUpTo: 0.5,
  calmUpTo: 0.6,
  busySamples: 4,
  calmSamples: 20,
  minUnits: 16,
}

/** A destination, as the policy sees it. */
export interface Spreadable<S> {
  readonly senders: readonly S[]
  /** The number of units since the last sample. */
  readonly units: number
  /** The most senders that it may have. */
  readonly widest: number
}

export type SpreadChange<S, D> = { destination: D; add: S } | { destination: D; remove: S }

export class SpreadPolicy<S, D extends Spreadable<S>> {
  readonly #settings: SpreadSettings
  /** For how many samples each sender has been busy. */
  readonly #busy = new Map<S, number>()
  readonly #calm = new WeakMap<D, number>()

  constructor(settings: SpreadSettings = SPREAD_SETTINGS) {
    this.#settings = settings
  }

  /** `utilization`: of every sender, since the last sample. */
  sample(utilization: ReadonlyMap<S, number>, destinations: Iterable<D>): SpreadChange<S, D>[] {
    const { busyFrom, busySamples } = this.#settings
    for (const [sender, used] of utilization) this.#busy.set(sender, used < busyFrom ? 0 : (this.#busy.get(sender) ?? 0) + 1)
    const changes: SpreadChange<S, D>[] = []
    const bottlenecks: D[] = []
    for (const destination of destinations) {
      const { senders } = destination
      if (senders.every((sender) => (this.#busy.get(sender) ?? 0) >= busySamples)) bottlenecks.push(destination)
      if (senders.length > 1 && this.#isCalm(destination, utilization)) changes.push({ destination, remove: senders.at(-1) as S })
    }
    return [...changes, ...this.#spread(bottlenecks, utilization)]
  }

  #isCalm(destination: D, utilization: ReadonlyMap<S, number>): boolean {
    const { calmUpTo, calmSamples } = this.#settings
    const { senders, widest } = destination
    if (widest < senders.length) return true
    const used = senders.reduce((sum, sender) => sum + (utilization.get(sender) ?? 0), 0)
    const calm = used <= calmUpTo * (senders.length - 1) ? (this.#calm.get(destination) ?? 0) + 1 : 0
    this.#calm.set(destination, calm < calmSamples ? calm : 0)
    return calm >= calmSamples
  }

  /** Each busy sender gives away a part of the destination that gives it most to do; each sender with room gets one. */
  #spread(bottlenecks: readonly D[], utilization: ReadonlyMap<S, number>): SpreadChange<S, D>[] {
    const { roomUpTo, minUnits } = this.#settings
    const changes: SpreadChange<S, D>[] = []
    const free = [...utilization].filter(([, used]) => used <= roomUpTo).sort(([, one], [, other]) => one - other)
    const relieved = new Set<S>()
    for (const destination of [...bottlenecks].sort((one, other) => other.units - one.units)) {
      const { senders, units, widest } = destination
      if (units < minUnits || widest <= senders.length || senders.some((sender) => relieved.has(sender))) continue
      const [to] = free.splice(0, 1)
      if (to === undefined) break
      for (const sender of senders) {
        relieved.add(sender)
        this.#busy.set(sender, 0)
      }
      changes.push({ destination, add: to[0] })
    }
    return changes
  }
}
