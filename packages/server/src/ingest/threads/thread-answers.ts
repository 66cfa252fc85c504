// Gives the requests of one ingest thread to what decides about them, and collects the answers: those of one turn of the event loop are one message.

import type { Deciding } from '../deciding.ts'
import { type AnswerPacket, FIELDS, type RequestFields, type RequestPacket } from './protocol.ts'
import { type Answers, RemoteExchange } from './remote-exchange.ts'

/** What the main thread does with the requests of a thread. */
export type Decides = Pick<Deciding, 'receive' | 'unread'>

export class ThreadAnswers implements Answers {
  readonly #deciding: Decides
  readonly #post: (packet: AnswerPacket) => void
  #packet: AnswerPacket = { succeeded: [] }
  #isScheduled = false

  constructor(deciding: Decides, post: (packet: AnswerPacket) => void) {
    this.#deciding = deciding
    this.#post = post
  }

  receive({ fields, bytes }: RequestPacket): void {
    const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let start = 0
    for (let at = 0; at < fields.length; at += FIELDS) {
      const request = fields.slice(at, at + FIELDS) as RequestFields
      const body = request[FIELDS - 1] as RequestFields[6]
      const exchange = new RemoteExchange(request, this)
      if (typeof body === 'string') this.#deciding.unread(exchange, body)
      else {
        this.#deciding.receive(exchange, all.subarray(start, start + body))
        start += body
      }
    }
  }

  success(id: number): void {
    this.#scheduled().succeeded.push(id)
  }

  json(id: number, status: number, text: string, headers: readonly string[]): void {
    const packet = this.#scheduled()
    packet.answers ??= []
    packet.answers.push([id, status, text, headers])
  }

  /** The packet that is sent at the end of this turn of the event loop. */
  #scheduled(): AnswerPacket {
    if (!this.#isScheduled) {
      this.#isScheduled = true
      setImmediate(() => {
        const packet = this.#packet
        this.#isScheduled = false
        this.#packet = { succeeded: [] }
        this.#post(packet)
      })
    }
    return this.#packet
  }
}
