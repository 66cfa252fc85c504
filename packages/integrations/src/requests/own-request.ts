// Sends one request over a connection of our own, to save the CPU time of the client of Node.js. The same bytes are sent. If the answer is not a
// plain one (plain-answer.ts), or ends early, Node.js reads the bytes that were received and those that follow, as if it had made the request.
// So only Node.js decides what a malformed or hostile answer means, and its connection is never used again.

import type { ClientRequest } from 'node:http'
import { addAnswer } from '../recording/answer-text.ts'
import { ended, failed, type OpenRequest } from '../recording/open-request.ts'
import { watch } from '../recording/recorder.ts'
import { type RunContext, runs } from '../recording/run-trace.ts'
import { SocketStandIn } from '../recording/socket-stand-in.ts'
import { type Connection, type ConnectionUser, takeConnection } from './connections.ts'
import {
  type Answer,
  aborted,
  brokenAnswer,
  failedRequest,
  joined,
  type Outgoing,
  OwnTimeout,
  redirectOf,
  sentByNode,
} from './node-request.ts'
import { type AnswerHead, PlainAnswer } from './plain-answer.ts'

/** Null if Node.js has to make the request: an unusual one, or one whose headers and body are recorded. */
export function sentByUs(outgoing: Outgoing): Promise<Answer> | null {
  const context = runs.getStore()
  if (context?.trace.isDetailed === true) return null
  const head = headOf(outgoing)
  return head === null ? null : new Promise((resolve, reject) => new OwnRequest(outgoing, head, context, { resolve, reject }))
}

const PATH = /^[\x21-\x7e]+$/

/** The head of the request as Node.js would write it. Null if that is not certain. */
function headOf({ target, method, headers, body }: Outgoing): string | null {
  const length = headers['content-length'] ?? headers['Content-Length']
  const isBodyless = body === null && (method === 'GET' || method === 'DELETE') && length === undefined
  if (method === 'HEAD' || (!isBodyless && length !== String(body?.length ?? 0)) || !PATH.test(target.path)) return null
  let text = `${method} ${target.path} HTTP/1.1\r\n`
  for (const name in headers) text += `${name}: ${headers[name]}\r\n`
  return `${text}Host: ${target.origin.slice(target.origin.indexOf('/') + 2)}\r\nConnection: keep-alive\r\n\r\n`
}

interface Settle {
  resolve: (answer: Answer | Promise<Answer>) => void
  reject: (error: Error) => void
}

class OwnRequest implements ConnectionUser {
  readonly #outgoing: Outgoing
  readonly #context: RunContext | undefined
  readonly #record: OpenRequest | null
  readonly #resolve: Settle['resolve']
  readonly #reject: Settle['reject']
  readonly #connection: Connection
  readonly #answer = new PlainAnswer()
  readonly #received: Buffer[] = []
  readonly #abort = (): void => this.#fail(aborted())
  /** Ends the request when its run is over. If it was answered, another request may already use its connection. */
  readonly #abortOpen = (): void => {
    if (this.#replayed !== null) this.#replayed.destroy()
    else if (!this.#isSettled) this.#abort()
  }
  #isSettled = false
  /** Set while Node.js reads the answer. */
  #replayed: ClientRequest | null = null
  readonly #timeoutAtMs: number
  readonly #timer: NodeJS.Timeout | undefined
  /** How many pieces of the body are recorded. */
  #recorded = 0

  constructor(outgoing: Outgoing, head: string, context: RunContext | undefined, { resolve, reject }: Settle) {
    const { target, method, body, signal, timeoutMs } = outgoing
    this.#outgoing = outgoing
    this.#context = context
    this.#resolve = resolve
    this.#reject = reject
    context?.trace.signal.throwIfAborted()
    this.#connection = takeConnection(target, this)
    this.#record = context?.trace.open(context.positions, method, `${target.origin}${target.path}`, this.#abortOpen) ?? null
    signal.addEventListener('abort', this.#abort)
    this.#timeoutAtMs = timeoutMs === null ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs
    if (timeoutMs !== null) this.#timer = setTimeout(() => this.#fail(new OwnTimeout()), timeoutMs)
    this.#connection.write(head, body)
  }

  received(bytes: Buffer): void {
    const answer = this.#answer
    const isFirst = answer.head === null
    this.#received.push(bytes)
    const state = answer.read(bytes)
    if (state === 'unusual') return this.#replay(false)
    const { head } = answer
    if (head === null) return
    if (isFirst) clearTimeout(this.#timer)
    this.#recordAnswer(head)
    if (state === 'complete') {
      this.#connection.release(head.headers)
      this.#succeed({ ...head, body: joined(answer.body) })
    } else if (redirectOf(head) !== undefined) {
      // Nobody reads the rest.
      this.#connection.close()
      this.#succeed({ ...head, body: Buffer.alloc(0) })
    }
  }

  ended(): void {
    this.#replay(true)
  }

  failed(error: Error): void {
    if (this.#record !== null) failed(this.#record, error)
    const { url } = this.#outgoing.target
    this.#fail(this.#answer.head === null ? failedRequest(url, error) : brokenAnswer(url, error))
  }

  #recordAnswer({ status, headers }: AnswerHead): void {
    const record = this.#record
    if (record === null) return
    record.status = status
    record.retryAfter = (headers['retry-after'] as string | undefined) ?? null
    record.answerEncoding = headers['content-encoding'] as string | undefined
    const { body } = this.#answer
    for (; this.#recorded < body.length; this.#recorded++) addAnswer(record, body[this.#recorded])
  }

  #succeed(answer: Answer): void {
    if (this.#record !== null) ended(this.#record)
    this.#settle()
    this.#forget()
    this.#resolve(answer)
  }

  #fail(error: Error): void {
    this.#settle()
    this.#forget()
    this.#connection.close()
    this.#reject(error)
  }

  /** Frees memory: the run keeps this object until it is over, and may make thousands of requests. */
  #forget(): void {
    this.#received.length = 0
    this.#answer.body.length = 0
  }

  #settle(): void {
    this.#isSettled = true
    clearTimeout(this.#timer)
    this.#outgoing.signal.removeEventListener('abort', this.#abort)
  }

  /** Lets Node.js read the answer from its start. */
  #replay(isOver: boolean): void {
    this.#settle()
    const connection = this.#connection
    const socket = new SocketStandIn({
      read() {},
      // The request was sent already.
      write: (_chunk, _encoding, done) => done(),
      destroy(error, done) {
        connection.close()
        done(error)
      },
      // Node.js has read the answer. The tool need not close the connection.
      final(done) {
        done()
        socket.destroy()
      },
    })
    const [context, record] = [this.#context, this.#record]
    const onRequest = (request: ClientRequest): void => {
      this.#replayed = request
      if (context === undefined || record === null) return
      record.answer.length = 0
      record.answerBytes = 0
      watch(request, record, context)
    }
    const timeoutMs = this.#answer.head === null && this.#timer !== undefined ? Math.max(0, this.#timeoutAtMs - performance.now()) : null
    // Outside of the run, because the recorder would record the request a second time.
    this.#resolve(runs.exit(() => sentByNode({ ...this.#outgoing, timeoutMs }, onRequest, socket)))
    for (const bytes of this.#received) socket.push(bytes)
    this.#forget()
    if (isOver) socket.push(null)
    else
      connection.pass({
        received: (bytes) => socket.push(bytes),
        ended: () => socket.push(null),
        // After the bytes that were received before.
        failed: (error) => setImmediate(() => socket.destroy(error)),
      })
  }
}
