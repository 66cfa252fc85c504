// The phases of an attempt, in order, from its timings: DNS lookup, connection, TLS, waiting for the response, reading it. Pure.
// `firstByteMs` and `totalMs` count from the start of the attempt; the others are durations.

import type { Schemas } from '../api/client.ts'

export type Timings = Schemas['Attempt']['timings']

export type PhaseName = 'dns' | 'connect' | 'tls' | 'wait' | 'answer' | 'lost'

export interface Phase {
  name: PhaseName
  startMs: number
  ms: number
}

export const PHASE_LABELS: Readonly<Record<PhaseName, string>> = {
  dns: 'DNS',
  connect: 'connect',
  tls: 'TLS',
  wait: 'wait for response',
  answer: 'read response',
  lost: 'no response',
}

export function phasesOf({ dnsMs, connectMs, tlsMs, firstByteMs, totalMs }: Timings): Phase[] {
  const phases: Phase[] = []
  let atMs = 0
  for (const [name, ms] of [
    ['dns', dnsMs],
    ['connect', connectMs],
    ['tls', tlsMs],
  ] as const) {
    if (ms === null) continue
    phases.push({ name, startMs: atMs, ms })
    atMs += ms
  }
  if (firstByteMs === null) {
    // The rest of the time was spent waiting for a response that never came. There is no rest if an earlier phase failed.
    if (totalMs > atMs) phases.push({ name: 'lost', startMs: atMs, ms: totalMs - atMs })
    return phases
  }
  const firstMs = Math.max(firstByteMs, atMs)
  phases.push({ name: 'wait', startMs: atMs, ms: firstMs - atMs })
  phases.push({ name: 'answer', startMs: firstMs, ms: Math.max(0, totalMs - firstMs) })
  return phases
}

/** Whether the attempt reused an open connection. */
export function isReused({ dnsMs, connectMs, tlsMs, firstByteMs }: Timings): boolean {
  return dnsMs === null && connectMs === null && tlsMs === null && firstByteMs !== null
}
