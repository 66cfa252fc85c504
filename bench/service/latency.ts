// How long single events take at a fixed rate: from the sender's answer, and from its first byte, to the receiver.

import type { Target } from './events.ts'
import { requireAll, type Traffic } from './traffic.ts'

export interface Latency {
  /** Acknowledged to received. Below zero when the message overtakes the answer. */
  ackedMs: Percentiles
  /** Sent to received. */
  sentMs: Percentiles
}

export interface Percentiles {
  p50: number
  p99: number
}

const ARRIVAL_LIMIT_MS = 60_000

/** Single events: how long each took. */
export interface Samples {
  ackedMs: number[]
  sentMs: number[]
}

export async function measureLatency(traffic: Traffic, target: Target, events: number, perSecond: number): Promise<Latency> {
  return latencyOf([await sampleLatency(traffic, target, events, perSecond)])
}

/** Fails unless every event comes. */
export async function sampleLatency(traffic: Traffic, target: Target, events: number, perSecond: number): Promise<Samples> {
  const complete = traffic.expectNext(events, (events / perSecond) * 2_000 + ARRIVAL_LIMIT_MS)
  const [sent] = await Promise.all([traffic.pace(target, events, perSecond).then(requireAll), complete])
  const { receivedAtMs } = await traffic.received(sent)
  const since = (startAtMs: Float64Array | undefined) => [...receivedAtMs].map((at, index) => at - (startAtMs?.[index] ?? Number.NaN))
  return { ackedMs: since(sent.ackedAtMs), sentMs: since(sent.sentAtMs) }
}

export function latencyOf(samples: Samples[]): Latency {
  return { ackedMs: percentiles(samples.flatMap(({ ackedMs }) => ackedMs)), sentMs: percentiles(samples.flatMap(({ sentMs }) => sentMs)) }
}

function percentiles(values: number[]): Percentiles {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}
