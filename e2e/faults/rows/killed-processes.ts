// Processes and threads that end at once: a node, the hosts of integrations, sender threads, and the database server.

import { childrenOf, killProcess } from '../../child-processes.ts'
import type { Fault, Injection } from '../fault.ts'
import { injected } from '../round.ts'

const nodeKilled: Injection = {
  key: 'node-killed',
  title: 'A node is killed',
  how: 'SIGKILL to its process at a random moment; started again at once, or a moment later',
  stores: ['sqlite', 'postgres'],
  perRound: 25,
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
  how: 'SIGKILL to the host process of a node, at a random moment',
  stores: ['sqlite', 'postgres'],
  perRound: 25,
  async cause(system, random) {
    // The hosts of a node are its only child processes.
    const hosts = system.nodes.flatMap(({ service }) => childrenOf(service.pid))
    // None is running if the next one has not been started yet.
    if (hosts.length === 0) return await system.traffic.more(10)
    killProcess(random.pick(hosts))
  },
}

const serverKilled: Injection = {
  key: 'postgres-killed',
  title: 'PostgreSQL is killed',
  how: 'SIGKILL to the server and all its processes; started again at once, or some seconds later',
  stores: ['postgres'],
  perRound: 20,
  async cause({ cluster }, random) {
    if (cluster === undefined) throw new Error('needs PostgreSQL')
    await cluster.killServer()
    if (random.chance(0.3)) await pause(random.int(100, 5_000))
    await cluster.server.run()
  },
}

export const KILLED_PROCESSES: readonly Fault[] = [nodeKilled, hostKilled, serverKilled].map(injected)

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
