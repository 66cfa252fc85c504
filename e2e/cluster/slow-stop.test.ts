// A node is told to stop while its database answers some statements very late, or not at all. It starts no more requests from then on, exits
// in time, and says by its exit code and its log that it could not finish everything.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { explainStop } from '../faults/rows/rolling-restart.ts'
import { startReceiver } from '../receiver.ts'
import { track } from '../service.ts'
import { gate } from '../signals.ts'
import { startCluster } from './cluster.ts'

const FORCED = 6
const MESSAGES = 20

suite('a stop that has to wait for the database', { concurrency: 2 }, () => {
  test('while alerts and counts wait for a lock, no request starts after the signal, and nothing arrives twice', async () => {
    await using cluster = await startCluster({ nodes: 1, log: 'info' })
    const { service } = cluster.node(1)
    const answers = gate()
    await using receiver = await startReceiver(() => ({ after: answers.opened }))
    await service.destination({ urls: [receiver.url], maxInFlight: 2 })
    assert.equal((await service.send(messages())).status, 200)
    await receiver.until(() => receiver.arrivals.length === 2)
    const locking = await cluster.server.client('postgres')
    try {
      // The evaluation of alerts, and the event catalogue.
      await locking.query('BEGIN')
      await locking.query('LOCK TABLE switchyard.documents')
      service.kill('SIGTERM')
      await service.logged(({ msg }) => msg === 'stopping')
      // A lane that has not stopped would start the next requests now.
      answers.open()
      const { code, ms, stderr } = await service.ended
      assert.equal(code, FORCED, stderr)
      assert.ok(ms < 10_000, `${ms} ms`)
      assert.equal(forced(service.log())?.[0], 'evaluating alerts')
      // The fault ledger recognises the line.
      assert.deepEqual(explainStop(stderr), { expectedCode: FORCED, repeats: true })
      assert.equal(receiver.arrivals.length, 2)
    } finally {
      await locking.end()
    }
    await cluster.node(1).start()
    const [ledger] = await cluster.node(1).service.settled(MESSAGES)
    assert.equal(ledger?.delivered, MESSAGES)
    assert.equal(receiver.arrivals.length, MESSAGES)
  })

  test('if outcomes cannot be recorded and a receiver does not answer, the exit code is 6, within 10 s', async () => {
    await using cluster = await startCluster({ nodes: 1, log: 'info' })
    const { service } = cluster.node(1)
    await using quick = await startReceiver()
    await using hanging = await startReceiver(() => ({ hang: true }))
    const answers = gate()
    quick.answer = () => ({ after: answers.opened })
    await service.destination({ name: 'quick', urls: [quick.url], maxInFlight: 3 })
    await service.destination({ name: 'hanging', urls: [hanging.url], maxInFlight: 1 })
    assert.equal((await service.send(messages())).status, 200)
    await quick.until(() => quick.arrivals.length === 3)
    await hanging.until(() => hanging.arrivals.length === 1)
    const locking = await cluster.server.client('postgres')
    try {
      await locking.query('BEGIN')
      await locking.query('LOCK TABLE switchyard.attempts')
      service.kill('SIGTERM')
      await service.logged(({ msg }) => msg === 'stopping')
      answers.open()
      const { code, ms, stderr } = await service.ended
      assert.equal(code, FORCED, stderr)
      assert.ok(ms < 10_000, `${ms} ms`)
      assert.equal(forced(service.log())?.[0], 'recording the outcomes of deliveries')
      assert.deepEqual([quick.arrivals.length, hanging.arrivals.length], [3, 1])
    } finally {
      await locking.end()
    }
    hanging.answer = () => undefined
    await cluster.node(1).start()
    const ledger = await cluster.node(1).service.settled(2 * MESSAGES)
    assert.deepEqual(
      ledger.map(({ delivered }) => delivered),
      [MESSAGES, MESSAGES],
    )
  })
})

function messages(): object[] {
  return Array.from({ length: MESSAGES }, (_, nth) => track(`m-${nth}`))
}

/** What the log says was not finished. */
function forced(log: readonly { msg: string; unfinished?: unknown }[]): string[] | undefined {
  return log.find(({ msg }) => msg.startsWith('the stop was forced'))?.unfinished as string[] | undefined
}
