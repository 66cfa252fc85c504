import assert from 'node:assert/strict'
import test from 'node:test'
import { MESSAGE_TYPES } from '@switchyard/protocol'
import fc from 'fast-check'
import { LIBRARY_CONTEXT } from '../call/event.ts'
import { type Batch, eventsOf, free, jsonBytes, writeJson } from './batch.ts'
import type { Period } from './flush-periods.ts'
import { Queue } from './queue.ts'

const period: Period = { pending: 0, busy: 0, delivered: 0, failed: 0, number: 0 }

function queueOf(flushAt: number): Queue {
  const onReady = (): void => {}
  return new Queue({
    flushAt,
    flushIntervalMs: 60_000,
    maxBatchBytes: 400_000,
    maxBytes: Infinity,
    highWaterBytes: Infinity,
    onReady,
    onDrained: onReady,
  })
}

function add(queue: Queue, json: string): void {
  const bytes = Buffer.byteLength(json)
  queue.reserve(bytes)
  queue.add(json, bytes, period, undefined, undefined, false)
}

function textOf(batch: Batch): string {
  // Room on both sides, filled with the byte that replaces the usual end of a message.
  const into = new Uint8Array(jsonBytes(batch) + 20).fill(1)
  writeJson(batch, into, 10)
  assert.deepEqual([...into.slice(0, 10), ...into.slice(-10)], Array(20).fill(1))
  return Buffer.from(into.slice(10, -10)).toString()
}

const message = fc
  .record({
    type: fc.constantFrom(...MESSAGE_TYPES, 'trick', undefined),
    messageId: fc.constantFrom('m-1', 'track', '', undefined),
    text: fc.string({ unit: 'binary', maxLength: 30 }),
    padding: fc.constantFrom(0, 10, 500, 3_000, 20_000),
    context: fc.constantFrom(LIBRARY_CONTEXT, {}, { ...LIBRARY_CONTEXT, ip: '::1' }, undefined),
  })
  .map(({ type, messageId, text, padding, context }) =>
    JSON.stringify({ type, messageId, text, padding: padding > 0 ? 'x'.repeat(padding) : undefined, context }),
  )

test('messages are read from the queue as they were added, whatever they contain and in whatever order they are freed', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.array(fc.record({ json: message, slots: fc.integer({ min: 0, max: 8 }), settles: fc.nat(3) }), { maxLength: 300 }),
      (flushAt, steps) => {
        const queue = queueOf(flushAt)
        const sent: Batch[] = []
        let read = ''
        const settle = (at: number): void => {
          for (const batch of sent.splice(at, 1)) {
            assert.equal(eventsOf(batch).length, batch.count)
            free(batch)
          }
        }
        const send = (slots: number): void => {
          const batch = queue.take(slots)
          if (batch === undefined) return
          read += textOf(batch)
          sent.push(batch)
        }
        for (const { json, slots, settles } of steps) {
          add(queue, json)
          if (slots > 0) send(slots)
          if (settles > 0) settle(sent.length - settles)
        }
        queue.seal()
        while (read.length < steps.reduce((sum, { json }) => sum + json.length + 1, 0)) send(1)
        while (sent.length > 0) settle(0)
        queue.close()
        assert.equal(read, steps.map(({ json }) => `${json},`).join(''))
      },
    ),
    { numRuns: 200 },
  )
})

test('a batch whose memory was freed cannot be read', { skip: !('transfer' in ArrayBuffer.prototype) }, () => {
  const queue = queueOf(1)
  // More than a chunk is full, so that the next message needs another.
  for (const fill of [60_000, 60_000]) add(queue, JSON.stringify({ padding: 'x'.repeat(fill) }))
  const batch = queue.take(1) as Batch
  free(batch)
  assert.throws(() => textOf(batch), TypeError)
  queue.close()
})
