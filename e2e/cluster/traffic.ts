// Realistic traffic: clients send at a steady rate to any node, as behind a load balancer, and retry with the same messageIds
// until they get a 200. Webhooks fail now and then. The senders record what was acknowledged and the answer to each call;
// compare-ledgers.ts compares that with what the receivers got.
//
//   await using load = await startLoad(cluster, { perSecond: 200 })
//   await load.traffic.more(500)                                  resolves when that many more are acknowledged; the load continues
//   await load.traffic.finish()                                   no new messages; resolves when every one is acknowledged

import { setTimeout as sleep } from 'node:timers/promises'
import { IS_LONG } from '../system/long-tests.ts'
import { type Behaviour, type Receiver, startReceiver } from '../system/receiver.ts'
import { track } from '../system/service.ts'
import { Signals, type Waiting } from '../system/signals.ts'
import type { Cluster } from './cluster.ts'
import { SentOrder } from './sent-order.ts'

export interface TrafficOptions {
  /** Returns the URLs of the nodes, before each call. A call goes to the next one, and its retry to the one after that. */
  targets: () => readonly string[]
  writeKey: string
  /** Messages per call. */
  perSecond?: number
  batchSize?: number
  /** The prefix of every messageId. */
  name?: string
  /** The timeout of a call. */
  timeoutMs?: number
  /** The message with this id and number; a simple track call by default. */
  message?: (messageId: string, nth: number) => object
  /** Some calls are large; none by default. */
  large?: LargeCalls
}

/**
 * Calls with a large context, which is merged into each of their messages. Each has one more message that is too large with the context.
 * The service must reject that one, and accept the others.
 */
export interface LargeCalls {
  /** One call in so many is large. */
  every: number
  messages: number
  contextBytes: number
}

/** One call and its answer. */
export interface Call {
  target: string
  /** performance.now() */
  startMs: number
  ms: number
  /** Null if there was no answer. */
  status: number | null
  retryAfter: string | null
  /** The number of the try of the same messages, from 1. */
  nth: number
}

export interface Traffic extends Disposable {
  /** The messageIds that were acknowledged with 200. */
  acknowledged: Set<string>
  /** All messageIds that were sent, acknowledged or not. */
  sent: Set<string>
  /** What is known about the order of the messages. */
  order: SentOrder
  calls: Call[]
  /** Calls that were rejected permanently: answered with a 4xx other than 429. */
  rejected: Call[]
  /** Answers that differ from what the call must get. */
  problems: string[]
  until(condition: () => boolean, waiting?: Waiting): Promise<void>
  /** Resolves when this many more messages are acknowledged. */
  more(messages: number, waiting?: Waiting): Promise<void>
  finish(waiting?: Waiting): Promise<void>
}

/** How many messages a test waits for before and after a fault: a third every day, and all with SWITCHYARD_LONG_TESTS=1. */
export const enough = (messages: number): number => (IS_LONG ? messages : Math.ceil(messages / 3))

const CALL_TIMEOUT_MS = 4_000
const MAX_MESSAGE_BYTES = 32 * 1024
const FIRST_AGAIN_MS = 100
const MOST_AGAIN_MS = 1_000
/** The most concurrent batches. It is limited, so that a long fault is not followed by a flood. */
const MOST_OPEN = 100
const ANSWER_MS = 40

/** The messages of a call that were rejected: their index and the reason. */
function rejectedIn(answer: string): string[] {
  const { rejected = [] } = JSON.parse(answer) as { rejected?: { index: number; code: string }[] }
  return rejected.map(({ index, code }) => `${index} ${code}`)
}

export function startTraffic(options: TrafficOptions): Traffic {
  const {
    targets,
    writeKey,
    perSecond = IS_LONG ? 200 : 100,
    batchSize = 5,
    name = 'm',
    timeoutMs = CALL_TIMEOUT_MS,
    message = (id) => track(id),
    large,
  } = options
  const signals = new Signals()
  const abandoned = new AbortController()
  const authorization = `Basic ${btoa(`${writeKey}:`)}`
  let last = 0
  let open = 0
  let turn = 0
  let batches = 0

  async function call(body: string, nth: number, rejected: readonly string[]): Promise<Call> {
    const urls = targets()
    const target = urls[turn++ % Math.max(1, urls.length)] ?? ''
    const startMs = performance.now()
    const over = (status: number | null, retryAfter: string | null = null): Call => ({
      target,
      startMs,
      ms: performance.now() - startMs,
      status,
      retryAfter,
      nth,
    })
    if (target === '') return over(null)
    try {
      const response = await fetch(`${target}/v1/batch`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body,
        signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), abandoned.signal]),
      })
      const text = await response.text()
      if (response.status === 200 && rejectedIn(text).join() !== rejected.join()) traffic.problems.push(`a call was answered with ${text}`)
      return over(response.status, response.headers.get('retry-after'))
    } catch {
      return over(null)
    }
  }

  async function deliver(ids: readonly string[], firstNth: number, contextBytes: number): Promise<void> {
    const batch = ids.map((id, at) => message(id, firstNth + at))
    if (contextBytes > 0) batch.push(track(`too-large-${firstNth}`, { properties: { text: 'x'.repeat(MAX_MESSAGE_BYTES - contextBytes) } }))
    const body = JSON.stringify(contextBytes > 0 ? { context: { text: 'x'.repeat(contextBytes) }, batch } : { batch })
    const rejected = contextBytes > 0 ? [`${ids.length} message_too_large`] : []
    for (let nth = 1; !abandoned.signal.aborted; nth++) {
      traffic.order.sent(ids)
      const made = await call(body, nth, rejected)
      traffic.calls.push(made)
      const { status } = made
      if (status === 200) {
        traffic.order.acknowledged(ids)
        for (const id of ids) traffic.acknowledged.add(id)
        return signals.notify()
      }
      if (status !== null && status < 500 && status !== 429) traffic.rejected.push(made)
      signals.notify()
      await pause(Math.min(FIRST_AGAIN_MS * 2 ** (nth - 1), MOST_AGAIN_MS), abandoned.signal)
    }
  }

  const sendNext = (): void => {
    if (open >= MOST_OPEN) return
    open++
    const firstNth = last + 1
    const isLarge = large !== undefined && ++batches % large.every === 0
    const ids = Array.from({ length: isLarge ? large.messages : batchSize }, () => `${name}-${++last}`)
    for (const id of ids) traffic.sent.add(id)
    void deliver(ids, firstNth, isLarge ? large.contextBytes : 0).finally(() => {
      open--
      signals.notify()
    })
  }
  const pace = setInterval(sendNext, (1_000 * batchSize) / perSecond)

  const state = (): string => {
    const statuses = new Map<string, number>()
    for (const { target, status } of traffic.calls) {
      const key = `${target} ${status ?? 'no answer'}`
      statuses.set(key, (statuses.get(key) ?? 0) + 1)
    }
    return `${traffic.acknowledged.size} of ${traffic.sent.size} acknowledged; ${JSON.stringify(Object.fromEntries(statuses))}`
  }
  const traffic: Traffic = {
    acknowledged: new Set(),
    sent: new Set(),
    order: new SentOrder(),
    calls: [],
    rejected: [],
    problems: [],
    until: (condition, waiting = {}) => signals.until(condition, { state, ...waiting }),
    more(messages, waiting) {
      const wanted = traffic.acknowledged.size + messages
      return traffic.until(() => traffic.acknowledged.size >= wanted, { what: `${messages} more acknowledged`, ...waiting })
    },
    async finish(waiting) {
      clearInterval(pace)
      await traffic.until(() => open === 0, { what: 'every call was answered with 200, after retries', ...waiting })
    },
    [Symbol.dispose]() {
      clearInterval(pace)
      abandoned.abort()
    },
  }
  return traffic
}

export interface LoadReceiver {
  name: string
  destinationId: string
  receiver: Receiver
}

export interface Load extends AsyncDisposable {
  traffic: Traffic
  /** A webhook that gets messages one by one, and one that gets them in batches. */
  receivers: LoadReceiver[]
}

/** Starts traffic on the cluster's first source, to which two webhooks are attached. */
export async function startLoad(cluster: Cluster, options: Partial<TrafficOptions> = {}): Promise<Load> {
  await using started = new AsyncDisposableStack()
  const receivers: LoadReceiver[] = []
  for (const [name, settings] of [
    ['one by one', {}],
    ['in batches', { batch: { size: 15, lingerMs: 20 } }],
  ] as const) {
    const receiver = started.use(await startReceiver(failingNowAndThen()))
    const body = { name, sourceIds: [cluster.sourceId], urls: [receiver.url], ...settings }
    const { id } = await cluster.api<{ id: string }>('/destinations', { method: 'POST', body })
    await cluster.known(`/destinations/${id}`)
    receivers.push({ name, destinationId: id, receiver })
  }
  const traffic = started.use(startTraffic({ targets: () => cluster.urls(), writeKey: cluster.writeKey, ...options }))
  const everything = started.move()
  return { traffic, receivers, [Symbol.asyncDispose]: () => everything.disposeAsync() }
}

/** The timeout of an attempt. The fault has to happen before that. */
const HELD_MS = 5_000

/** A message whose first attempt hangs at its receiver, so that the sending node holds it. */
export interface HeldMessage extends AsyncDisposable {
  receiver: Receiver
  messageId: string
  destinationId: string
  /** The performance.now() of each arrival. The first is from the node that holds the message. */
  arrivals(): number[]
  /** Makes the receiver accept further requests. The request of the holding node keeps waiting. */
  acceptRequests(): void
  /** Answers the request of the holding node with 200. */
  answerHolder(): void
  /** Resolves when another node has delivered the message, with the elapsed milliseconds. */
  deliveredAgain(sinceMs: number, deadlineMs: number): Promise<number>
}

/** Sends a message to one node, through a separate source, so that this node holds it. */
export async function holdMessage(cluster: Cluster, url: string, name: string): Promise<HeldMessage> {
  await using started = new AsyncDisposableStack()
  let answer = (): void => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  const receiver = started.use(await startReceiver(() => ({ after: answered })))
  const source = await cluster.api<{ id: string; writeKeys: string[] }>('/sources', { method: 'POST', body: { name } })
  const settings = { name, sourceIds: [source.id], urls: [receiver.url], timeoutMs: HELD_MS }
  const { id } = await cluster.api<{ id: string }>('/destinations', { method: 'POST', body: settings })
  await cluster.known(`/destinations/${id}`)
  const messageId = `held-${name}`
  const response = await fetch(`${url}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${source.writeKeys[0]}:`)}`, 'content-type': 'application/json' },
    body: JSON.stringify(track(messageId)),
  })
  if (response.status !== 200) throw new Error(`the message to be held was answered with ${response.status} ${await response.text()}`)
  await receiver.until(() => receiver.arrivals.length === 1)
  const everything = started.move()
  return {
    receiver,
    messageId,
    destinationId: id,
    arrivals: () => receiver.arrivals.map(({ atMs }) => atMs),
    acceptRequests() {
      receiver.answer = () => undefined
    },
    answerHolder: answer,
    async deliveredAgain(sinceMs, deadlineMs) {
      await receiver.until(() => receiver.arrivals.length > 1, { deadlineMs, what: 'another node took over what was held' })
      return (receiver.arrivals[1]?.atMs ?? Number.NaN) - sinceMs
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

/** Responds as slowly as a distant webhook, so that something is always in flight. Now and then an attempt fails, and its messages wait
 * in the store for a retry. */
function failingNowAndThen(): Behaviour {
  const failed = new Set<string | undefined>()
  return ({ messages, number }) => {
    const after = sleep(ANSWER_MS)
    if (number % 50 !== 0 || messages.some(({ messageId }) => failed.has(messageId))) return { after }
    for (const { messageId } of messages) failed.add(messageId)
    return { after, status: 503 }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}
