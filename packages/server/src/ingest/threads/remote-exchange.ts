// A request that an ingest thread has read, in the main thread.

import type { TraceContext } from '../../model/messages.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../parsing/parse-request.ts'
import type { RequestFields } from './protocol.ts'

/** Takes the answers to the requests of one thread. */
export interface Answers {
  success(id: number): void
  json(id: number, status: number, text: string, headers: readonly string[]): void
}

export class RemoteExchange implements Exchange {
  readonly route: Route
  readonly pixel = false
  readonly queryKey = undefined
  readonly authorization: string | undefined
  isAdmitted = false
  sourceId: string | null = null
  readonly #id: number
  readonly #address: string | null
  readonly #isFromBrowser: boolean
  readonly #trace: TraceContext | null
  readonly #answers: Answers
  #isAnswered = false
  #onAnswered: (() => void) | null = null

  constructor([id, route, authorization, address, isFromBrowser, trace]: RequestFields, answers: Answers) {
    this.#id = id
    this.route = route
    this.authorization = authorization
    this.#address = address
    this.#isFromBrowser = isFromBrowser
    this.#trace = trace
    this.#answers = answers
  }

  isFromBrowser(): boolean {
    return this.#isFromBrowser
  }

  senderAddress(): string | null {
    return this.#address
  }

  trace(): TraceContext | null {
    return this.#trace
  }

  answerSuccess(): void {
    if (this.#end()) this.#answers.success(this.#id)
  }

  /** Images are answered by the main thread itself. */
  answerPixel(): void {
    throw new Error('an ingest thread passed on a request for an image, which only the main thread can answer')
  }

  answerJson(status: number, body: object, headers: readonly string[] = []): void {
    if (this.#end()) this.#answers.json(this.#id, status, JSON.stringify(body), headers)
  }

  onAnswered(ended: () => void): void {
    if (this.#isAnswered) ended()
    else this.#onAnswered = ended
  }

  /** Returns false if it was answered before. */
  #end(): boolean {
    if (this.#isAnswered) return false
    this.#isAnswered = true
    this.#onAnswered?.()
    return true
  }
}
