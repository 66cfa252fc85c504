// What an executor needs to run integrations. Only the executor in a host process has it (host/hosted-runs.ts).

import type { IntegrationDestination, StateEntry } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'

export interface RunWork {
  messages: readonly RunMessage[]
  /** The ids of the subscriptions that succeeded in an earlier attempt, which are not run again; null for none. */
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

/** Runs units of integration destinations. A sender that has none gets no such destination. */
export interface IntegrationRuns {
  /** Calls `done` once, never before it returns. */
  run(destination: IntegrationDestination, work: RunWork, done: (outcome: Outcome) => void): void
  /** The answer to `stateWanted`. */
  state?(destinationId: string, entries: readonly StateEntry[] | null): void
  /** Ends the runs in progress: what has no result yet ends as `aborted`. */
  close(): Promise<void>
}
