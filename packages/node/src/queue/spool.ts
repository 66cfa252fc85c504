// The port of the spool: queued messages kept on disk until their outcome is known. The platform opens one; where there
// is no disk there is none. Messages are numbered in the order they were kept.

/** Messages `from` to `to`, both included. */
export interface SpoolRange {
  from: number
  to: number
}

export interface SpoolOptions {
  /** A folder used for nothing else; created if missing. Several processes, write keys and hosts may share it. */
  dir: string
  /** Most bytes kept at once. Default 64 MiB. */
  maxBytes?: number | undefined
}

/** The same, with nothing left open. */
export interface SpoolLimits {
  dir: string
  maxBytes: number
}

/** Where the messages of one client are kept. */
export interface SpoolPlace extends SpoolLimits {
  /** The write key and address that its messages are sent with. A client with another key or address never gets them. */
  sender: string
}

/** Messages of version 0.1 in the folder, which do not name their write key and are not sent. The text says what to do. */
export class MessagesWithoutKey extends Error {}

export interface Spool {
  /** Keeps a message and gives its number; undefined if it does not fit. Survives the process being killed from then on. */
  keep(json: string): number | undefined
  /** Their outcome is known: forget them. Also after close. */
  forget(ranges: SpoolRange[]): void
  /**
   * Gives back what processes that are gone have left for the same sender, each message once, with its number here; waits on `take` before
   * going on. Resolves when all that is there now is taken; looks again now and then, until close.
   */
  recover(take: (json: string, number: number) => Promise<void>): Promise<void>
  close(): void
}
