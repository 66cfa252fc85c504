// The program of a host: runs integrations, with the code of their package.

import { readFileSync } from 'node:fs'
import type { HostOptions } from '../link/host-channel.ts'
import { serveHost } from '../link/serve-host.ts'
import { Executor } from '../sender/executor.ts'
import { HostedRuns, type OpenIntegration } from './hosted-runs.ts'

const { packageUrl } = JSON.parse(process.argv[2] as string) as HostOptions
const open: OpenIntegration = async (slug, settings, options) => {
  // Resolved by hand, because the package may be anywhere.
  const { exports } = JSON.parse(readFileSync(new URL('package.json', packageUrl), 'utf8')) as { exports: Record<string, string> }
  const { openIntegration } = (await import(new URL(exports['./runner'] as string, packageUrl).href)) as {
    openIntegration: OpenIntegration
  }
  return openIntegration(slug, settings, options)
}

/** A host sends no requests of its own and transforms nothing: those destinations are webhooks. */
const unused = {
  inFlight: 0,
  send: (): never => {
    throw new Error('a host sends no webhooks')
  },
  run: (): never => {
    throw new Error('a host transforms no messages')
  },
  close: () => Promise.resolve(),
}

let runs: HostedRuns
serveHost({
  open(reports) {
    runs = new HostedRuns(open, {
      tokens: (...report) => reports.tokens?.(...report),
      stateWanted: (destinationId) => reports.stateWanted?.(destinationId),
    })
    return new Executor(unused, unused, reports, runs)
  },
  inFlight: () => runs.inFlight,
})
