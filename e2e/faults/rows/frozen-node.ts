// A node is frozen and continues, as when its machine is paused or swaps. Other nodes take over if it takes longer than the lease.

import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../system/signals.ts'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'
import { durationOf } from './database-network.ts'

const frozen: Injection = {
  key: 'node-frozen',
  title: 'A node is frozen and resumes',
  how: 'The node gets SIGSTOP, and SIGCONT after 0.1 to 4 s on SQLite, 0.2 to 15 s on PostgreSQL. On PostgreSQL, one pause in seven is longer than the lease.',
  stores: ['sqlite', 'postgres'],
  perRound: 25,
  stopsSending: true,
  system: () => ({ perSecond: 20 }),
  async cause({ nodes, store }, random) {
    const node = random.pick(nodes)
    const ms = store === 'sqlite' ? random.int(100, 4_000) : durationOf(random)
    node.freeze()
    try {
      await eventually(
        async () => stateOf(node.service.pid),
        (state) => state === 'T',
        { what: `${node.name} is stopped` },
      )
      await sleep(ms)
    } finally {
      node.thaw()
    }
  },
}

export const FROZEN_NODE: readonly Fault[] = [frozen].map(injected)

/** One letter; T if it is stopped. */
function stateOf(pid: number): string {
  return execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' })
    .trim()
    .charAt(0)
}
