// Listens for notifications about configuration changes by other nodes, on a separate connection. Notifications only make changes known
// sooner: if one is lost, polling the version once a second finds the change. A broken connection is reopened with backoff.

import type { Connection } from '../session/connection.ts'
import type { Database } from '../session/database.ts'
import { CHANNEL } from './configuration-change.ts'

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 5_000

export interface NotificationListenerOptions {
  database: Pick<Database, 'connect'>
  /** Called when a node has announced this version. */
  onVersion: (version: number) => void
  /** Called when the connection is lost. From then on the state in memory may be outdated, because the next connection may be to another server. */
  onLost: () => void
  /** Called when it listens again after a lost connection. Anything may have changed in between. */
  onReturn: () => void
}

export class NotificationListener {
  readonly #options: NotificationListenerOptions
  #connection: Connection | null = null
  #timer: NodeJS.Timeout | undefined
  #pauseMs = FIRST_PAUSE_MS
  #closed = false
  /** Listeners of additional channels on the same connection. */
  readonly #payloadListeners = new Map<string, (payload: string) => void>()

  constructor(options: NotificationListenerOptions) {
    this.#options = options
  }

  /** Adds a channel. Must be called before start(). */
  subscribe(channel: string, onPayload: (payload: string) => void): void {
    this.#payloadListeners.set(channel, onPayload)
  }

  /** Resolves when it listens, or when the first attempt has failed and will be retried. */
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
      connection.onNotification = (channel, payload) => {
        if (channel === CHANNEL) onVersion(Number(payload))
        else this.#payloadListeners.get(channel)?.(payload)
      }
      connection.onGone = () => this.#lost(connection)
      for (const channel of [CHANNEL, ...this.#payloadListeners.keys()]) await connection.query(`LISTEN ${channel}`)
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
