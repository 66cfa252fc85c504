// The second thread of two-thread-limit.ts: signs each message as the service does for a destination with a shared secret, and sends
// it with undici, one request at a time per connection. Reports finished requests in groups.

import { createSecretKey } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { Client, type Dispatcher } from 'undici'
import { SHARED_SECRET, signatureOf } from './http-front-end.ts'

interface Request {
  id: number
  messages: number
  open: number
}

/** CPU per event in alternating runs: 44 µs with 16, 42 µs with 24, 32 and 48, 50 µs with 64, 54 µs with 128. */
const CONNECTIONS = 32
const REPORT_DELAY_MS = 10

const { receiver } = workerData as { receiver: string }
const key = createSecretKey(Buffer.from(SHARED_SECRET))
const options = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 }
const free = Array.from({ length: CONNECTIONS }, () => new Client(receiver, options))
/** Read from `next` on, because shifting a long array copies it. */
let waiting: { request: Request; body: Buffer }[] = []
let next = 0
let finished: number[] = []

parentPort?.on('message', ({ plan, bytes }: { plan: Float64Array; bytes: Uint8Array }) => {
  let at = bytes.byteOffset
  for (let index = 0; index < plan.length; ) {
    const [id = 0, messages = 0] = plan.subarray(index, index + 2)
    const request = { id, messages, open: messages }
    index += 2
    for (const end = index + messages; index < end; index += 1) {
      const length = plan[index] ?? 0
      post(request, Buffer.from(bytes.buffer, at, length))
      at += length
    }
  }
})

function post(request: Request, body: Buffer): void {
  const client = free.pop()
  if (client) send(client, request, body)
  else waiting.push({ request, body })
}

function send(client: Client, request: Request, body: Buffer): void {
  const headers = ['content-type', 'application/json', 'x-signature', signatureOf(body, key)]
  client.dispatch({ path: '/', method: 'POST', headers, body }, new Answer(client, request))
}

/** A class rather than closures, because there is one for each message. */
class Answer implements Dispatcher.DispatchHandler {
  readonly #client: Client
  readonly #request: Request

  constructor(client: Client, request: Request) {
    this.#client = client
    this.#request = request
  }

  onRequestStart(): void {}

  onResponseStart(_controller: unknown, status: number): void {
    if (status !== 200) throw new Error(`the receiver answered ${status}`)
  }

  onResponseData(): void {}

  onResponseEnd(): void {
    finishOne(this.#request)
    const following = waiting[next]
    if (following) {
      next += 1
      send(this.#client, following.request, following.body)
      return
    }
    waiting = []
    next = 0
    free.push(this.#client)
  }

  onResponseError(_controller: unknown, error: Error): void {
    throw error
  }
}

function finishOne(request: Request): void {
  request.open -= 1
  if (request.open > 0) return
  if (finished.length === 0) setTimeout(reportFinished, REPORT_DELAY_MS)
  finished.push(request.id, request.messages)
}

function reportFinished(): void {
  const pairs = Float64Array.from(finished)
  finished = []
  parentPort?.postMessage(pairs, [pairs.buffer])
}
