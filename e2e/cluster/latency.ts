// Measures how long single messages take from the client's call to the webhook, at a fixed rate. Several installations alternate
// about every second, so that the noise of the machine affects all of them. Also creates a dead destination with any number of pending messages.
// It only measures and checks nothing.

import { freePort } from '../../packages/server/src/store/fixtures/free-port.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import type { Cluster } from './cluster.ts'

/** An installation with one healthy webhook. */
export interface Subject extends AsyncDisposable {
  cluster: Cluster
  receiver: Receiver
  destinationId: string
}

export interface Sampling {
  /** The number of messages per subject. */
  turns: number
  messagesPerTurn: number
  perSecond: number
}

const ARRIVAL_LIMIT_MS = 30_000
let runs = 0

export async function createSubject(cluster: Cluster): Promise<Subject> {
  const receiver = await startReceiver()
  const body = { name: 'healthy', sourceIds: [cluster.sourceId], urls: [receiver.url] }
  const { id } = await cluster.api<{ id: string }>('/destinations', { method: 'POST', body })
  await cluster.known(`/destinations/${id}`)
  return { cluster, receiver, destinationId: id, [Symbol.asyncDispose]: () => receiver.close() }
}

/** Returns the milliseconds of each message, per subject: from before the call to the last byte at the receiver. */
export async function sampleInTurns(subjects: readonly Subject[], { turns, messagesPerTurn, perSecond }: Sampling): Promise<number[][]> {
  const samples = subjects.map((): number[] => [])
  for (let turn = 0; turn < turns; turn++) {
    const order = [...subjects.keys()]
    // The order changes, so that no installation always follows the same other one.
    if (turn % 2 === 1) order.reverse()
    for (const at of order) samples[at]?.push(...(await sample(subjects[at] as Subject, messagesPerTurn, perSecond)))
  }
  return samples
}

async function sample({ cluster, receiver }: Subject, messages: number, perSecond: number): Promise<number[]> {
  const name = `latency-${++runs}`
  const authorization = `Basic ${btoa(`${cluster.writeKey}:`)}`
  const urls = cluster.urls()
  const sentMs = new Map<string, number>()
  const startMs = performance.now()
  const calls: Promise<void>[] = []
  const call = async (nth: number): Promise<void> => {
    const messageId = `${name}-${nth}`
    sentMs.set(messageId, performance.now())
    const response = await fetch(`${urls[nth % urls.length]}/v1/track`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify(track(messageId)),
    })
    await response.text()
    if (response.status !== 200) throw new Error(`${messageId} was answered with ${response.status}`)
  }
  for (let nth = 0; nth < messages; nth++) {
    const wait = startMs + (nth * 1_000) / perSecond - performance.now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    calls.push(call(nth))
  }
  await Promise.all(calls)
  await receiver.until(() => [...sentMs.keys()].every((id) => receiver.byMessageId.has(id)), { deadlineMs: ARRIVAL_LIMIT_MS })
  return [...sentMs].map(([id, ms]) => (receiver.byMessageId.get(id)?.[0]?.atMs ?? Number.NaN) - ms)
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export interface Owing {
  messages: number
  /** The number of messages per call. Each call creates one pending row. */
  batchSize: number
  /** The number of concurrent calls. */
  parallel?: number
}

/** Creates a destination on which nothing listens, with this many pending messages. Some may have been attempted and wait for a retry. */
export async function oweToDead(cluster: Cluster, { messages, batchSize, parallel = 16 }: Owing): Promise<string> {
  const source = await cluster.api<{ id: string; writeKeys: string[] }>('/sources', { method: 'POST', body: { name: 'of the dead' } })
  const settings = { name: 'dead', sourceIds: [source.id], urls: [`http://127.0.0.1:${await freePort()}`] }
  const { id } = await cluster.api<{ id: string }>('/destinations', { method: 'POST', body: settings })
  await cluster.known(`/destinations/${id}`)
  const headers = { authorization: `Basic ${btoa(`${source.writeKeys[0]}:`)}`, 'content-type': 'application/json' }
  const urls = cluster.urls()
  let next = 0
  const work = async (): Promise<void> => {
    while (next < messages) {
      const from = next
      next += batchSize
      const batch = Array.from({ length: Math.min(batchSize, messages - from) }, (_, at) => track(`dead-${from + at}`))
      const response = await fetch(`${urls[(from / batchSize) % urls.length]}/v1/batch`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ batch }),
      })
      const text = await response.text()
      if (response.status !== 200) throw new Error(`a batch for the dead destination was answered with ${response.status} ${text}`)
    }
  }
  await Promise.all(Array.from({ length: parallel }, work))
  await eventually(
    async () => (await cluster.ledger()).find(({ destinationId }) => destinationId === id),
    (row) => row?.pending === messages,
    { what: `${messages} messages are pending for the dead destination` },
  )
  return id
}
