// Entry of `npm run soak`: a steady load for hours, with a fault every few minutes. Prints memory, file descriptors, threads, store size and
import type { StoreKind } from '../faults/system/system.ts'
// latency over time, reports what grows, and ends with the audit of the fault ledger. With --write it writes docs/operations/soak.md.

import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { auditSystem } from '../faults/rounds/audit.ts'
import type { FaultTime } from '../faults/rounds/fault.ts'
import { seededRandom } from '../faults/system/random.ts'
import { type Sample, type Sampled, startSampled } from './sampling.ts'
import { SOAK_FAULTS } from './soak-faults.ts'
import { growthOf, headings, line, type SoakRun, writePage, writeResult } from './soak-page.ts'

const HELP = `Runs a steady load for hours, with a fault every few minutes, and reports what grows.

usage: npm run soak -- [options]

  --hours N              how long to run (default: 2)
  --store NAME           sqlite or postgres (default: both, at the same time)
  --rate N               messages per second to each store (default: 25)
  --every MINUTES        time between two lines of the table (default: 5)
  --fault-every MINUTES  time between two faults (default: 3)
  --seed N               seed of the faults (default: random)
  --write                write the result to docs/operations/soak.md
  --page                 only write that page again, from the stored result
  --help                 print this text

Press Ctrl-C to end early, with the audit. The exit code is 1 if the audit found a problem or something grew. Needs Linux, because it reads /proc.
`

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '2' },
    store: { type: 'string' },
    rate: { type: 'string', default: '25' },
    every: { type: 'string', default: '5' },
    'fault-every': { type: 'string', default: '3' },
    seed: { type: 'string' },
    write: { type: 'boolean', default: false },
    page: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(HELP)
  process.exit()
}
if (values.page) {
  console.log(`wrote ${writePage()}`)
  process.exit()
}
if (process.platform !== 'linux') fail('The soak test reads /proc, so it needs Linux.')
const [hours, rate, everyMinutes, faultMinutes] = (['hours', 'rate', 'every', 'fault-every'] as const).map((name) => {
  const value = Number(values[name])
  return value > 0 ? value : fail(`--${name} must be a number above 0.`)
}) as [number, number, number, number]
const seed = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed)
if (!Number.isInteger(seed)) fail('--seed must be a whole number.')
if (values.store !== undefined && values.store !== 'sqlite' && values.store !== 'postgres') fail('--store must be sqlite or postgres.')
const stores: StoreKind[] = values.store === undefined ? ['sqlite', 'postgres'] : [values.store]

const stopped = new AbortController()
process.once('SIGINT', () => {
  console.log('\nEnding early, with the audit. Press Ctrl-C again to end at once.')
  stopped.abort()
})
console.log(`seed ${seed}, ${hours} hours, ${rate} messages per second`)
const runs = await Promise.all(stores.map(soak))
if (values.write) console.log(`wrote ${writeResult(runs)}`)
process.exitCode = runs.some(({ problems }) => problems.length > 0) ? 1 : 0

async function soak(store: StoreKind): Promise<SoakRun> {
  const random = seededRandom(seed)
  await using sampled: Sampled = await startSampled({ store, random, perSecond: rate })
  const { system } = sampled
  const startMs = performance.now()
  const endMs = startMs + hours * 3_600_000
  const minutes = (): number => (performance.now() - startMs) / 60_000
  const samples: Sample[] = []
  const faults: FaultTime[] = []
  const caused = new Map<string, number>()
  const problems: string[] = []
  console.log(`${store.padEnd(8)} ${headings()}`)

  const printing = (async () => {
    while (await waited(everyMinutes * 60_000, endMs)) {
      // A fault may keep the API from answering. Then this line is left out.
      const sample = await sampled
        .take(minutes(), faults.length)
        .catch((error: Error): undefined => console.log(`${store}: no sample: ${error.message}`) as undefined)
      if (sample === undefined) continue
      samples.push(sample)
      console.log(`${store.padEnd(8)} ${line(sample)}`)
    }
  })()
  const breaking = (async () => {
    while (await waited(faultMinutes * 60_000, endMs - faultMinutes * 60_000)) {
      const fault = random.pick(SOAK_FAULTS.filter(({ isPossible }) => isPossible(system)))
      const fromMs = performance.now()
      try {
        await fault.cause(system, random)
      } catch (error) {
        problems.push(`${fault.name}: ${(error as Error).message}`)
      }
      faults.push({ fromMs, toMs: performance.now() })
      caused.set(fault.name, (caused.get(fault.name) ?? 0) + 1)
    }
  })()
  // Simulates a user who keeps the dashboard open.
  const looking = (async () => {
    while (await waited(5_000, endMs)) {
      for (const path of ['/destinations', '/deliveries?limit=50', '/messages?limit=50', '/stats/totals', '/events'])
        await system.api(path).catch(() => {})
    }
  })()
  await Promise.all([printing, breaking, looking])

  const audit = await auditSystem(system, { faults, deadlineMs: 900_000 })
  const growth = growthOf(samples)
  problems.push(...audit.problems, ...growth)
  console.log(`${store}: ${audit.acknowledged} acknowledged, ${audit.lost} lost, ${audit.repeated} arrived twice, ${faults.length} faults`)
  for (const problem of problems) console.log(`  ✗ ${problem}`)
  const { acknowledged, lost, repeated } = audit
  return { store, seed, rate, hours: minutes() / 60, acknowledged, lost, repeated, faults: Object.fromEntries(caused), samples, problems }
}

/** Waits. Resolves to false if the time is over or the run was ended early. */
async function waited(ms: number, endMs: number): Promise<boolean> {
  const leftMs = endMs - performance.now()
  if (leftMs <= 0 || stopped.signal.aborted) return false
  await sleep(Math.min(ms, leftMs), undefined, { signal: stopped.signal }).catch(() => {})
  return !stopped.signal.aborted
}

function fail(text: string): never {
  console.error(text)
  process.exit(2)
}
