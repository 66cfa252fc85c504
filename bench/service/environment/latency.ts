// The latency of single events at a fixed rate: from the acknowledgement, and from the first byte sent, to the receiver.

import type { Target } from './events.ts'
import { requireAll, type Traffic } from './traffic.ts'

export interface Latency {
  /** From acknowledged to received. Negative if the message arrives before the acknowledgement. */
  ackedMs: Percentiles
  /** From sent to received. */
  sentMs: Percentiles
}

export interface Percentiles {
  p50: number
  p99: number
}

const ARRIVAL_LIMIT_MS = 60_000

/** Returns how long each event took. */
export interface Samples {
  ackedMs: number[]
  sentMs: number[]
}

export async function measureLatency(traffic: Traffic, target: Target, events: number, perSecond: number): Promise<Latency> {
  return latencyOf([await sampleLatency(traffic, target, events, perSecond)])
}

/** Throws unless every event arrives. */
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

export function percentiles(values: number[]): Percentiles {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}
