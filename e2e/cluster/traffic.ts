// Traffic as an installation has it: clients that send at a steady rate to any node, as a load balancer would have them do, and
// send again with the same messageIds until they are answered with 200; webhooks that refuse something now and then. The senders' books
// say what was acknowledged and what each call was answered; compare-ledgers.ts holds them against the receivers'.
//
//   await using load = await startLoad(cluster, { perSecond: 200 })
//   await load.traffic.more(500)                                  that many more are acknowledged, and load goes on
//   await load.traffic.finish()                                   no new messages; resolves when every one is acknowledged

import { setTimeout as passing } from 'node:timers/promises'
import { IS_LONG } from '../long-tests.ts'
import { type Behaviour, type Receiver, startReceiver } from '../receiver.ts'
import { track } from '../service.ts'
import { Signals, type Waiting } from '../signals.ts'
import type { Cluster } from './cluster.ts'

export interface TrafficOptions {
  /** Asked before each call; each is sent to the next of them, and again to the one after it. */
  targets: () => readonly string[]
  writeKey: string
  /** Messages. */
  perSecond?: number
  batchSize?: number
  /** Begins every messageId. */
  name?: string
  /** How long a call waits for its answer. */
  timeoutMs?: number
}

/** One call and its answer. */
export interface Call {
  target: string
  /** performance.now() */
  startMs: number
  ms: number
  /** Null where there was no answer. */
  status: number | null
  retryAfter: string | null
  /** From 1: which try of the same messages. */
  nth: number
}

export interface Traffic extends Disposable {
  /** The messageIds whose 200 has been seen. */
  acknowledged: Set<string>
  /** All that were sent, answered or not. */
  sent: Set<string>
  calls: Call[]
  /** Calls that no retry would mend: answered with another 4xx than 429. */
  refused: Call[]
  until(condition: () => boolean, waiting?: Waiting): Promise<void>
  /** So many more are acknowledged than now. */
  more(messages: number, waiting?: Waiting): Promise<void>
  finish(waiting?: Waiting): Promise<void>
}

const CALL_TIMEOUT_MS = 4_000
const FIRST_AGAIN_MS = 100
const MOST_AGAIN_MS = 1_000
/** Batches under way at once. More are not begun, so that a long fault does not become a flood after it. */
const MOST_OPEN = 100
const ANSWER_MS = 40

export function startTraffic(options: TrafficOptions): Traffic {
  const { targets, writeKey, perSecond = IS_LONG ? 200 : 100, batchSize = 5, name = 'm', timeoutMs = CALL_TIMEOUT_MS } = options
  const signals = new Signals()
  const abandoned = new AbortController()
  const authorization = `Basic ${btoa(`${writeKey}:`)}`
  let last = 0
  let open = 0
  let turn = 0

  async function call(body: string, nth: number): Promise<Call> {
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
      await response.text()
      return over(response.status, response.headers.get('retry-after'))
    } catch {
      return over(null)
    }
  }

  async function deliver(ids: readonly string[]): Promise<void> {
    const body = JSON.stringify({ batch: ids.map((id) => track(id)) })
    for (let nth = 1; !abandoned.signal.aborted; nth++) {
      const made = await call(body, nth)
      traffic.calls.push(made)
      const { status } = made
      if (status === 200) {
        for (const id of ids) traffic.acknowledged.add(id)
        return signals.notify()
      }
      if (status !== null && status < 500 && status !== 429) traffic.refused.push(made)
      signals.notify()
      await pause(Math.min(FIRST_AGAIN_MS * 2 ** (nth - 1), MOST_AGAIN_MS), abandoned.signal)
    }
  }

  const sendNext = (): void => {
    if (open >= MOST_OPEN) return
    open++
    const ids = Array.from({ length: batchSize }, () => `${name}-${++last}`)
    for (const id of ids) traffic.sent.add(id)
    void deliver(ids).finally(() => {
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
    calls: [],
    refused: [],
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
  /** One that gets messages one by one, and one that gets them in batches. */
  receivers: LoadReceiver[]
}

/** Traffic on the cluster's first source, which two webhooks are attached to. */
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

/** The longest that an attempt may take: the fault has to come before. */
const HELD_MS = 5_000

/** A message whose first attempt hangs at its receiver: whoever has sent it holds it. */
export interface HeldMessage extends AsyncDisposable {
  receiver: Receiver
  messageId: string
  destinationId: string
  /** performance.now() of each arrival: the first is the holder's. */
  arrivals(): number[]
  /** From now on the receiver takes what comes. The holder's own request goes on waiting. */
  take(): void
  /** The holder's request is answered with 200. */
  answerHolder(): void
  /** Resolves when another node has brought it, with the milliseconds since then. */
  broughtAgain(sinceMs: number, deadlineMs: number): Promise<number>
}

/** Sent to one node, by a source of its own, and held by that. */
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
    take() {
      receiver.answer = () => undefined
    },
    answerHolder: answer,
    async broughtAgain(sinceMs, deadlineMs) {
      await receiver.until(() => receiver.arrivals.length > 1, { deadlineMs, what: 'another node took over what was held' })
      return (receiver.arrivals[1]?.atMs ?? Number.NaN) - sinceMs
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

/** Takes as long as a webhook far away, so that something is always in flight. Every so often an attempt fails, and its messages wait
 * for their retry in the store. */
function failingNowAndThen(): Behaviour {
  const failed = new Set<string | undefined>()
  return ({ messages, number }) => {
    const after = passing(ANSWER_MS)
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
