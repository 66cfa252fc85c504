// What an executor needs to run integrations, or to load messages into warehouses. Only the executors in host processes (host/hosted-runs.ts) and loader
// processes (loader/load-runs.ts) have it.

import type { Destination, DestinationTypes, StateEntry } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'

export interface RunWork {
  messages: readonly RunMessage[]
  /** The ids of the subscriptions that succeeded in an earlier attempt, which are not run again; for a warehouse: the load. Null for none. */
  succeeded: readonly string[] | null
  /** Whether requests are kept with their headers and bodies. */
  keepsRequests: boolean
  isPreview: boolean
}

export interface RunMessage {
  /** The event as JSON. */
  text: string
  /** The ids of the subscriptions that match it. */
  steps: readonly string[]
}

export type HostedDestination = Exclude<Destination, DestinationTypes['webhook']>

/** Runs units of integration destinations, or of warehouses. A sender that has none gets no such destination. */
export interface IntegrationRuns {
  /** Calls `done` once, never before it returns. */
  run(destination: HostedDestination, work: RunWork, done: (outcome: Outcome) => void): void
  /** The answer to `stateWanted`. */
  state?(destinationId: string, entries: readonly StateEntry[] | null): void
  /** The answer to `asked`. */
  answer?(question: number, value: unknown, error: string | null): void
  /** Ends the runs in progress: what has no result yet ends as `aborted`. */
  close(): Promise<void>
}
