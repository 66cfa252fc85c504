// Words from node to node for those who watch: NOTIFY, on the connection that hears of changes. Nothing is kept, nothing is
// promised: a node that does not listen at that moment misses it, and a word that cannot be sent is let go.

import { randomBytes } from 'node:crypto'
import type { Channel } from '../../store.ts'
import type { Database } from '../session/database.ts'

const CHANNEL = 'switchyard_live'
const NAME_CHARACTERS = 8
/** PostgreSQL takes less than 8,000 bytes, the sender's name included. */
const MAX_BYTES = 7_900 - NAME_CHARACTERS
const DEADLINE_MS = 2_000
const MAX_WAITING = 8

export class LiveChannel implements Channel {
  readonly maxBytes = MAX_BYTES
  readonly #database: Database
  /** A node hears its own words, too, and has shown them already. */
  readonly #name = randomBytes(NAME_CHARACTERS / 2).toString('hex')
  readonly #listeners: ((text: string) => void)[] = []
  #isSending = false
  #waiting: string[] = []

  constructor(database: Database, news: { heed(channel: string, onWord: (word: string) => void): void }) {
    this.#database = database
    news.heed(CHANNEL, (word) => this.#heard(word))
  }

  /** One at a time: a slow server is not sent more than it takes, and what waits too long is let go. */
  publish(text: string): void {
    if (Buffer.byteLength(text) > MAX_BYTES || this.#waiting.length >= MAX_WAITING) return
    this.#waiting.push(text)
    if (!this.#isSending) void this.#send()
  }

  onMessage(listener: (text: string) => void): void {
    this.#listeners.push(listener)
  }

  async #send(): Promise<void> {
    this.#isSending = true
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      await this.#database.query('SELECT pg_notify($1, $2)', [CHANNEL, this.#name + text], DEADLINE_MS).catch(() => {})
    }
    this.#isSending = false
  }

  #heard(word: string): void {
    if (word.startsWith(this.#name)) return
    const text = word.slice(NAME_CHARACTERS)
    for (const listener of this.#listeners) listener(text)
  }
}
