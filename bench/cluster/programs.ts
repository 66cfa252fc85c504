// What is measured: the service on PostgreSQL with one to four nodes, each a process, the service on SQLite, and graphile-worker on the same server.

import type { Postgres } from '../service/environment/databases.ts'
import { createPrograms, graphileWorker, lineDisagreement, type Program, type RunningProgram } from '../service/environment/programs.ts'
import { cliOf, type Service, startNode } from '../service/environment/service.ts'

export const NODES = ['one', 'two', 'three', 'four'] as const
export type Key = (typeof NODES)[number] | 'sqlite' | 'before' | 'graphile-worker' | 'graphile-worker-tuned'

export interface Competitor {
  key: Key
  title: string
  /** The number of processes to warm up. */
  processes: number
  start: Program['start']
}

/** `before`: the folder of another checkout of the service. If it is given, only the two versions are compared. */
export function createCompetitors(postgres: Postgres, before: string | undefined): Competitor[] {
  const documented = graphileWorker(postgres, 'documented')
  const tuned = graphileWorker(postgres, 'tuned')
  const nodes = NODES.map((key, at): Competitor => {
    const processes = at + 1
    const title = `Switchyard, ${key} ${processes === 1 ? 'node' : 'nodes'}`
    return { key, title, processes, start: (place) => startNodes(postgres, processes, place) }
  })
  if (before !== undefined) {
    const cli = cliOf(before)
    const title = 'Switchyard before, one node'
    return [...nodes.slice(0, 1), { key: 'before', title, processes: 1, start: (place) => startNodes(postgres, 1, place, cli) }]
  }
  return [
    ...nodes,
    { key: 'graphile-worker', title: documented.title, processes: 1, start: (place) => documented.start(place) },
    { key: 'graphile-worker-tuned', title: tuned.title, processes: 1, start: (place) => tuned.start(place) },
  ]
}

/** The service on SQLite, and on PostgreSQL with one and two nodes. */
export function createStores(postgres: Postgres): Competitor[] {
  const sqlite = createPrograms(undefined, undefined, undefined).filter(({ name }) => name === 'service')
  return [
    ...sqlite.map(
      (program): Competitor => ({
        key: 'sqlite',
        title: 'Switchyard on SQLite',
        processes: 1,
        start: (place) => program.start(place),
      }),
    ),
    ...createCompetitors(postgres, undefined).filter(({ key }) => key === 'one' || key === 'two'),
  ]
}

export interface RunningNodes extends RunningProgram {
  nodes: readonly Service[]
}

export async function startNodes(
  postgres: Postgres,
  count: number,
  { folder, receiverUrl }: { folder: string; receiverUrl?: string },
  cli?: string,
): Promise<RunningNodes> {
  await postgres.reset()
  const nodes: Service[] = []
  for (let nth = 0; nth < count; nth += 1) nodes.push(await startNode(postgres.connectionString, folder, cli))
  const [first] = nodes
  if (first === undefined) throw new Error('no node')
  const source = await first.defaultSource()
  if (receiverUrl !== undefined) await first.createDestination('receiver', `${receiverUrl}/`, source)
  // The other nodes learn of it within a second.
  await untilAllKnow(nodes)
  return {
    nodes,
    pid: first.pid,
    pids: nodes.map(({ pid }) => pid),
    target: { ...first.targetOf(source), ports: nodes.map((node) => node.targetOf(source).port) },
    databasePids: () => postgres.pids(),
    remaining: async () => (await first.ledger()).reduce((sum, { pending }) => sum + pending, 0),
    async disagreement(events) {
      const [kept, counted] = [await first.ledger(), await first.ledger({ recount: true })]
      return [kept, counted].flatMap((lines) => lines.flatMap((line) => lineDisagreement(line, events)))[0]
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()))
    },
  }
}

async function untilAllKnow(nodes: readonly Service[]): Promise<void> {
  const limit = Date.now() + 10_000
  for (;;) {
    const known = await Promise.all(nodes.map((node) => node.ledger()))
    if (known.every(({ length }) => length === known[0]?.length)) return
    if (Date.now() > limit) throw new Error('a node did not learn of the destination in time')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
