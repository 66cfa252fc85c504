// Nodes that are stopped and started in an orderly way, one after the other, as in an upgrade. A node that stops waits for the responses to
// its requests, so nothing may arrive twice unless a response takes longer than that.

import type { Fault, Injection } from '../fault.ts'
import { injected } from '../round.ts'
import type { System } from '../system.ts'

/** The most tries of one call, including the first, while another node is running. */
const MOST_TRIES = 8

/** What a node logs if it did not wait any longer, 5.5 s for responses and 2 s for outcomes to be recorded. */
const UNFINISHED = 'are sent again after the next start'

/** How many nodes of a system have been restarted. */
const restarts = new WeakMap<System, number>()

const rollingRestart: Injection = {
  key: 'rolling-restart',
  title: 'Nodes are restarted one after the other (rolling restart)',
  how: 'Each node in turn gets SIGTERM, must end with exit code 0, and is started again.',
  note: `Nothing may arrive twice, unless a response takes longer than the 5.5 s that a stopping node waits for it, as can happen on a busy machine. The node logs this. On SQLite, copies arrived in two rounds on an overloaded machine (seeds 20300 and 20304). These two were judged by an earlier rule, that the stop took longer than 5.5 s, and it is not known what caused the copies. On PostgreSQL, no call may need more than ${MOST_TRIES} tries, because another node is running. All nodes have the same version.`,
  stores: ['sqlite', 'postgres'],
  perRound: 15,
  repeats: false,
  async cause(system) {
    const nth = restarts.get(system) ?? 0
    restarts.set(system, nth + 1)
    const node = system.node((nth % system.nodes.length) + 1)
    const { code, signal, ms, stderr } = await node.stop()
    if (code !== 0)
      throw new Error(`${node.name} ended with ${signal ?? code} instead of 0, after ${Math.round(ms)} ms:\n${stderr.slice(-1_500)}`)
    await node.start()
    await node.becomes(200)
    return { repeats: stderr.includes(UNFINISHED) }
  },
  async check({ store, traffic }) {
    const tries = Math.max(...traffic.calls.map(({ nth }) => nth))
    return store === 'sqlite' || tries <= MOST_TRIES ? [] : [`a call was made ${tries} times`]
  },
}

export const ROLLING_RESTART: readonly Fault[] = [injected(rollingRestart)]
