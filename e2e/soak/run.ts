// Entry of `npm run soak`: a steady load for hours, with a fault every few minutes. Prints memory, file descriptors, threads, store size and
// latency over time, says what grows, and ends with the audit of the fault ledger. With --write it puts the table into docs/operations/soak.md.

import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { auditSystem, type FaultTime } from '../faults/audit.ts'
import type { StoreKind } from '../faults/fault.ts'
import { seededRandom } from '../faults/random.ts'
import { type Sample, type Sampled, startSampled } from './sampling.ts'
import { growthOf, headings, line, type SoakRun, writePage } from './soak-page.ts'
import { SPRINKLED } from './sprinkled-faults.ts'

const HELP = `Holds a steady load for hours, with a fault every few minutes, and shows what grows.

usage: npm run soak -- [options]

  --hours N            how long (2)
  --store NAME         sqlite or postgres (both, at the same time)
  --rate N             messages per second, to each store (25)
  --every MINUTES      between two lines of the table (5)
  --fault-every MINUTES  between two faults (3)
  --seed N             the seed of the faults (random)
  --write              put the table into docs/operations/soak.md
  --help               this text

Ctrl-C ends it early, with the audit. The exit code is 1 if a message was lost or something grew. Needs Linux, for /proc.
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
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(HELP)
  process.exit()
}
if (process.platform !== 'linux') fail('The soak reads /proc, which only Linux has.')
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
  console.log('\nending early; press Ctrl-C again to end at once')
  stopped.abort()
})
console.log(`seed ${seed}, ${hours} hours, ${rate} messages per second`)
const runs = await Promise.all(stores.map(soak))
if (values.write) console.log(`wrote ${writePage(runs)}`)
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
      // A fault may be in the way of the question; the next line has it then.
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
      const fault = random.pick(SPRINKLED.filter(({ isPossible }) => isPossible(system)))
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
  // Somebody who looks at the dashboard all the time.
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

/** Waits; false when the time is over, or the run was ended early. */
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
