// What lanes give to a sender.

import type { SegmentBody } from '../../store/port/stored-messages.ts'
import type { Destination, RowId } from '../../store/store.ts'
import type { Outcome } from './outcome.ts'
import type { SenderCommands, Start, Unsent } from './protocol.ts'

/** Messages that can be given to a sender. */
export interface Sendable {
  origin: RowId
  body: Pick<SegmentBody, 'about' | 'bytes' | 'absent' | 'parsed'>
  /** Whether the bytes are the text to be sent and not a stored body. */
  isText?: boolean
  indexes: readonly number[]
  /** Set while a sender has these messages; `destination` is its number there, `left` the number of messages that were not started. */
  loaded: { by: SenderCommands; destination: number; key: number; left: number } | null
}

/** Makes the sender forget messages that will not be started: the given ones, or all if `indexes` is missing. */
export function dropLoaded({ loaded }: Sendable, indexes: readonly number[] | null = null): void {
  if (loaded === null || loaded.left === 0) return
  loaded.by.drop(loaded.key, indexes)
  loaded.left -= indexes?.length ?? loaded.left
}

/** A request to some of a destination's URLs. */
export interface Work
  extends Pick<Start, 'isBatch' | 'attempt' | 'replay' | 'keepAnswer' | 'limit' | 'urls'>,
    Partial<Pick<Start, 'steps' | 'isPreview' | 'notAfterMs' | 'isLate'>> {
  destination: Destination
  /** Takes long, and nobody waits for it. */
  isBackground?: boolean
  /** In wall time. */
  startedAtMs: number
  messages: readonly { content: Sendable; index: number }[]
  /** Called once for each URL, never while the work is being started. `waitedMs`: how long it waited in the sender because of the limit. */
  answered(url: number, outcome: Outcome, waitedMs: number): void
  /** Called if some messages cannot be sent, at most once and before `answered`. `isOver`: none is left, and `answered` is not called. */
  unsent(unsent: readonly Unsent[], isOver: boolean): void
  /** Called if a bug prevented the request; `answered` is called as well. */
  bug(message: string): void
}
