// The part of a supervised process that talks to its supervisor. It reads its assignment, sends heartbeats, reports its metrics when it is
// asked, and asks for the metrics of all processes. supervisor.ts is the other side.

import cluster from 'node:cluster'
import { withTimeout } from '../../timing/with-timeout.ts'

/** Internal: the supervisor passes the assignment to a process in this variable. */
export const ASSIGNMENT_VARIABLE = 'SWITCHYARD_ASSIGNMENT'

export interface Assignment {
  /** From 1. A process that replaces another one gets the same index. */
  index: number
  /** Differs from the setting if that is 0 and a port has been picked. */
  port: number
  /** Whether to print the start message. Only one process does. */
  announces: boolean
}

/** In both directions: `metrics-wanted` is answered by `metrics` with the same number. The text is null if there is none. */
export type ProcessMessage =
  | { kind: 'heartbeat' }
  | { kind: 'metrics-wanted'; request: number }
  | { kind: 'metrics'; request: number; text: string | null }

export interface Supervised extends Assignment {
  /** Returns a function that gets the metrics of all processes, or null if the supervisor does not answer. `own` are those of this process. */
  combineMetrics(own: () => Promise<string>): () => Promise<string | null>
  /** Called if the supervisor has ended. The process must then stop by itself. */
  onOrphaned(listener: () => void): void
}

export const HEARTBEAT_MS = 1_000
/** Longer than the supervisor waits for the processes. */
const METRICS_MS = 5_000

/** Returns null if this process was not started by a supervisor. */
export function connectToSupervisor(): Supervised | null {
  const { worker } = cluster
  const given = process.env[ASSIGNMENT_VARIABLE]
  if (worker === undefined || given === undefined) return null
  // Processes and threads that this process starts are not supervised, so they must not inherit it.
  delete process.env[ASSIGNMENT_VARIABLE]
  const waiting = new Map<number, (text: string | null) => void>()
  let requests = 0
  let own = (): Promise<string | null> => Promise.resolve(null)

  worker.on('message', (message: ProcessMessage) => {
    if (message.kind === 'metrics') waiting.get(message.request)?.(message.text)
    if (message.kind !== 'metrics-wanted') return
    void own()
      .catch(() => null)
      .then((text) => send({ kind: 'metrics', request: message.request, text }))
  })
  send({ kind: 'heartbeat' })
  setInterval(() => send({ kind: 'heartbeat' }), HEARTBEAT_MS).unref()

  async function metricsOfAll(): Promise<string | null> {
    const request = ++requests
    const answered = new Promise<string | null>((resolve) => waiting.set(request, resolve))
    send({ kind: 'metrics-wanted', request })
    try {
      return await withTimeout(METRICS_MS, answered, null)
    } finally {
      waiting.delete(request)
    }
  }

  return {
    ...(JSON.parse(given) as Assignment),
    combineMetrics(text) {
      own = text
      return metricsOfAll
    },
    onOrphaned(listener) {
      worker.on('disconnect', () => {
        // Otherwise node:cluster ends the process at once.
        worker.exitedAfterDisconnect = true
        listener()
      })
    },
  }
}

function send(message: ProcessMessage): void {
  // A supervisor that has ended is noticed by the disconnect.
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}
