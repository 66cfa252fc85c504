// The destinations of the system under fault, one for each way to deliver: one by one, in batches, with a transformation, with dead
// letters, and through an integration. For each message it is known in advance how its delivery to each of them must end. A tally
// records which messages a receiver accepted and when; it keeps a few bytes per message, so that hours of traffic fit in memory.

import { setTimeout as passing } from 'node:timers/promises'
import { type Gateway, startGateway } from '../fixtures/recording-gateway.ts'
import { type Answer, type Arrival, type Behaviour, type Receiver, startReceiver } from '../receiver.ts'
import { numberOf } from './numbered-message.ts'
import type { Random } from './random.ts'

export type FinalState = 'delivered' | 'failed' | 'cancelled'

const isDropped = (nth: number): boolean => nth % 10 === 7
const isRefused = (nth: number): boolean => nth % 10 === 3

/** The messages that a receiver accepted: answered with 2xx, in full. */
export class Tally {
  /** The times in performance.now(), one or several. */
  readonly #times = new Map<string, number | number[]>()
  readonly #watchers = new Set<() => void>()
  /** Called for each copy. */
  onAccepted: (messageId: string, atMs: number) => void = () => {}

  add(messageId: string, atMs: number): void {
    this.onAccepted(messageId, atMs)
    const before = this.#times.get(messageId)
    this.#times.set(messageId, before === undefined ? atMs : typeof before === 'number' ? [before, atMs] : [...before, atMs])
  }

  notify(): void {
    for (const watcher of this.#watchers) watcher()
  }

  /** Calls it whenever something arrived, until the returned function is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  get size(): number {
    return this.#times.size
  }

  has(messageId: string): boolean {
    return this.#times.has(messageId)
  }

  ids(): IterableIterator<string> {
    return this.#times.keys()
  }

  /** Messages that were accepted more than once, with the time of each copy. */
  *repeated(): Iterable<[messageId: string, atMs: number[]]> {
    for (const [id, times] of this.#times) if (typeof times !== 'number') yield [id, times]
  }
}

export interface TalliedDestination {
  name: string
  id: string
  tally: Tally
  receiver: Pick<Receiver, 'goAway' | 'comeBack' | 'answer'>
  /** How the delivery of a message must end; undefined: it is not owed to this destination. */
  expected: (nth: number) => FinalState | undefined
  /** The most messages in flight to it, from all nodes. */
  inFlight: number
}

interface Planned {
  name: string
  settings: object
  expected: TalliedDestination['expected']
  behave?: (messageIds: readonly string[]) => Answer | undefined
  /** The messages that a request is about. */
  idsOf?: (arrival: Arrival) => string[]
  batchSize?: number
  isWrong?: (arrival: Arrival) => string | undefined
}

const RETRY = { initialMs: 200, maxMs: 2_000 }
const MAX_IN_FLIGHT = 20
const BATCH = 15
const SLACK_URL = 'https://hooks.slack.com/services/T000/B000/sample'
const TRANSFORMATION = `export default (message) => message.properties.n % 10 === 7 ? null : { ...message, properties: { n: message.properties.n, transformed: true } }`

export const LETTERS = 'dead letters'

const PLANNED: readonly Planned[] = [
  { name: 'one by one', settings: {}, expected: () => 'delivered' },
  { name: 'in batches', settings: { batch: { size: BATCH, lingerMs: 20 } }, batchSize: BATCH, expected: () => 'delivered' },
  {
    name: 'transformed',
    settings: { transformation: { code: TRANSFORMATION } },
    expected: (nth) => (isDropped(nth) ? 'cancelled' : 'delivered'),
    isWrong: ({ messages: [message] }) => {
      const { properties } = message as { properties?: { transformed?: boolean } }
      return properties?.transformed === true ? undefined : `${message?.messageId} arrived without its transformation`
    },
  },
  {
    // Attached to no source: it gets only the dead letters of the next one.
    name: LETTERS,
    settings: { batch: { size: BATCH, lingerMs: 20 } },
    batchSize: BATCH,
    expected: (nth) => (isRefused(nth) ? 'delivered' : undefined),
    idsOf: ({ messages }) => messages.map(({ message }) => (message as { messageId: string }).messageId),
  },
  {
    name: 'refusing some',
    settings: {},
    expected: (nth) => (isRefused(nth) ? 'failed' : 'delivered'),
    behave: ([id = '']) => (isRefused(numberOf(id)) ? { status: 410 } : undefined),
  },
]

export interface DestinationsOptions {
  api: <T>(path: string, init?: { method?: string; body?: unknown }) => Promise<T>
  sourceId: string
  random: Random
  /** If missing, there is no integration. */
  gateway: TalliedGateway | undefined
  /** Collects what receivers found wrong with a request. */
  problems: string[]
}

export interface TalliedGateway extends AsyncDisposable {
  gateway: Gateway
  tally: Tally
}

/** The internet of the integrations. The text of a Slack message is the messageId. */
export async function startTalliedGateway(random: Random): Promise<TalliedGateway> {
  const tally = new Tally()
  const flaky = failingNowAndThen(random)
  const idOf = (body: string): string => (JSON.parse(body) as { text: string }).text
  const gateway = await startGateway(({ body }) => flaky([idOf(body)]), {
    forgets: true,
    answered({ status, bytes }) {
      if (status !== 200) return
      tally.add(idOf(bytes.toString()), performance.now())
      tally.notify()
    },
  })
  return { gateway, tally, [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() }
}

/** Creates all destinations, the dead-letter destination before the one that names it. */
export async function startDestinations(options: DestinationsOptions, started: AsyncDisposableStack): Promise<TalliedDestination[]> {
  const { api, sourceId, random, gateway, problems } = options
  const create = async (body: object): Promise<string> =>
    (await api<{ id: string }>('/destinations', { method: 'POST', body: { retry: RETRY, maxInFlight: MAX_IN_FLIGHT, ...body } })).id
  const made: TalliedDestination[] = []
  let deadLetter: string | undefined
  for (const planned of PLANNED) {
    const { name, settings, expected, batchSize = 1 } = planned
    const tally = new Tally()
    const receiver = started.use(await startTalliedReceiver(planned, { tally, random, problems }))
    const sourceIds = name === LETTERS ? [] : [sourceId]
    const letters = name === 'refusing some' ? { deadLetter } : {}
    const id = await create({ name, sourceIds, urls: [receiver.url], ...settings, ...letters })
    if (name === LETTERS) deadLetter = id
    made.push({ name, id, tally, receiver, expected, inFlight: MAX_IN_FLIGHT * batchSize })
  }
  if (gateway !== undefined) {
    const mapping = { url: SLACK_URL, channel: '#orders', text: { '@template': '{{messageId}}' } }
    const subscriptions = [{ name: 'Post', action: 'postToChannel', subscribe: 'type = "track"', mapping, enabled: true }]
    const name = 'integration'
    const id = await create({ name, sourceIds: [sourceId], type: 'integration', integration: 'actions-slack', settings: {}, subscriptions })
    const { tally, gateway: receiver } = gateway
    made.push({ name, id, tally, receiver: receiver as unknown as Receiver, expected: () => 'delivered', inFlight: MAX_IN_FLIGHT })
  }
  return made
}

function startTalliedReceiver(
  { behave = () => undefined, idsOf = messageIds, isWrong }: Planned,
  { tally, random, problems }: { tally: Tally; random: Random; problems: string[] },
): Promise<Receiver> {
  const flaky = failingNowAndThen(random)
  const answer: Behaviour = (arrival) => {
    const wrong = isWrong?.(arrival)
    if (wrong !== undefined) problems.push(wrong)
    const ids = idsOf(arrival)
    return behave(ids) ?? flaky(ids)
  }
  return startReceiver(answer, {
    forgets: true,
    answered(arrival) {
      if (arrival.status !== 200) return
      for (const id of idsOf(arrival)) tally.add(id, performance.now())
      tally.notify()
    },
  })
}

function messageIds({ messages }: Arrival): string[] {
  return messages.flatMap(({ messageId }) => (messageId === undefined ? [] : [messageId]))
}

/** Answers as slowly as a distant server, so that something is always in flight, and fails now and then, so that something always waits for a retry. */
function failingNowAndThen(random: Random): (ids: readonly string[]) => Answer {
  return () => {
    const after = passing(random.int(5, 60))
    return random.chance(0.02) ? { after, status: 503 } : { after }
  }
}
