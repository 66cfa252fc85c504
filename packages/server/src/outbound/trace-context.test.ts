// W3C Trace Context, compared with the examples of the standard and with hostile headers.

import assert from 'node:assert/strict'
import { validateHeaderValue } from 'node:http'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseTraceContext, sharedTrace, traceIdOf } from './trace-context.ts'

const ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT = `00-${ID}-b7ad6b7169203331-01`

test('a valid traceparent is kept unchanged, and its trace id is found', () => {
  for (const traceparent of [PARENT, `00-${ID}-00f067aa0ba902b7-00`, `00-${'f'.repeat(32)}-${'f'.repeat(16)}-ff`]) {
    const trace = parseTraceContext({ headers: { traceparent } })
    assert.deepEqual(trace, { traceparent, tracestate: null })
    assert.equal(traceIdOf(trace), traceparent.slice(3, 35))
  }
  assert.equal(traceIdOf(null), null)
})

test('any other traceparent is ignored', () => {
  const rows = [
    '',
    PARENT.toUpperCase(),
    PARENT.replace('00-', '01-'),
    PARENT.replace('00-', 'ff-'),
    `${PARENT}-00`,
    `${PARENT} `,
    ` ${PARENT}`,
    `${PARENT}\n`,
    `${PARENT}\r\nX-Evil: 1`,
    `${PARENT}, ${PARENT}`,
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-${ID}-${'0'.repeat(16)}-01`,
    `00-${ID.slice(1)}-b7ad6b7169203331-01`,
    `00-${ID}-b7ad6b7169203331`,
    `00-${ID}-b7ad6b7169203331-1`,
    `00-${ID}-b7ad6b7169203331-0g`,
    `00_${ID}_b7ad6b7169203331_01`,
    `00-${'٣'.repeat(32)}-b7ad6b7169203331-01`,
  ]
  for (const traceparent of rows) {
    assert.equal(parseTraceContext({ headers: { traceparent, tracestate: 'a=1' } }), null, JSON.stringify(traceparent))
  }
  assert.equal(parseTraceContext({ headers: { tracestate: 'a=1' } }), null, 'a tracestate without a traceparent is ignored')
})

test('a tracestate is kept with its members in order; an invalid one is dropped, and the traceparent stays', () => {
  const rows: [given: string | string[], expected: string | null][] = [
    ['congo=t61rcWkgMzE', 'congo=t61rcWkgMzE'],
    ['rojo=00f067aa0ba902b7,congo=t61rcWkgMzE', 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'],
    ['rojo=1 ,\t congo=2', 'rojo=1,congo=2'],
    [['rojo=1', 'congo=2'], 'rojo=1,congo=2'],
    ['a=1,,b=2,', 'a=1,b=2'],
    ['fw529a3039@dt=FfAmBwAA', 'fw529a3039@dt=FfAmBwAA'],
    ['a-b_c*d/e=!"#$%&\'()*+-./:;<>?@[]^_`{|}~', 'a-b_c*d/e=!"#$%&\'()*+-./:;<>?@[]^_`{|}~'],
    [`k=${'v'.repeat(256)}`, `k=${'v'.repeat(256)}`],
    [`k=${'v'.repeat(257)}`, null],
    [`a=${'v'.repeat(250)},b=${'v'.repeat(250)},c=${'v'.repeat(20)}`, null],
    [Array.from({ length: 32 }, (_, at) => `k${at}=v`).join(), Array.from({ length: 32 }, (_, at) => `k${at}=v`).join()],
    [Array.from({ length: 33 }, (_, at) => `k${at}=v`).join(), null],
    ['', null],
    [',', null],
    ['congo', null],
    ['congo=', null],
    ['=1', null],
    ['Congo=1', null],
    ['1a=1', null],
    ['a=1,a=2', null],
    ['a=1=2', null],
    ['a=ü', null],
    ['a=1\r\nX-Evil: 1', null],
    ['a=\0', null],
    ['a=\u007f', null],
  ]
  for (const [tracestate, expected] of rows) {
    const trace = parseTraceContext({ headers: { traceparent: PARENT, tracestate } })
    assert.deepEqual(trace, { traceparent: PARENT, tracestate: expected }, JSON.stringify(tracestate))
  }
})

test('for any input, the result is a valid header value within the length limit', () => {
  const piece = fc.constantFrom('00-', ID, '-', 'b7ad6b7169203331', '-01', 'a=1', ',', ' ', '\t', '\r', '\n', '\0', 'ü', '=', '@', '0')
  const hostile = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
  )
  fc.assert(
    fc.property(fc.oneof(fc.constant(PARENT), hostile), hostile, (traceparent, tracestate) => {
      const trace = parseTraceContext({ headers: { traceparent, tracestate } })
      if (trace === null) return
      assert.equal(trace.traceparent.length, 55)
      validateHeaderValue('traceparent', trace.traceparent)
      if (trace.tracestate === null) return
      validateHeaderValue('tracestate', trace.tracestate)
      assert.ok(trace.tracestate.length <= 512)
    }),
    { numRuns: 2_000 },
  )
})

test('a long invalid list is rejected quickly', () => {
  const started = performance.now()
  for (let round = 0; round < 200; round++) {
    parseTraceContext({ headers: { traceparent: PARENT, tracestate: `a=${' '.repeat(500)}\0` } })
    parseTraceContext({ headers: { traceparent: PARENT, tracestate: `a${'-'.repeat(509)}!` } })
  }
  assert.ok(performance.now() - started < 10_000)
})

test('messages share a trace only if each of them has it', () => {
  const one = { traceparent: PARENT, tracestate: null }
  const other = { ...one, tracestate: 'a=1' }
  assert.equal(sharedTrace([one, { ...one }]), one)
  for (const traces of [[], [null], [null, one], [one, null], [one, other], [one, { ...one, traceparent: PARENT.replace('01', '00') }]]) {
    assert.equal(sharedTrace(traces), null)
  }
})
