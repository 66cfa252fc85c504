// All measured programs behind one interface: start it with a receiver, send to its target, ask what is still pending.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Postgres, Redis } from './databases.ts'
import type { Target } from './events.ts'
import { nextReport, startScript, stop } from './processes.ts'
import type { ProgramOptions, ProgramReport } from './programs/http-front-end.ts'
import { cliOf, isServiceThere, type LedgerLine, startService } from './service.ts'

export type ProgramName =
  | 'service'
  | 'before'
  | 'limit'
  | 'two-thread-limit'
  | 'graphile-worker'
  | 'graphile-worker-tuned'
  | 'bullmq'
  | 'bare-fastify'

export interface Program {
  name: ProgramName
  title: string
  start(place: Place): Promise<RunningProgram>
}

export interface Place {
  folder: string
  /** Missing if only ingest is measured. */
  receiverUrl?: string
}

export interface RunningProgram {
  pid: number
  /** The process ids, if there is more than one process. */
  pids?: number[]
  target: Target
  /** CPU time of the program and, separately, of its database. */
  databasePids(): number[]
  /** The number of accepted events whose outcome is not durable yet. */
  remaining(): Promise<number>
  /** How its own counts differ from `events` delivered; empty if they agree. */
  disagreement(events: number): Promise<string | undefined>
  stop(): Promise<void>
}

/** `before` is the folder of another checkout of the service. `launcher` is a command that runs the service, such as taskset. */
export function createPrograms(
  postgres: Postgres | undefined,
  redis: Redis | undefined,
  before: string | undefined,
  launcher: string[] = [],
): Program[] {
  return [
    ...(isServiceThere() ? [service('service', 'Switchyard', launcher)] : []),
    ...(before === undefined ? [] : [service('before', 'Switchyard before', launcher, cliOf(before))]),
    script('limit', 'the limit'),
    script('two-thread-limit', 'the two-thread limit'),
    ...(postgres ? [graphileWorker(postgres, 'documented'), graphileWorker(postgres, 'tuned')] : []),
    ...(redis ? [bullmq(redis)] : []),
    script('bare-fastify', `bare Fastify ${versionOf('fastify')}`),
  ]
}

function service(name: ProgramName, title: string, launcher: string[], cli?: string): Program {
  return {
    name,
    title,
    async start({ folder, receiverUrl }) {
      const service = await startService(folder, {}, cli, launcher)
      const source = await service.defaultSource()
      if (receiverUrl !== undefined) await service.createDestination('receiver', `${receiverUrl}/`, source)
      return {
        pid: service.pid,
        target: service.targetOf(source),
        databasePids: () => [],
        remaining: async () => (await service.ledger()).reduce((sum, { pending }) => sum + pending, 0),
        async disagreement(events) {
          const [kept, counted] = [await service.ledger(), await service.ledger({ recount: true })]
          return [kept, counted].flatMap((lines) => lines.flatMap((line) => lineDisagreement(line, events)))[0]
        },
        async stop() {
          await service.stop()
        },
      }
    },
  }
}

export function lineDisagreement(line: LedgerLine, events: number): string[] {
  const isRight = line.owed === events && line.delivered === events && line.pending + line.failed + line.expired + line.cancelled === 0
  return isRight ? [] : [`ledger ${JSON.stringify(line)} for ${events} events`]
}

export function graphileWorker(postgres: Postgres, settings: 'documented' | 'tuned'): Program {
  const title = `graphile-worker ${versionOf('graphile-worker')}, ${settings}`
  const { connectionString } = postgres
  return script(
    settings === 'tuned' ? 'graphile-worker-tuned' : 'graphile-worker',
    title,
    { connectionString, settings },
    () => postgres.reset(),
    () => postgres.pids(),
  )
}

function bullmq(redis: Redis): Program {
  return script(
    'bullmq',
    `BullMQ ${versionOf('bullmq')}`,
    { redisPort: redis.port },
    () => redis.reset(),
    () => redis.pids(),
  )
}

function script(
  name: ProgramName,
  title: string,
  options: Partial<ProgramOptions> = {},
  prepare: () => Promise<void> = async () => {},
  databasePids: () => number[] = () => [],
): Program {
  return {
    name,
    title,
    async start({ folder, receiverUrl }) {
      await prepare()
      const given: ProgramOptions = { ...options, folder, ...(receiverUrl === undefined ? {} : { receiver: receiverUrl }) }
      const child = startScript(join('programs', `${name.replace('-tuned', '')}.ts`), [JSON.stringify(given)])
      const { port } = await nextReport<ProgramReport, 'listening'>(child, 'listening', 30_000)
      return {
        pid: child.pid ?? 0,
        target: { host: '127.0.0.1', port, path: '/v1/batch', headers: {} },
        databasePids,
        async remaining() {
          if (name === 'bare-fastify') return 0
          child.send({ kind: 'remaining' })
          return (await nextReport<ProgramReport, 'remaining'>(child, 'remaining', 30_000)).remaining
        },
        disagreement: async () => undefined,
        async stop() {
          await stop(child, 'SIGKILL')
        },
      }
    },
  }
}

/** The version of a package as resolved from bench/service: peers are installed there, undici and Fastify with the service. */
export function versionOf(name: string): string {
  for (const folder of [join(import.meta.dirname, '..'), join(import.meta.dirname, '..', '..', '..')]) {
    try {
      const manifest = readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')
      return (JSON.parse(manifest) as { version: string }).version
    } catch {
      // Not installed in this folder.
    }
  }
  return 'not installed'
}
