// Sends live events between nodes with NOTIFY, on the connection that also listens for changes of the configuration. Delivery is best effort: a
// node that is not listening at that moment misses the event, and an event that cannot be sent is dropped.

import { randomBytes } from 'node:crypto'
import type { Channel } from '../../store.ts'
import type { Database } from '../session/database.ts'

const CHANNEL = 'switchyard_live'
const SENDER_ID_LENGTH = 8
/** PostgreSQL accepts payloads of less than 8,000 bytes, including the sender's id. */
const MAX_BYTES = 7_900 - SENDER_ID_LENGTH
const DEADLINE_MS = 2_000
const MAX_WAITING = 8

export class LiveChannel implements Channel {
  readonly maxBytes = MAX_BYTES
  readonly #database: Database
  /** Prefixed to each payload, because a node also receives its own notifications and must ignore them. */
  readonly #senderId = randomBytes(SENDER_ID_LENGTH / 2).toString('hex')
  readonly #listeners: ((text: string) => void)[] = []
  #isSending = false
  #waiting: string[] = []

  constructor(database: Database, listener: { subscribe(channel: string, onPayload: (payload: string) => void): void }) {
    this.#database = database
    listener.subscribe(CHANNEL, (payload) => this.#receive(payload))
  }

  /** Sends one event at a time, so that a slow server is not overloaded. Drops the event if too many are queued. */
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
      await this.#database.query('SELECT pg_notify($1, $2)', [CHANNEL, this.#senderId + text], DEADLINE_MS).catch(() => {})
    }
    this.#isSending = false
  }

  #receive(payload: string): void {
    if (payload.startsWith(this.#senderId)) return
    const text = payload.slice(SENDER_ID_LENGTH)
    for (const listener of this.#listeners) listener(text)
  }
}
