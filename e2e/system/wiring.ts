// A source with webhooks for one test, so that many tests can share a service without seeing each other's messages. Reads the state of
// messages from the control API, as a user does.
//
//   const wiring = await wire(service, { urls: [receiver.url] })           or several destinations
//   const id = await wiring.track({ event: 'Tested' })                     sends and waits for the 200 → its messageId
//   await wiring.settled(id)                                               its delivery, as soon as it is no longer pending
//   await wiring.attempted(id, 2)                                          its delivery, after two attempts

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { eventually, type Waiting } from './signals.ts'

/** A running service, in this process or another. */
export interface Reachable {
  url: string
  api<T = unknown>(path: string, init?: { method?: string; body?: unknown }): Promise<T>
}

export interface DestinationSettings {
  /** The settings of a webhook. */
  urls?: string[]
  [setting: string]: unknown
}

export type State = 'pending' | 'delivered' | 'failed' | 'expired' | 'cancelled'

export interface AttemptView {
  attempt: number
  url: string
  address: string | null
  startedAt: string
  status: number | null
  reason: string | null
  error: string | null
  timings: { dnsMs: number | null; connectMs: number | null; tlsMs: number | null; firstByteMs: number | null; totalMs: number }
  responseStart: string | null
}

export interface DeliveryRow {
  id: string
  messageId: string | null
  destinationId: string
  state: State
  reason: string | null
  attemptCount: number
  replay: boolean
  nextAttemptAt: string | null
  settledAt: string | null
}

export interface Delivery extends DeliveryRow {
  attempts: AttemptView[]
  traceId: string | null
  request: { headers: Record<string, string>; body: string; note: string | null } | null
}

export interface MessageView {
  id: string
  messageId: string | null
  message: Record<string, unknown> | null
  sourceName: string | null
  traceId: string | null
  duplicates: { count: number; lastAt: string } | null
  deliveries: (DeliveryRow & { destinationName: string | null; attempts: AttemptView[] })[]
  skips: { destinationId: string | null; reason: string; rule: string | null; message: string }[]
  story: StoryEntry[]
  others: { id: string; sourceId: string; story: StoryEntry[] }[]
}

export interface StoryEntry {
  at: string | null
  what: string
  sentence: string
  destinationId: string | null
  deliveryId: string | null
}

export interface Wiring {
  sourceId: string
  writeKey: string
  destinationIds: string[]
  /** The id of the first destination. */
  destinationId: string
  /** Sends to the tracking API; rejects unless the call is acknowledged. */
  post(path: string, body: object, headers?: Record<string, string>): Promise<void>
  /** Sends messages in one batch. */
  send(messages: readonly object[], batch?: object): Promise<void>
  /** Makes a track call and returns its messageId. */
  track(fields?: object): Promise<string>
  message(messageId: string): Promise<MessageView>
  /** The delivery of a message to a destination (by default the first), as soon as it meets the condition. */
  delivery(messageId: string, passes: (delivery: Delivery) => boolean, options?: Waiting & { to?: string }): Promise<Delivery>
  settled(messageId: string, options?: Waiting & { to?: string }): Promise<Delivery>
  attempted(messageId: string, attempts: number, options?: Waiting & { to?: string }): Promise<Delivery>
  /** Changes the first destination. */
  change(settings: object): Promise<void>
}

export async function wire(service: Reachable, ...destinations: DestinationSettings[]): Promise<Wiring> {
  const { id: sourceId, writeKeys } = await service.api<{ id: string; writeKeys: string[] }>('/sources', {
    method: 'POST',
    body: { name: 'of a test' },
  })
  const writeKey = writeKeys[0] as string
  const destinationIds: string[] = []
  for (const [at, settings] of destinations.entries()) {
    const body = { name: at === 0 ? 'receiver' : `receiver ${at + 1}`, sourceIds: [sourceId], ...settings }
    destinationIds.push((await service.api<{ id: string }>('/destinations', { method: 'POST', body })).id)
  }
  const [destinationId = ''] = destinationIds

  const wiring: Wiring = {
    sourceId,
    writeKey,
    destinationIds,
    destinationId,
    async post(path, body, headers = {}) {
      const response = await fetch(`${service.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${writeKey}:`)}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
      assert.deepEqual([response.status, await response.json()], [200, { success: true }])
    },
    send: (messages, batch = {}) => wiring.post('/v1/batch', { batch: messages, ...batch }),
    async track(fields = {}) {
      const messageId = randomUUID()
      await wiring.post('/v1/track', { messageId, userId: 'u-1', event: 'Tested', ...fields })
      return messageId
    },
    message: (messageId) => service.api(`/messages/${encodeURIComponent(messageId)}`),
    delivery: (messageId, passes, { to = destinationId, ...waiting } = {}) =>
      eventually(
        async () => {
          const { deliveries } = await wiring.message(messageId)
          const own = deliveries.find((delivery) => delivery.destinationId === to && !delivery.replay)
          assert.ok(own, `${messageId} is not owed to ${to}`)
          return service.api<Delivery>(`/deliveries/${own.id}`)
        },
        passes,
        waiting,
      ),
    settled: (messageId, options) => wiring.delivery(messageId, ({ state }) => state !== 'pending', options),
    attempted: (messageId, attempts, options) => wiring.delivery(messageId, ({ attemptCount }) => attemptCount >= attempts, options),
    async change(settings) {
      await service.api(`/destinations/${destinationId}`, { method: 'PATCH', body: settings })
    },
  }
  return wiring
}
