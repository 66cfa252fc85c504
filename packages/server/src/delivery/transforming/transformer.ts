// The interface of whatever runs transformations: the user's code, on the messages of one destination.

import type { Transformation } from '../../store/store.ts'

export interface TransformInput {
  /** The outbound message as JSON. */
  text: string
  receivedAtMs: number
  messageId: string
}

export type TransformResult =
  | { kind: 'changed'; text: string; logs: string | null }
  | { kind: 'dropped'; logs: string | null }
  /** The code failed. `error` is a sentence with the line. */
  | { kind: 'failed'; error: string; logs: string | null }
  /** The code did not run, for a reason of the service. The delivery is retried. */
  | { kind: 'unavailable'; error: string }

export interface Transformer {
  /** Calls `done` once, with one result per message in order, never before it returns. */
  run(
    destinationId: string,
    transformation: Transformation,
    inputs: readonly TransformInput[],
    done: (results: readonly TransformResult[]) => void,
  ): void
  close(): Promise<void>
}

/** Runs nothing: stands in where the sandbox is not built yet. */
export const NO_TRANSFORMER: Transformer = {
  run(_destinationId, _transformation, inputs, done) {
    queueMicrotask(() => done(inputs.map(() => ({ kind: 'unavailable', error: 'transformations cannot run in this process' }))))
  },
  close: () => Promise.resolve(),
}
