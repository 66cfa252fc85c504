// The phases of an attempt, one after the other, out of its timings: name lookup, connection, TLS, waiting for the answer, reading it.
// Pure. The first byte and the total are counted from the start of the attempt, the others by themselves.

export interface Timings {
  dnsMs: number | null
  connectMs: number | null
  tlsMs: number | null
  firstByteMs: number | null
  totalMs: number
}

export type PhaseName = 'dns' | 'connect' | 'tls' | 'wait' | 'answer' | 'lost'

export interface Phase {
  name: PhaseName
  startMs: number
  ms: number
}

export const PHASE_LABELS: Readonly<Record<PhaseName, string>> = {
  dns: 'name lookup',
  connect: 'connection',
  tls: 'TLS',
  wait: 'waiting for the answer',
  answer: 'reading the answer',
  lost: 'without an answer',
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
    // What is left is what was waited for in vain; nothing where it ended in one of the steps before.
    if (totalMs > atMs) phases.push({ name: 'lost', startMs: atMs, ms: totalMs - atMs })
    return phases
  }
  const firstMs = Math.max(firstByteMs, atMs)
  phases.push({ name: 'wait', startMs: atMs, ms: firstMs - atMs })
  phases.push({ name: 'answer', startMs: firstMs, ms: Math.max(0, totalMs - firstMs) })
  return phases
}

/** Whether no connection had to be made: one that stood was used again. */
export function isReused({ dnsMs, connectMs, tlsMs, firstByteMs }: Timings): boolean {
  return dnsMs === null && connectMs === null && tlsMs === null && firstByteMs !== null
}
