// PostgreSQL fails over: the primary ends, its synchronous standby is promoted, and the nodes find it by the second address in their list.
// Before the next fault, the former primary is replaced by a new standby at its address, so roles change each time.

import { setTimeout as passing } from 'node:timers/promises'
import type { Cluster } from '../../cluster/cluster.ts'
import type { Fault, Injection } from '../fault.ts'
import { injected } from '../round.ts'
import type { System } from '../system.ts'

const failover: Injection = {
  key: 'failover',
  title: 'PostgreSQL fails over to its synchronous standby',
  how: 'SIGKILL to the primary and all its processes, in a third of the cases after its replication was cut for up to 3 s, or a fast shutdown; its standby is promoted at once, or some seconds later',
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
      await passing(random.int(0, 3_000))
    }
    await (kind === 'stopped' ? cluster.server.stop() : cluster.killServer())
    if (random.chance(0.3)) await passing(random.int(100, 5_000))
    await cluster.promote()
  },
}

export const FAILOVER: readonly Fault[] = [failover].map(injected)

function clusterOf({ cluster }: System): Cluster {
  if (cluster === undefined) throw new Error('needs PostgreSQL')
  return cluster
}
