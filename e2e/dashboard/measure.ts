// Prints how soon the pages of the dashboard are ready, what the first load transfers, and what 90 days of counts take, with a shop and more
// destinations. Not a test: the times depend on the machine.
//
//   npm run bench:dashboard                                         100 destinations, 2,000 messages
//   npm run bench:dashboard -- --destinations 500 --stored 10000000
//   npm run bench:dashboard -- --store postgres                     a PostgreSQL server of its own
//
// `--messages` are sent by the client and delivered. `--stored` are sent first, in large requests to a source without destinations, which is much faster.

import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { startPostgres } from '../../bench/service/environment/databases.ts'
import {
  addHour,
  FORTNIGHT_MS,
  type Fortnight,
  fortnightOf,
  packFortnight,
} from '../../packages/server/src/store/history/packing/packed-stats.ts'
import { latencyBucket, latencyName, PENDING, type StatCounts } from '../../packages/server/src/store/port/stat-counts.ts'
import type { Service } from '../system/service.ts'
import { startBrowser, type Tab } from './browser.ts'
import { end, shopTraffic, startScene } from './scene.ts'

const { values } = parseArgs({
  options: {
    destinations: { type: 'string', default: '100' },
    messages: { type: 'string', default: '2000' },
    stored: { type: 'string', default: '0' },
    store: { type: 'string', default: 'sqlite' },
  },
})
if (values.store !== 'sqlite' && values.store !== 'postgres')
  throw new Error(`--store is "${values.store}", but must be sqlite or postgres.`)
const HOUR_MS = 3_600_000
const HOURS = 90 * 24
const MEASURED_DESTINATIONS = 20
const RUNS = 3
const PER_REQUEST = 1_000
const CONNECTIONS = 4

/** Milliseconds from the navigation to a page without anything that is loading. */
const READY = (path: string): string => `new Promise((resolve) => {
  const startedAt = performance.now()
  history.pushState(null, '', ${JSON.stringify(path)})
  const look = () => document.querySelector('main h1') !== null && document.querySelector('[aria-busy="true"]') === null
    ? resolve(performance.now() - startedAt)
    : requestAnimationFrame(look)
  requestAnimationFrame(() => requestAnimationFrame(look))
})`
/**
 * As Lighthouse measures them, without its slow network and processor. The largest contentful paint and long tasks may come after the page is ready, and are
 * reported to an observer only.
 */
const PAINTS = `new Promise((resolve) => {
  const found = { 'largest-contentful-paint': [], 'layout-shift': [], longtask: [] }
  for (const [type, entries] of Object.entries(found)) {
    new PerformanceObserver((list) => entries.push(...list.getEntries())).observe({ type, buffered: true })
  }
  setTimeout(() => resolve(found), 500)
}).then((found) => JSON.stringify({
  largestContentfulPaintMs: Math.round(found['largest-contentful-paint'].at(-1)?.startTime ?? 0),
  totalBlockingMs: Math.round(found.longtask.reduce((sum, { duration }) => sum + duration - 50, 0)),
  cumulativeLayoutShift: Number(found['layout-shift'].filter(({ hadRecentInput }) => !hadRecentInput).reduce((sum, { value }) => sum + value, 0).toFixed(3)),
  firstContentfulPaintMs: Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0),
  domCompleteMs: Math.round(performance.getEntriesByType('navigation')[0].domComplete),
  requests: performance.getEntriesByType('resource').length,
  transferredKB: Math.round([...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')].reduce((sum, { transferSize }) => sum + transferSize, 0) / 1000),
}))`

function countsOf(hour: number, random: () => number): StatCounts {
  const attempts = Math.round(200 * (1.2 + Math.sin(hour / 4)) * (0.8 + 0.4 * random()))
  const counts: StatCounts = { attempts, owed: attempts, delivered: attempts, [PENDING]: Math.ceil(random() * 10) }
  for (let at = 0; at < attempts; at++) {
    const name = latencyName(latencyBucket(80 * Math.exp((random() + random() + random() - 1.5) * 1.2)))
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

/** The bytes of a table with the packed counts of some destinations, for 500. */
function bytesOf90Days(): number {
  const database = new DatabaseSync(':memory:')
  database.exec(`CREATE TABLE stats (kind TEXT NOT NULL, subject TEXT NOT NULL, step INTEGER NOT NULL, at INTEGER NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (kind, subject, step, at)) WITHOUT ROWID, STRICT;
    CREATE INDEX stats_by_age ON stats (step, at)`)
  const insert = database.prepare("INSERT INTO stats VALUES ('destination', ?, ?, ?, ?)")
  let seed = 7
  const random = (): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const begin = fortnightOf(Date.now())
  for (let at = 0; at < MEASURED_DESTINATIONS; at++) {
    const fortnights = new Map<number, Fortnight>()
    for (let hour = 0; hour < HOURS; hour++) {
      const ms = begin + hour * HOUR_MS
      const fortnight: Fortnight = fortnights.get(fortnightOf(ms)) ?? new Map()
      fortnights.set(fortnightOf(ms), fortnight)
      addHour(fortnight, ms, countsOf(hour, random))
    }
    for (const [ms, fortnight] of fortnights) insert.run(`dst_${String(at).padStart(12, '0')}`, FORTNIGHT_MS, ms, packFortnight(fortnight))
  }
  const { pages } = database.prepare('SELECT count(*) AS pages FROM dbstat').get() as { pages: number }
  database.close()
  return (pages * 4_096 * 500) / MEASURED_DESTINATIONS
}

/** Stores messages of a source without destinations. */
async function store(service: Service, messages: number): Promise<void> {
  const { writeKeys } = await service.api<{ writeKeys: string[] }>('/sources', { method: 'POST', body: { name: 'Archive' } })
  const headers = { authorization: `Basic ${btoa(`${writeKeys[0]}:`)}`, 'content-type': 'application/json' }
  let next = 0
  const send = async (): Promise<void> => {
    while (next < messages) {
      const first = next
      next += PER_REQUEST
      const calls = Array.from({ length: Math.min(PER_REQUEST, messages - first) }, (_, at) => {
        const nth = first + at
        return `{"type":"track","event":"${EVENTS[nth % EVENTS.length]}","messageId":"stored-${nth}","userId":"u-${nth % 99_991}","properties":{"total":${nth % 977},"plan":"${nth % 3 === 0 ? 'pro' : 'free'}"}}`
      })
      const answer = await fetch(`${service.url}/v1/batch`, { method: 'POST', headers, body: `{"batch":[${calls.join(',')}]}` })
      if (!answer.ok) throw new Error(`filling: ${answer.status} ${await answer.text()}`)
      await answer.body?.cancel()
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, send))
}

const EVENTS = ['Product Viewed', 'Product Added', 'Order Completed', 'Signed Up']

async function readyAfter(tab: Tab, path: string): Promise<number[]> {
  const times: number[] = []
  for (let run = 0; run <= RUNS; run++) {
    await tab.go('/signature')
    times.push(await tab.page.evaluate<number>(READY(path)))
    await tab.settled()
  }
  // The first visit also loads the code of the page.
  return times.slice(1).sort((a, b) => a - b)
}

console.log(
  `90 days of hourly counts of 500 destinations: ${(bytesOf90Days() / 1e6).toFixed(1)} MB (measured with ${MEASURED_DESTINATIONS})`,
)
// On a disk, because ten million messages would take gigabytes of memory.
const isLarge = values.stored !== '0' || values.store === 'postgres'
const folder = isLarge ? mkdtempSync(join(tmpdir(), 'switchyard-pages-')) : undefined
const postgres = folder !== undefined && values.store === 'postgres' ? await startPostgres({ folder }) : undefined
const env =
  postgres === undefined
    ? {}
    : { env: { SWITCHYARD_STORE: postgres.connectionString, SWITCHYARD_SECRET_KEY: randomBytes(32).toString('base64') } }
const scene = await startScene(folder === undefined ? {} : { folder, ...env })
const browser = await startBrowser()
try {
  const { service, receivers } = scene
  const sourceIds = [service.sourceId]
  for (let at = 5; at < Number(values.destinations); at++)
    await service.destination({
      name: `Partner ${at}`,
      urls: [`${receivers.warehouse.url}p/${at}`],
      sourceIds,
      filter: { types: { allow: ['alias'] } },
    })
  const startedAt = performance.now()
  await store(service, Number(values.stored))
  if (values.stored !== '0') console.log(`Stored ${values.stored} messages in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  await shopTraffic(service, Number(values.messages))
  const tab = await browser.open(service)
  await tab.visit('/')
  console.log(`First load of the overview: ${await tab.page.evaluate<string>(PAINTS)}`)
  console.log(
    `\nReady after, with ${values.destinations} destinations and ${Number(values.messages) + Number(values.stored)} messages on ${postgres?.version ?? 'SQLite'} (median of ${RUNS}, code loaded):`,
  )
  for (const [pattern, path] of Object.entries(scene.views)) {
    const times = await readyAfter(tab, path)
    console.log(`${String(Math.round(times[Math.floor(times.length / 2)] ?? 0)).padStart(6)} ms  ${pattern}`)
  }
  tab.problems.length = 0
} finally {
  await end(browser, scene)
  await postgres?.stop()
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
}
