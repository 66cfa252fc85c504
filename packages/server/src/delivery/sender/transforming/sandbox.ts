// Runs the code of transformations. Each message starts from the same state: the memory of QuickJS as it was after the code was loaded. So
// nothing that a message does can be seen by another one, and a result depends on nothing but the code, the message, its id and the time
// at which it was received. Runs in a worker thread; a native loop can block it, so somebody must watch the thread (transformer.ts).

import type { Transformation } from '../../../model/configuration.ts'
import { PRELUDE } from './prelude.ts'
import { QuickJs, type Snapshot, type Value, type WasmModule } from './quickjs.ts'
import { type CodeProblem, MAX_RESULT_BYTES, type TransformInput, type TransformResult } from './transformer.ts'

/** The name of the user's code in stack traces. */
const FILE = 'transformation.js'
const MAX_LOG_BYTES = 2_048
const MAX_ERROR_LENGTH = 500
const MIB = 1024 * 1024
/** For the sandbox's own work after the user's code has used up its limits: describing the error. */
const SPARE_US = 10_000
/** The limits of code that is checked when it is saved. */
export const DEFAULT_LIMITS = { timeoutMs: 50, memoryMb: 8 }

/** The result of a message or of a check; or `slow` if it needs more CPU time than it may have here. */
export type SandboxResult = TransformResult | { kind: 'checked'; problem: CodeProblem | null } | { kind: 'slow' }

/** Code that was loaded. */
interface Program {
  code: string
  memoryMb: number
  /** Null if the code used the clock or random numbers while it was loaded: it is loaded again for each message. */
  snapshot: Snapshot | null
  problem: CodeProblem | null
  /** Whether another message may be loaded with another result, because the code used the clock or random numbers. */
  usesMessage: boolean
  isSlow: boolean
}

const thrownNull = /^threw null/

/** Loaded programs that are kept, each with a snapshot of about 200 KB and up to its memory limit. */
const MAX_PROGRAMS = 32
const MAX_PROGRAM_BYTES = 32 * MIB

export class Sandbox {
  readonly #quickJs: QuickJs
  readonly #base: Snapshot
  readonly #functions: { begin: Value; load: Value; run: Value; describe: Value }
  readonly #arguments: number
  /** The least recently used comes first. */
  readonly #programs = new Map<string, Program>()
  #programBytes = 0
  #current: Program | null = null
  /** The program of the last message. Comparing long code for each message would take time. */
  #last: { transformation: Transformation; program: Program } | null = null
  #received = { atMs: 0, json: '"1970-01-01T00:00:00.000Z"' }
  /** CPU time of this thread at the first check of the code that runs; null before it. */
  #startedUs: number | null = null
  #limitUs = 0
  #isStopped = false
  #isBroken = false
  #hasOverrun = false

  private constructor(quickJs: QuickJs) {
    this.#quickJs = quickJs
    const { value, threw } = quickJs.evaluate(PRELUDE, 'switchyard', 'script')
    if (threw) throw new Error('the prelude of the sandbox failed')
    this.#functions = {
      begin: quickJs.property(value, 'begin'),
      load: quickJs.property(value, 'load'),
      run: quickJs.property(value, 'run'),
      describe: quickJs.property(value, 'describe'),
    }
    this.#arguments = quickJs.allocateArguments()
    quickJs.shouldStop = () => this.#shouldStop()
    this.#base = quickJs.save()
  }

  static async create(wasm: WasmModule): Promise<Sandbox> {
    return new Sandbox(await QuickJs.create(wasm))
  }

  /** Whether this sandbox must be replaced: QuickJS crashed, or its memory has grown large. */
  get isSpent(): boolean {
    return this.#isBroken || this.#quickJs.isLarge
  }

  get memoryBytes(): number {
    return this.#quickJs.usedBytes + this.#programBytes
  }

  /** Whether the last message failed at a limit. */
  get hasOverrun(): boolean {
    return this.#hasOverrun
  }

  /** Loads the code, and returns what is wrong with it. */
  check(code: string, mostUs = Number.POSITIVE_INFINITY): SandboxResult {
    this.#hasOverrun = false
    const limitUs = DEFAULT_LIMITS.timeoutMs * 1000
    this.#quickJs.nowMs = Date.now()
    try {
      const { problem, isSlow } = this.#load({ code, ...DEFAULT_LIMITS }, Math.min(limitUs, mostUs))
      return isSlow && mostUs < limitUs ? { kind: 'slow' } : { kind: 'checked', problem }
    } catch (error) {
      return { kind: 'checked', problem: nowhere(this.#crashed(error)) }
    }
  }

  /** `mostUs`: if the message needs more CPU time than this, although its own limit is higher, the result is `slow`. */
  run(transformation: Transformation, input: TransformInput, mostUs = Number.POSITIVE_INFINITY): SandboxResult {
    this.#hasOverrun = false
    try {
      return this.#run(transformation, input, mostUs)
    } catch (error) {
      return failed(this.#crashed(error))
    }
  }

  /** QuickJS itself failed, as by a stack overflow of the thread. Its stack pointer is not reset, so it cannot be used again. */
  #crashed(error: unknown): string {
    this.#isBroken = true
    this.#hasOverrun = true
    return error instanceof RangeError ? 'used too much stack' : `crashed the sandbox: ${(error as Error).message}`
  }

  #run(transformation: Transformation, { text, receivedAtMs, messageId }: TransformInput, mostUs: number): SandboxResult {
    const quickJs = this.#quickJs
    const limitUs = transformation.timeoutMs * 1000
    const givenUs = Math.min(limitUs, mostUs)
    const program = this.#program(transformation, givenUs)
    if (program.isSlow && givenUs < limitUs) return { kind: 'slow' }
    if (program.problem !== null && !program.usesMessage) return failed(sentence(program.problem))
    quickJs.nowMs = receivedAtMs
    // The messages of a shipment were received together.
    if (receivedAtMs !== this.#received.atMs) this.#received = { atMs: receivedAtMs, json: JSON.stringify(new Date(receivedAtMs)) }
    const received = this.#received.json
    const seed = JSON.stringify(messageId)
    if (program.snapshot === null) {
      const { problem } = this.#load(transformation, givenUs, `[${received},${seed}]`)
      if (this.#isStopped && givenUs < limitUs) return { kind: 'slow' }
      if (problem !== null) return failed(sentence(problem))
    } else if (this.#current === program) {
      quickJs.restore(program.snapshot)
    } else {
      quickJs.clear(program.snapshot)
      this.#current = program
    }
    this.#begin(givenUs)
    const { value, threw } = quickJs.call(this.#functions.run, this.#arguments, quickJs.string(`[${text},${received},${seed}]`))
    if (threw) {
      if (this.#isStopped && givenUs < limitUs) return { kind: 'slow' }
      const { problem, logs } = this.#describe(value, transformation)
      return { kind: 'failed', error: sentence(problem), logs }
    }
    const { body, logs } = splitLogs(quickJs.textOf(value))
    if (body === 'null') return { kind: 'dropped', logs }
    if (body.startsWith('!')) return { kind: 'failed', error: sentence(nowhere(wrongResult(body.slice(1)))), logs }
    if (body.length > MAX_RESULT_BYTES || Buffer.byteLength(body) > MAX_RESULT_BYTES) {
      return { kind: 'failed', error: `returned more than ${MAX_RESULT_BYTES / 1024} KB of JSON`, logs }
    }
    return { kind: 'changed', text: body, logs }
  }

  /** Returns the loaded code, from memory if it was loaded before. */
  #program(transformation: Transformation, givenUs: number): Program {
    if (transformation === this.#last?.transformation && !this.#last.program.isSlow) return this.#last.program
    const program = this.#findProgram(transformation, givenUs)
    this.#last = { transformation, program }
    return program
  }

  #findProgram(transformation: Transformation, givenUs: number): Program {
    const { code, memoryMb } = transformation
    const key = `${memoryMb} ${code}`
    const known = this.#programs.get(key)
    // Code that could not be loaded in the given time may be loaded in more.
    if (known !== undefined && !known.isSlow) {
      if (known !== this.#current) {
        this.#programs.delete(key)
        this.#programs.set(key, known)
      }
      return known
    }
    const program = this.#load(transformation, givenUs)
    this.#programs.set(key, program)
    this.#programBytes += program.snapshot?.size ?? 0
    for (const [oldest, { snapshot }] of this.#programs) {
      if (this.#programs.size <= MAX_PROGRAMS && this.#programBytes <= MAX_PROGRAM_BYTES) break
      if (oldest === key) break
      this.#programs.delete(oldest)
      this.#programBytes -= snapshot?.size ?? 0
    }
    return program
  }

  /** Evaluates the code in a new module. `about` is what it may know of the message, if it is loaded for one. */
  #load(transformation: Transformation, givenUs: number, about?: string): Program {
    const quickJs = this.#quickJs
    const { code, memoryMb } = transformation
    this.#current = null
    quickJs.clear(this.#base)
    quickJs.limitMemory(memoryMb * MIB)
    quickJs.isClockRead = false
    quickJs.call(this.#functions.begin, this.#arguments, quickJs.string(about ?? '["",""]'))
    this.#begin(givenUs)
    const { value, threw } = quickJs.evaluate(code, FILE, 'module')
    const program: Program = { code, memoryMb, snapshot: null, problem: null, usesMessage: false, isSlow: this.#isStopped }
    if (threw) program.problem = this.#describe(value, transformation).problem
    else if (quickJs.isPendingPromise(value)) program.problem = nowhere('must not use await outside of functions')
    else {
      const type = quickJs.call(this.#functions.load, this.#arguments, value)
      if (type.threw) program.problem = this.#describe(type.value, transformation).problem
      else if (quickJs.textOf(type.value) !== 'function') {
        program.problem = nowhere('must export a function as its default: export default function (message) { … }')
      } else if (!quickJs.isClockRead) program.snapshot = quickJs.save()
    }
    program.usesMessage = quickJs.isClockRead
    return program
  }

  #begin(givenUs: number): void {
    this.#limitUs = givenUs
    this.#startedUs = null
    this.#isStopped = false
  }

  /**
   * Counts the CPU time of this thread, because a thread that has to wait for a core must not fail a message. QuickJS calls this after every
   * 10,000 jumps and calls, which take about 0.2 ms. The time before the first check is not counted, so that a message that needs none costs nothing.
   */
  #shouldStop(): boolean {
    const { user, system } = process.threadCpuUsage()
    this.#startedUs ??= user + system
    if (user + system - this.#startedUs < this.#limitUs) return false
    this.#isStopped = true
    return true
  }

  /** What was thrown, as text. What the code has used of its limits does not matter any more. */
  #describe(thrown: Value, { code, timeoutMs, memoryMb }: Transformation): { problem: CodeProblem; logs: string | null } {
    const quickJs = this.#quickJs
    const wasStopped = this.#isStopped
    this.#begin(SPARE_US)
    const isFull = quickJs.isFull
    quickJs.freeReserve()
    const { value, threw } = quickJs.call(this.#functions.describe, this.#arguments, thrown)
    this.#hasOverrun = true
    if (threw) return { problem: nowhere(wasStopped ? tooSlow(timeoutMs) : 'threw a value that cannot be shown'), logs: null }
    const { body, logs } = splitLogs(quickJs.textOf(value))
    const [isConverting, text, stack] = JSON.parse(body) as [boolean, string, string]
    const [, line, column] = /\btransformation\.js:(\d+)(?::(\d+))?/.exec(stack) ?? []
    // If there is no memory left for the error itself, QuickJS throws null.
    const isMemory = text === 'InternalError: out of memory' || (thrownNull.test(text) && isFull)
    this.#hasOverrun = wasStopped || isMemory
    let message = text
    if (wasStopped) message = tooSlow(timeoutMs)
    else if (isMemory) message = `used more than ${memoryMb} MB of memory`
    else if (text === NOT_A_FUNCTION && line !== undefined) message = namedCall(code, Number(line))
    else if (isConverting) message = `returned an object that cannot be written as JSON: ${text}`
    return {
      problem: { line: line === undefined ? null : Number(line), column: column === undefined ? null : Number(column), message },
      logs,
    }
  }
}

const NOT_A_FUNCTION = 'TypeError: not a function'

/** QuickJS does not say what is not a function. The names that the line calls do: only they, because a line may contain more than is to be shown. */
function namedCall(code: string, line: number): string {
  const called = code.split('\n')[line - 1]?.matchAll(/([\p{ID_Start}$_][\p{ID_Continue}$.]{0,60})\s*\(/gu) ?? []
  const names = [...new Set(Array.from(called, ([, name]) => name as string))].filter((name) => !KEYWORDS.has(name)).slice(0, 5)
  if (names.length === 0) return NOT_A_FUNCTION
  return names.length === 1 ? `TypeError: ${names[0]} is not a function` : `${NOT_A_FUNCTION}: one of ${names.join(', ')}`
}

const KEYWORDS = new Set([
  'if',
  'for',
  'while',
  'switch',
  'catch',
  'function',
  'return',
  'typeof',
  'await',
  'in',
  'of',
  'new',
  'default',
  'case',
  'void',
  'delete',
  'yield',
])

function nowhere(message: string): CodeProblem {
  return { line: null, column: null, message }
}

export function tooSlow(timeoutMs: number): string {
  return `ran for more than ${timeoutMs} ms`
}

/** One line of bounded length. */
function sentence({ line, message }: CodeProblem): string {
  const text = message.replace(/\p{Cc}+/gu, ' ').slice(0, MAX_ERROR_LENGTH)

  return line === null ? text : `line ${line}: ${text}`
}

function failed(error: string): TransformResult {
  return { kind: 'failed', error, logs: null }
}

function wrongResult(what: string): string {
  if (what === 'Promise') return 'returned a promise; the function must not be async'
  if (what === 'Generator') return 'returned a generator; the function must return an object, or null to drop the message'
  const article = /^[AEIOU]/i.test(what) ? 'an' : 'a'
  const shown = what === 'undefined' ? 'undefined' : `${article} ${what.slice(0, 50)}`
  return `returned ${what === 'JSON' ? 'an object whose JSON is not an object' : shown}; the function must return an object, or null to drop the message`
}

/** Separates the text that the function has logged: # and a JSON string, up to the end of the line. */
function splitLogs(text: string): { body: string; logs: string | null } {
  if (!text.startsWith('#')) return { body: text, logs: null }
  const end = text.indexOf('\n')
  const bytes = Buffer.from(JSON.parse(text.slice(1, end)) as string)
  // A character that is cut in half is left out.
  const logs = bytes.length <= MAX_LOG_BYTES ? bytes.toString() : bytes.toString('utf8', 0, MAX_LOG_BYTES).replace(/\uFFFD$/, '')
  return { body: text.slice(end + 1), logs: logs.trimEnd() }
}
