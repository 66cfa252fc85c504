// One instance of QuickJS, compiled to WebAssembly, whose whole state can be saved and restored: the state is its linear memory and nothing
// else. The host gives it a clock that stands still, no time zone, no environment and no output. Everything here depends on one build of
// QuickJS: another version fails in create(), not later.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import QuickJSRaw from '@jitl/quickjs-wasmfile-release-sync/emscripten-module'
import { QuickJSFFI } from '@jitl/quickjs-wasmfile-release-sync/ffi'

/**
 * What @jitl/quickjs-wasmfile-release-sync 0.32.0 calls its imports and exports, and how it uses its memory: constants, variables, the stack, then
 * the heap up to the address that is stored at `heapEnd`, which is the first variable.
 */
const BUILD = {
  imports: { shouldInterrupt: 'i', dateNow: 'p', localTime: 'm', timeZone: 'n', environ: 'e', environSizes: 'f', grow: 'k', memory: 'a' },
  stackPointer: 'Oa',
  stack: { start: 90_208, end: 5_333_088 },
  heapEnd: 86_864,
} as const

/** The part of the stack that JavaScript may use. V8 needs several times as much of the thread's own stack for it (THREAD_LIMITS). */
const MAX_STACK_BYTES = 256 * 1024

/** For threads that run QuickJS. The stack is large enough that the limit above is reached first. */
export const THREAD_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8, stackSizeMb: 16 }

const MIB = 1024 * 1024
/** The size of the memory, which never grows. Only the pages that are used take up memory of the machine. */
const MEMORY_BYTES = 72 * MIB
/** The most that code can be given of it. */
const MAX_HEAP_BYTES = 64 * MIB
/** Held back for describing the error when the memory is used up. */
const RESERVE_BYTES = MIB / 2
/** The allocator uses less than this on either side of a block. */
const BESIDE = 64
/** An instance that has used more than this is replaced, to give the memory back. */
const LARGE_BYTES = 16 * MIB

/** A value in the memory of QuickJS. It is never freed: restoring the memory frees everything. */
export type Value = number

/** A copy of the memory in use, except for constants and the stack. */
export interface Snapshot {
  readonly parts: readonly { readonly at: number; readonly bytes: Uint8Array }[]
  readonly size: number
  readonly ballast: Ballast | null
}

/** Two blocks that are allocated and never used. They limit the memory: QuickJS's own limit counts 8 bytes for an allocation of any size. */
interface Ballast {
  filler: number
  reserve: number
  end: number
}

type Functions = Record<Exclude<keyof QuickJSFFI, 'DEBUG'>, (...args: (number | string | boolean)[]) => number>

interface Emscripten {
  callbacks: { shouldInterrupt: () => number }
  _malloc: (bytes: number) => number
  _free: (at: number) => void
}

// The parts of WebAssembly that are used here; the types of Node.js do not declare them.
/** Compiled code, which can be sent to other threads. */
export interface WasmModule {
  readonly [Symbol.toStringTag]: string
}
interface Memory {
  readonly buffer: ArrayBuffer
}
interface Instance {
  readonly exports: Readonly<Record<string, unknown>>
}
interface Imports {
  a: Readonly<Record<string, unknown>>
}
const { Module, Instance } = (
  globalThis as unknown as {
    WebAssembly: {
      Module: new (bytes: Uint8Array) => WasmModule
      Instance: new (module: WasmModule, imports: Imports) => Instance
    }
  }
).WebAssembly

/** The package declares the types of the form that its loader has in browsers. */
const createEmscripten = QuickJSRaw as unknown as (options: {
  INITIAL_MEMORY: number
  instantiateWasm: (imports: Imports, done: (instance: Instance) => void) => Instance['exports']
}) => Promise<Emscripten>

export class QuickJs {
  readonly #malloc: Emscripten['_malloc']
  readonly #ffi: Functions
  readonly #runtime: number
  readonly #context: number
  readonly #bytes: Buffer
  readonly #constants: Uint8Array
  readonly #free: Emscripten['_free']
  #ballast: Ballast | null = null
  /** The highest end of the heap since clear(). */
  #highest = 0
  #mostUsed = 0
  /** The time that Date.now() returns. */
  nowMs = 0
  /** Whether the clock was read. */
  isClockRead = false
  /** Called now and then while code runs; true stops it. */
  shouldStop: () => boolean = () => false

  private constructor(memory: Memory, emscripten: Emscripten) {
    this.#bytes = Buffer.from(memory.buffer)
    this.#constants = Uint8Array.prototype.slice.call(this.#bytes, 0, BUILD.heapEnd)
    const { _malloc: malloc, _free: free } = emscripten
    this.#malloc = malloc
    this.#free = free
    emscripten.callbacks = { shouldInterrupt: () => (this.shouldStop() ? 1 : 0) }
    this.#ffi = new QuickJSFFI(emscripten as never) as unknown as Functions
    this.#runtime = this.#ffi.QTS_NewRuntime()
    this.#ffi.QTS_RuntimeEnableInterruptHandler(this.#runtime)
    this.#ffi.QTS_RuntimeSetMaxStackSize(this.#runtime, MAX_STACK_BYTES)
    this.#context = this.#ffi.QTS_NewContext(this.#runtime, 0)
  }

  static async create(wasm: WasmModule): Promise<QuickJs> {
    let self: QuickJs | undefined
    let memory: Memory | undefined
    let stackPointer: unknown
    const emscripten = await createEmscripten({
      INITIAL_MEMORY: MEMORY_BYTES,
      instantiateWasm({ a }, done) {
        const own = a[BUILD.imports.memory] as Memory
        const view = () => new DataView(own.buffer)
        const instance = new Instance(wasm, {
          a: {
            // Everything else that emscripten offers, such as output and timers, is out of reach.
            ...Object.fromEntries(Object.keys(a).map((name) => [name, refuse])),
            [BUILD.imports.memory]: own,
            [BUILD.imports.shouldInterrupt]: a[BUILD.imports.shouldInterrupt],
            [BUILD.imports.dateNow]: () => {
              if (self === undefined) return 0
              self.isClockRead = true
              return self.nowMs
            },
            [BUILD.imports.localTime]: (seconds: bigint, at: number) => writeUtc(own, Number(seconds), at),
            [BUILD.imports.timeZone]: () => {},
            [BUILD.imports.grow]: () => 0,
            [BUILD.imports.environ]: () => 0,
            [BUILD.imports.environSizes]: (count: number, bytes: number) => {
              view().setUint32(count, 0, true)
              view().setUint32(bytes, 0, true)
              return 0
            },
          },
        })
        memory = own
        stackPointer = instance.exports[BUILD.stackPointer]
        done(instance)
        return instance.exports
      },
    })
    const hasStack = typeof stackPointer === 'function' && stackPointer() === BUILD.stack.end
    if (memory === undefined || !hasStack || !growsAtHeapEnd(memory, emscripten)) {
      throw new Error('this build of QuickJS is not the one that delivery/sender/transforming/quickjs.ts was written for')
    }
    self = new QuickJs(memory, emscripten)
    self.#checkClock()
    self.isClockRead = false
    return self
  }

  /** The clock and the time zone are replaced by their names in the build, so this checks that the right ones were. */
  #checkClock(): void {
    const before = this.save()
    this.nowMs = 1_234_567_890_123
    const text = this.textOf(this.evaluate('`${Date.now()} ${new Date(2001, 6, 1).getTime()} ${new Date(0)}`', 'check', 'script').value)
    this.nowMs = 0
    if (text !== '1234567890123 993945600000 Thu Jan 01 1970 00:00:00 GMT+0000') {
      throw new Error(`QuickJS does not use the clock it is given: ${text}`)
    }
    this.restore(before)
  }

  /** Whether the instance has used so much memory that it should be replaced. */
  get isLarge(): boolean {
    return this.usedBytes > LARGE_BYTES
  }

  /** The most memory that was used so far. */
  get usedBytes(): number {
    return Math.max(this.#mostUsed, this.#heapEnd - this.#heapStart)
  }

  /** Whether there is no memory left. */
  get isFull(): boolean {
    return this.#heapEnd > MEMORY_BYTES - 128 * 1024
  }

  get #heapEnd(): number {
    return this.#bytes.readUInt32LE(BUILD.heapEnd)
  }

  /** Where code begins to allocate. */
  get #heapStart(): number {
    return this.#ballast?.end ?? BUILD.stack.end
  }

  // ── State ──

  /** Leaves the code that is loaded next this much memory. Undone by clear(). */
  limitMemory(bytes: number): void {
    const size = MEMORY_BYTES - this.#heapEnd - RESERVE_BYTES - Math.min(bytes, MAX_HEAP_BYTES)
    const filler = this.#malloc(size)
    const reserve = this.#malloc(RESERVE_BYTES)
    if (filler === 0 || reserve < filler + size) throw new Error('the memory of QuickJS cannot be limited')
    this.#ballast = { filler, reserve, end: reserve + RESERVE_BYTES }
  }

  /** Makes the memory available that was held back. Undone by restore(). */
  freeReserve(): void {
    if (this.#ballast !== null) this.#free(this.#ballast.reserve)
  }

  /** The blocks of the ballast are left out, but not what the allocator stores beside them. */
  save(): Snapshot {
    const { start, end } = BUILD.stack
    const ballast = this.#ballast
    const heap: [number, number][] =
      ballast === null
        ? [[end, this.#heapEnd]]
        : [
            [end, ballast.filler + BESIDE],
            [ballast.reserve - BESIDE, ballast.reserve + BESIDE],
            [ballast.end - BESIDE, this.#heapEnd],
          ]
    const parts = [[BUILD.heapEnd, start] as const, ...heap].map(([at, to]) => ({
      at,
      bytes: Uint8Array.prototype.slice.call(this.#bytes, at, to),
    }))
    return { parts, size: parts.reduce((sum, { bytes }) => sum + bytes.length, 0), ballast }
  }

  restore({ parts, ballast }: Snapshot): void {
    const end = this.#heapEnd
    if (end > this.#highest) {
      this.#highest = end
      this.#mostUsed = this.usedBytes
    }
    for (const { at, bytes } of parts) this.#bytes.set(bytes, at)
    this.#ballast = ballast
  }

  /** Restores, and overwrites what other code has left in memory. Without a bug in QuickJS nothing could read it. */
  clear(snapshot: Snapshot): void {
    const from = this.#heapStart
    const to = Math.max(this.#highest, this.#heapEnd)
    this.#mostUsed = this.usedBytes
    this.#bytes.fill(0, from, to)
    this.#bytes.fill(0, BUILD.stack.end - 2 * MAX_STACK_BYTES, BUILD.stack.end)
    this.#bytes.set(this.#constants, 0)
    this.restore(snapshot)
    this.#highest = 0
  }

  // ── Values ──

  evaluate(code: string, name: string, type: 'script' | 'module'): { value: Value; threw: boolean } {
    const at = this.#write(code)
    return this.#resolve(this.#ffi.QTS_Eval(this.#context, at, Buffer.byteLength(code), name, 0, type === 'module' ? 1 : 0))
  }

  string(text: string): Value {
    return this.#ffi.QTS_NewString(this.#context, this.#write(text))
  }

  /** Allocates the list of arguments of a call with one argument. */
  allocateArguments(): number {
    return this.#malloc(4)
  }

  /** Calls a function with one argument. */
  call(fn: Value, list: number, argument: Value): { value: Value; threw: boolean } {
    this.#bytes.writeUInt32LE(argument, list)
    return this.#resolve(this.#ffi.QTS_Call(this.#context, fn, this.#ffi.QTS_GetUndefined(), 1, list))
  }

  property(object: Value, name: string): Value {
    return this.#ffi.QTS_GetProp(this.#context, object, this.string(name))
  }

  typeOf(value: Value): string {
    return this.#read(this.#ffi.QTS_Typeof(this.#context, value))
  }

  /** Whether the value is a promise that is not fulfilled. */
  isPendingPromise(value: Value): boolean {
    return this.#ffi.QTS_PromiseState(this.#context, value) === 0
  }

  /** The value as a string. It must be a string: anything else could run code. */
  textOf(value: Value): string {
    return this.#read(this.#ffi.QTS_GetString(this.#context, value))
  }

  #resolve(value: Value): { value: Value; threw: boolean } {
    const error = this.#ffi.QTS_ResolveException(this.#context, value)
    return error === 0 ? { value, threw: false } : { value: error, threw: true }
  }

  /** JSON and source text contain no NUL, or are cut off there. */
  #write(text: string): number {
    const size = Buffer.byteLength(text)
    const at = this.#malloc(size + 1)
    if (at === 0) throw new Error('QuickJS is out of memory')
    const bytes = this.#bytes
    bytes.write(text, at, size, 'utf8')
    bytes[at + size] = 0
    return at
  }

  #read(at: number): string {
    const bytes = this.#bytes
    return at === 0 ? '' : bytes.toString('utf8', at, bytes.indexOf(0, at))
  }
}

export function compileQuickJs(): WasmModule {
  return new Module(readFileSync(fileURLToPath(import.meta.resolve('@jitl/quickjs-wasmfile-release-sync/wasm'))))
}

function refuse(): never {
  throw new Error('QuickJS called a function that it must not use')
}

function growsAtHeapEnd(memory: Memory, { _malloc: malloc, _free: free }: Emscripten): boolean {
  const heapEnd = () => new DataView(memory.buffer).getUint32(BUILD.heapEnd, true)
  const before = heapEnd()
  const at = malloc(65_536)
  free(at)
  return before >= BUILD.stack.end && at >= BUILD.stack.end && heapEnd() >= at + 65_536 && heapEnd() <= at + 2 * 65_536
}

/** Writes a `struct tm`. */
function writeUtc(memory: Memory, seconds: number, at: number): void {
  const date = new Date(seconds * 1000)
  const year = date.getUTCFullYear()
  const yearStart = Date.UTC(year, 0, 1)
  const fields = new Int32Array(memory.buffer, at, 10)
  fields.set([date.getUTCSeconds(), date.getUTCMinutes(), date.getUTCHours(), date.getUTCDate(), date.getUTCMonth(), year - 1900])
  fields.set([date.getUTCDay(), Math.floor((date.getTime() - yearStart) / 86_400_000), 0, 0], 6)
}
