// How long single events take at a fixed rate: from the sender's answer, and from its first byte, to the receiver.

import type { Target } from './events.ts'
import type { Traffic } from './traffic.ts'

export interface Latency {
  /** Acknowledged to received. Below zero when the message overtakes the answer. */
  ackedMs: Percentiles
  /** Sent to received. */
  sentMs: Percentiles
  missing: number
}

export interface Percentiles {
  p50: number
  p99: number
}

const ARRIVAL_LIMIT_MS = 60_000

export async function measureLatency(traffic: Traffic, target: Target, events: number, perSecond: number): Promise<Latency> {
  const complete = traffic.expectNext(events, (events / perSecond) * 2_000 + ARRIVAL_LIMIT_MS)
  const [sent] = await Promise.all([traffic.pace(target, events, perSecond), complete])
  const { missing, receivedAtMs } = await traffic.received(sent)
  const since = (startAtMs: Float64Array | undefined) =>
    percentiles(receivedAtMs.map((at, index) => at - (startAtMs?.[index] ?? Number.NaN)))
  return { ackedMs: since(sent.ackedAtMs), sentMs: since(sent.sentAtMs), missing }
}

function percentiles(values: Float64Array): Percentiles {
  const sorted = values.slice().sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}
