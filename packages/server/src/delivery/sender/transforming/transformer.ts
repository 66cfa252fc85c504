// The interface of whatever runs transformations: the user's code, on the messages of one destination.

import type { Transformation } from '../../../store/store.ts'

/** The most that a transformation may return for a message: four times the size of the largest message that is accepted. */
export const MAX_RESULT_BYTES = 128 * 1024

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

/** What is wrong with the code of a transformation, and where, from 1. */
export interface CodeProblem {
  line: number | null
  column: number | null
  message: string
}

export interface Transformer {
  /**
   * Calls `done` once, with one result per message in order, never before it returns. Returns a function that cancels the call: the results are
   * no longer needed, and `done` is not called.
   */
  run(
    destinationId: string,
    transformation: Transformation,
    inputs: readonly TransformInput[],
    done: (results: readonly TransformResult[]) => void,
  ): () => void
  close(): Promise<void>
}
