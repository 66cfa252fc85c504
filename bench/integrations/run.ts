// What running an integration through the service costs, compared with calling its library directly in one process: events per second and CPU time
// per event, for three integrations, one of them with batches. A destination runs in one host process, so one process calls the library. The
// service also receives, stores, routes and records each event; its CPU time is that of all its processes. The tool that answers is this process.
// The rounds of the service and of the library alternate. Run: npm run bench:integrations -- [--rounds N] [--events N]

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
import { cpuUs, descendantsOf } from '../service/environment/process-stats.ts'
import type { LibraryWork } from './library-program.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, events: { type: 'string', default: '3000' } } })
const ROUNDS = Number(values.rounds)
const EVENTS = Number(values.events)
const WARM_UP = 300
const PER_REQUEST = 100
const IN_FLIGHT = 32
const MIN_RATIO = 0.7
/** Of each, the first subscription. */
const MEASURED: readonly [slug: string, batchSize: number, eventCount: number][] = [
  ['actions-slack', 1, EVENTS],
  ['actions-amplitude', 1, EVENTS],
  // Batches are so much faster that a round would end before the first requests are answered.
  ['actions-mixpanel', 100, EVENTS * 10],
]

interface Measured {
  perSecond: number
  cpuUsPerEvent: number
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

async function measure(eventCount: number, pids: () => number[], work: () => Promise<unknown>): Promise<Measured> {
  const all = arrivalOf(eventCount)
  const [startMs, startUs] = [performance.now(), cpuUs(pids())]
  await Promise.all([work(), all])
  const seconds = (performance.now() - startMs) / 1_000
  return { perSecond: eventCount / seconds, cpuUsPerEvent: (cpuUs(pids()) - startUs) / eventCount }
}

await using service = await startService({
  env: { SWITCHYARD_INTEGRATIONS_GATEWAY: `127.0.0.1:${port}`, SWITCHYARD_INTEGRATIONS_CA: authorityFile },
})

async function throughService({ slug, settings, subscriptions, events }: IntegrationCase, batchSize: number): Promise<Run> {
  const wiring = await wire(service, {
    type: 'integration',
    integration: slug,
    settings,
    subscriptions: subscriptions.slice(0, 1),
    maxInFlight: IN_FLIGHT,
    ...(batchSize > 1 && { batch: { size: batchSize, lingerMs: 50 } }),
  })
  let sent = 0
  const { messageId: _, ...event } = events[0]?.event ?? {}
  return (eventCount) =>
    measure(
      eventCount,
      () => [service.pid, ...descendantsOf(service.pid)],
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
      () => [child.pid ?? 0],
      async () => {
        child.send({ ...work, eventCount })
        await once(child, 'message')
      },
    )
}

console.log(machineText())
const cases = await integrationCases()
const rows: string[][] = []
let isMet = true
for (const [slug, batchSize, eventCount] of MEASURED) {
  const integration = cases.find((candidate) => candidate.slug === slug) as IntegrationCase
  const [ofService, ofLibrary] = [await throughService(integration, batchSize), await throughLibrary(integration, batchSize)]
  for (const run of [ofLibrary, ofService]) await run(WARM_UP)
  const pairs: { service: Measured; library: Measured }[] = []
  for (let round = 0; round < ROUNDS; round++) pairs.push({ library: await ofLibrary(eventCount), service: await ofService(eventCount) })
  const ratios = spreadOf(pairs.map(({ library, service: own }) => own.perSecond / library.perSecond))
  isMet &&= (ratios?.median ?? 0) >= MIN_RATIO
  rows.push([
    `${slug}${batchSize > 1 ? `, batches of ${batchSize}` : ''}`,
    spreadText(spreadOf(pairs.map(({ service: own }) => own.perSecond)), 0),
    spreadText(spreadOf(pairs.map(({ library }) => library.perSecond)), 0),
    spreadText(ratios, 2),
    spreadText(spreadOf(pairs.map(({ service: own }) => own.cpuUsPerEvent)), 0),
    spreadText(spreadOf(pairs.map(({ library }) => library.cpuUsPerEvent)), 0),
    spreadText(spreadOf(pairs.map(({ library, service: own }) => library.cpuUsPerEvent / own.cpuUsPerEvent)), 2),
  ])
}
console.log(
  `\n${EVENTS} events in each round (${EVENTS * 10} with batches), ${IN_FLIGHT} requests in flight: median (min–max) of ${ROUNDS} rounds, alternating. Events per second at least ${MIN_RATIO} × the library.\n`,
)
console.log(tableText(['Integration', 'Events/s', 'Library', 'Ratio', 'CPU µs per event', 'Library', 'Library / service'], rows))
console.log(`\nTarget ${isMet ? 'met' : 'missed'}.`)
tool.close()
rmSync(folder, { recursive: true })
process.exit(0)
