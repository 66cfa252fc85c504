// Nodes that are stopped and started in an orderly way, one after the other, as in an upgrade. A node that stops waits for the responses to
// its requests, and until their outcomes are recorded, so nothing may arrive twice unless that takes longer than the time for a stop.

import { explainStop } from '../../cluster/explain-stop.ts'
import type { Ended } from '../../system/service.ts'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'
import { clusterOf, type System } from '../system/system.ts'

/** The maximum number of attempts of one call while another node is running. */
const MOST_TRIES = 8

/** The promised ten seconds, with a margin for busy machines. */
const STOP_MS = 12_000

/** How many nodes of a system have been restarted. */
const restarts = new WeakMap<System, number>()

const rollingRestart: Injection = {
  key: 'rolling-restart',
  title: 'Nodes are restarted one after the other (rolling restart)',
  how: 'Each node in turn gets SIGTERM, must end with exit code 0, or with 6 if it logs that it could not finish everything in time, and is started again.',
  note: `Nothing may arrive twice, unless a response takes longer than the 5.5 s that a stopping node waits for it, or outcomes are not recorded within 7 s, as can happen on a busy machine. The node logs both. On SQLite, copies arrived in two rounds on an overloaded machine (seeds 20300 and 20304). These two were judged by an earlier rule, that the stop took longer than 5.5 s, and it is not known what caused the copies. On PostgreSQL, no call may need more than ${MOST_TRIES} tries, because another node is running. All nodes have the same version.`,
  stores: ['sqlite', 'postgres'],
  perRound: 15,
  repeats: false,
  async cause(system) {
    const nth = restarts.get(system) ?? 0
    restarts.set(system, nth + 1)
    const node = system.node((nth % system.nodes.length) + 1)
    const ended = await node.stop()
    const { expectedCode, repeats } = explainStop(ended.stderr)
    if (ended.code !== expectedCode)
      throw new Error(
        `${node.name} ended with ${ended.signal ?? ended.code} instead of ${expectedCode}, after ${Math.round(ended.ms)} ms:\n${ended.stderr.slice(-1_500)}`,
      )
    await node.start()
    await node.becomes(200)
    return { repeats }
  },
  async check({ store, traffic }) {
    const tries = Math.max(...traffic.calls.map(({ nth }) => nth))
    return store === 'sqlite' || tries <= MOST_TRIES ? [] : [`a call was made ${tries} times`]
  },
}

const slowStop: Injection = {
  key: 'slow-stop',
  title: 'Nodes are restarted while the database is slow',
  how: 'A node gets SIGTERM while the network to PostgreSQL delays everything by 0.1 to 1.5 s in each direction, or while the table that alerts and counts are written to is locked. It must end within 10 s, with exit code 0, or with 6 if it logs that it could not finish everything, and is started again.',
  note: 'Nothing may arrive twice after exit code 0, unless the log says that a response did not arrive in time.',
  stores: ['postgres'],
  perRound: 10,
  repeats: false,
  isSilent: true,
  system: () => ({ proxied: true, perSecond: 20 }),
  async cause(system, random) {
    const node = random.pick(system.nodes)
    const locking = random.chance(0.5) ? await clusterOf(system).server.client('postgres') : null
    let ended: Ended
    try {
      if (locking === null) node.proxy.slow({ delayMs: random.int(100, 1_500) })
      else await locking.query('BEGIN; LOCK TABLE switchyard.documents')
      ended = await node.stop()
    } finally {
      node.proxy.heal()
      await locking?.end()
    }
    const { expectedCode, repeats } = explainStop(ended.stderr)
    const { code, signal, ms, stderr } = ended
    if (code !== expectedCode || ms > STOP_MS)
      throw new Error(
        `${node.name} ended with ${signal ?? code} instead of ${expectedCode}, after ${Math.round(ms)} ms:\n${stderr.slice(-1_500)}`,
      )
    await node.start()
    await node.becomes(200)
    return { repeats }
  },
}

export const ROLLING_RESTART: readonly Fault[] = [rollingRestart, slowStop].map(injected)
