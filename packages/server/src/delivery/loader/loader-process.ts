// The program of a loader: writes the messages of warehouses into their tables, with the code of the package @switchyard/warehouse.

import { readFileSync } from 'node:fs'
import type { HostOptions } from '../link/host-channel.ts'
import { serveHost } from '../link/serve-host.ts'
import { Executor } from '../sender/executor.ts'
import type { Engines } from './engines.ts'
import { LoadRuns } from './load-runs.ts'

const { packageUrl, dataFolders } = JSON.parse(process.argv[2] as string) as HostOptions

let engines: Promise<Engines> | null = null
function open(): Promise<Engines> {
  engines ??= load()
  // It may be installed in the meantime.
  engines.catch(() => {
    engines = null
  })
  return engines
}

async function load(): Promise<Engines> {
  // Resolved by hand, because the package may be anywhere.
  const { exports } = JSON.parse(readFileSync(new URL('package.json', packageUrl), 'utf8')) as { exports: Record<string, string> }
  const part = (name: string): Promise<unknown> => import(new URL(exports[name] as string, packageUrl).href)
  const [own, schema] = await Promise.all([part('./engines'), part('./schema')])
  return { ...(own as Pick<Engines, 'createWarehouse'>), ...(schema as Omit<Engines, 'createWarehouse'>) }
}

/** A loader sends no requests of its own and transforms nothing. */
const unused = {
  inFlight: 0,
  send: (): never => {
    throw new Error('a loader sends no webhooks')
  },
  run: (): never => {
    throw new Error('a loader transforms no messages')
  },
  close: () => Promise.resolve(),
}

let runs: LoadRuns
serveHost({
  open(reports) {
    runs = new LoadRuns(open, dataFolders?.[0] ?? null, (...question) => reports.asked?.(...question))
    return new Executor(unused, unused, reports, runs)
  },
  inFlight: () => runs.inFlight,
})
