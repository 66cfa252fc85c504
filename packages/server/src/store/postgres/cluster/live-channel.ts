// Sends live events between nodes with NOTIFY, on the connection that also listens for changes of the configuration. Delivery is best effort: a
// node that is not listening at that moment misses the event, and an event that cannot be sent is dropped.

import { randomBytes } from 'node:crypto'
import type { Channel } from '../../store.ts'
import type { Database } from '../session/database.ts'
import type { NotificationListener } from './notification-listener.ts'

const CHANNEL = 'switchyard_live'
const SENDER_ID_LENGTH = 8
/** PostgreSQL accepts payloads of less than 8,000 bytes, including the sender's id. */
const MAX_BYTES = 7_900 - SENDER_ID_LENGTH
const DEADLINE_MS = 2_000
const MAX_WAITING = 8

export function createLiveChannel(database: Database, listener: Pick<NotificationListener, 'subscribe'>): Channel {
  /** Prefixed to each payload, because a node also receives its own notifications and must ignore them. */
  const senderId = randomBytes(SENDER_ID_LENGTH / 2).toString('hex')
  const listeners: ((text: string) => void)[] = []
  const waiting: string[] = []
  let isSending = false

  async function send(): Promise<void> {
    isSending = true
    for (let text = waiting.shift(); text !== undefined; text = waiting.shift())
      await database.query('SELECT pg_notify($1, $2)', [CHANNEL, senderId + text], DEADLINE_MS).catch(() => {})
    isSending = false
  }

  listener.subscribe(CHANNEL, (payload) => {
    if (payload.startsWith(senderId)) return
    for (const onText of listeners) onText(payload.slice(SENDER_ID_LENGTH))
  })
  return {
    maxBytes: MAX_BYTES,
    /** Sends one event at a time, so that a slow server is not overloaded. Drops the event if too many are queued. */
    publish(text) {
      if (Buffer.byteLength(text) > MAX_BYTES || waiting.length >= MAX_WAITING) return
      waiting.push(text)
      if (!isSending) void send()
    },
    onMessage: (onText) => void listeners.push(onText),
  }
}
