// The main thread's side of the ingest threads. A thread that ends or does not respond is replaced: its connections are closed, and clients send
// again what was not answered. What it had passed on is decided and stored all the same.

import { lookup } from 'node:dns/promises'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { Worker } from 'node:worker_threads'
import { PortStream } from '../../http/port-stream.ts'
import type { Deciding } from '../deciding.ts'
import type { FromThread, ThreadSettings, ThreadStart, ToThread } from './protocol.ts'
import { type Decides, ThreadAnswers } from './thread-answers.ts'

export interface IngestThreadsOptions {
  count: number
  host: string
  /** 0 for any. */
  port: number
  settings: Pick<ThreadSettings, 'bodyTimeoutMs' | 'maxBodiesBytes'>
  trustedProxies: readonly string[]
  deciding: Decides & Pick<Deciding, 'writeKeys'>
  /** Handles the requests of a connection that a thread has passed on. */
  onConnection: (connection: Duplex) => void
  /** Called when a thread was lost. It is replaced. */
  onLost: (error: Error) => void
  /** Replaces the program in tests. */
  program?: URL
  checkMs?: number
}

interface Thread {
  worker: Worker
  ended: Promise<unknown>
  startedAtMs: number
  /** Checks since the thread last responded. */
  unansweredChecks: number
  isListening: boolean
}

const PROGRAM = new URL('./ingest-thread.ts', import.meta.url)
/** The threads go on reading while the main thread is busy. Those with a write key to the store have a limit of their own, of the same size. */
const MAX_UNANSWERED_BYTES = 64 * 1024 * 1024
const CHECK_MS = 2_000
/** Checks are counted instead of time, so that a suspended machine does not look like a thread that hangs. */
const MAX_UNANSWERED_CHECKS = 5
/** A thread that ends sooner than this is replaced after a pause, which doubles with each of them. */
const SHORT_LIFE_MS = 10_000
const MIN_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000
/** How long a thread may take to end after its connections were closed. */
const END_MS = 500

/** Why a thread cannot listen, as net.Server would say it. */
class ListenError extends Error {
  readonly code: string | undefined

  constructor(code: string | undefined, message: string) {
    super(message)
    this.code = code
  }
}

export class IngestThreads {
  readonly #options: IngestThreadsOptions
  readonly #threads = new Set<Thread>()
  readonly #check: NodeJS.Timeout
  #start: ThreadStart
  /** Timers of threads that are started later. */
  readonly #opening = new Set<NodeJS.Timeout>()
  #pauseMs = 0
  #isClosing = false

  private constructor(options: IngestThreadsOptions, addresses: readonly string[]) {
    const { settings, count, trustedProxies, port, deciding } = options
    this.#options = options
    // Each thread has its share of the limits on memory: connections are divided among the threads at random.
    const share = {
      bodyTimeoutMs: settings.bodyTimeoutMs,
      maxBodiesBytes: settings.maxBodiesBytes / count,
      maxUnansweredBytes: MAX_UNANSWERED_BYTES / count,
    }
    this.#start = { addresses, port, settings: share, trustedProxies, writeKeys: deciding.writeKeys() }
    this.#check = setInterval(() => this.#checkThreads(), options.checkMs ?? CHECK_MS).unref()
  }

  /** Rejects with the error of net.Server if the first thread cannot listen. */
  static async open(options: IngestThreadsOptions): Promise<{ threads: IngestThreads; address: AddressInfo }> {
    // As Fastify does: localhost is every address that it resolves to.
    const addresses =
      options.host === 'localhost' ? (await lookup(options.host, { all: true })).map(({ address }) => address) : [options.host]
    const threads = new IngestThreads(options, addresses)
    try {
      const address = await threads.#open()
      threads.#start = { ...threads.#start, port: address.port }
      await Promise.all(Array.from({ length: options.count - 1 }, () => threads.#open()))
      return { threads, address }
    } catch (error) {
      await threads.close(0)
      throw error
    }
  }

  /** To be called when the configuration has changed. */
  updateKeys(): void {
    this.#start = { ...this.#start, writeKeys: this.#options.deciding.writeKeys() }
    for (const { worker } of this.#threads) post(worker, { kind: 'keys', writeKeys: this.#start.writeKeys })
  }

  /** Answers what has been received. Connections that are open after `graceMs` are closed. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true
    clearInterval(this.#check)
    for (const timer of this.#opening) clearTimeout(timer)
    const kill = setTimeout(() => {
      for (const { worker } of this.#threads) void worker.terminate()
    }, graceMs + END_MS)
    const ended = [...this.#threads].map((thread) => thread.ended)
    for (const { worker } of this.#threads) post(worker, { kind: 'stop', graceMs })
    await Promise.all(ended)
    clearTimeout(kill)
  }

  /** Resolves when the thread listens. */
  #open(): Promise<AddressInfo> {
    const { program = PROGRAM, deciding, onConnection } = this.#options
    const worker = new Worker(program, { workerData: this.#start, name: 'switchyard-ingest' })
    const answers = new ThreadAnswers(deciding, (packet) => post(worker, { kind: 'answers', packet }))
    let cause: Error | undefined
    return new Promise((resolve, reject) => {
      const ended = new Promise((done) => {
        worker.on('error', (error) => {
          cause = error as Error
        })
        // The exit event follows every error, after the last messages of the thread.
        worker.on('exit', (code) => {
          const error = cause ?? new Error(`an ingest thread ended unexpectedly, with code ${code}`)
          reject(error)
          this.#threads.delete(thread)
          if (thread.isListening) this.#replace(thread, error)
          done(undefined)
        })
      })
      const thread: Thread = { worker, ended, startedAtMs: performance.now(), unansweredChecks: 0, isListening: false }
      this.#threads.add(thread)
      worker.on('message', (message: FromThread) => {
        thread.unansweredChecks = 0
        if (message.kind === 'requests') answers.receive(message.packet)
        else if (message.kind === 'connect') onConnection(new PortStream(message.port, message.peer))
        else if (message.kind === 'failed') cause = new ListenError(message.code, message.message)
        else if (message.kind === 'listening') {
          thread.isListening = true
          // The configuration may have changed since the thread was started.
          post(worker, { kind: 'keys', writeKeys: this.#start.writeKeys })
          resolve(message)
        }
      })
    })
  }

  #replace({ startedAtMs }: Thread, error: Error): void {
    if (this.#isClosing) return
    this.#options.onLost(error)
    const isShort = performance.now() - startedAtMs < SHORT_LIFE_MS
    this.#openAfter(isShort ? this.#longerPauseMs : 0)
  }

  get #longerPauseMs(): number {
    return Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, this.#pauseMs * 2))
  }

  #openAfter(pauseMs: number): void {
    this.#pauseMs = pauseMs
    const timer = setTimeout(() => {
      this.#opening.delete(timer)
      this.#open().catch((error: Error) => {
        if (this.#isClosing) return
        this.#options.onLost(error)
        this.#openAfter(this.#longerPauseMs)
      })
    }, pauseMs)
    this.#opening.add(timer)
  }

  #checkThreads(): void {
    for (const thread of this.#threads) {
      if (++thread.unansweredChecks > MAX_UNANSWERED_CHECKS) void thread.worker.terminate()
      else post(thread.worker, { kind: 'ping' })
    }
  }
}

function post(worker: Worker, message: ToThread): void {
  worker.postMessage(message, [])
}
