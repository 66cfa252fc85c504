// Rows of the queue whose messages are delivered in order have a negative attempt: see schema/migrations-from-6.ts.

/**
 * The partition of a new shipment that was accepted while one node delivered all partitions, so that its messages may belong to any of them. A node that
 * delivers only some partitions divides the shipment before it claims anything that comes after it.
 */
export const UNDIVIDED = 16

/** As what the head of a key that was resumed is stored. It has no first attempt yet. */
export const RESUMED = -2

/** The number of attempts made so far, from the columns `attempt` and `first_attempt`. */
export function attemptsOf(attempt: number, firstAttempt: number | null): number {
  if (attempt === RESUMED && firstAttempt === null) return 0
  return attempt < 0 ? -1 - attempt : attempt
}
