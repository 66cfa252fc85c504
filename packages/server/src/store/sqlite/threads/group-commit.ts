// The main thread's side of the writing thread. Commands given while a group is being committed wait and make up the next
// one: under load many requests share a commit, and alone one does not wait. Memory is bounded: beyond the limit of
// bytes that wait, more is refused as unavailable. Settlements are the exception, since what they tell has happened: they
// are tried again until they are durable.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Seed } from '../../encoding/fingerprint.ts'
import { KEY_WORDS } from '../../encoding/segment-keys.ts'
import { StoreUnavailable } from '../../store.ts'
import { StoreProblem } from '../schema/database.ts'
import type { CommandKind, CommandOf, ReplyOf } from './commands.ts'
import type { AnsweredGroup, Group, Noted, Reply, WriterOptions, WriterStart } from './protocol.ts'

/** Bodies and keys of one group: some 10 ms of writing. */
const GROUP_BYTES = 4 * 1024 * 1024
/** One group is committed while the next is ready for the thread to take, if that is worth a commit. */
const DEPTH = 2
/** Commands that are worth a commit while another is being made. */
const EARLY = 8
/** How long lazy commands may wait for others, to share a commit. */
const LAZY_MS = 3
const LAZY_AT_MOST = 256
const LEAST_BUFFER_BYTES = 256 * 1024
const WAITING_BYTES = 64 * 1024 * 1024
const AGAIN_MS = 250

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
  /** Fills in the keys in the group's buffer. */
  writeKeys?: (into: Uint32Array, at: number) => void
  /** Just before the group is formed: the last look at what may have changed while it waited. */
  prepare?: () => void
  /** Try again while the store is unavailable. */
  again?: boolean
}

export class GroupCommit {
  readonly #worker: Worker
  readonly seed: Seed
  readonly scheduleMs: number
  readonly #lazy: ReadonlySet<string>
  readonly #onState: (problem: string | null) => void
  /** Called after every transaction: how long it took, and of how many commands its group was. */
  onCommit: ((commitMs: number, commands: number) => void) | undefined
  #waiting: Waiting[] = []
  #waitingBytes = 0
  /** Sent and not answered, in order. */
  readonly #underway: Waiting[][] = []
  #scheduled = false
  #urgent = 0
  #lazyTimer: NodeJS.Timeout | undefined
  #closing = false
  #gone: Error | null = null
  #idle: (() => void)[] = []
  /** To be tried again soon. */
  #again: Waiting[] = []
  #againTimer: NodeJS.Timeout | undefined
  /** What stands in the way now, or null. */
  #problem: string | null = null

  private constructor(worker: Worker, start: WriterStart & { ok: true }, onState: (problem: string | null) => void) {
    this.#worker = worker
    this.seed = start.seed
    this.scheduleMs = start.scheduleMs
    this.#lazy = new Set(start.lazy)
    this.#onState = onState
    worker.on('message', (answered: AnsweredGroup) => {
      const { replies, buffer, commitMs } = answered
      if (buffer !== null) this.#spare.push(buffer)
      if (commitMs !== null) this.onCommit?.(commitMs, replies.length)
      this.#answer(answered)
    })
    worker.on('error', (error) => this.#fail(error as Error))
    worker.on('exit', () => this.#fail(new Error('the writing thread has ended')))
  }

  static async start(options: WriterOptions, onState: (problem: string | null) => void): Promise<GroupCommit> {
    const worker = new Worker(new URL('./writer-thread.ts', import.meta.url), { workerData: options, name: 'switchyard-writer' })
    // Listened for from the start: a thread that refuses ends at once, and may have ended when its word is read.
    const exited = new Promise((resolve) => worker.once('exit', resolve))
    const [start] = (await once(worker, 'message')) as [WriterStart]
    if (!start.ok) {
      await exited
      throw start.problem ? new StoreProblem(start.message) : new Error(start.message)
    }
    return new GroupCommit(worker, start, onState)
  }

  run<K extends CommandKind>(kind: K, command: CommandOf<K>, options: CommandOptions = {}): Promise<ReplyOf<K>> {
    const { body, again } = options
    if (this.#gone) return Promise.reject(new StoreUnavailable('the store is closed', { cause: this.#gone }))
    // Only a command with a body is an accepted batch, which has keys too.
    const bytes = body === undefined ? 0 : body.length + (command as Noted as CommandOf<'accept'>).count * KEY_WORDS * 4
    if (!again && this.#waitingBytes + bytes > WAITING_BYTES) {
      return Promise.reject(new StoreUnavailable('more is waiting to be stored than fits in memory'))
    }
    return new Promise<ReplyOf<K>>((resolve, reject) => {
      this.#waiting.push({ kind, command, options, bytes, resolve, reject })
      this.#waitingBytes += bytes
      if (this.#lazy.has(kind) && !this.#closing) {
        if (this.#waiting.length < LAZY_AT_MOST) this.#lazyTimer ??= setTimeout(() => this.#hurry(), LAZY_MS)
        else this.#hurry()
        return
      }
      this.#urgent++
      // Enough to be worth a commit: it is made while this thread goes on reading requests. Left to the end of the turn, all
      // requests would be read first and committed then, and each thread would wait for the other.
      if (this.#urgent >= EARLY && this.#underway.length < DEPTH) this.#send()
      else this.#schedule()
    })
  }

  /** What waits to be tried again is tried once more, and from now on nothing is tried twice. */
  tryOnce(): void {
    this.#closing = true
    clearTimeout(this.#againTimer)
    this.#requeue()
  }

  /** Commits what waits and ends the thread. */
  async close(): Promise<void> {
    if (this.#gone) return
    this.tryOnce()
    this.#hurry()
    if (this.#underway.length > 0 || this.#waiting.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
    const exit = once(this.#worker, 'exit')
    this.#gone = new Error('closed')
    this.#worker.postMessage('close', [])
    await exit
  }

  /** What waits goes with the next group, and that as soon as one can be sent. */
  #hurry(): void {
    this.#urgent++
    this.#schedule()
  }

  // The next turn of the loop: requests that were read in this one go into the same group.
  #schedule(): void {
    if (this.#scheduled || this.#underway.length > 0) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (this.#waiting.length > 0 && this.#underway.length === 0) this.#send()
    })
  }

  #send(): void {
    const group = this.#nextGroup()
    if (this.#waiting.length === 0) {
      clearTimeout(this.#lazyTimer)
      this.#lazyTimer = undefined
      this.#urgent = 0
    }
    this.#underway.push(group)
    let bytes = 0
    for (const waiting of group) {
      waiting.options.prepare?.()
      bytes += waiting.bytes
    }
    const buffer = bytes === 0 ? null : this.#fill(group, bytes)
    const message: Group = { buffer, kinds: group.map(({ kind }) => kind), commands: group.map(({ command }) => command) }
    this.#worker.postMessage(message, buffer === null ? [] : [buffer])
  }

  #nextGroup(): Waiting[] {
    let bytes = 0
    let count = 0
    while (count < this.#waiting.length && bytes < GROUP_BYTES) bytes += (this.#waiting[count++] as Waiting).bytes
    this.#waitingBytes -= bytes
    if (count < this.#waiting.length) return this.#waiting.splice(0, count)
    const all = this.#waiting
    this.#waiting = []
    return all
  }

  /** Keys first, for they are words and lie at multiples of four. */
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

  // A buffer for each group under way goes back and forth. A new one for each group would be fresh pages each time, and garbage that neither
  // thread's collector hurries to give back.
  #bufferFor(bytes: number): ArrayBuffer {
    const spare = this.#spare.pop()
    if (spare !== undefined && spare.byteLength >= bytes) return spare
    return new ArrayBuffer(2 ** Math.ceil(Math.log2(Math.max(bytes, LEAST_BUFFER_BYTES))))
  }
  readonly #spare: ArrayBuffer[] = []

  #answer({ replies, committed }: AnsweredGroup): void {
    const group = this.#underway.shift() as Waiting[]
    const again: Waiting[] = []
    let problem: string | null = null
    for (let at = 0; at < group.length; at++) {
      const waiting = group[at] as Waiting
      const reply = replies[at] as Reply
      if (reply.ok) waiting.resolve(reply.value as never)
      else if (!reply.unavailable) waiting.reject(new Error(reply.message))
      else {
        problem = reply.message
        if (waiting.options.again && !this.#closing) again.push(waiting)
        else waiting.reject(new StoreUnavailable(reply.message))
      }
    }
    // Reading works on a full disk, too: only a commit says that it is over.
    if (problem !== this.#problem && (problem !== null || committed)) {
      this.#problem = problem
      this.#onState(problem)
    }
    if (again.length > 0) {
      this.#again = [...this.#again, ...again]
      this.#againTimer ??= setTimeout(() => this.#requeue(), AGAIN_MS)
    }
    if (this.#urgent > 0) this.#schedule()
    if (this.#waiting.length === 0 && this.#underway.length === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  #requeue(): void {
    this.#againTimer = undefined
    if (this.#again.length === 0) return
    this.#waiting = [...this.#again, ...this.#waiting]
    this.#again = []
    this.#hurry()
  }

  #fail(error: Error): void {
    if (this.#gone) return
    this.#gone = error
    this.#onState(error.message)
    clearTimeout(this.#againTimer)
    for (const waiting of [...this.#underway.flat(), ...this.#waiting, ...this.#again])
      waiting.reject(new StoreUnavailable(error.message, { cause: error }))
    this.#waiting = []
    this.#again = []
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
