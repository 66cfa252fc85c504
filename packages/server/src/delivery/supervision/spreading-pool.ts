// Several sender threads. Every destination has one of them, so that its connections are reused; one that is the bottleneck is spread over more.

import type { Destination } from '../../store/store.ts'
import type { Work } from '../link/work.ts'
import { DestinationSenders } from './destination-senders.ts'
import { ReplaceableSender } from './replaceable-sender.ts'
import type { PoolOptions, SenderGroup } from './sender-pool.ts'
import { SPREAD_SETTINGS, SpreadPolicy, type SpreadSettings } from './spread-policy.ts'

export interface SpreadingOptions extends Partial<SpreadSettings> {
  /** How often the senders are measured. Default: every 500 ms. */
  sampleMs?: number
  /** How busy a sender is, from 0 to 1, for tests. Default: the utilization of its event loop. */
  utilizationOf?: (name: string) => number
}

const SAMPLE_MS = 500

export class SpreadingPool implements SenderGroup {
  readonly #senders: readonly { name: string; sender: ReplaceableSender }[]
  readonly #byDestination = new Map<string, DestinationSenders>()
  readonly #policy: SpreadPolicy<ReplaceableSender, DestinationSenders>
  readonly #utilizationOf: SpreadingOptions['utilizationOf']
  readonly #timer: NodeJS.Timeout

  constructor({ count, name: prefix, onLost, ...options }: PoolOptions, spreading: SpreadingOptions = {}) {
    const { sampleMs = SAMPLE_MS, utilizationOf, ...settings } = spreading
    this.#policy = new SpreadPolicy({ ...SPREAD_SETTINGS, ...settings })
    this.#utilizationOf = utilizationOf
    this.#senders = Array.from({ length: count }, (_, at) => {
      const name = `${prefix}-${at + 1}`
      const sender: ReplaceableSender = new ReplaceableSender({
        ...options,
        name,
        onOutcome: (work, outcome, isLast) => this.#byDestination.get(work.destination.id)?.answered(work, outcome, isLast),
        onLost: (error, works) => {
          // Others go on with a destination that they share, while this one may have to pause.
          for (const destination of this.#byDestination.values()) destination.remove(sender)
          return onLost(error, works)
        },
      })
      return { name, sender }
    })
    this.#timer = setInterval(() => this.#sample(), sampleMs).unref()
  }

  start(work: Work): void {
    this.#of(work.destination).start(work)
  }

  /** Over how many senders a destination is spread. */
  widthOf(destinationId: string): number {
    return this.#byDestination.get(destinationId)?.senders.length ?? 1
  }

  tell(destinationId: string, command: 'recall' | 'resume'): void {
    this.#byDestination.get(destinationId)?.tell(command)
  }

  forget(destinationId: string): void {
    const destination = this.#byDestination.get(destinationId)
    this.#byDestination.delete(destinationId)
    destination?.forget()
  }

  check(): void {
    for (const { sender } of this.#senders) sender.check()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#senders.map(({ sender }) => sender.close()))
  }

  #sample(): void {
    const utilization = new Map(this.#senders.map(({ name, sender }) => [sender, this.#utilizationOf?.(name) ?? sender.utilization]))
    for (const change of this.#policy.sample(utilization, this.#byDestination.values())) {
      if ('add' in change) change.destination.add(change.add)
      else change.destination.remove(change.remove)
    }
    for (const destination of this.#byDestination.values()) destination.units = 0
  }

  #of(destination: Destination): DestinationSenders {
    let senders = this.#byDestination.get(destination.id)
    if (senders === undefined) {
      const least = this.#senders.reduce((best, each) => (each.sender.destinations < best.sender.destinations ? each : best))
      senders = new DestinationSenders(destination, least.sender)
      this.#byDestination.set(destination.id, senders)
    }
    return senders
  }
}
