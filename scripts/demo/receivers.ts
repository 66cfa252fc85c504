// The three who are sent to: one that takes everything, one that has bad moments, one that is not there until somebody wakes it. Each
// checks signatures as a real receiver does and keeps its own count of what it took, which the end of the demo holds against the books.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { generateSecret, type VerifiedWebhook, verify } from '@switchyard/webhook'
import type { Random } from './shop.ts'

export interface Secrets {
  sharedSecret: string
  signingSecrets: string[]
}

/** How to answer; nothing is done with the messages where it is not 2xx. */
export interface Answer {
  status: number
  afterMs?: number
  body?: string
}

export type Behaviour = (webhook: VerifiedWebhook) => Answer

export class Receiver {
  readonly secrets: Secrets = { sharedSecret: generateSecret().slice('whsec_'.length), signingSecrets: [generateSecret()] }
  /** Every message that it answered with 2xx, once. */
  readonly taken = new Set<string>()
  /** Requests whose signature was not right: there must be none. */
  badSignatures = 0
  /** Messages that it had taken before: deliveries are at least once. */
  repeats = 0
  requests = 0
  port = 0
  readonly #behaviour: Behaviour
  #server = createServer()
  /** Answers that are late on purpose. */
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

  /** Listens, at the same port as before. */
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

  /** From now on its port refuses connections. */
  async stop(): Promise<void> {
    this.hurry()
    if (!this.#server.listening) return
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  /** What is held back is answered now. */
  hurry(): void {
    for (const answer of this.#late) answer()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const result = await verify(request, this.secrets)
    this.requests += 1
    if (!result.ok) {
      // A request that was cut off in the middle has no right signature either, and is none.
      if (!request.complete) return
      this.badSignatures += 1
      return void response.writeHead(result.status).end(result.code)
    }
    const { status, afterMs = 0, body = '' } = this.#behaviour(result)
    if (afterMs > 0) await this.#wait(afterMs)
    if (response.destroyed) return
    if (status < 300) for (const message of result.messages) this.#take(message, String(request.headers['webhook-id']))
    response.writeHead(status, { 'content-type': 'text/plain' }).end(body)
  }

  #take(message: object, webhookId: string): void {
    // A delete message has no id of its own, and never comes together with others.
    const id = (message as { messageId?: string }).messageId ?? webhookId
    if (this.taken.has(id)) this.repeats += 1
    else this.taken.add(id)
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

/** How often it has a bad time, and for how long. */
const SPELL_EVERY_MS = 45_000
const SPELL_MS = 9_000

/** Mostly well; now and then slow, 500 or 503, more so in spells; and it refuses for good what it calls incomplete. */
export function flaky(random: Random, isOn: () => boolean): Behaviour {
  const startedMs = performance.now()
  return ({ messages }) => {
    const [message] = messages as { type?: string; event?: string }[]
    if (!isOn()) return { status: 204, afterMs: 15 + random.below(30) }
    // The first spell comes early, so that there is something to see in the first minute.
    const sinceMs = performance.now() - startedMs + SPELL_EVERY_MS - 12_000
    const isSpell = sinceMs % SPELL_EVERY_MS < SPELL_MS
    if (message?.type === 'group' && random.chance(0.5))
      return { status: 422, afterMs: 20, body: '{"error":"unknown industry","field":"traits.industry"}' }
    const dice = random.next() / (isSpell ? 6 : 1)
    if (dice < 0.03) return { status: 503, afterMs: 10, body: 'upstream is restarting, please try again' }
    if (dice < 0.05) return { status: 500, afterMs: 60, body: 'deadlock detected' }
    // Longer than the five seconds that an answer may take.
    if (dice < 0.053) return { status: 204, afterMs: 8_000 }
    if (dice < 0.1) return { status: 204, afterMs: 700 + random.below(2_300) }
    return { status: 204, afterMs: 15 + random.below(60) }
  }
}
