// Sends the calls of the shop with @switchyard/node at a constant rate, and remembers which messages were acknowledged. Invalid calls,
// which the client would not send, are sent with fetch, as an old version of the app might.

import { Analytics, type Callback } from '@switchyard/node'
import type { ServiceProcess } from './service-process.ts'
import { type Call, Random, type Shop, type SourcedCall, type SourceName } from './shop.ts'

const TICK_MS = 100
const HISTORY = 400
const HISTORY_HOURS = 3
const FLUSH_MS = 500
/** The first deletion request comes early, so that there is one to look at. */
const FIRST_DELETION_MS = 2_000
const DELETION_EVERY_MS = 120_000
const BAD_CALL_EVERY_MS = 3_500

/** Invalid calls that an old version of the app sends now and then. None is stored; the dashboard counts them by error code. */
const BAD_CALLS: readonly string[] = [
  '{"userId":"cus-1007-5e1a","properties":{"code":"SPRING"}}',
  '{"event":"Coupon Entered","properties":{"code":"SPRING"}}',
  '{"userId":1007,"event":"Coupon Entered"}',
  '{"userId":"cus-1007-5e1a","event":"Coupon Entered","properties":"code=SPRING"}',
  '{"userId":"cus-1007-5e1a","event":"Coupon Ent',
]

export class Traffic {
  rate: number
  sent = 0
  /** The userId of every message that the service acknowledged, by messageId. */
  readonly acknowledged = new Map<string, string | undefined>()
  /** Users whose deletion was requested; their messages may be missing at the receivers. */
  readonly forgotten = new Set<string>()
  /** The number of rejected calls: those that the client reports as failed, and the invalid ones. */
  refused = 0
  duplicates = 0
  /** An order that the user can trace. */
  example: { messageId: string; userId: string } | undefined
  /** While the shop is closed, nothing is sent. */
  isPaused = false
  readonly #service: ServiceProcess
  readonly #shop: Shop
  readonly #clients: Record<SourceName, Analytics>
  readonly #writeKeys: Record<SourceName, string>
  readonly #random = new Random(7)
  readonly #timers: NodeJS.Timeout[] = []
  readonly #inFlight = new Set<Promise<unknown>>()
  readonly #onFailure: (what: string) => void

  constructor(
    service: ServiceProcess,
    shop: Shop,
    { writeKeys, rate, onFailure }: { writeKeys: Record<SourceName, string>; rate: number; onFailure: (what: string) => void },
  ) {
    this.#service = service
    this.#shop = shop
    this.rate = rate
    this.#writeKeys = writeKeys
    this.#onFailure = onFailure
    this.#clients = { web: this.#client(writeKeys.web), app: this.#client(writeKeys.app) }
  }

  /** Sends the messages of the last three hours as a historical import, with their original timestamps. Charts count them when they arrive. */
  async importHistory(): Promise<number> {
    const { web, app } = this.#writeKeys
    const clients = { web: this.#client(web, true), app: this.#client(app, true) }
    const now = Date.now()
    for (let at = 0; at < HISTORY; at++) {
      const timestamp = new Date(now - (1 - at / HISTORY) * HISTORY_HOURS * 3_600_000)
      this.#send(clients, this.#shop.next(), { timestamp })
    }
    await Promise.all([clients.web.closeAndFlush({ timeout: 10_000 }), clients.app.closeAndFlush({ timeout: 10_000 })])
    return HISTORY
  }

  start(): void {
    let last = performance.now()
    let owed = 0
    this.#timers.push(
      setInterval(() => {
        const now = performance.now()
        // Caps the time at 1 s, so that no burst follows after the machine was asleep.
        owed += Math.min((now - last) / 1_000, 1) * this.rate
        last = now
        if (this.isPaused) owed = 0
        for (; owed >= 1; owed--) this.#step()
      }, TICK_MS),
      setInterval(() => this.#badCall(), BAD_CALL_EVERY_MS),
      setInterval(() => this.#forget(), DELETION_EVERY_MS),
      setTimeout(() => this.#forget(), FIRST_DELETION_MS),
    )
    this.#badCall()
  }

  /** Stops sending. Resolves when every call has an outcome, or after the timeout. */
  async stop(timeoutMs: number): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    const timeout = timeoutMs
    await Promise.all([this.#clients.web.closeAndFlush({ timeout }), this.#clients.app.closeAndFlush({ timeout }), ...this.#inFlight])
  }

  #client(writeKey: string, historical = false): Analytics {
    const client = new Analytics({ writeKey, host: this.#service.url, flushInterval: FLUSH_MS, historical, flushAt: historical ? 100 : 15 })
    return client.on('error', ({ message }) => this.#onFailure(message))
  }

  #step(): void {
    const call = this.#shop.next()
    // Simulates a job that ran twice: the same message is sent again.
    if (call.type === 'track' && call.params.event === 'Order Completed' && this.#random.chance(0.25)) {
      const messageId = `order-${String(call.params.properties?.['order_id'])}`
      this.duplicates += 1
      this.#send(this.#clients, call, { messageId })
      this.#send(this.#clients, call, { messageId })
    } else this.#send(this.#clients, call)
  }

  #send(
    clients: Record<SourceName, Analytics>,
    { source, ...call }: SourcedCall,
    more: { timestamp?: Date; messageId?: string } = {},
  ): void {
    this.sent += 1
    callClient(clients[source], call, more, (error, context) => {
      if (error !== undefined) {
        this.refused += 1
        return
      }
      const messageId = context?.event.messageId as string
      const { userId } = call.params
      this.acknowledged.set(messageId, userId)
      if (userId !== undefined && call.type === 'track' && call.params.event === 'Order Completed') this.example ??= { messageId, userId }
    })
  }

  #badCall(): void {
    if (this.isPaused) return
    const body = this.#random.pick(BAD_CALLS)
    this.sent += 1
    this.refused += 1
    const authorization = `Basic ${btoa(`${this.#writeKeys.app}:`)}`
    this.#run(fetch(`${this.#service.url}/v1/track`, { method: 'POST', headers: { authorization }, body }).then((answer) => answer.text()))
  }

  /** Requests the deletion of a user: their messages are deleted, every destination is notified, and the user's later messages are dropped. */
  #forget(): void {
    if (this.isPaused) return
    const userId = this.#shop.leave(this.example?.userId)
    if (userId === undefined) return
    this.forgotten.add(userId)
    this.#run(this.#service.api('POST', '/deletions', { userIds: [userId], suppress: true }))
  }

  #run(work: Promise<unknown>): void {
    const watched: Promise<unknown> = work
      .catch((error: unknown) => this.#onFailure((error as Error).message))
      .finally(() => this.#inFlight.delete(watched))
    this.#inFlight.add(watched)
  }
}

function callClient(client: Analytics, call: Call, more: { timestamp?: Date; messageId?: string }, callback: Callback): void {
  switch (call.type) {
    case 'identify':
      return void client.identify({ ...call.params, ...more }, callback)
    case 'track':
      return void client.track({ ...call.params, ...more }, callback)
    case 'page':
      return void client.page({ ...call.params, ...more }, callback)
    case 'screen':
      return void client.screen({ ...call.params, ...more }, callback)
    case 'group':
      return void client.group({ ...call.params, ...more }, callback)
    case 'alias':
      return void client.alias({ ...call.params, ...more }, callback)
  }
}
