// The destinations of the system under fault, one for each way to deliver: one by one, in batches, with a transformation, with dead
// letters, in order, and through an integration. For each message it is known in advance how its delivery to each of them must end. A tally
// records which messages a receiver accepted and when; it keeps a few bytes per message, so that hours of traffic fit in memory.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Gateway, startGateway } from '../../integrations/gateway/recording-gateway.ts'
import { type Answer, type Arrival, type Behaviour, type Receiver, startReceiver } from '../../system/receiver.ts'
import { BY_ACCOUNT, numberOf } from './numbered-message.ts'
import type { Random } from './random.ts'
import { Sightings } from './sightings.ts'

export type FinalState = 'delivered' | 'failed' | 'expired' | 'cancelled'

const isDropped = (nth: number): boolean => nth % 10 === 7
const isRefused = (nth: number): boolean => nth % 10 === 3

const UNCERTAIN = -1

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
    const isFirst = before === undefined || before === UNCERTAIN
    this.#times.set(messageId, isFirst ? atMs : typeof before === 'number' ? [before, atMs] : [...before, atMs])
  }

  /** The answer may not have been read, so a further copy does not count as a repetition. */
  addUncertain(messageId: string): void {
    if (!this.#times.has(messageId)) this.#times.set(messageId, UNCERTAIN)
  }

  notify(): void {
    for (const watcher of this.#watchers) watcher()
  }

  /** Calls the watcher whenever something has arrived. The returned function stops that. */
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
  /** Only of ordered destinations. */
  sightings?: Sightings
  receiver: Pick<Receiver, 'goAway' | 'comeBack' | 'answer'>
  /** How the delivery of a message must end; undefined: it is not owed to this destination. */
  expected: (nth: number) => FinalState | undefined
  /** The ids of the messages in a request. */
  idsOf: (arrival: Pick<Arrival, 'messages' | 'bytes'>) => string[]
  /** The most messages in flight to it, from all nodes. */
  inFlight: number
}

export interface PlannedDestination {
  name: string
  settings: object
  expected: TalliedDestination['expected']
  behave?: (messageIds: readonly string[]) => Answer | undefined
  idsOf?: TalliedDestination['idsOf']
  batchSize?: number
  isWrong?: (arrival: Arrival) => string | undefined
  /** Whether its settings have an order, which is by account. */
  isOrdered?: boolean
  /** The share of requests that its receiver answers with 503; 2 % by default. */
  failing?: number
}

const RETRY = { initialMs: 200, maxMs: 2_000 }
const MAX_IN_FLIGHT = 20
const BATCH = 15
const SLACK_URL = 'https://hooks.slack.com/services/T000/B000/sample'
const TRANSFORMATION = `export default (message) => message.properties.n % 10 === 7 ? null : { ...message, properties: { n: message.properties.n, transformed: true } }`

export const LETTERS = 'dead letters'
/** What a dead node had in flight is attempted again only after this time. */
const ORDERED_TIMEOUT_MS = 5_000
/** A key waits whenever its receiver fails. */
const ORDERED_FAILING = 0.08

export const USUAL_DESTINATIONS: readonly PlannedDestination[] = [
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
  {
    name: 'in order',
    settings: { order: { by: BY_ACCOUNT }, timeoutMs: ORDERED_TIMEOUT_MS },
    isOrdered: true,
    failing: ORDERED_FAILING,
    expected: (nth) => (isRefused(nth) ? 'failed' : 'delivered'),
    behave: ([id = '']) => (isRefused(numberOf(id)) ? { status: 410 } : undefined),
  },
  {
    name: 'in order, in batches',
    settings: { order: { by: BY_ACCOUNT }, timeoutMs: ORDERED_TIMEOUT_MS, batch: { size: BATCH, lingerMs: 20 } },
    batchSize: BATCH,
    isOrdered: true,
    failing: ORDERED_FAILING,
    expected: () => 'delivered',
  },
]

export interface DestinationsOptions {
  api: <T>(path: string, init?: { method?: string; body?: unknown }) => Promise<T>
  sourceId: string
  random: Random
  /** All destinations except the integration. */
  planned: readonly PlannedDestination[]
  /** Undefined if there is no integration. */
  gateway: TalliedGateway | undefined
  /** Collects the problems that receivers find in requests. */
  problems: string[]
}

export interface TalliedGateway extends AsyncDisposable {
  gateway: Gateway
  tally: Tally
}

/** Receives the requests of integrations in place of their tools. The text of a Slack message is the messageId. */
export async function startTalliedGateway(random: Random): Promise<TalliedGateway> {
  const tally = new Tally()
  const flaky = failingNowAndThen(random)
  const gateway = await startGateway(({ bytes }) => flaky([textIn(bytes)]), {
    forgets: true,
    answered({ status, bytes }) {
      if (status !== 200) return
      tally.add(textIn(bytes), performance.now())
      tally.notify()
    },
  })
  return { gateway, tally, [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() }
}

function textIn(bytes: Buffer): string {
  return (JSON.parse(bytes.toString()) as { text: string }).text
}

/** Creates all destinations, the dead-letter destination before the one that names it. */
export async function startDestinations(options: DestinationsOptions, started: AsyncDisposableStack): Promise<TalliedDestination[]> {
  const { api, sourceId, random, planned: all, gateway, problems } = options
  const create = async (body: object): Promise<string> =>
    (await api<{ id: string }>('/destinations', { method: 'POST', body: { retry: RETRY, maxInFlight: MAX_IN_FLIGHT, ...body } })).id
  const made: TalliedDestination[] = []
  let deadLetter: string | undefined
  for (const planned of all) {
    const { name, settings, expected, idsOf = messageIds, batchSize = 1 } = planned
    const tally = new Tally()
    const sightings = planned.isOrdered ? new Sightings() : undefined
    const receiver = started.use(await startTalliedReceiver(planned, { tally, sightings, random, problems }))
    const sourceIds = name === LETTERS ? [] : [sourceId]
    const letters = name === 'refusing some' ? { deadLetter } : {}
    const id = await create({ name, sourceIds, urls: [receiver.url], ...settings, ...letters })
    if (name === LETTERS) deadLetter = id
    const order = sightings === undefined ? {} : { sightings }
    made.push({ name, id, tally, receiver, expected, idsOf, inFlight: MAX_IN_FLIGHT * batchSize, ...order })
  }
  if (gateway !== undefined) {
    const mapping = { url: SLACK_URL, channel: '#orders', text: { '@template': '{{messageId}}' } }
    const subscriptions = [{ name: 'Post', action: 'postToChannel', subscribe: 'type = "track"', mapping, enabled: true }]
    const name = 'integration'
    const id = await create({ name, sourceIds: [sourceId], type: 'integration', integration: 'actions-slack', settings: {}, subscriptions })
    const { tally, gateway: receiver } = gateway
    const expected = (): FinalState => 'delivered'
    const idsOf: TalliedDestination['idsOf'] = ({ bytes }) => [textIn(bytes)]
    made.push({ name, id, tally, receiver: receiver as unknown as Receiver, expected, idsOf, inFlight: MAX_IN_FLIGHT })
  }
  return made
}

function startTalliedReceiver(
  { behave = () => undefined, idsOf = messageIds, isWrong, failing }: PlannedDestination,
  { tally, sightings, random, problems }: { tally: Tally; sightings: Sightings | undefined; random: Random; problems: string[] },
): Promise<Receiver> {
  const flaky = failingNowAndThen(random, failing)
  const answer: Behaviour = (arrival) => {
    const wrong = isWrong?.(arrival)
    if (wrong !== undefined) problems.push(wrong)
    const ids = idsOf(arrival)
    return behave(ids) ?? flaky(ids)
  }
  return startReceiver(answer, {
    forgets: true,
    arrived: (arrival) => sightings?.arrived(idsOf(arrival), arrival.atMs),
    answered(arrival) {
      if (arrival.status === 410) sightings?.ended(idsOf(arrival), performance.now())
      if (arrival.status === null || arrival.status < 200 || arrival.status > 299) return
      sightings?.ended(idsOf(arrival), performance.now())
      for (const id of idsOf(arrival)) tally.add(id, performance.now())
      tally.notify()
    },
  })
}

function messageIds({ messages }: Pick<Arrival, 'messages'>): string[] {
  return messages.flatMap(({ messageId }) => (messageId === undefined ? [] : [messageId]))
}

/** Answers as slowly as a distant server, so that something is always in flight, and fails now and then, so that something always waits for a retry. */
function failingNowAndThen(shared: Random, share = 0.02): (ids: readonly string[]) => Answer {
  const random = shared.fork()
  return () => {
    const after = sleep(random.int(5, 60))
    return random.chance(share) ? { after, status: 503 } : { after }
  }
}
