// The faults of a soak, one every few minutes. None of them ends the first node, which is the one that is measured.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../faults/system/random.ts'
import type { System } from '../faults/system/system.ts'
import { childrenOf } from '../system/child-processes.ts'

interface SoakFault {
  name: string
  isPossible: (system: System) => boolean
  cause(system: System, random: Random): Promise<void>
}

const hosts = ({ nodes }: System): number[] => nodes.flatMap(({ service }) => childrenOf(service.pid))

export const SOAK_FAULTS: readonly SoakFault[] = [
  {
    name: 'host killed',
    isPossible: (system) => hosts(system).length > 0,
    async cause(system, random) {
      process.kill(random.pick(hosts(system)), 'SIGKILL')
    },
  },
  {
    name: 'receiver away',
    isPossible: () => true,
    async cause({ destinations }, random) {
      const { receiver } = random.pick(destinations.filter(({ name }) => name !== 'integration'))
      await receiver.goAway()
      await sleep(random.int(1_000, 30_000))
      await receiver.comeBack()
    },
  },
  {
    name: 'node frozen',
    isPossible: () => true,
    async cause({ nodes }, random) {
      const node = random.pick(nodes)
      node.freeze()
      await sleep(random.int(500, 4_000))
      node.thaw()
    },
  },
  {
    name: 'other node killed',
    isPossible: ({ nodes }) => nodes.length > 1,
    async cause(system, random) {
      const node = random.pick(system.nodes.slice(1))
      await node.kill()
      await sleep(random.int(0, 5_000))
      await node.start()
    },
  },
  {
    name: 'PostgreSQL killed',
    isPossible: ({ cluster }) => cluster !== undefined,
    async cause({ cluster }, random) {
      await cluster?.killServer()
      await sleep(random.int(0, 5_000))
      await cluster?.server.run()
    },
  },
]
