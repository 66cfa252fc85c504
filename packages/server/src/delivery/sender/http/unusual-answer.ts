// Lets undici read an answer that plain-answer.ts does not: over a stream that stands in for the connection, as if undici had sent the request. So
// undici alone decides what a malformed or hostile answer means, or whether it is one. The connection must not be used again.

import { createRequire } from 'node:module'
import { Duplex } from 'node:stream'
import type { Client } from 'undici'
import type { ConnectionUser } from './connection.ts'
import type { AnswerHandler } from './plain-answer.ts'

/**
 * The index of undici also loads fetch, WebSocket, caches and mocks, which would take memory and CPU time in the main thread and in each sender
 * (docs/decisions/0103-memory-of-the-service.md).
 */
const UndiciClient = createRequire(import.meta.url)('undici/lib/dispatcher/client.js') as typeof Client

export interface UnusualAnswerHandler extends AnswerHandler {
  /** The first bytes have arrived, perhaps of an interim answer. */
  onStart(): void
  onEnd(): void
  onError(error: Error): void
}

export class UnusualAnswer implements ConnectionUser {
  readonly #stream = new StandIn()
  #error: Error | null = null

  /** Calls nothing of `handler` at once. */
  constructor(handler: UnusualAnswerHandler) {
    const stream = this.#stream
    const client = new UndiciClient('http://receiver.invalid', {
      // An attempt has one deadline for everything, so undici's two would end nothing sooner.
      headersTimeout: 0,
      bodyTimeout: 0,
      // undici misses a callback that is called at once, and dials again if the connection is lost before it has written the request.
      connect: (_options, callback) =>
        queueMicrotask(() => (stream.destroyed ? callback(new Error('closed'), null) : callback(null, stream as never))),
    })
    client.dispatch(
      { path: '/', method: 'POST' },
      {
        onRequestStart() {},
        onResponseStarted: () => handler.onStart(),
        onResponseStart(_controller, status, headers) {
          if (status < 200) return
          stream.awaitsAnswer = false
          const retryAfter = headers['retry-after']
          handler.onHead(status, typeof retryAfter === 'object' ? retryAfter[0] : retryAfter)
        },
        onResponseData: (_controller, piece) => handler.onBody(piece),
        onResponseEnd: () => handler.onEnd(),
        onResponseError: (_controller, error) => handler.onError(this.#error ?? error),
      },
    )
  }

  received(bytes: Buffer): void {
    this.#stream.arrived(Buffer.from(bytes))
  }

  ended(): void {
    this.#stream.arrived(null)
  }

  failed(error: Error): void {
    // undici may report what it made of it.
    this.#error = error
    this.#stream.destroy(error)
  }

  close(): void {
    this.#stream.destroy()
  }
}

const CONTINUE = Buffer.from('HTTP/1.1 100')
const END_OF_HEAD = Buffer.from('\r\n\r\n')

class StandIn extends Duplex {
  /** Whether the next data is the start of an answer. */
  awaitsAnswer = true
  /** What has arrived before undici has written its request: undici refuses answers that it has not asked for. Null when it has. */
  #early: (Buffer | null)[] | null = []

  constructor() {
    super()
    // undici does not listen until it has the stream.
    this.on('error', () => undefined)
  }

  /**
   * A server may send `100 Continue` unrequested (RFC 9110, 15.2), and old servers do; undici treats it as an invalid response.
   * It is therefore removed before undici reads it.
   */
  override read(sizeBytes?: number): Buffer | null {
    let chunk = super.read(sizeBytes) as Buffer | null
    while (chunk !== null && this.awaitsAnswer && chunk.subarray(0, CONTINUE.length).equals(CONTINUE)) {
      const end = chunk.indexOf(END_OF_HEAD)
      if (end === -1) break
      const rest = chunk.subarray(end + END_OF_HEAD.length)
      chunk = rest.length > 0 ? rest : (super.read(sizeBytes) as Buffer | null)
    }
    return chunk
  }

  /** Null: the end. */
  arrived(bytes: Buffer | null): void {
    if (this.#early === null) this.push(bytes)
    else this.#early.push(bytes)
  }

  override _read(): void {}

  /** The request was sent already. */
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    const early = this.#early ?? []
    this.#early = null
    for (const bytes of early) this.push(bytes)
    done()
  }
}
