// What loads cost the service that they run beside. It delivers messages to a webhook as fast as it can, in three cases that take turns: without a warehouse, with a lake
// whose next load is due tomorrow, and with a lake that is loaded every second. The second case has the cost of storing and owing the messages to another
// destination; the third adds the loads. The sender, the receiver and the loader use the same processors as the service.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { nowMs } from '../service/environment/http-message.ts'
import { cpuUs } from '../service/environment/process-stats.ts'
import { createFolder, pause, removeFolder } from '../service/environment/processes.ts'
import { type Service, startService } from '../service/environment/service.ts'
import { createTraffic, requireAll, USUAL_LOAD } from '../service/environment/traffic.ts'

const WARM_UP = 5_000
const TIMEOUT_MS = 180_000
const CASES = {
  'without a warehouse': null,
  'a lake, its load is due tomorrow': { everyMs: 86_400_000, maxRows: 200_000, maxBytes: 67_108_864 },
  'a lake, loaded every second': { everyMs: 1_000, maxRows: 200_000, maxBytes: 67_108_864 },
} as const
type Case = keyof typeof CASES

interface Run {
  perSecond: number
  cpuUs: number
  /** How many messages were in the tables when the webhook had received all. */
  loaded: number
}

export async function measureBeside(events: number, rounds: number): Promise<void> {
  console.log(
    `\nThe service beside loads: ${events.toLocaleString('en')} messages in requests of ${USUAL_LOAD.eventsPerRequest} to a webhook`,
  )
  const runs = new Map<Case, Run[]>()
  const cases = Object.keys(CASES) as Case[]
  for (let round = 0; round < rounds; round++)
    for (let turn = 0; turn < cases.length; turn++) {
      const each = cases[(round + turn) % cases.length] as Case
      runs.set(each, [...(runs.get(each) ?? []), await measureCase(each, events)])
    }
  const median = (each: Case, of: (run: Run) => number): number =>
    (runs.get(each) ?? []).map(of).sort((one, other) => one - other)[Math.floor(rounds / 2)] ?? 0
  for (const each of cases) {
    const perSecond = Math.round(median(each, (run) => run.perSecond)).toLocaleString('en')
    const cpu = median(each, (run) => run.cpuUs).toFixed(1)
    const loaded = Math.round((median(each, (run) => run.loaded) / events) * 100)
    console.log(
      `  ${each.padEnd(36)} ${perSecond.padStart(8)} messages/s  ${cpu.padStart(6)} µs CPU of the service per message  ${loaded} % loaded meanwhile`,
    )
  }
  for (const [title, one, other] of [
    ['loaded every second, beside due tomorrow', 2, 1],
    ['loaded every second, beside no warehouse', 2, 0],
  ] as const) {
    const ratios = (runs.get(cases[one] as Case) ?? []).map(
      ({ perSecond }, round) => perSecond / (runs.get(cases[other] as Case)?.[round]?.perSecond ?? 1),
    )
    console.log(`  ${title.padEnd(54)} ${(ratios.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0).toFixed(2).padStart(10)} × messages/s`)
  }
}

async function measureCase(each: Case, events: number): Promise<Run> {
  const folder = createFolder()
  const traffic = await createTraffic()
  const service = await startService(folder)
  try {
    const source = await service.defaultSource()
    const target = service.targetOf(source)
    await service.createDestination('Webhook', traffic.receiverUrl, source)
    const load = CASES[each]
    const lake = load === null ? null : await createLake(service, source, folder, load)
    const deliver = async (count: number): Promise<number> => {
      const startedMs = nowMs()
      const arrived = traffic.expectNext(count, TIMEOUT_MS)
      requireAll(await traffic.burst(target, count))
      return (await arrived) - startedMs
    }
    await deliver(WARM_UP)
    // The loader starts and loads what it was sent.
    if (lake !== null) await loaded(service, lake)
    await pause(500)
    const [cpuBefore, loadedBefore] = [cpuUs([service.pid]), await loadedBy(service, lake)]
    const ms = await deliver(events)
    return {
      perSecond: (events / ms) * 1_000,
      cpuUs: (cpuUs([service.pid]) - cpuBefore) / events,
      loaded: (await loadedBy(service, lake)) - loadedBefore,
    }
  } finally {
    await service.stop()
    await traffic.close()
    removeFolder(folder)
  }
}

function createLake(
  service: Service,
  source: Awaited<ReturnType<Service['defaultSource']>>,
  folder: string,
  load: object,
): Promise<string> {
  const warehouse = { engine: 'parquet', url: pathToFileURL(join(folder, 'lake')).href }
  return service.createDestination('Lake', '', source, { type: 'warehouse', warehouse, load, urls: undefined, sharedSecret: undefined })
}

async function loadedBy(service: Service, lake: string | null): Promise<number> {
  return (await service.ledger()).find(({ destinationId }) => destinationId === lake)?.delivered ?? 0
}

async function loaded(service: Service, lake: string): Promise<void> {
  await service.load(lake)
  const limit = nowMs() + TIMEOUT_MS
  while ((await loadedBy(service, lake)) < WARM_UP) {
    if (nowMs() > limit) throw new Error(`the messages were not loaded within ${TIMEOUT_MS / 1_000} s`)
    await pause(100)
  }
}
