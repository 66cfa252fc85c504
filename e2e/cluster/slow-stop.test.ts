// A node is told to stop while its database answers some statements very late, or not at all. It starts no more requests from then on, exits
// in time, and says by its exit code and its log that it could not finish everything.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { STOPPED_WITHIN_MS } from '../system/long-tests.ts'
import { startReceiver } from '../system/receiver.ts'
import { track } from '../system/service.ts'
import { gate } from '../system/signals.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { explainStop } from './explain-stop.ts'

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
    // The evaluation of alerts, and the event catalogue, wait for this table.
    const stderr = await stopWhileLocked(cluster, { table: 'documents', answers, unfinished: 'evaluating alerts' })
    // The fault ledger recognises the line.
    assert.deepEqual(explainStop(stderr), { expectedCode: FORCED, repeats: true })
    assert.equal(receiver.arrivals.length, 2)
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
    await stopWhileLocked(cluster, { table: 'attempts', answers, unfinished: 'recording the outcomes of deliveries' })
    assert.deepEqual([quick.arrivals.length, hanging.arrivals.length], [3, 1])
    hanging.answer = () => undefined
    await cluster.node(1).start()
    const ledger = await cluster.node(1).service.settled(2 * MESSAGES)
    assert.deepEqual(
      ledger.map(({ delivered }) => delivered),
      [MESSAGES, MESSAGES],
    )
  })
})

interface LockedStop {
  /** Locked until the node has exited. */
  table: string
  /** Opened when the node is stopping. A lane that has not stopped would start the next requests then. */
  answers: { open: () => void }
  /** What the log names first as not finished. */
  unfinished: string
}

/** Stops the node with SIGTERM, and asserts that it exits in time and says that it was forced to. Returns its log. */
async function stopWhileLocked(cluster: Cluster, { table, answers, unfinished }: LockedStop): Promise<string> {
  const { service } = cluster.node(1)
  const locking = await cluster.server.client('postgres')
  try {
    await locking.query('BEGIN')
    await locking.query(`LOCK TABLE switchyard.${table}`)
    service.kill('SIGTERM')
    await service.logged(({ msg }) => msg === 'stopping')
    answers.open()
    const { code, ms, stderr } = await service.ended
    assert.equal(code, FORCED, stderr)
    assert.ok(ms < STOPPED_WITHIN_MS, `${ms} ms`)
    assert.equal(forced(service.log())?.[0], unfinished)
    return stderr
  } finally {
    await locking.end()
  }
}

function messages(): object[] {
  return Array.from({ length: MESSAGES }, (_, nth) => track(`m-${nth}`))
}

/** What the log says was not finished. */
function forced(log: readonly { msg: string; unfinished?: unknown }[]): string[] | undefined {
  return log.find(({ msg }) => msg.startsWith('the stop was forced'))?.unfinished as string[] | undefined
}
