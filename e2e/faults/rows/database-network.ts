// The network between nodes and PostgreSQL: cut, one-way or slow, for one node or for all. Each node connects through its own proxy.

import { setTimeout as sleep } from 'node:timers/promises'
import { LEASE_MS, type Node } from '../../cluster/cluster.ts'
import { eventually } from '../../system/signals.ts'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'
import type { Random } from '../system/random.ts'
import type { System } from '../system/system.ts'

const PROXIED = {
  stores: ['postgres'],
  perRound: 25,
  hitsAllNodes: true,
  isSilent: true,
  system: () => ({ proxied: true, perSecond: 20 }),
} as const

const cut: Injection = {
  ...PROXIED,
  key: 'network-cut',
  stopsSending: true,
  title: 'The network between nodes and PostgreSQL is cut',
  how: 'For 0.2 to 15 s, a proxy forwards nothing and opens no new connections. In a fifth of the cases it resets all connections instead. This affects one node or, in 3 of 10 cases, all nodes at once. One cut in seven is longer than the lease.',
  note: 'Two rounds (seeds 340002 and 340004) are not in the table: in one, no connection was open when a fault was to be caused; in the other, a receiver got requests of another program on the same machine. Nothing was lost or out of order in them.',
  async cause(system, random) {
    const nodes = affected(system, random)
    if (random.chance(0.2)) {
      if (nodes.reduce((sum, { proxy }) => sum + proxy.reset(), 0) === 0) throw new Error('no connection was open')
      return
    }
    await during(nodes, durationOf(random), ({ proxy }) => proxy.cut())
  },
}

const oneWay: Injection = {
  ...PROXIED,
  key: 'network-one-way',
  title: 'The network between nodes and PostgreSQL fails in one direction',
  how: 'For 0.2 to 15 s, a proxy forwards only what nodes send, or only what PostgreSQL sends, and opens no new connections. This affects one node or, in 3 of 10 cases, all nodes at once. One time in seven it lasts longer than the lease.',
  async cause(system, random) {
    const lost = random.pick(['answers', 'requests'] as const)
    await during(affected(system, random), durationOf(random), ({ proxy }) => proxy.cut(lost))
  },
}

const slow: Injection = {
  ...PROXIED,
  key: 'network-slow',
  title: 'The network between nodes and PostgreSQL is slow',
  how: 'A proxy delays everything by 20 to 600 ms in each direction, for 1 to 8 s. In half of the cases it also limits the rate to 50 to 500 kB per second. This affects one node or, in 3 of 10 cases, all nodes at once.',
  async cause(system, random) {
    const delayMs = random.int(20, 600)
    const slowness = random.chance(0.5) ? { delayMs, bytesPerSecond: random.int(50_000, 500_000) } : { delayMs }
    await during(affected(system, random), random.int(1_000, 8_000), ({ proxy }) => proxy.slow(slowness))
  },
}

export const DATABASE_NETWORK: readonly Fault[] = [cut, oneWay, slow].map(injected)

function affected({ nodes }: System, random: Random): readonly Node[] {
  return random.chance(0.3) ? nodes : [random.pick(nodes)]
}

async function during(nodes: readonly Node[], ms: number, cause: (node: Node) => void): Promise<void> {
  // On a busy machine, a node may take a while to connect again after the fault before.
  await eventually(
    async () => nodes.reduce((sum, { proxy }) => sum + proxy.openConnections, 0),
    (open) => open > 0,
    { what: 'a connection is open' },
  )
  for (const node of nodes) cause(node)
  await sleep(ms)
  for (const { proxy } of nodes) proxy.heal()
}

/** Mostly short; sometimes longer than the timeout of a statement or the lease. */
export function durationOf(random: Random): number {
  const share = random.next()
  if (share < 0.6) return random.int(200, 2_000)
  return share < 0.86 ? random.int(2_000, 8_000) : random.int(LEASE_MS + 500, 15_000)
}
