// Code that tries to escape from the sandbox, to break it or to hurt others, each with the exact result. After each of them a message of
// another destination must come through unchanged.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ThreadTransformer } from './thread-transformer.ts'
import type { TransformInput, TransformResult } from './transformer.ts'

const INPUT: TransformInput = { text: '{"type":"track","n":1}', receivedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5), messageId: 'm-1' }
const MUST = 'the function must return an object, or null to drop the message'
const NOT_JSON = 'returned an object that cannot be written as JSON'

const transformer = new ThreadTransformer()
after(() => transformer.close())

function run(destinationId: string, code: string, { timeoutMs = 200, memoryMb = 8, input = INPUT } = {}): Promise<TransformResult> {
  return new Promise((resolve) => {
    transformer.run(destinationId, { code, timeoutMs, memoryMb }, [input], ([result]) => resolve(result as TransformResult))
  })
}

/** What a case ends with: the returned object, or the error. */
type Ending = { returns: object } | { fails: string | RegExp }

async function check(name: string, code: string, ending: Ending, limits: { timeoutMs?: number; memoryMb?: number } = {}): Promise<void> {
  const result = await run(name, code, limits)
  if ('returns' in ending) assert.deepEqual(result, { kind: 'changed', text: JSON.stringify(ending.returns), logs: null })
  else {
    assert.equal(result.kind, 'failed', JSON.stringify(result))
    const { error } = result as { error: string }
    if (typeof ending.fails === 'string') assert.equal(error, ending.fails)
    else assert.match(error, ending.fails)
  }
  const other = await run('another destination', 'export default (message) => message')
  assert.deepEqual(other, { kind: 'changed', text: INPUT.text, logs: null })
}

/** The body of a function begins on line 2. */
function body(text: string): string {
  return `export default function (message, { received, seed }) {\n${text}\n}`
}

const NOTHING = [
  'process',
  'require',
  'module',
  'performance',
  'fetch',
  'setTimeout',
  'setInterval',
  'queueMicrotask',
  'Buffer',
  'WebAssembly',
  'std',
  'os',
]

const ESCAPES: Record<string, [code: string, ending: Ending]> = {
  'there are no host objects': [
    body(`return { found: ${JSON.stringify(NOTHING)}.filter((name) => name in globalThis) }`),
    { returns: { found: [] } },
  ],
  'a prototype walk leads to the sandbox itself': [
    body(`const make = message.constructor.constructor
return { type: make('return typeof process')(), same: make('return this')() === globalThis }`),
    { returns: { type: 'undefined', same: true } },
  ],
  'Function constructors of all kinds see the same globals': [
    body(`const kinds = [Function, (async () => {}).constructor, (function* () {}).constructor, (async function* () {}).constructor]
return { types: kinds.map((kind) => typeof kind('return process')), self: Function('return typeof require')() }`),
    { returns: { types: ['function', 'function', 'function', 'function'], self: 'undefined' } },
  ],
  'indirect eval sees the same globals': [body(`return { type: (0, eval)('typeof process') }`), { returns: { type: 'undefined' } }],
  'an import of a module of the host fails': [
    `import fs from 'node:fs'\nexport default () => ({})`,
    { fails: "ReferenceError: could not load module 'node:fs'" },
  ],
  'a dynamic import has no effect': [
    body(`import('node:fs').then((fs) => { message.fs = fs })\nreturn message`),
    { returns: { type: 'track', n: 1 } },
  ],
  'the caller of the function cannot be reached': [
    body(`return { caller: (function f() { try { return typeof f.caller } catch { return 'no' } })() }`),
    { returns: { caller: 'no' } },
  ],
  'a stack trace shows no file of the host': [
    body(`return { leaks: /file:|\\/|node_modules/.test(new Error('x').stack) }`),
    { returns: { leaks: false } },
  ],
  'replacing built-in functions does not change the sandbox': [
    body(`JSON.parse = JSON.stringify = Reflect.apply = String.prototype.slice = Object.prototype.toString = Array.isArray = () => 'taken'
Object.defineProperty(globalThis, 'String', { value: null })
return { fine: true }`),
    { returns: { fine: true } },
  ],
  'setters on Object.prototype do not disturb the sandbox': [
    body(`Object.defineProperty(Object.prototype, '0', { set() {}, configurable: true })
Object.defineProperty(Object.prototype, 'received', { set() { throw 1 }, configurable: true })
return { random: Math.random() < 1, a: [1] }`),
    { returns: { random: true, a: [1] } },
  ],
  'garbage collection cannot be observed': [
    body(`return { types: [typeof WeakRef, typeof FinalizationRegistry, typeof SharedArrayBuffer, typeof Atomics] }`),
    { returns: { types: ['undefined', 'undefined', 'undefined', 'undefined'] } },
  ],
}

const RESULTS: Record<string, [code: string, ending: Ending]> = {
  undefined: [body(''), { fails: `returned undefined; ${MUST}` }],
  'a string': [body(`return 'text'`), { fails: `returned a string; ${MUST}` }],
  'a number': [body('return 1'), { fails: `returned a number; ${MUST}` }],
  'a symbol': [body('return Symbol.iterator'), { fails: `returned a symbol; ${MUST}` }],
  'an array': [body('return [message]'), { fails: `returned an Array; ${MUST}` }],
  'a function': [body('return () => message'), { fails: `returned a function; ${MUST}` }],
  'a promise': ['export default async (message) => message', { fails: 'returned a promise; the function must not be async' }],
  'a promise that is rejected': [
    `export default async () => { throw new Error('x') }`,
    { fails: 'returned a promise; the function must not be async' },
  ],
  'a generator': ['export default function* (message) { yield message }', { fails: `returned a generator; ${MUST}` }],
  'a Map': [body('return new Map()'), { fails: `returned a Map; ${MUST}` }],
  'a Date': [body('return new Date()'), { fails: `returned a Date; ${MUST}` }],
  'a proxy of an array': [body('return new Proxy([], {})'), { fails: `returned an Array; ${MUST}` }],
  'a proxy of an object is read like one': [body('return new Proxy({ a: 1 }, {})'), { returns: { a: 1 } }],
  'a proxy that throws': [
    body(`return new Proxy({}, { ownKeys() { throw new Error('trap') } })`),
    { fails: `line 2: ${NOT_JSON}: Error: trap` },
  ],
  'a getter is called': [body('return { get a() { return 1 } }'), { returns: { a: 1 } }],
  'a getter that throws': [body(`return {\n  get a() { throw new Error('got') }\n}`), { fails: `line 3: ${NOT_JSON}: Error: got` }],
  'toJSON that returns an object': [body('return { toJSON() { return { b: 2 } } }'), { returns: { b: 2 } }],
  'toJSON that returns an array': [
    body('return { toJSON() { return [1] } }'),
    { fails: `returned an object whose JSON is not an object; ${MUST}` },
  ],
  'toJSON that returns nothing': [body('return { toJSON() {} }'), { fails: `returned an object whose JSON is not an object; ${MUST}` }],
  'a cycle': [body('message.self = message\nreturn message'), { fails: `${NOT_JSON}: TypeError: circular reference` }],
  'a BigInt': [body('return { a: 1n }'), { fails: `${NOT_JSON}: TypeError: Do not know how to serialize a BigInt` }],
  'what JSON cannot hold is left out or null': [
    body('return { f() {}, u: undefined, s: Symbol(), n: NaN, i: Infinity, z: -0, a: [undefined, () => {}], d: new Date(0) }'),
    { returns: { n: null, i: null, z: 0, a: [null, null], d: '1970-01-01T00:00:00.000Z' } },
  ],
  'a result with a wrong class name': [body(`return { [Symbol.toStringTag]: 'Array' }`), { fails: `returned an Array; ${MUST}` }],
  'a class name with control characters': [
    body(`return { [Symbol.toStringTag]: 'A\\n\\u001b[31m' }`),
    { fails: `returned an A [31m; ${MUST}` },
  ],
  'text with NUL and half a character': [body(`return { a: '\\u0000\\ud800!' }`), { returns: { a: '\u0000\ud800!' } }],
  'a huge result': [body(`return { a: 'x'.repeat(200_000) }`), { fails: 'returned more than 128 KB of JSON' }],
}

const THROWS: Record<string, [code: string, ending: Ending]> = {
  'an error, with its line': [body(`\n\nthrow new TypeError('no')`), { fails: 'line 4: TypeError: no' }],
  'an error of the language, in a nested function': [
    body('const f = () =>\n  message.missing.x\nf()'),
    { fails: "line 3: TypeError: cannot read property 'x' of undefined" },
  ],
  'a call of what is no function, with its name': [
    body('if (true) return message.toUpperCase()'),
    { fails: 'line 2: TypeError: message.toUpperCase is not a function' },
  ],
  'a line with several calls': [
    body('return String(1) + message(2)'),
    { fails: 'line 2: TypeError: not a function: one of String, message' },
  ],
  'a string': [body(`throw 'text'`), { fails: 'threw "text", which is not an Error' }],
  null: [body('throw null'), { fails: 'threw null, which is not an Error' }],
  undefined: [body('throw undefined'), { fails: 'threw undefined, which is not an Error' }],
  'a symbol': [body('throw Symbol("s")'), { fails: 'threw Symbol(s), which is not an Error' }],
  'an object': [body('throw { a: 1 }'), { fails: 'threw {"a":1}, which is not an Error' }],
  'an object whose getter throws': [body('throw { get message() { throw 1 } }'), { fails: 'threw a value that cannot be shown' }],
  'an object whose getter never ends': [
    body('throw { get message() { while (true) {} } }'),
    { fails: 'threw a value that cannot be shown' },
  ],
  'a function': [body('throw function f() {}'), { fails: 'threw function f() {}, which is not an Error' }],
  'an error with control characters': [body(`throw new Error('a\\n\\u0000b')`), { fails: 'line 2: Error: a b' }],
  'an error that toJSON would replace': [
    body(`Array.prototype.toJSON = Object.prototype.toJSON = String.prototype.toJSON = () => 5\nthrow new Error('no')`),
    { fails: 'line 3: Error: no' },
  ],
  'a very long error': [body(`throw new Error('x'.repeat(100_000))`), { fails: /^line 2: Error: x{493}$/ }],
}

const BOMBS: Record<string, [code: string, ending: Ending, limits?: { timeoutMs?: number; memoryMb?: number }]> = {
  'an endless loop': [body('while (true) {}'), { fails: /^line \d: ran for more than 5 ms$/ }, { timeoutMs: 5 }],
  'an endless loop that catches everything': [
    body('for (;;) try { for (;;) {} } catch {} finally { for (;;) {} }'),
    { fails: /^line \d: ran for more than 5 ms$/ },
    { timeoutMs: 5 },
  ],
  'a loop in a getter of the result': [
    body('return { get a() { while (true) {} } }'),
    { fails: /^line 2: ran for more than 5 ms$/ },
    { timeoutMs: 5 },
  ],
  'a loop in a trap of the result': [
    body('return new Proxy({}, { get() { while (true) {} }, getPrototypeOf() { while (true) {} } })'),
    { fails: /^line 2: ran for more than 5 ms$/ },
    { timeoutMs: 5 },
  ],
  'a loop outside of functions': [
    'while (true) {}\nexport default () => ({})',
    { fails: 'line 1: ran for more than 5 ms' },
    { timeoutMs: 5 },
  ],
  'a regular expression that backtracks': [
    body(`return { a: /^(a+)+$/.test('a'.repeat(50) + 'b') }`),
    { fails: 'line 2: ran for more than 5 ms' },
    { timeoutMs: 5 },
  ],
  'an endless generator': [
    body('function* g() { for (;;) yield 1 }\nreturn { a: [...g()] }'),
    { fails: /^line \d: (ran for more than 200 ms|used more than 1 MB of memory)$/ },
    { memoryMb: 1 },
  ],
  'a loop of QuickJS itself': [
    body('return { a: Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1) }'),
    { fails: 'ran for more than 20 ms' },
    { timeoutMs: 20 },
  ],
  'a huge BigInt': [
    body('let a = 3n ** 100_000n\nfor (;;) a *= a'),
    { fails: /ran for more than 20 ms|used more than 64 MB|BigInt/ },
    { timeoutMs: 20, memoryMb: 64 },
  ],
  'an array without end': [
    body('const a = []\nfor (;;) a.push(message.type + a.length)'),
    { fails: /used more than 1 MB of memory$/ },
    { memoryMb: 1, timeoutMs: 1000 },
  ],
  'memory that is caught': [
    body(`try { const a = []; for (;;) a.push(new Array(1000).fill(0)) } catch (error) { return { error: String(error) } }`),
    { returns: { error: 'InternalError: out of memory' } },
    { memoryMb: 1, timeoutMs: 1000 },
  ],
  'a huge ArrayBuffer': [body('return { a: new ArrayBuffer(2 ** 30).byteLength }'), { fails: 'line 2: used more than 8 MB of memory' }],
  'a huge string': [body(`return { a: 'x'.repeat(2 ** 29) }`), { fails: 'line 2: used more than 8 MB of memory' }],
  'a string that doubles': [
    body(`let a = 'x'\nfor (;;) a += a`),
    { fails: /^line 3: (InternalError: string too long|used more than 8 MB of memory)$/ },
  ],
  'a billion laughs': [
    body('let a = { x: 1 }\nfor (let i = 0; i < 40; i++) a = { a, b: a }\nreturn a'),
    { fails: /used more than 1 MB of memory|ran for more than/ },
    { memoryMb: 1 },
  ],
  'endless recursion': [body('const f = () => f() + 1\nreturn { a: f() }'), { fails: 'line 2: InternalError: stack overflow' }],
  'recursion in a getter of the result': [
    body('const f = () => ({ get a() { return f() } })\nreturn f()'),
    { fails: /stack overflow|ran for more than 20 ms|used more than/ },
    { timeoutMs: 20 },
  ],
  'JSON that is nested too deeply': [
    body(`return JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))`),
    { fails: 'line 2: SyntaxError: stack overflow' },
  ],
  'a regular expression that is nested too deeply': [body(`new RegExp('('.repeat(100_000))`), { fails: /^line 2: SyntaxError: / }],
  'code that is nested too deeply': [body(`Function('('.repeat(100_000))`), { fails: /stack overflow/ }],
}

for (const [group, cases] of Object.entries({ ESCAPES, RESULTS, THROWS, BOMBS })) {
  for (const [name, [code, ending, limits]] of Object.entries(cases as typeof BOMBS)) {
    test(`${group.toLowerCase()}: ${name}`, () => check(`${group} ${name}`, code, ending, limits))
  }
}

test('a __proto__ key is plain data', async () => {
  const text = '{"__proto__":{"admin":true},"n":1}'
  const result = await run('proto', body(`message.n = [message.admin, Object.keys(message)]\nreturn message`), {
    input: { ...INPUT, text },
  })
  assert.deepEqual(result, { kind: 'changed', text: '{"__proto__":{"admin":true},"n":[null,["__proto__","n"]]}', logs: null })
})

test('no state survives from one message to the next, whatever the first one changes', async () => {
  const code = `let count = 0
const cache = new Map()
export default function (message) {
  count++
  cache.set(count, message)
  globalThis.count = (globalThis.count ?? 0) + 1
  Object.prototype.polluted = (Object.prototype.polluted ?? 0) + 1
  Array.prototype.map = null
  Math.random()
  const regexp = /a/g
  regexp.test('a')
  return { count, size: cache.size, global: globalThis.count, polluted: ({}).polluted, random: Math.random() }
}`
  const results = await new Promise<readonly TransformResult[]>((resolve) => {
    transformer.run('state', { code, timeoutMs: 200, memoryMb: 8 }, [INPUT, INPUT, INPUT], resolve)
  })
  const texts = results.map((result) => (result.kind === 'changed' ? result.text : JSON.stringify(result)))
  assert.match(texts[0] ?? '', /^\{"count":1,"size":1,"global":1,"polluted":1,"random":0\.\d+\}$/)
  assert.equal(new Set(texts).size, 1)
})
