// Loads of warehouses under faults: nodes and loaders are killed, a warehouse is unavailable or slow, and the disk of a lake is full.

import { setTimeout as sleep } from 'node:timers/promises'
import { mountSmallDisk, whyNoSmallDisk } from '../../machine-faults/small-disk.ts'
import { childrenOf, killProcess } from '../../system/child-processes.ts'
import { eventually } from '../../system/signals.ts'
import type { Fault, RoundOptions, RoundResult } from '../rounds/fault.ts'
import { injectedRound, type RoundParts } from '../rounds/round.ts'
import { USUAL_DESTINATIONS } from '../system/destinations.ts'
import type { Random } from '../system/random.ts'
import type { System } from '../system/system.ts'
import { Warehouses } from '../system/warehouses.ts'

const LAKE_MB = 64
/** The webhooks beside the warehouses. Without an integration, the loaders are the only child processes of a node. */
const DESTINATIONS = USUAL_DESTINATIONS.filter(({ name }) => name === 'one by one' || name === 'in batches')
const LOADS =
  'In addition to two webhooks, every message goes to a lake in a folder, a lake in a bucket and a PostgreSQL warehouse, each of which is loaded every second.'

const killed: Fault = {
  key: 'loads-killed',
  title: 'A node or a loader is killed during loads',
  how: 'The loader process of a node or, in half of the cases, the node gets SIGKILL at a random moment. The node starts a new loader, or is started again at once.',
  note: LOADS,
  stores: ['sqlite', 'postgres'],
  perRound: 20,
  round: (options) => roundWithLoads(options, () => ({ cause: killNodeOrLoader, stopsSending: true })),
}

const away: Fault = {
  key: 'warehouse-away',
  title: 'A warehouse is unavailable or slow',
  how: 'PostgreSQL: its server is killed and started up to 5 s later; or for up to 8 s a proxy forwards nothing, forwards only requests or delays everything by 20 to 200 ms; or the proxy resets all connections. Bucket: for up to 8 s it answers with 503, or handles requests and loses a third of the answers.',
  note: `${LOADS} The store of the nodes is not affected.`,
  stores: ['sqlite', 'postgres'],
  perRound: 15,
  round: (options) => roundWithLoads(options, (warehouses) => ({ cause: (_, random) => takeAway(warehouses, random), repeats: false })),
}

const lakeFull: Fault = {
  key: 'lake-disk-full',
  title: 'The disk of a lake is full',
  how: 'The folder of lakes is on a small file system. It is filled to the last byte for 1 to 5 s. In 3 of 10 cases a loader or a node is killed meanwhile.',
  note: `${LOADS} The store of the nodes is on another disk. The file system is a tmpfs.`,
  stores: ['sqlite', 'postgres'],
  perRound: 10,
  unavailable: whyNoSmallDisk,
  round: async (options) => {
    using disk = mountSmallDisk(LAKE_MB)
    return await roundWithLoads(
      options,
      () => ({
        stopsSending: true,
        async cause(system, random) {
          disk.fill()
          try {
            await sleep(random.int(1_000, 5_000))
            if (random.chance(0.3)) await killNodeOrLoader(system, random)
          } finally {
            disk.free()
          }
        },
      }),
      disk.folder,
    )
  },
}

async function roundWithLoads(options: RoundOptions, parts: (warehouses: Warehouses) => RoundParts, parent?: string): Promise<RoundResult> {
  await using warehouses = await Warehouses.start(parent)
  const system = () => ({ warehouses, destinations: DESTINATIONS, integration: false, service: () => ({ env: { ...warehouses.env } }) })
  return await injectedRound({ system, ...parts(warehouses) }, options)
}

async function killNodeOrLoader(system: System, random: Random): Promise<void> {
  const node = random.pick(system.nodes)
  if (random.chance(0.5)) {
    await node.kill()
    await node.start()
    return
  }
  // A node that was just started has no loader yet.
  const loaders = await eventually(
    async () => system.nodes.flatMap(({ service }) => childrenOf(service.pid)),
    ({ length }) => length > 0,
    { what: 'a loader is running' },
  )
  killProcess(random.pick(loaders))
}

async function takeAway(warehouses: Warehouses, random: Random): Promise<void> {
  const { server, proxy, bucket } = warehouses
  const how = random.pick(['killed', 'cut', 'one-way', 'reset', 'slow', 'refused', 'lost'] as const)
  const ms = random.int(200, 10_000)
  if (how === 'killed') {
    await server.kill()
    await sleep(ms / 2)
    await server.run()
    return
  }
  if (how === 'reset') return void proxy.reset()
  if (how === 'cut') proxy.cut()
  if (how === 'one-way') proxy.cut('answers')
  if (how === 'slow') proxy.slow({ delayMs: random.int(20, 200) })
  if (how === 'refused') bucket.refuse = () => ({ status: 503 })
  const lost = random.fork()
  if (how === 'lost') bucket.losesAnswer = () => lost.chance(1 / 3)
  await sleep(Math.min(ms, 8_000))
  warehouses.heal()
}

export const WAREHOUSES: readonly Fault[] = [killed, away, lakeFull]
