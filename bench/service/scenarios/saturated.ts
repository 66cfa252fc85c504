// Delivery while ingest is saturated: how many events per second a healthy destination gets while 16 connections send large batches
// as fast as they are acknowledged, compared with the rate at which a backlog of such batches is delivered while nothing is sent.

import { MAX_EVENTS_PER_REQUEST } from '../environment/events.ts'
import { nowMs } from '../environment/http-message.ts'
import { type Percentiles, percentiles } from '../environment/latency.ts'
import { createFolder, pause, removeFolder } from '../environment/processes.ts'
import { type Service, startService } from '../environment/service.ts'
import { CONNECTIONS, createTraffic, requireAll, type Traffic } from '../environment/traffic.ts'

export interface SaturatedRun {
  acknowledgedPerSecond: number
  deliveredPerSecond: number
  alonePerSecond: number
  /** Delivered per second while ingest was saturated, divided by what it was alone. */
  ratio: number
  answerMs: Percentiles
  /** Requests that were answered with 503 or another error. */
  refused: number
  /** Deliveries pending when the load ended. */
  backlog: number
  complaints: string[]
}

const ALONE_EVENTS = 90 * MAX_EVENTS_PER_REQUEST
const WARM_UP_EVENTS = 30 * MAX_EVENTS_PER_REQUEST
const DRAIN_LIMIT_MS = 300_000

export async function measureSaturated(seconds: number): Promise<SaturatedRun> {
  const folder = createFolder()
  const traffic = await createTraffic()
  try {
    const service = await startService(folder)
    try {
      const source = await service.defaultSource()
      const destinationId = await service.createDestination('healthy', `${traffic.receiverUrl}/`, source)
      const target = service.targetOf(source)
      const alone = (events: number): Promise<number> =>
        drain(traffic, service, destinationId, () => traffic.fill(target, events, MAX_EVENTS_PER_REQUEST, CONNECTIONS))
      await alone(WARM_UP_EVENTS)
      const aloneBefore = await alone(ALONE_EVENTS)
      const before = await traffic.receivedCount()
      const startedAtMs = nowMs()
      const sent = await traffic.flood(target, seconds * 1_000, MAX_EVENTS_PER_REQUEST)
      const after = await traffic.receivedCount()
      const tookSeconds = (nowMs() - startedAtMs) / 1_000
      const [line] = await service.ledger()
      const deliveredPerSecond = (after - before) / tookSeconds
      await untilReceived(traffic, before + sent.acknowledged)
      // Before and after, because other work on the machine changes within a round.
      const alonePerSecond = (aloneBefore + (await alone(ALONE_EVENTS))) / 2
      const owed = WARM_UP_EVENTS + ALONE_EVENTS + sent.acknowledged
      return {
        acknowledgedPerSecond: sent.acknowledged / ((sent.lastAnswerAtMs - sent.startedAtMs) / 1_000),
        deliveredPerSecond,
        alonePerSecond,
        ratio: deliveredPerSecond / alonePerSecond,
        answerMs: percentiles([...(sent.answersMs ?? [])]),
        refused: sent.refused / MAX_EVENTS_PER_REQUEST,
        backlog: line?.pending ?? 0,
        complaints: line?.owed === owed ? [] : [`${line?.owed} owed for ${owed} acknowledged`],
      }
    } finally {
      await service.stop()
    }
  } finally {
    await traffic.close()
    removeFolder(folder)
  }
}

/** Fills the store while the destination is paused, resumes it, and returns the rate at which the receiver gets the events. */
async function drain(traffic: Traffic, service: Service, destinationId: string, fill: () => ReturnType<Traffic['fill']>): Promise<number> {
  await service.setPaused(destinationId, true)
  const before = await traffic.receivedCount()
  const { acknowledged } = requireAll(await fill())
  const startedAtMs = nowMs()
  await service.setPaused(destinationId, false)
  await untilReceived(traffic, before + acknowledged)
  return acknowledged / ((nowMs() - startedAtMs) / 1_000)
}

async function untilReceived(traffic: Traffic, events: number): Promise<void> {
  const limitMs = nowMs() + DRAIN_LIMIT_MS
  while ((await traffic.receivedCount()) < events) {
    if (nowMs() > limitMs) throw new Error('the backlog was not delivered in time')
    await pause(20)
  }
}
