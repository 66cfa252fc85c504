import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { MAX_WAIT_MS } from './overrun-debt.ts'
import { compileQuickJs } from './quickjs.ts'
import { Sandbox } from './sandbox.ts'
import { packInputs } from './slice-packing.ts'
import { ThreadTransformer } from './thread-transformer.ts'
import type { TransformInput, TransformResult } from './transformer.ts'
import { type SliceEnd, WatchedThread } from './watched-thread.ts'

const transformer = new ThreadTransformer()
after(() => transformer.close())

function inputs(count: number): TransformInput[] {
  return Array.from({ length: count }, (_, n) => ({ text: `{"n":${n}}`, receivedAtMs: 1_700_000_000_123, messageId: `m-${n}` }))
}

function run(
  destinationId: string,
  code: string,
  { count = 1, timeoutMs = 50, memoryMb = 8, by = transformer } = {},
): Promise<readonly TransformResult[]> {
  return new Promise((resolve) => by.run(destinationId, { code, timeoutMs, memoryMb }, inputs(count), resolve))
}

function texts(results: readonly TransformResult[]): string[] {
  return results.map((result) => (result.kind === 'changed' ? result.text : result.kind === 'dropped' ? 'dropped' : result.error))
}

const body = (text: string) => `export default function (message, about) {\n${text}\n}`

test('results come in order, one per message, and never before run() returns', async () => {
  let isReturned = false
  const results = new Promise<readonly TransformResult[]>((resolve) => {
    transformer.run('a', { code: body('return message.n % 3 === 1 ? null : message'), timeoutMs: 50, memoryMb: 8 }, inputs(200), (all) => {
      assert.ok(isReturned)
      resolve(all)
    })
  })
  isReturned = true
  assert.deepEqual(
    texts(await results),
    inputs(200).map(({ text }, n) => (n % 3 === 1 ? 'dropped' : text)),
  )
  assert.deepEqual(await run('a', 'export default () => null', { count: 0 }), [])
})

test('a message that loops is failed, and the others of the call are not', async () => {
  const results = await run('loops', body('if (message.n % 2 === 1) for (;;) message.n++\nreturn message'), { count: 5, timeoutMs: 20 })
  assert.deepEqual(texts(results), ['{"n":0}', 'line 2: ran for more than 20 ms', '{"n":2}', 'line 2: ran for more than 20 ms', '{"n":4}'])
})

test('a message that blocks the thread ends the thread, and the others of the call are run again', async () => {
  const code = body('if (message.n === 3) [].indexOf.call({ length: 2 ** 53 - 1 }, 1)\nreturn message')
  const results = await run('blocks', code, { count: 6, timeoutMs: 20 })
  assert.deepEqual(texts(results), ['{"n":0}', '{"n":1}', '{"n":2}', 'ran for more than 20 ms', '{"n":4}', '{"n":5}'])
})

test('a destination that loops does not keep others waiting', async () => {
  const looping = run('greedy', body('for (;;) {}'), { count: 100 })
  const order: string[] = []
  void looping.then(() => order.push('looping'))
  for (let turn = 0; turn < 5; turn++) {
    assert.equal((await run('modest', body('return message'), { count: 50 })).length, 50)
    order.push('modest')
  }
  assert.deepEqual(
    order,
    Array.from({ length: 5 }, () => 'modest'),
  )
  // Whoever closes the transformer does not wait for it, either.
  const closing = new ThreadTransformer()
  const open = run('greedy', body('for (;;) {}'), { count: 100, by: closing })
  await run('modest', body('return message'), { by: closing })
  await closing.close()
  assert.ok((await open).some(({ kind }) => kind === 'unavailable'))
  assert.deepEqual(await run('late', body('return message'), { by: closing }), [{ kind: 'unavailable', error: 'the service is stopping' }])
})

/** One call of QuickJS that it does not interrupt, of about 40 ms: more than any message should take, and less than what a thread is killed for. */
async function nativeCall(): Promise<string> {
  const sandbox = await Sandbox.create(compileQuickJs())
  const codeOf = (length: number) => body(`[].indexOf.call({ length: ${length} }, 1)\nreturn message`)
  const msOf = (length: number): number => {
    const before = process.threadCpuUsage()
    sandbox.run({ code: codeOf(length), timeoutMs: 1000, memoryMb: 8 }, inputs(1)[0] as TransformInput)
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1000
  }
  msOf(1000)
  let length = 10_000
  while (msOf(length) < 20) length *= 2
  return codeOf(Math.round((length * 40) / msOf(length)))
}

test('calls that QuickJS does not interrupt delay other destinations by a few messages, however many wait', async () => {
  const code = await nativeCall()
  const own = new ThreadTransformer()
  await run('modest', body('return message'), { by: own })
  let finished = 0
  const all = Array.from({ length: 60 }, () => run('native', code, { timeoutMs: 1000, by: own }).then(() => finished++))
  await run('modest', body('return message'), { by: own })
  const before = finished
  // If the other destination were still in the same thread, each of these would wait for one of its messages.
  for (let nth = 0; nth < 40; nth++) await run('modest', body('return message'), { by: own })
  const after = finished
  await own.close()
  await Promise.all(all)
  assert.ok(before < 20, `${before} messages first`)
  assert.ok(after < 55, `${after} messages in the meantime`)
})

test('code that QuickJS stops too late is stopped from outside, and its destination is not kept waiting', async (t) => {
  // How long the destination has to wait is measured by the timers that are set, because code takes longer on a busy machine.
  const timers = t.mock.method(globalThis, 'setTimeout')
  const own = new ThreadTransformer()
  const code = body('const f = () => { try { f() } finally { f() } }\nif (message.n > 0) f()\nreturn message')
  const results = await run('finally', code, { count: 3, timeoutMs: 500, by: own })
  await own.close()
  // No line: QuickJS did not stop it.
  assert.deepEqual(texts(results), ['{"n":0}', 'ran for more than 500 ms', 'ran for more than 500 ms'])
  // Threads without work are ended after a minute.
  const waits = timers.mock.calls.map(({ arguments: [, ms = 0] }) => ms).filter((ms) => ms < 60_000)
  assert.ok(waits.length > 0 && waits.every((ms) => ms <= MAX_WAIT_MS + 1), `waits for ${waits.join()} ms`)
})

test('a slice that waits behind a message that blocks the thread is lost, and nothing is counted against it', async () => {
  const wasm = compileQuickJs()
  const thread = new WatchedThread(() => wasm, false)
  const start = (code: string): Promise<SliceEnd> =>
    new Promise((resolve) => {
      thread.start({ mostUs: 5_000, transformation: { code, timeoutMs: 20, memoryMb: 8 }, inputs: packInputs(inputs(1)) }, 30, resolve)
    })
  const blocking = start(body('[].indexOf.call({ length: 2 ** 53 - 1 }, 1)'))
  const behind = start(body('return message'))
  assert.deepEqual(await blocking, { lostAt: 0, wasBlocked: true })
  assert.deepEqual(await behind, { lostAt: null, wasBlocked: false })
  await thread.close()
})

test('code that takes longer than others may be slow, within its own limit', async () => {
  const code = body('let sum = 0\nfor (let i = 0; i < 300_000; i++) sum += i\nreturn { sum }')
  assert.deepEqual(texts(await run('slow', code, { count: 2, timeoutMs: 1000 })), ['{"sum":44999850000}', '{"sum":44999850000}'])
})

test('what is logged is kept, up to 2 KB', async () => {
  const code = body(`console.log('n is', message.n, { a: [1] })
console.error(new TypeError('bad'), undefined, null)
if (message.n === 1) throw new Error('after the log')
if (message.n === 2) { console.info('é'.repeat(3000)); return null }
return message`)
  const [first, second, third] = await run('logs', code, { count: 3 })
  assert.deepEqual(first, { kind: 'changed', text: '{"n":0}', logs: 'n is 0 {"a":[1]}\nTypeError: bad undefined null' })
  assert.deepEqual(second, {
    kind: 'failed',
    error: 'line 4: Error: after the log',
    logs: 'n is 1 {"a":[1]}\nTypeError: bad undefined null',
  })
  assert.equal(third?.kind, 'dropped')
  const logs = third?.kind === 'dropped' ? (third.logs ?? '') : ''
  assert.ok(Buffer.byteLength(logs) <= 2048 && Buffer.byteLength(logs) > 2040)
  assert.match(logs, /^n is 2 [^\uFFFD]*é$/s)
})

test('code is checked without being called', async () => {
  const cases: [code: string, problem: string | null, line?: number, column?: number][] = [
    ['export default (message) => message', null],
    ['const f = function () { while (true) {} }\nexport { f as default }', null],
    ['export default function (message) {\n  return message +\n}', "SyntaxError: unexpected token in expression: '}'", 3, 1],
    ['', 'must export a function as its default: export default function (message) { … }'],
    ['export default 1', 'must export a function as its default: export default function (message) { … }'],
    ['module.exports = (message) => message', "ReferenceError: 'module' is not defined", 1, 1],
    ['while (true) {}', 'ran for more than 50 ms', 1],
    ['\nthrow new Error("at once")', 'Error: at once', 2],
    ['await new Promise(() => {})\nexport default () => null', 'must not use await outside of functions'],
    ['export default () => null\n;[].indexOf.call({ length: 2 ** 53 - 1 }, 1)', 'ran for more than 50 ms'],
  ]
  for (const [code, message, line, column] of cases) {
    const problem = await transformer.check(code)
    assert.equal(problem?.message ?? null, message, code)
    if (line !== undefined) assert.equal(problem?.line, line, code)
    if (column !== undefined) assert.equal(problem?.column, column, code)
  }
})

test('a fixed version of the code is fast again at once', async () => {
  await run('fixed', body('for (;;) {}'), { count: 3, timeoutMs: 100 })
  assert.deepEqual(texts(await run('fixed', body('return message'))), ['{"n":0}'])
})

test('cancelled messages have no results, and do not delay a fixed version of the code', async () => {
  const own = new ThreadTransformer()
  const looping = { code: body('for (;;) {}'), timeoutMs: 1000, memoryMb: 8 }
  let hasResults = false
  // With a second of CPU time for each message and a tenth of a core, they would take several minutes.
  const cancels = Array.from({ length: 20 }, () => own.run('changed', looping, inputs(2), () => (hasResults = true)))
  await run('other', body('return message'), { by: own })
  for (const cancel of cancels) cancel()
  for (let nth = 0; nth < 20; nth++) assert.deepEqual(texts(await run('changed', body('return message'), { by: own })), ['{"n":0}'])
  await own.close()
  assert.equal(hasResults, false)
})

test('code that fails for some messages while it is loaded does not fail for the others', async () => {
  const code = `if (Date.now() % 2 === 0) throw new Error('even')\nif (Math.random() < 0.5) throw new Error('low')\n${body('return { is: true }')}`
  const at = (receivedAtMs: number, messageId: string): TransformInput => ({ text: '{}', receivedAtMs, messageId })
  const given = [at(2, 'a'), at(1, 'b'), at(4, 'b'), ...Array.from({ length: 20 }, (_, n) => at(3, `m-${n}`))]
  const seen = (some: TransformInput[]) =>
    new Promise<readonly TransformResult[]>((resolve) => transformer.run('loads', { code, timeoutMs: 50, memoryMb: 8 }, some, resolve))
  const all = texts(await seen(given))
  assert.deepEqual(new Set(all), new Set(['line 1: Error: even', 'line 2: Error: low', '{"is":true}']))
  // In another order, every message has the same result.
  assert.deepEqual(texts(await seen([...given.slice(5), ...given.slice(0, 5)])), [...all.slice(5), ...all.slice(0, 5)])
})

/** Uses everything that could differ between runs. */
const CHANGING = `const loadedAt = Date.now()
const lucky = Math.random()
export default function (message, { received, seed }) {
  const local = new Date(2026, 6, 1, 12)
  return {
    message, received, seed, loadedAt, lucky,
    random: [Math.random(), Math.random()],
    times: [Date.now(), new Date(), Date(), String(new Date()), local, local.getTimezoneOffset(), new Date('2026-07-01T12:00').getTime()],
    locale: [new Date().toLocaleString(), new Date().toLocaleTimeString('de'), (1234.5).toLocaleString(), 'I'.toLocaleLowerCase('tr'), ['ä', 'z', 'a'].sort((a, b) => a.localeCompare(b))],
    globals: Object.getOwnPropertyNames(globalThis),
    stack: new Error('x').stack,
    keys: Object.keys({ b: 1, 2: 1, a: 1, 1: 1 }),
    source: (() => message).toString(),
    numbers: [0.1 + 0.2, 1e21, 5e-324, Math.sin(1e10), 2 ** 0.5],
  }
}`

test('the same input gives the same bytes in another thread, another process, another time zone and at another time', async () => {
  const transformation = { code: CHANGING, timeoutMs: 500, memoryMb: 8 }
  const expected = await new Promise<readonly TransformResult[]>((resolve) => transformer.run('d', transformation, inputs(3), resolve))
  assert.ok(expected.every(({ kind }) => kind === 'changed'))
  assert.equal(new Set(texts(expected)).size, 3)
  const parsed = JSON.parse(texts(expected)[0] as string) as { times: unknown[]; loadedAt: number; lucky: number; random: number[] }
  assert.deepEqual(parsed.times.slice(0, 2), [1_700_000_000_123, '2023-11-14T22:13:20.123Z'])
  assert.equal(parsed.loadedAt, 1_700_000_000_123)
  assert.notEqual(parsed.lucky, parsed.random[0])

  const other = new ThreadTransformer()
  const again = await new Promise<readonly TransformResult[]>((resolve) => other.run('d', transformation, inputs(3), resolve))
  await other.close()
  assert.deepEqual(again, expected)

  const program = new URL('../../fixtures/transform-once.ts', import.meta.url).pathname
  for (const env of [
    { TZ: 'Asia/Kolkata', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' },
    { TZ: 'America/St_Johns', FAKE_NOW: '4102444800000' },
  ]) {
    const { stdout } = await promisify(execFile)(process.execPath, [program, JSON.stringify({ transformation, inputs: inputs(3) })], {
      env,
    })
    assert.deepEqual(JSON.parse(stdout), expected)
  }
})
