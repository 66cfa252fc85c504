// Remembers at which row the scan of a destination's pending shipments starts. The index still contains entries of rows that were already
// claimed until the server has vacuumed them, which it cannot do while an old snapshot is open. Skipping these entries in every scan would
// take longer and longer. So a scan starts where the last one ended, and only now and then at the front, where released rows
// are. The longer a scan from the front took, the later the next one.

import { rowIdAt } from '../tables/ids.ts'

const FRONT = '0'
const FRONT_EVERY_MS = 2_000
/** The largest fraction of time that is spent on scans from the front. */
const FRONT_TIME_FRACTION = 0.02
/** The upper limit of that pause. A scan may take long just because the server is slow, and only a scan from the front finds what another node released. */
const FRONT_AT_LEAST_EVERY_MS = 30_000
/** New rows have row ids later than the current time minus this, whichever node creates them. */
const SKEW_MS = 60_000

interface ScanPosition {
  after: string
  frontAt: number
}

export class ScanPositions {
  readonly #positions = new Map<string, ScanPosition>()
  readonly #serverMs: () => number
  readonly #now: () => number

  constructor(serverMs: () => number, now: () => number = () => performance.now()) {
    this.#serverMs = serverMs
    this.#now = now
  }

  /** The next scan covers the rows after this row id; '0' for all rows. */
  from(destinationId: string): string {
    const position = this.#positions.get(destinationId)
    return position === undefined || position.frontAt <= this.#now() ? FRONT : position.after
  }

  /** Records that a scan from `from` reached the row `last`, or found nothing if it is null. */
  scanned(destinationId: string, from: string, last: string | null, tookMs: number): void {
    const before = this.#positions.get(destinationId)
    // forget() was called since this scan began, so the scan did not see the rows that were released.
    if (before === undefined && from !== FRONT) return
    // If nothing was found, new rows have later row ids than this.
    const after = last ?? (from === FRONT ? rowIdAt(this.#serverMs() - SKEW_MS) : from)
    const frontAt = from === FRONT || before === undefined ? this.#now() + pauseAfter(tookMs) : before.frontAt
    this.#positions.set(destinationId, { after, frontAt })
  }

  /** Makes the next scan start at the front, because rows may have been released. */
  forget(destinationId: string): void {
    this.#positions.delete(destinationId)
  }

  clear(): void {
    this.#positions.clear()
  }
}

function pauseAfter(tookMs: number): number {
  return Math.min(FRONT_AT_LEAST_EVERY_MS, Math.max(FRONT_EVERY_MS, tookMs / FRONT_TIME_FRACTION))
}
