// The commands and reports between the main thread and a sender. A sender builds requests from messages, signs them, sends them, and
// reports their outcomes. It makes no decisions: lanes decide when a message is sent, and what follows from an outcome. A sender may run
// in this thread, in another one (thread-channel.ts) or in another process (host-channel.ts). Only these types are known on both sides.

import type { SegmentAbout } from '../../store/port/stored-messages.ts'
import type { Destination, RowId, SegmentContent, StateEntry } from '../../store/store.ts'
import type { Outcome, Rejected } from './outcome.ts'

/**
 * Why a message is not sent, although its delivery is pending: it was deleted, its stored bytes are damaged, or the settings of the destination do
 * not let it pass. Or it was left out, because the batch is too large for one request: it stays loaded, to be sent in another one.
 */
export type Unsendable = 'deleted' | 'unreadable' | 'left_out' | Rejected

/** A message of a unit that is not sent. */
export interface Unsent {
  /** In the list of the unit's messages. */
  position: number
  why: Unsendable
}

/** Messages that a sender is given, to be sent later. */
export interface Load {
  /** The number by which units refer to these messages. */
  key: number
  /** The number of the destination that they are prepared for. */
  destination: number
  origin: RowId
  about: SegmentAbout
  /** The stored body; or, in a test request, the one text to be sent. */
  body: Uint8Array
  isText: boolean
  /** The parsed body, if it is in memory and the sender is in this thread. */
  parsed: SegmentContent | null
  absent: readonly number[]
  /** The messages that will be sent, each once. When all were sent or dropped, the sender forgets the load. */
  indexes: readonly number[]
}

/** One request to each of its URLs. */
export interface Start {
  unit: number
  /** The number under which the destination was defined. */
  destination: number
  isBatch: boolean
  /** From 1. */
  attempt: number
  replay: boolean
  /** The wall time of the attempt. */
  atMs: number
  /** Keeps the start of the answer on success, too. */
  keepAnswer: boolean
  /** The most units of the destination that may be in flight. More wait in the sender, which starts each when another has ended. */
  limit: number
  /** Indexes in the list of the destination's URLs. */
  urls: readonly number[]
  /** For an integration: the ids of the subscriptions that succeeded before and are not run again; for a warehouse: the load; null for none. */
  steps: readonly string[] | null
  /** For an integration: records what it would send, and dials nothing. */
  isPreview: boolean
  /** Ends as `aborted` if it was not started at this time of the machine's monotonic clock (timing/monotonic.ts); null for no limit. */
  notAfterMs: number | null
  /** Messages that came after it were started earlier. So it starts before all waiting units that are not late. */
  isLate: boolean
  /** The messages: key of the load and index in turn. */
  messages: readonly number[]
}

/** Commands to a sender. They take effect in order. */
export interface SenderCommands {
  /** Makes the settings of a destination known under a number. */
  define(number: number, destination: Destination): void
  /** Forgets a destination. Units in flight are finished; those that wait end as `aborted`. */
  forget(number: number): void
  /** Ends the units of a destination that wait as `aborted`. */
  recall(number: number): void
  /** Lets the units of a destination that wait go on, after a temporary failure has stopped them. */
  resume(number: number): void
  /** Changes how many units of a destination may be in flight, until the next unit is started. */
  limit(number: number, limit: number): void
  load(load: Load): void
  start(start: Start): void
  /** Only to hosts: what the integration keeps between messages, as it is stored; null if it could not be read. */
  state?(destinationId: string, entries: readonly StateEntry[] | null): void
  /** Only to loaders: the answer to `asked`; `error` if there is none. */
  answer?(question: number, value: unknown, error: string | null): void
  /** Forgets messages that were loaded and not started: all of a load if `indexes` is null. */
  drop(key: number, indexes: readonly number[] | null): void
}

/** What carries out the commands. */
export interface CommandTarget extends SenderCommands {
  /** Waits a moment for units in flight, then ends the others as `aborted`. No command may follow. */
  drain(): Promise<void>
}

/** The tokens that an integration has got with a refresh token, which may no longer be valid. */
export interface RenewedTokens {
  accessToken: string
  refreshToken: string | null
  usedRefreshToken: string | null
}

/** Reports of a sender. Each URL of a unit gets one outcome, unless none of its messages can be sent. */
export interface SenderReports {
  /** `waitedMs`: how long the unit waited in the sender before it was started. */
  outcome: (unit: number, url: number, outcome: Outcome, waitedMs: number) => void
  /** Some messages of a unit are not sent. `isOver`: no other is left, so there will be no outcome. */
  unsent: (unit: number, unsent: readonly Unsent[], isOver: boolean) => void
  /** A bug prevented the request of a unit. Its URLs get outcomes nevertheless. */
  bug: (unit: number, message: string) => void
  /** An integration has renewed its tokens. Only hosts report this. */
  tokens?: (destinationId: string, renewed: RenewedTokens) => void
  /** A host needs what an integration keeps between messages. The command `state` answers it. */
  stateWanted?: (destinationId: string) => void
  /** A loader needs something that is stored, or has it stored. The command `answer` answers it. */
  asked?: (question: number, about: unknown) => void
}
