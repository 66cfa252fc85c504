// The three receivers: a healthy one that accepts everything, a flaky one, and a dead one that can be started by hand. Each verifies
// signatures as a real receiver does and counts the messages that it accepted; the final report compares this count with the ledger.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { generateSecret, type VerifiedWebhook, verify } from '@switchyard/webhook'
import type { Random } from './shop.ts'

export interface Secrets {
  sharedSecret: string
  signingSecrets: string[]
}

/** How to respond. The messages are counted as accepted only if the status is 2xx. */
export interface Answer {
  status: number
  afterMs?: number
  body?: string
}

export type Behaviour = (webhook: VerifiedWebhook) => Answer

export class Receiver {
  readonly secrets: Secrets = { sharedSecret: generateSecret().slice('whsec_'.length), signingSecrets: [generateSecret()] }
  /** The ids of all messages that it answered with 2xx. */
  readonly acceptedIds = new Set<string>()
  /** The number of requests with an invalid signature. Must stay 0. */
  badSignatures = 0
  /** The number of messages that it had already accepted: delivery is at least once. */
  repeats = 0
  requests = 0
  port = 0
  readonly #behaviour: Behaviour
  #server = createServer()
  /** Sends the responses that are delayed on purpose. */
  readonly #late = new Set<() => void>()

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hooks/switchyard`
  }

  get isUp(): boolean {
    return this.#server.listening
  }

  /** Starts to listen. After a stop, it listens on the same port as before. */
  start(): Promise<void> {
    this.#server = createServer((request, response) => void this.#receive(request, response))
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.port, '127.0.0.1', () => {
        this.port = (this.#server.address() as AddressInfo).port
        resolve()
      })
    })
  }

  /** Closes all connections. From then on, its port refuses connections. */
  async stop(): Promise<void> {
    this.hurry()
    if (!this.#server.listening) return
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  /** Sends all delayed responses now. */
  hurry(): void {
    for (const answer of this.#late) answer()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const result = await verify(request, this.secrets)
    this.requests += 1
    if (!result.ok) {
      // A request that was cut off fails verification too, but does not count as one with an invalid signature.
      if (!request.complete) return
      this.badSignatures += 1
      return void response.writeHead(result.status).end(result.code)
    }
    const { status, afterMs = 0, body = '' } = this.#behaviour(result)
    if (afterMs > 0) await this.#wait(afterMs)
    if (response.destroyed) return
    if (status < 300) for (const message of result.messages) this.#accept(message, String(request.headers['webhook-id']))
    response.writeHead(status, { 'content-type': 'text/plain' }).end(body)
  }

  #accept(message: object, webhookId: string): void {
    // A delete message has no messageId, and is never in a batch with other messages.
    const id = (message as { messageId?: string }).messageId ?? webhookId
    if (this.acceptedIds.has(id)) this.repeats += 1
    else this.acceptedIds.add(id)
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const answer = (): void => {
        clearTimeout(timer)
        this.#late.delete(answer)
        resolve()
      }
      const timer = setTimeout(answer, ms)
      this.#late.add(answer)
    })
  }
}

/** How often a period with more failures begins, and how long it lasts. */
const OUTAGE_EVERY_MS = 45_000
const OUTAGE_MS = 9_000

/** Mostly healthy, sometimes slow or answering 500 or 503, six times as often during an outage. Rejects half of the group calls with 422, which is not retried. */
export function flaky(random: Random, isOn: () => boolean): Behaviour {
  const startedMs = performance.now()
  return ({ messages }) => {
    const [message] = messages as { type?: string; event?: string }[]
    if (!isOn()) return { status: 204, afterMs: 15 + random.below(30) }
    // The first outage comes early, after 12 s, so that there is something to see in the first minute.
    const sinceMs = performance.now() - startedMs + OUTAGE_EVERY_MS - 12_000
    const isOutage = sinceMs % OUTAGE_EVERY_MS < OUTAGE_MS
    if (message?.type === 'group' && random.chance(0.5))
      return { status: 422, afterMs: 20, body: '{"error":"unknown industry","field":"traits.industry"}' }
    const dice = random.next() / (isOutage ? 6 : 1)
    if (dice < 0.03) return { status: 503, afterMs: 10, body: 'upstream is restarting, please try again' }
    if (dice < 0.05) return { status: 500, afterMs: 60, body: 'deadlock detected' }
    // Longer than the timeout of five seconds.
    if (dice < 0.053) return { status: 204, afterMs: 8_000 }
    if (dice < 0.1) return { status: 204, afterMs: 700 + random.below(2_300) }
    return { status: 204, afterMs: 15 + random.below(60) }
  }
}
