// What running an integration through the service costs, compared with calling its library directly in one process with the same requests: events per
// second and CPU time per event, for three integrations, one of them with batches of 100 and of 5,000 messages. A destination runs in one host process,
// so one process calls the library, and the CPU time of the two is compared: it hardly depends on what else the machine does. The service also receives,
// stores, routes and records each event, which its own CPU time shows. The peak memory of the host is printed, too. The tool that answers is this
// process. The rounds of the service and of the library alternate.
// Run: npm run bench:integrations -- [--rounds N] [--events N] [--only SLUG]

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type IntegrationCase, integrationCases } from '../../e2e/integrations/cases.ts'
import { createAuthority, polyglotServer } from '../../e2e/integrations/gateway/recording-gateway.ts'
import { startService } from '../../e2e/system/service.ts'
import { wire } from '../../e2e/system/wiring.ts'
import { machineText } from '../client/report.ts'
import { spreadOf, spreadText, tableText } from '../client/table.ts'
import { cpuUs, descendantsOf, peakRssBytes } from '../service/environment/process-stats.ts'
import type { LibraryWork } from './library-program.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, events: { type: 'string', default: '3000' }, only: { type: 'string' } },
})
const ROUNDS = Number(values.rounds)
const EVENTS = Number(values.events)
const WARM_UP = 300
const PER_REQUEST = 100
const IN_FLIGHT = 32
/** Events per second of the service, compared with those of the library. */
const MIN_RATE = 0.8
/** Of each, the first subscription. `minCpu`: the CPU time of the library, compared with that of the host. */
const MEASURED: readonly { slug: string; batchSize: number; eventCount: number; minCpu: number }[] = [
  { slug: 'actions-slack', batchSize: 1, eventCount: EVENTS, minCpu: 1.5 },
  { slug: 'actions-amplitude', batchSize: 1, eventCount: EVENTS, minCpu: 1.5 },
  // Batches are so much faster that a round would end before the first requests are answered.
  { slug: 'actions-mixpanel', batchSize: 100, eventCount: EVENTS * 10, minCpu: 0.8 },
  { slug: 'actions-mixpanel', batchSize: 5_000, eventCount: EVENTS * 10, minCpu: 0.8 },
]

interface Measured {
  perSecond: number
  /** Of the process that runs the integration. */
  cpuUsPerEvent: number
  /** Of the other processes of the service. */
  otherUsPerEvent: number
}
type Run = (eventCount: number) => Promise<Measured>

let arrived = 0
let onArrival = (): void => {}
const { authority, folder, authorityFile } = createAuthority()
const tool = polyglotServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    // Only a batch is an array.
    arrived += body[0] === 0x5b ? (JSON.parse(body.toString()) as unknown[]).length : 1
    response.setHeader('content-type', 'application/json')
    response.end('{}')
    onArrival()
  })
}, authority)
tool.listen(0, '127.0.0.1')
await once(tool, 'listening')
const { port } = tool.address() as AddressInfo

function arrivalOf(count: number): Promise<void> {
  const wanted = arrived + count
  return new Promise((resolve) => {
    onArrival = () => {
      if (arrived >= wanted) resolve()
    }
  })
}

async function measure(
  eventCount: number,
  pids: () => { run: number[]; other: number[] },
  work: () => Promise<unknown>,
): Promise<Measured> {
  const used = (): { run: number; other: number } => {
    const { run, other } = pids()
    return { run: cpuUs(run), other: cpuUs(other) }
  }
  const all = arrivalOf(eventCount)
  const [startMs, start] = [performance.now(), used()]
  await Promise.all([work(), all])
  const seconds = (performance.now() - startMs) / 1_000
  const end = used()
  return {
    perSecond: eventCount / seconds,
    cpuUsPerEvent: (end.run - start.run) / eventCount,
    otherUsPerEvent: (end.other - start.other) / eventCount,
  }
}

await using service = await startService({
  env: { SWITCHYARD_INTEGRATIONS_GATEWAY: `127.0.0.1:${port}`, SWITCHYARD_INTEGRATIONS_CA: authorityFile },
})

async function throughService({ slug, created, events }: IntegrationCase, batchSize: number): Promise<Run> {
  const wiring = await wire(service, {
    ...created,
    subscriptions: (created['subscriptions'] as unknown[]).slice(0, 1),
    maxInFlight: IN_FLIGHT,
    ...(batchSize > 1 && { batch: { size: batchSize, lingerMs: 50 } }),
  })
  let sent = 0
  const { messageId: _, ...event } = events[0]?.event ?? {}
  return (eventCount) =>
    measure(
      eventCount,
      // The only processes that the service starts are its hosts.
      () => ({ run: descendantsOf(service.pid), other: [service.pid] }),
      async () => {
        for (let left = eventCount; left > 0; left -= PER_REQUEST) {
          await wiring.send(Array.from({ length: Math.min(left, PER_REQUEST) }, () => ({ ...event, messageId: `${slug}-${sent++}` })))
        }
      },
    )
}

async function throughLibrary({ directory, settings, subscriptions, events }: IntegrationCase, batchSize: number): Promise<Run> {
  const child = fork(join(import.meta.dirname, 'library-program.ts'), {
    env: { GATEWAY_PORT: String(port), NODE_EXTRA_CA_CERTS: authorityFile },
  })
  await once(child, 'message')
  process.on('exit', () => child.kill('SIGKILL'))
  const [subscription] = subscriptions
  if (subscription === undefined || events[0] === undefined) throw new Error(`${directory} has no subscription`)
  const work: Omit<LibraryWork, 'eventCount'> = {
    directory,
    settings,
    subscription,
    event: events[0].event,
    batchSize,
    inFlight: IN_FLIGHT,
  }
  return (eventCount) =>
    measure(
      eventCount,
      () => ({ run: [child.pid ?? 0], other: [] }),
      async () => {
        child.send({ ...work, eventCount })
        await once(child, 'message')
      },
    )
}

type Pair = { service: Measured; library: Measured }

async function measuredRow({ slug, batchSize, eventCount, minCpu }: (typeof MEASURED)[number]): Promise<{ row: string[]; isMet: boolean }> {
  const integration = cases.find((candidate) => candidate.slug === slug) as IntegrationCase
  const [ofService, ofLibrary] = [await throughService(integration, batchSize), await throughLibrary(integration, batchSize)]
  for (const run of [ofLibrary, ofService]) await run(WARM_UP)
  const pairs: Pair[] = []
  for (let round = 0; round < ROUNDS; round++) pairs.push({ library: await ofLibrary(eventCount), service: await ofService(eventCount) })
  const spread = (of: (pair: Pair) => number): ReturnType<typeof spreadOf> => spreadOf(pairs.map(of))
  const text = (of: (pair: Pair) => number): string => spreadText(spread(of), 0)
  const rates = spread(({ library, service: own }) => own.perSecond / library.perSecond)
  const cpu = spread(({ library, service: own }) => library.cpuUsPerEvent / own.cpuUsPerEvent)
  const isMet = (rates?.median ?? 0) >= MIN_RATE && (cpu?.median ?? 0) >= minCpu
  const row = [
    `${slug}${batchSize > 1 ? `, batches of ${batchSize}` : ''}`,
    text(({ service: own }) => own.perSecond),
    text(({ library }) => library.perSecond),
    `${spreadText(rates, 2)}, ≥ ${MIN_RATE}`,
    text(({ service: own }) => own.cpuUsPerEvent),
    text(({ library }) => library.cpuUsPerEvent),
    `${spreadText(cpu, 2)}, ≥ ${minCpu}`,
    text(({ service: own }) => own.otherUsPerEvent),
    // One host runs all rows.
    (Math.max(...descendantsOf(service.pid).map(peakRssBytes)) / 1e6).toFixed(0),
  ]
  return { row, isMet }
}

console.log(machineText())
const cases = await integrationCases()
const measured: Awaited<ReturnType<typeof measuredRow>>[] = []
for (const each of MEASURED) if (values.only === undefined || values.only === each.slug) measured.push(await measuredRow(each))
console.log(
  `\n${EVENTS} events in each round (${EVENTS * 10} with batches), ${IN_FLIGHT} requests in flight: median (min–max) of ${ROUNDS} rounds, alternating; after a ratio, its target.\n`,
)
const columns = [
  'Integration',
  'Events/s',
  'Library',
  'Ratio',
  'Host: CPU µs per event',
  'Library',
  'Library / host',
  'Rest of the service: CPU µs',
  'Host so far: peak MB',
]
console.log(
  tableText(
    columns,
    measured.map(({ row }) => row),
  ),
)
console.log(`\n${measured.every(({ isMet }) => isMet) ? 'All targets met.' : 'A target was missed.'}`)
tool.close()
rmSync(folder, { recursive: true })
process.exit(0)
