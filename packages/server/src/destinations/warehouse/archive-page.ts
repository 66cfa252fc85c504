// What is read from the archive of a lake at once, by a loader process.

export interface ArchiveRequest {
  /** The name of the source's schema in the lake. */
  schema: string
  afterMs: number
  beforeMs: number
  event?: string | undefined
  userId?: string | undefined
  /** Null: counts the messages instead. */
  page: { cursor: string | null; limit: number; maxCharacters: number } | null
}

export interface ArchivePage {
  /** In the order in which they were received. `cursor` continues after the message. */
  messages: { id: string; receivedAtMs: number; text: string; cursor: string }[]
  /** Null at the end. */
  cursor: string | null
}

export type ArchiveAnswer = ArchivePage | { size: number }

/** The archive could not be read. */
export class ArchiveProblem extends Error {
  override name = 'ArchiveProblem'
  /** The reason of the attempt, such as `warehouse_file_missing`. */
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}
