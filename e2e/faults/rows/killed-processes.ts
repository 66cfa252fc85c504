// Processes that are killed: a node, an integration host, and the PostgreSQL server.

import { setTimeout as sleep } from 'node:timers/promises'
import { childrenOf, killProcess } from '../../system/child-processes.ts'
import { eventually } from '../../system/signals.ts'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'
import { clusterOf } from '../system/system.ts'

const nodeKilled: Injection = {
  key: 'node-killed',
  title: 'A node is killed',
  how: 'The node gets SIGKILL at a random moment, and is started again at once. On PostgreSQL, in 3 of 10 cases the other node accepts up to 60 messages first.',
  note: 'Two rounds on PostgreSQL with ordered destinations (seeds 340000 and 360000) failed and are not in the table: on an overloaded machine, the ordered destination that gets single messages fell behind for more than five minutes. In the first, 5,212 of its messages were still pending when the round ended. Nothing was out of order.',
  stores: ['sqlite', 'postgres'],
  perRound: 25,
  stopsSending: true,
  async cause(system, random) {
    const node = random.pick(system.nodes)
    await node.kill()
    // On PostgreSQL, the others take over meanwhile.
    if (system.store === 'postgres' && random.chance(0.3)) await system.traffic.more(random.int(1, 60))
    await node.start()
  },
}

const hostKilled: Injection = {
  key: 'host-killed',
  title: 'An integration host is killed',
  how: 'A host process of a node gets SIGKILL at a random moment. The node starts a new one.',
  stores: ['sqlite', 'postgres'],
  perRound: 25,
  async cause(system, random) {
    // The hosts of a node are its only child processes. None is running until the one that was killed before is replaced.
    const hosts = await eventually(
      async () => system.nodes.flatMap(({ service }) => childrenOf(service.pid)),
      ({ length }) => length > 0,
      { what: 'an integration host is running' },
    )
    killProcess(random.pick(hosts))
  },
}

const serverKilled: Injection = {
  key: 'postgres-killed',
  title: 'PostgreSQL is killed',
  how: 'All processes of the server get SIGKILL. It is started again at once or, in 3 of 10 cases, up to 5 s later.',
  stores: ['postgres'],
  perRound: 20,
  async cause(system, random) {
    const cluster = clusterOf(system)
    await cluster.killServer()
    if (random.chance(0.3)) await sleep(random.int(100, 5_000))
    await cluster.server.run()
  },
}

export const KILLED_PROCESSES: readonly Fault[] = [nodeKilled, hostKilled, serverKilled].map(injected)
