// Takes the screenshots of the dashboard in docs/images: starts a service on a free port and sends it a shop's traffic, with receivers
// that succeed, fail and do not answer. Run it again after a change: npm run screenshots

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NARROW, startBrowser, type Theme, WIDE } from '../e2e/dashboard/browser.ts'
import { type Scene, shopTraffic, startScene } from '../e2e/dashboard/scene.ts'
import { eventually } from '../e2e/system/signals.ts'

const folder = join(import.meta.dirname, '..', 'docs', 'images')
const LOOKS: readonly [width: number, theme: Theme][] = [
  [WIDE, 'light'],
  [WIDE, 'dark'],
  [NARROW, 'light'],
  [NARROW, 'dark'],
]

interface Picture {
  name: string
  address: (scene: Scene) => string
}

const PICTURES: readonly Picture[] = [
  { name: 'overview', address: () => '/?period=1h' },
  { name: 'live', address: () => '/live' },
  { name: 'destination', address: ({ destinations }) => `/destinations/${destinations.crm}` },
  { name: 'message', address: ({ views }) => views['/messages/:id'] as string },
  { name: 'failures', address: () => '/deliveries?state=failed&view=causes' },
  { name: 'sources', address: ({ views }) => views['/sources/:id'] as string },
]

// Names of the screenshots to take; all if none is given.
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !PICTURES.some((picture) => picture.name === name) && name !== 'start')
if (unknown.length > 0) {
  console.error(`Unknown screenshot: ${unknown.join(', ')}. Known names: ${PICTURES.map(({ name }) => name).join(', ')} and start.`)
  process.exit(2)
}

mkdirSync(folder, { recursive: true })
await using browser = await startBrowser()
const isWanted = (name: string): boolean => wanted.length === 0 || wanted.includes(name)

{
  await using scene = await startScene()
  const stopped = new AbortController()
  const traffic = keepSending(scene, stopped.signal)
  // Charts and latencies would look better with some minutes of traffic; the last seconds must be enough.
  await eventually(
    async () => (await scene.service.stats()).accepted,
    (accepted) => accepted >= 900,
    { what: 'some traffic', deadlineMs: 120_000 },
  )
  for (const { name, address } of PICTURES) if (isWanted(name)) await take(scene, name, address(scene))
  stopped.abort()
  await traffic
}
if (isWanted('start')) {
  await using scene = await startScene({ empty: true })
  await take(scene, 'start', '/start')
}

async function take({ service }: Scene, name: string, address: string): Promise<void> {
  for (const [width, theme] of LOOKS) {
    await using tab = await browser.open(service, { width, theme, scale: width === NARROW ? 2 : 1, height: width === NARROW ? 844 : 860 })
    await tab.visit(address)
    // Some live events have arrived.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const file = join(folder, `${name}-${width === NARROW ? 'phone' : 'desktop'}-${theme}.png`)
    writeFileSync(file, await tab.page.screenshot({ animations: 'disabled' }))
    tab.check()
    console.log(file)
  }
}

/** Sends about 60 messages a second while screenshots are taken. */
async function keepSending({ service }: Scene, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await shopTraffic(service, 60)
    await new Promise((resolve) => setTimeout(resolve, 900))
  }
}
