// PostgreSQL fails over: the primary ends, its synchronous standby is promoted, and the nodes find it by the second address in their list.
// Before the next fault, the former primary is replaced by a new standby at its address, so roles change each time.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'
import { clusterOf } from '../system/system.ts'

const failover: Injection = {
  key: 'failover',
  title: 'PostgreSQL fails over to its synchronous standby',
  how: 'The primary is killed (SIGKILL to all its processes), killed after its replication was cut for up to 3 s, or shut down (fast shutdown), each in a third of the cases. The standby is promoted at once or, in 3 of 10 cases, up to 5 s later.',
  note: 'Nodes know both addresses. The former primary has always ended before the promotion, so two primaries at the same time are not covered.',
  stores: ['postgres'],
  perRound: 15,
  system: () => ({ standby: true, perSecond: 20 }),
  async prepare(system) {
    const cluster = clusterOf(system)
    if (!cluster.hasStandby) await cluster.addStandby()
  },
  async cause(system, random) {
    const cluster = clusterOf(system)
    const kind = random.pick(['killed', 'behind', 'stopped'] as const)
    if (kind === 'behind') {
      // Commits of the primary no longer reach the standby, so none of them may be acknowledged.
      cluster.replication.cut()
      await sleep(random.int(0, 3_000))
    }
    await (kind === 'stopped' ? cluster.server.stop() : cluster.killServer())
    if (random.chance(0.3)) await sleep(random.int(100, 5_000))
    await cluster.promote()
  },
}

export const FAILOVER: readonly Fault[] = [failover].map(injected)
