// One sender and one receiver for the measured program, and the numbers of the events between them.

import type { ChildProcess } from 'node:child_process'
import { EVENTS_PER_REQUEST, type Target } from './events.ts'
import type { Job, LoadReport, Sent } from './load-generator.ts'
import { nextReport, startScript, stop } from './processes.ts'
import type { ReceiverReport, ReceiverRequest, RefusedUser } from './receiver.ts'

/** Sixteen concurrent clients: enough to keep every program busy, few enough to be fair to one that answers late. */
export const CONNECTIONS = 16

/** How events are sent. */
export interface Load {
  eventsPerRequest: number
  connections: number
  /** The events are of so many users. */
  users?: number
}

export const USUAL_LOAD: Load = { eventsPerRequest: EVENTS_PER_REQUEST, connections: CONNECTIONS }

/** Events with numbers from here on are not expected by any receiver. */
const FILL_FIRST = 2 ** 28

const START_LIMIT_MS = 20_000

export interface Received {
  /** The number of events that never arrived. */
  missing: number
  /** The number of duplicates. */
  duplicates: number
  /** In the order of the events; 0 for an event that never arrived. */
  receivedAtMs: Float64Array
}

export interface Traffic {
  receiverUrl: string
  /** Sends as fast as the program answers. Returns the range of events to ask the receiver for. */
  burst(target: Target, events: number, load?: Load): Promise<Sent & Range>
  /** Sends single events at an average rate. */
  pace(target: Target, events: number, perSecond: number): Promise<Sent & Range>
  /** Sends events that no receiver expects. */
  fill(target: Target, events: number, eventsPerRequest: number, connections: number, users?: number): Promise<Sent>
  flood(target: Target, durationMs: number, eventsPerRequest?: number): Promise<Sent>
  /** The number of events that the receiver has received so far. */
  receivedCount(): Promise<number>
  /** Must be called before sending. Resolves with the time at which all of the next `events` events have arrived. */
  expectNext(events: number, timeoutMs: number, refused?: RefusedUser): Promise<number>
  received(range: Range): Promise<Received>
  close(): Promise<void>
}

export interface Range {
  first: number
  events: number
}

let nextFill = FILL_FIRST

/** `answerAfterMs`: how long the receiver takes to answer. */
export async function createTraffic({ answerAfterMs = 0 } = {}): Promise<Traffic> {
  const [load, receiver] = [startScript('load-generator.ts'), startScript('receiver.ts', [String(answerAfterMs)])]
  const [, { port }] = await Promise.all([
    nextReport<LoadReport, 'ready'>(load, 'ready', START_LIMIT_MS),
    nextReport<ReceiverReport, 'listening'>(receiver, 'listening', START_LIMIT_MS),
  ])
  let next = 0
  const send = (job: Job, timeoutMs: number): Promise<Sent> => {
    load.send(job)
    return nextReport<LoadReport, 'sent'>(load, 'sent', timeoutMs)
  }
  const number = (events: number): Range => {
    const range = { first: next, events }
    next += events
    return range
  }
  const received = async ({ first, events }: Range): Promise<Received> => {
    ask(receiver, { kind: 'times', first, events })
    const { receivedAtMs, copies } = await nextReport<ReceiverReport, 'times'>(receiver, 'times', START_LIMIT_MS)
    const missing = copies.reduce((sum, count) => sum + (count === 0 ? 1 : 0), 0)
    return { missing, duplicates: copies.reduce((sum, count) => sum + Math.max(0, count - 1), 0), receivedAtMs }
  }
  return {
    receiverUrl: `http://127.0.0.1:${port}`,
    async burst(target, events, load = USUAL_LOAD) {
      const range = number(events)
      const sent = await send({ target, ...load, ...range }, 300_000)
      return { ...sent, ...range }
    },
    async pace(target, events, requestsPerSecond) {
      const range = number(events)
      const sent = await send({ target, connections: CONNECTIONS, eventsPerRequest: 1, requestsPerSecond, ...range }, 300_000)
      return { ...sent, ...range }
    },
    async fill(target, events, eventsPerRequest, connections, users) {
      const job: Job = { target, connections, eventsPerRequest, events, first: nextFill, ...(users !== undefined && { users }) }
      nextFill += events
      return await send(job, 1_800_000)
    },
    async flood(target, durationMs, eventsPerRequest = EVENTS_PER_REQUEST) {
      const first = nextFill
      const events = 50_000_000 - (50_000_000 % eventsPerRequest)
      const job = { target, connections: CONNECTIONS, eventsPerRequest, first, events, durationMs }
      const sent = await send(job, durationMs + 60_000)
      nextFill += events
      return sent
    },
    async expectNext(events, timeoutMs, refused) {
      ask(receiver, { kind: 'expect', first: next, events, ...(refused !== undefined && { refused }) })
      const range = { first: next, events }
      try {
        const { lastNewAtMs } = await nextReport<ReceiverReport, 'complete'>(receiver, 'complete', timeoutMs)
        return lastNewAtMs
      } catch (error) {
        const { missing } = await received(range)
        throw new Error(`${missing} of ${events} events did not arrive within ${timeoutMs / 1_000} s`, { cause: error })
      }
    },
    received,
    async receivedCount() {
      ask(receiver, { kind: 'count' })
      return (await nextReport<ReceiverReport, 'count'>(receiver, 'count', START_LIMIT_MS)).received
    },
    async close() {
      await Promise.all([stop(load, 'SIGKILL'), stop(receiver, 'SIGKILL')])
    },
  }
}

function ask(receiver: ChildProcess, request: ReceiverRequest): void {
  receiver.send(request)
}

/** Throws if a request was rejected, because the numbers would be meaningless. */
export function requireAll<Answered extends Sent>(sent: Answered): Answered {
  const refusals = Object.entries(sent.refusals).map(([what, times]) => `${times} × ${what}`)
  if (refusals.length > 0) throw new Error(`the program rejected requests: ${refusals.join(', ')}`)
  return sent
}
