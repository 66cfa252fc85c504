// Word of changes that other nodes made to the configuration, on a connection of its own. It only makes them known sooner: what is
// lost here is found by asking for the version once a second. A connection that breaks is opened again, with pauses.

import type { Connection } from '../session/connection.ts'
import type { Database } from '../session/database.ts'
import { CHANNEL } from './configuration-change.ts'

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 5_000

export interface NotificationListenerOptions {
  database: Pick<Database, 'connect'>
  /** There is a version of this number. */
  onVersion: (version: number) => void
  /** It listens no more. What is known may be wrong from now on: the server that comes back may be another. */
  onLost: () => void
  /** It listens again after it did not: anything may have happened. */
  onReturn: () => void
}

export class NotificationListener {
  readonly #options: NotificationListenerOptions
  #connection: Connection | null = null
  #timer: NodeJS.Timeout | undefined
  #pauseMs = FIRST_PAUSE_MS
  #closed = false
  /** What others want to hear of on the same connection. */
  readonly #heeded = new Map<string, (word: string) => void>()

  constructor(options: NotificationListenerOptions) {
    this.#options = options
  }

  /** One more channel, before the start. */
  heed(channel: string, onWord: (word: string) => void): void {
    this.#heeded.set(channel, onWord)
  }

  /** Resolves when it listens, or could not and will try again. */
  start(): Promise<void> {
    return this.#connect(false)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#connection?.destroy()
  }

  async #connect(again: boolean): Promise<void> {
    const { database, onVersion, onReturn } = this.#options
    try {
      const connection = await database.connect()
      if (this.#closed) return connection.destroy()
      this.#connection = connection
      connection.onNotification = (channel, word) => {
        if (channel === CHANNEL) onVersion(Number(word))
        else this.#heeded.get(channel)?.(word)
      }
      connection.onGone = () => this.#lost(connection)
      for (const channel of [CHANNEL, ...this.#heeded.keys()]) await connection.query(`LISTEN ${channel}`)
      this.#pauseMs = FIRST_PAUSE_MS
      if (again && !this.#closed) onReturn()
    } catch {
      if (this.#connection === null) this.#later()
      else this.#connection.destroy()
    }
  }

  #lost(connection: Connection): void {
    if (this.#connection !== connection) return
    this.#connection = null
    if (!this.#closed) this.#options.onLost()
    this.#later()
  }

  #later(): void {
    if (this.#closed) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#connect(true), this.#pauseMs).unref()
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
  }
}
