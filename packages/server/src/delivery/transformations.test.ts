import assert from 'node:assert/strict'
import test from 'node:test'
import { startRig } from './fixtures/rig.ts'

const THREAD = new URL('./sender/sender-thread.ts', import.meta.url)

/** m-2 is dropped, m-3 fails, m-4 loops, m-5 blocks the thread; the others are changed. */
const CODE = `export default function (message, { received, seed }) {
  console.log('saw', message.messageId)
  if (message.messageId === 'm-2') return null
  if (message.messageId === 'm-3') message.missing.field = 1
  if (message.messageId === 'm-4') for (;;) message.n++
  if (message.messageId === 'm-5') [].indexOf.call({ length: 2 ** 53 - 1 }, 1)
  return { id: seed, at: received === new Date().toISOString(), event: message.event.toUpperCase() }
}`

for (const [where, options] of [
  ['in this thread', {}],
  ['in a sender thread', { thread: THREAD }],
] as const) {
  for (const size of [1, 10]) {
    test(`messages are transformed by a sender ${where}, in ${size === 1 ? 'single requests' : 'batches'}, and the ledger balances`, async (t) => {
      const rig = await startRig(t, options)
      const [receiver, plain] = [await rig.receiver(), await rig.receiver()]
      const transformation = { code: CODE, timeoutMs: 20, memoryMb: 8 }
      const destination = await rig.destination('one', {
        urls: [receiver.url],
        transformation,
        batch: { size, bytes: 500_000, lingerMs: 0 },
      })
      const other = await rig.destination('two', { urls: [plain.url] })
      await rig.until(() => rig.claims.length === 2)
      await rig.accept([destination, other], 8)
      await rig.untilLedger(other, { owed: 8, delivered: 8 })
      await rig.untilLedger(destination, { owed: 8, delivered: 4, cancelled: 1, failed: 3, pending: 0 })
      const sent = receiver.received.flatMap(({ messages }) => messages).sort((a, b) => String(a['id']).localeCompare(String(b['id'])))
      assert.deepEqual(
        sent,
        ['m-1', 'm-6', 'm-7', 'm-8'].map((id) => ({ id, at: true, event: 'TESTED' })),
      )
      const requests = rig.settlements.flatMap(({ records }) => records.flatMap((record) => record.requests))
      const rejected = requests.filter(({ status, reason }) => status === null && reason !== null)
      assert.deepEqual(
        rejected
          .map(({ indexes, reason, error, logs }) => [indexes, reason, error, logs])
          .sort(([a], [b]) => String(a).localeCompare(String(b))),
        [
          [[1], 'dropped_by_transformation', 'The transformation dropped the message. Nothing was sent.', 'saw m-2'],
          [[2], 'transformation_failed', "line 4: TypeError: cannot set property 'field' of undefined", 'saw m-3'],
          [[3], 'transformation_failed', 'line 5: ran for more than 20 ms', 'saw m-4'],
          [[4], 'transformation_failed', 'ran for more than 20 ms', null],
        ],
      )
      assert.deepEqual(rig.breakers, [])
      await rig.untilIdle()
      await rig.stop()
    })
  }
}

test('a retry uses the code as it is then', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const code = (version: number) => ({ code: `export default () => ({ version: ${version} })`, timeoutMs: 50, memoryMb: 8 })
  const destination = await rig.destination('one', { urls: [receiver.url], transformation: code(1) })
  receiver.answer = () => 503
  await rig.accept([destination])
  await rig.until(() => rig.attempts.length === 1)
  await rig.store.resources.updateDestination(destination.id, { transformation: code(2) })
  receiver.answer = () => 200
  while ((await rig.ledger(destination)).delivered === 0) {
    rig.clock.advance(10_000)
    await rig.untilStoreAnswered()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.deepEqual(
    receiver.received.map(({ body }) => body),
    ['{"version":1}', '{"version":2}'],
  )
})

test('a fixed version of code that runs for ever helps the messages that wait for it', async (t) => {
  const rig = await startRig(t, { thread: THREAD })
  const receiver = await rig.receiver()
  const looping = { code: 'export default () => { for (;;) {} }', timeoutMs: 1_000, memoryMb: 8 }
  const destination = await rig.destination('one', { urls: [receiver.url], transformation: looping })
  await rig.until(() => rig.claims.length === 1)
  for (let nth = 0; nth < 10; nth++) await rig.accept([destination])
  await rig.until(() => rig.attempts.length > 0)
  await rig.store.resources.updateDestination(destination.id, {
    transformation: { ...looping, code: 'export default () => ({ fixed: true })' },
  })
  await rig.until(async () => (await rig.ledger(destination)).pending === 0)
  const { owed, delivered, failed } = await rig.ledger(destination)
  assert.deepEqual([owed, delivered + failed], [10, 10])
  assert.ok(failed < 5)
  assert.ok(receiver.received.every(({ body }) => body === '{"fixed":true}'))
  await rig.stop()
})

test('probes that the transformation drops neither close the circuit breaker nor hold up the next probe', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const code = 'export default (m) => (Number(m.messageId.slice(2)) > 12 ? null : { n: 1 })'
  const destination = await rig.destination('one', { urls: [receiver.url], transformation: { code, timeoutMs: 50, memoryMb: 8 } })
  await rig.until(() => rig.claims.length === 1)
  receiver.answer = () => 503
  await rig.accept([destination], 12)
  await rig.until(() => rig.breakers.length === 1)
  await rig.accept([destination], 20)
  const sent = receiver.received.length
  while ((await rig.ledger(destination)).cancelled < 20) {
    rig.clock.advance(1_000)
    await rig.untilStoreAnswered()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.notEqual(rig.delivery.health(destination.id)?.breaker, 'closed')
  assert.ok(receiver.received.length - sent < 20)
  receiver.answer = () => 200
  while ((await rig.ledger(destination)).pending > 0) {
    rig.clock.advance(10_000)
    await rig.untilStoreAnswered()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.equal(rig.breakers.length, 2)
  const { owed, delivered, cancelled } = await rig.ledger(destination)
  assert.deepEqual([owed, delivered, cancelled], [32, 12, 20])
  await rig.untilIdle()
})

test('a stop does not wait for code that runs for ever, and loses nothing', async (t) => {
  const rig = await startRig(t, { thread: THREAD })
  const receiver = await rig.receiver()
  const transformation = { code: 'export default () => { for (;;) {} }', timeoutMs: 1_000, memoryMb: 8 }
  const destination = await rig.destination('one', { urls: [receiver.url], transformation })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 50)
  await rig.stop(0)
  const { owed, failed, pending } = await rig.ledger(destination)
  assert.deepEqual([owed, failed + pending], [50, 50])
  assert.ok(pending > 40)
})
