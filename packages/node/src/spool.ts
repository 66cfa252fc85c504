// The interface of the spool, which keeps queued messages on disk until their outcome is known. The platform implements it if
// it has a file system. Messages are numbered in the order in which they were written.

/** Messages `from` to `to`, both included. */
export interface SpoolRange {
  from: number
  to: number
}

export interface SpoolOptions {
  /** A folder that is used for nothing else; created if missing. Several processes, write keys and hosts may share it. */
  dir: string
  /** Maximum number of bytes on disk. Default: 64 MiB. */
  maxBytes?: number | undefined
}

/** The options with their defaults applied. */
export interface SpoolLimits {
  dir: string
  maxBytes: number
}

/** The location and limit of the messages of one client. */
export interface SpoolPlace extends SpoolLimits {
  /** The write key and URL that the messages are sent with. A client with another key or URL never gets them. */
  sender: string
}

/** The folder contains messages of version 0.1, which do not contain their write key and are not sent. The text says what to do. */
export class MessagesWithoutKey extends Error {}

export interface Spool {
  /** Writes a message and returns its number, or undefined if it does not fit. From then on it survives if the process is killed. */
  keep(json: string): number | undefined
  /** Deletes messages whose outcome is known. Also works after close. */
  forget(ranges: SpoolRange[]): void
  /**
   * Passes each message that dead processes left for the same sender to `take` once, with its new number, and awaits `take` before the
   * next one. Resolves when all messages found so far are taken. Repeats the search periodically until close.
   */
  recover(take: (json: string, number: number) => Promise<void>): Promise<void>
  close(): void
}
