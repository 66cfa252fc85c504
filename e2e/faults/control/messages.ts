// The messages of the sources that are changed, and where each must arrive. The configuration changes while they are sent, so for some messages
// it is not known which destinations must get them. It is known if nothing that decides it has changed since all nodes agreed on the configuration.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Arrival, type Receiver, startReceiver } from '../../system/receiver.ts'
import type { Random } from '../system/random.ts'
import { sendBatch } from '../system/send-batch.ts'
import type { Call } from './explain.ts'
import type { State } from './model.ts'
import { EVENT, wasRefused } from './requests.ts'

export interface Sent {
  id: string
  source: string
  user: string
  /** Whether it violates every plan. */
  isBad: boolean
  /** Whether the receiver refuses it, unless it is replayed. */
  isRefused: boolean
  /** The period between two comparisons of the configuration in which it was sent. */
  period: number
  startMs: number
  endMs: number
  /** Null: the answer was lost. */
  status: number | null
}

/** What is known about the configuration during one period. */
export class Period {
  readonly #before: State
  readonly #calls: readonly Call[]

  constructor(before: State, calls: readonly Call[]) {
    this.#before = before
    this.#calls = calls
  }

  /** Whether messages of the source are owed to the destination; undefined if that changed, or may have changed. */
  isRouted(source: string, destination: string): boolean | undefined {
    const decides = ({ operation: { name, does, ...rest } }: Call): boolean => {
      if (name === source) return does === 'create' || does === 'delete'
      if (name !== destination) return false
      return does !== 'restore' && !('fields' in rest && rest.fields['enabled'] === undefined && rest.fields.sources === undefined)
    }
    if (this.#calls.some(decides)) return undefined
    const { sources, enabled } = this.#before.destinations[destination] ?? {}
    return enabled === true && (sources ?? []).includes(source)
  }

  /** Whether messages of the source that violate a plan are quarantined; undefined if that changed, or may have changed. */
  isHeld(source: string): boolean | undefined {
    const plans = Object.entries(this.#before.plans)
    const ofSource = plans.find(([, { sources }]) => sources?.includes(source))
    const decides = ({ operation }: Call): boolean => {
      if (operation.kind === 'sources') return operation.name === source && operation.does === 'delete'
      if (operation.kind !== 'plans') return false
      const named = 'fields' in operation ? operation.fields.sources : 'made' in operation ? operation.made.sources : []
      return operation.name === ofSource?.[0] || (named ?? []).includes(source)
    }
    if (this.#calls.some(decides)) return undefined
    return ofSource?.[1]['mode'] === 'quarantine'
  }
}

export class Messages implements AsyncDisposable {
  readonly sent: Sent[] = []
  readonly periods: Period[] = []
  /** When the receiver accepted each message, by destination and messageId. */
  readonly #arrived = new Map<string, Map<string, number[]>>()
  /** The users of the delete messages that each destination accepted, with the time of the first. */
  readonly #deletes = new Map<string, Map<string, number>>()
  readonly #random: Random
  #receiver: Receiver | undefined
  #last = 0

  constructor(random: Random) {
    this.#random = random
  }

  async start(): Promise<string> {
    this.#receiver = await startReceiver((arrival) => this.#answer(arrival), {
      forgets: true,
      answered: (arrival) => {
        if (arrival.status === 200) this.#add(arrival)
      },
    })
    return this.#receiver.url
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#receiver?.close()
  }

  /** A delete message has no messageId. A refused message in a batch is accepted: the others must not fail with it. */
  #answer({ messages, headers, isBatch }: Arrival): { after: Promise<void>; status?: number } {
    const after = sleep(this.#random.int(5, 40))
    if (this.#random.chance(0.02)) return { after, status: 503 }
    const isRefused = !isBatch && messages[0]?.messageId?.endsWith('r') === true && headers['x-replay'] !== 'true'
    return isRefused ? { after, status: 410 } : { after }
  }

  #add({ path, messages, atMs }: Arrival): void {
    const destination = path.slice(1)
    for (const { messageId, type, userId } of messages) {
      if (type === 'delete') {
        const users = entry(this.#deletes, destination, () => new Map<string, number>())
        if (!users.has(String(userId))) users.set(String(userId), atMs)
      }
      if (messageId === undefined) continue
      entry(
        entry(this.#arrived, destination, () => new Map<string, number[]>()),
        messageId,
        () => [],
      ).push(atMs)
    }
  }

  arrivals(destination: string, id: string): readonly number[] {
    return this.#arrived.get(destination)?.get(id) ?? []
  }

  arrivedAnywhere(id: string): boolean {
    return [...this.#arrived.values()].some((ids) => ids.has(id))
  }

  deleteArrived(destination: string, user: string): number | undefined {
    return this.#deletes.get(destination)?.get(user)
  }

  /** Sends some messages of one source in one call. Returns the status; null if the answer was lost, undefined if the call was not sent. */
  async send(url: string, source: string, key: string, users: readonly string[]): Promise<number | null | undefined> {
    const random = this.#random
    const messages = Array.from({ length: random.int(1, 5) }, () => {
      const isBad = random.chance(0.4)
      const isRefused = random.chance(0.15)
      const id = `${source}.${++this.#last}${isBad ? 'b' : ''}${isRefused ? 'r' : ''}`
      return { id, source, user: random.pick(users), isBad, isRefused, period: this.periods.length, startMs: performance.now() }
    })
    const batch = messages.map(({ id, user, isBad }) => {
      return { type: 'track', messageId: id, userId: user, event: EVENT, properties: { n: isBad ? 'text' : 1 } }
    })
    let status: number | null
    try {
      status = await sendBatch(url, key, batch)
    } catch (error) {
      if (wasRefused(error)) return undefined
      status = null
    }
    const endMs = performance.now()
    for (const message of messages) this.sent.push({ ...message, endMs, status })
    return status
  }

  /** What must become of a message at a destination: it must arrive, it must never arrive, or undefined if that is not known. */
  fate(message: Sent, destination: string): 'arrives' | 'never' | undefined {
    const { source, period, status, isBad } = message
    if (status === null) return undefined
    if (status !== 200) return 'never'
    const known = this.periods[period]
    if (isBad && known?.isHeld(source) !== false) return undefined
    const isRouted = known?.isRouted(source, destination)
    return isRouted === undefined ? undefined : isRouted ? 'arrives' : 'never'
  }

  /** Whether a message was certainly put into quarantine. */
  wasHeld({ isBad, status, period, source }: Sent): boolean {
    return isBad && status === 200 && this.periods[period]?.isHeld(source) === true
  }
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key) ?? make()
  map.set(key, known)
  return known
}
