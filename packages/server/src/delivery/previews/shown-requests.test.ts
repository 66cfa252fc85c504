import assert from 'node:assert/strict'
import test from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { destinationOf } from '../../store/conformance/fixtures.ts'
import { ThreadTransformer } from '../sender/transforming/thread-transformer.ts'
import { TooManyPreviews } from './preview-turns.ts'
import { ShownRequests } from './shown-requests.ts'

const transformation = (code: string) => ({ code: `export default (message) => ${code}`, timeoutMs: 50, memoryMb: 8 })
const destination = (code: string) => ({ ...destinationOf(), id: 'dst_1', createdAtMs: 0, transformation: transformation(code) })
const messages = (count: number) => Array.from({ length: count }, (_, n) => ({ message: { n, messageId: `m-${n}` }, receivedAtMs: n }))

test('messages are transformed in order until the limit, and those that were not ready are left out', async (t) => {
  const shown = new ShownRequests(() => new ThreadTransformer())
  t.after(() => shown.close())
  assert.deepEqual(await shown.prepare(destination('({ n: message.n, at: Date.now() })'), messages(2)), [
    '{"n":0,"at":0}',
    '{"n":1,"at":1}',
  ])
  const looping = await shown.prepare(destination('{ for (;;); }'), messages(50), 8_000)
  assert.equal(looping.length, 50)
  assert.ok(looping.includes(null))
  const [first] = looping
  assert.ok(first !== null && typeof first === 'object' && 'reason' in first && first.reason === 'transformation_failed')
  assert.deepEqual(await shown.prepare(destination('message'), messages(1), 0), [null])
})

test('only some callers can run transformations at the same time, and the threads start again after they were ended', async (t) => {
  let opened = 0
  const shown = new ShownRequests(() => {
    opened++
    return new ThreadTransformer()
  })
  t.after(() => shown.close())
  const one = destination('message')
  const running = Array.from({ length: 4 }, () => shown.prepare(one, messages(1)))
  await assert.rejects(shown.prepare(one, messages(1)), TooManyPreviews)
  // Without a transformation nothing is run.
  assert.deepEqual(await shown.prepare({ ...asWebhook(one), transformation: null }, messages(1)), ['{"n":0,"messageId":"m-0"}'])
  await Promise.all(running)
  assert.equal((await shown.prepare(one, messages(1))).length, 1)
  assert.equal(opened, 1)
  await shown.close()
  assert.deepEqual(await shown.prepare(one, messages(1)), ['{"n":0,"messageId":"m-0"}'])
  assert.equal(opened, 2)
})
