// The cost of one request over node:http, the client's default, and over global fetch: the measurement behind that
// choice. `npm run bench:transport` prints it. Each request has one message, so that requests are what is measured.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Analytics, type AnalyticsSettings, FetchHTTPClient } from '../../packages/node/src/index.ts'
import type { ServerReport } from './counting-server.ts'
import { machineText } from './report.ts'
import { spreadOf, spreadText, tableText } from './table.ts'

const ROUNDS = 5
const REQUESTS = 5_000

interface Sample {
  wallUs: number
  cpuUs: number
}

const variants: [name: string, settings: Partial<AnalyticsSettings>][] = [
  ['node:http, keep-alive', {}],
  ['global fetch', { httpClient: new FetchHTTPClient() }],
]

const server = fork(join(import.meta.dirname, 'counting-server.ts'), [], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
try {
  const samples = await sampleAll(server)
  const [base] = samples
  const rows = samples.map(({ name, runs }) => [
    name,
    spreadText(spreadOf(runs.map((run) => run.wallUs)), 0),
    spreadText(spreadOf(runs.map((run) => run.cpuUs)), 0),
    spreadText(spreadOf(runs.map((run, round) => run.cpuUs / (base?.runs[round]?.cpuUs ?? Number.NaN))), 2),
  ])
  console.log(machineText())
  console.log(`\n${ROUNDS} rounds of ${REQUESTS.toLocaleString('en')} requests each, alternating, 8 concurrent; median (min–max).\n`)
  console.log(tableText(['Transport', 'µs per request', 'CPU µs per request', '× CPU of node:http'], rows))
} finally {
  server.kill('SIGKILL')
}

async function sampleAll(server: ChildProcess): Promise<{ name: string; runs: Sample[] }[]> {
  const [listening] = (await once(server, 'message', { signal: AbortSignal.timeout(20_000) })) as [ServerReport]
  if (listening.kind !== 'listening') throw new Error('the counting server did not start')
  const host = `http://127.0.0.1:${listening.port}`
  const samples = variants.map(([name]) => ({ name, runs: [] as Sample[] }))
  // The first round warms up both and is not counted.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [at, [, settings]] of variants.entries()) {
      const run = await sample(host, settings)
      if (round > 0) samples[at]?.runs.push(run)
    }
  }
  return samples
}

async function sample(host: string, settings: Partial<AnalyticsSettings>): Promise<Sample> {
  const analytics = new Analytics({ writeKey: 'bench', host, flushAt: 1, ...settings })
  const cpu = process.cpuUsage()
  const started = performance.now()
  for (let i = 0; i < REQUESTS; i++) analytics.track({ userId: 'u', event: 'e' })
  const { delivered } = await analytics.closeAndFlush()
  const wallMs = performance.now() - started
  const { user, system } = process.cpuUsage(cpu)
  if (delivered !== REQUESTS) throw new Error(`${delivered} of ${REQUESTS} requests were answered`)
  return { wallUs: (wallMs * 1000) / REQUESTS, cpuUs: (user + system) / REQUESTS }
}
