// The main thread's side of the writing thread. Commands that arrive while a group is being committed wait and form the next group. Under
// load many requests share one commit, and a single request does not wait. Memory is bounded: when the commands that wait have reached a
// limit of bytes, further ones are rejected with StoreUnavailable. Settlements are the exception: the attempts that they record have already been
// made, so they are retried until they are durable.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { ScheduleMark } from '../../../timing/clock.ts'
import { WaitingItems } from '../../delivery/waiting-items.ts'
import type { Seed } from '../../encoding/fingerprint.ts'
import { KEY_WORDS } from '../../encoding/segment-keys.ts'
import { StoreUnavailable } from '../../store.ts'
import type { CommandKind, CommandOf, ReplyOf, Topics } from '../commands/commands.ts'
import type { AnsweredGroup, Asked, Group, Noted, Reply, WriterStart } from '../commands/protocol.ts'
import { StoreProblem } from '../schema/database.ts'
import type { WriterOptions } from '../writing/writer-context.ts'

/** While one group is being committed, the next one may already be sent to the thread, if it is large enough: see EARLY. */
const DEPTH = 2
/** The number of commands from which on a group is sent while another is being committed. */
const EARLY = 8
/** How long lazy commands wait for other commands, to share a commit with them. */
const LAZY_MS = 3
const LAZY_AT_MOST = 256
const LEAST_BUFFER_BYTES = 256 * 1024
const RETRY_AFTER_MS = 250

interface Waiting {
  kind: CommandKind
  command: Noted
  options: CommandOptions
  bytes: number
  resolve: (value: never) => void
  reject: (error: Error) => void
}

export interface CommandOptions {
  body?: Uint8Array
  /** Writes the keys to the group's buffer. */
  writeKeys?: (into: Uint32Array, at: number) => void
  /** Called just before the group is sent, to update the command with what has changed while it waited. */
  prepare?: () => void
  /** Retry while the store is unavailable. */
  retry?: boolean
}

export class GroupCommit {
  readonly #worker: Worker
  readonly seed: Seed
  readonly scheduleMark: ScheduleMark | null
  readonly #lazy: ReadonlySet<string>
  readonly #onState: (problem: string | null) => void
  /** Called after every group, before its commands resolve: false if a write failed and nothing was committed since, or while settlements are retried. */
  onWritable: ((isWritable: boolean) => void) | undefined
  /** Called after every transaction with its duration and the number of commands in its group. */
  onCommit: ((commitMs: number, commands: number) => void) | undefined
  readonly #waiting = new WaitingItems<Waiting>()
  /** The groups that were sent and not answered yet, in order. */
  readonly #inFlight: Waiting[][] = []
  #scheduled = false
  #urgent = 0
  #lazyTimer: NodeJS.Timeout | undefined
  #closing = false
  /** Why the thread has ended; null while it runs. */
  #ended: Error | null = null
  #idle: (() => void)[] = []
  /** Commands that will be retried after RETRY_AFTER_MS. */
  #retries: Waiting[] = []
  #retryTimer: NodeJS.Timeout | undefined
  /**
   * Settlements that failed because the store is unavailable, and are retried until they are durable. Other commands do not count: a purge that
   * needs more space than is left, or a damaged part of the disk, would stop all sending, although outcomes can be recorded.
   */
  readonly #failing = new Set<Waiting>()
  /** Why the store is unavailable now; null if it is available. */
  #problem: string | null = null

  private constructor(worker: Worker, start: WriterStart & { ok: true }, onState: (problem: string | null) => void) {
    this.#worker = worker
    this.seed = start.seed
    this.scheduleMark = start.scheduleMark
    this.#lazy = new Set(start.lazy)
    this.#onState = onState
    worker.on('message', (answered: AnsweredGroup) => {
      const { replies, buffer, commitMs } = answered
      if (buffer !== null) this.#spare.push(buffer)
      if (commitMs !== null) this.onCommit?.(commitMs, replies.length)
      this.#answer(answered)
    })
    worker.on('error', (error) => this.#fail(error as Error))
    worker.on('exit', () => this.#fail(new Error('the writing thread of the store has stopped unexpectedly')))
  }

  static async start(options: WriterOptions, onState: (problem: string | null) => void): Promise<GroupCommit> {
    const worker = new Worker(new URL('./writer-thread.ts', import.meta.url), { workerData: options, name: 'switchyard-writer' })
    // Registered before the first message: a thread that fails to open the file ends at once, perhaps before its message is read here.
    const exited = new Promise((resolve) => worker.once('exit', resolve))
    const [start] = (await once(worker, 'message')) as [WriterStart]
    if (!start.ok) {
      await exited
      throw start.problem ? new StoreProblem(start.message) : new Error(start.message)
    }
    return new GroupCommit(worker, start, onState)
  }

  run<K extends CommandKind>(kind: K, command: CommandOf<K>, options: CommandOptions = {}): Promise<ReplyOf<K>> {
    const { body, retry } = options
    if (this.#ended) return Promise.reject(new StoreUnavailable('the store is closed', { cause: this.#ended }))
    // Only batches to be accepted have a body, and they have keys too.
    const bytes = body === undefined ? 0 : body.length + (command as Noted as CommandOf<'accept'>).count * KEY_WORDS * 4
    const refusal = retry ? undefined : this.#waiting.refusal(bytes)
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise<ReplyOf<K>>((resolve, reject) => {
      this.#waiting.add({ kind, command, options, bytes, resolve, reject })
      if (this.#lazy.has(kind) && !this.#closing) {
        if (this.#waiting.count < LAZY_AT_MOST) this.#lazyTimer ??= setTimeout(() => this.#flushSoon(), LAZY_MS)
        else this.#flushSoon()
        return
      }
      this.#urgent++
      // The group is large enough to be committed while this thread goes on reading requests. If it waited for the end of this turn of the event
      // loop, all requests would be read first and committed afterwards, and each thread would wait for the other.
      if (this.#urgent >= EARLY && this.#inFlight.length < DEPTH) this.#send()
      else this.#schedule()
    })
  }

  /** Calls a method of a topic in the writing thread. */
  call<T extends keyof Topics, K extends keyof Topics[T] & string>(
    topic: T,
    name: K,
    args: Parameters<Asked<Topics[T]>[K]>,
    noted: Noted = {},
    options?: CommandOptions,
  ): ReturnType<Asked<Topics[T]>[K]> {
    return this.run('call', { ...noted, topic, name, args }, options) as ReturnType<Asked<Topics[T]>[K]>
  }

  /** Functions that call these methods of a topic in the writing thread. */
  methods<T extends keyof Topics, K extends keyof Topics[T] & string>(topic: T, ...names: K[]): Pick<Asked<Topics[T]>, K> {
    const calls = names.map((name) => [name, (...args: Parameters<Asked<Topics[T]>[K]>) => this.call(topic, name, args)])
    return Object.fromEntries(calls) as Pick<Asked<Topics[T]>, K>
  }

  /** Retries waiting commands one last time. From now on, failed commands are not retried. */
  stopRetrying(): void {
    this.#closing = true
    clearTimeout(this.#retryTimer)
    this.#requeue()
  }

  /** Commits all waiting commands and ends the thread. */
  async close(): Promise<void> {
    if (this.#ended) return
    this.stopRetrying()
    this.#flushSoon()
    if (this.#inFlight.length > 0 || this.#waiting.count > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
    const exit = once(this.#worker, 'exit')
    this.#ended = new Error('closed')
    this.#worker.postMessage('close', [])
    await exit
  }

  /** Sends the waiting commands with the next group, as soon as a group can be sent. */
  #flushSoon(): void {
    this.#urgent++
    this.#schedule()
  }

  // Sends in the next turn of the event loop, so that requests that are read in this turn go into the same group.
  #schedule(): void {
    if (this.#scheduled || this.#inFlight.length > 0) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (this.#waiting.count > 0 && this.#inFlight.length === 0) this.#send()
    })
  }

  #send(): void {
    const group = this.#waiting.take()
    if (this.#waiting.count === 0) {
      clearTimeout(this.#lazyTimer)
      this.#lazyTimer = undefined
      this.#urgent = 0
    }
    this.#inFlight.push(group)
    let bytes = 0
    for (const waiting of group) {
      waiting.options.prepare?.()
      bytes += waiting.bytes
    }
    const buffer = bytes === 0 ? null : this.#fill(group, bytes)
    const message: Group = { buffer, kinds: group.map(({ kind }) => kind), commands: group.map(({ command }) => command) }
    this.#worker.postMessage(message, buffer === null ? [] : [buffer])
  }

  /** The keys come first, because they are words and must be aligned to four bytes. */
  #fill(group: readonly Waiting[], bytes: number): ArrayBuffer {
    const buffer = this.#bufferFor(bytes)
    const words = new Uint32Array(buffer, 0, Math.floor(bytes / 4))
    const all = new Uint8Array(buffer)
    let word = 0
    for (const { kind, command, options } of group) {
      if (kind !== 'accept') continue
      const accept = command as CommandOf<'accept'>
      accept.keysAt = word
      options.writeKeys?.(words, word)
      word += accept.count * KEY_WORDS
    }
    let at = word * 4
    for (const { kind, command, options } of group) {
      const { body } = options
      if (kind !== 'accept' || body === undefined) continue
      ;(command as CommandOf<'accept'>).bodyAt = at
      all.set(body, at)
      at += body.length
    }
    return buffer
  }

  // Buffers are reused: each goes to the thread and comes back. A new one for each group would need fresh memory pages each time, and neither
  // thread's garbage collector frees them soon.
  #bufferFor(bytes: number): ArrayBuffer {
    const spare = this.#spare.pop()
    if (spare !== undefined && spare.byteLength >= bytes) return spare
    return new ArrayBuffer(2 ** Math.ceil(Math.log2(Math.max(bytes, LEAST_BUFFER_BYTES))))
  }
  readonly #spare: ArrayBuffer[] = []

  #answer({ replies, committed }: AnsweredGroup): void {
    const group = this.#inFlight.shift() as Waiting[]
    const retries: Waiting[] = []
    let problem: string | null = null
    for (let at = 0; at < group.length; at++) {
      const waiting = group[at] as Waiting
      const reply = replies[at] as Reply
      if (this.#failing.size > 0) this.#failing.delete(waiting)
      if (reply.ok) waiting.resolve(reply.value as never)
      else if (!reply.unavailable) waiting.reject(new Error(reply.message))
      else {
        problem = reply.message
        if (waiting.options.retry && !this.#closing) retries.push(waiting)
        else waiting.reject(new StoreUnavailable(reply.message))
      }
    }
    // Reading works on a full disk too, so only a commit shows that the problem is over.
    if (problem !== this.#problem && (problem !== null || committed)) {
      this.#problem = problem
      this.#onState(problem)
    }
    if (retries.length > 0) {
      for (const waiting of retries) if (waiting.kind === 'settle') this.#failing.add(waiting)
      this.#retries = [...this.#retries, ...retries]
      this.#retryTimer ??= setTimeout(() => this.#requeue(), RETRY_AFTER_MS)
    }
    this.onWritable?.(this.#problem === null && this.#failing.size === 0)
    if (this.#urgent > 0) this.#schedule()
    if (this.#waiting.count === 0 && this.#inFlight.length === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  #requeue(): void {
    this.#retryTimer = undefined
    if (this.#retries.length === 0) return
    // Settlements first, and without the others: they would fail again with one that needs more space than is left.
    const settlements = this.#retries.filter(({ kind }) => kind === 'settle')
    const again = settlements.length > 0 && !this.#closing ? settlements : this.#retries
    this.#retries = again === settlements ? this.#retries.filter(({ kind }) => kind !== 'settle') : []
    if (this.#retries.length > 0) this.#retryTimer = setTimeout(() => this.#requeue(), RETRY_AFTER_MS)
    this.#waiting.putBack(again)
    this.#flushSoon()
  }

  #fail(error: Error): void {
    if (this.#ended) return
    this.#ended = error
    this.#onState(error.message)
    this.onWritable?.(false)
    clearTimeout(this.#retryTimer)
    const waiting = this.#waiting.take(Number.POSITIVE_INFINITY)
    for (const { reject } of [...this.#inFlight.flat(), ...waiting, ...this.#retries])
      reject(new StoreUnavailable(error.message, { cause: error }))
    this.#retries = []
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
