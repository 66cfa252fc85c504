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

export type NotificationListener = ReturnType<typeof createNotificationListener>

export function createNotificationListener({ database, onVersion, onLost, onReturn }: NotificationListenerOptions) {
  /** Listeners of additional channels on the same connection. */
  const payloadListeners = new Map<string, (payload: string) => void>()
  let current: Connection | null = null
  let timer: NodeJS.Timeout | undefined
  let pauseMs = FIRST_PAUSE_MS
  let isClosed = false

  async function connect(again: boolean): Promise<void> {
    try {
      const connection = await database.connect()
      if (isClosed) return connection.destroy()
      current = connection
      connection.onNotification = (channel, payload) => {
        if (channel === CHANNEL) onVersion(Number(payload))
        else payloadListeners.get(channel)?.(payload)
      }
      connection.onGone = () => {
        if (current !== connection) return
        current = null
        if (!isClosed) onLost()
        connectLater()
      }
      for (const channel of [CHANNEL, ...payloadListeners.keys()]) await connection.query(`LISTEN ${channel}`)
      pauseMs = FIRST_PAUSE_MS
      if (again && !isClosed) onReturn()
    } catch {
      if (current === null) connectLater()
      else current.destroy()
    }
  }

  function connectLater(): void {
    if (isClosed) return
    clearTimeout(timer)
    timer = setTimeout(() => void connect(true), pauseMs).unref()
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  }

  return {
    /** Adds a channel. Must be called before start(). */
    subscribe: (channel: string, onPayload: (payload: string) => void) => void payloadListeners.set(channel, onPayload),
    /** Resolves when it listens, or when the first attempt has failed and will be retried. */
    start: () => connect(false),
    close() {
      isClosed = true
      clearTimeout(timer)
      current?.destroy()
    },
  }
}
