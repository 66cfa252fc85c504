// A long list of deliveries, scrolled through and back: rows that are far away are neither rendered nor kept in memory. By default 10,000
// deliveries are scrolled through; with SWITCHYARD_LONG_TESTS=1 100,000.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { IS_LONG } from '../system/long-tests.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import { end, type Scene, startScene } from './scene.ts'

const OWED = IS_LONG ? 100_000 : 12_500
const SCROLLED = IS_LONG ? OWED : 10_000
/** Memory is measured from here on: the list is fully set up after these rows. */
const FIRST = 3_000
const HEAP_GROWTH_BYTES = 5_000_000
const BATCH = 2_500

/** The number of rows that the list knows so far. */
const KNOWN = `Number((/([\\d,.]+) deliver/.exec(document.querySelector('main').innerText)?.[1] ?? '0').replaceAll(/\\D/g, ''))`

let browser: TestBrowser
let scene: Scene

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true })])
  const { service, receivers } = scene
  await service.destination({ name: 'Away', urls: [receivers.dead.url], maxInFlight: 1 })
  for (let at = 0; at < OWED; at += BATCH) {
    const batch = Array.from({ length: BATCH }, (_, n) => ({
      type: 'track',
      messageId: `m-${at + n}`,
      userId: `u-${n}`,
      event: 'Order Completed',
    }))
    assert.equal((await service.send(batch)).status, 200)
  }
})
after(() => end(browser, scene))

test(`${SCROLLED} of ${OWED} deliveries are scrolled through and back without growing memory`, async (t) => {
  await using tab = await browser.open(scene.service)
  await tab.visit('/deliveries?state=pending&view=list')
  const known = (): Promise<number> => tab.page.evaluate<number>(KNOWN)
  let mostDrawn = 0
  const scrollTo = async (count: number): Promise<void> => {
    for (let now = await known(); now < count; now = await known()) {
      // Repeatedly, as if dragging the scroll bar: the end moves while rows are loaded.
      await tab.until(`(window.scrollTo(0, document.documentElement.scrollHeight), ${KNOWN} > ${now})`)
      mostDrawn = Math.max(mostDrawn, await tab.page.locator('[role="row"]').count())
    }
  }
  await scrollTo(FIRST)
  const heapBefore = await tab.heap()
  await scrollTo(SCROLLED)
  const heapAfter = await tab.heap()
  // Back at the start, dropped pages are loaded again.
  await tab.page.evaluate('window.scrollTo(0, 0)')
  await tab.until(`document.querySelector('[aria-rowindex="2"]')?.textContent.includes('Order Completed')`)
  const figures = JSON.stringify({ scrolled: await known(), heapBefore, heapAfter, mostDrawn })
  t.diagnostic(figures)
  assert.ok(heapAfter - heapBefore < HEAP_GROWTH_BYTES, figures)
  assert.ok(mostDrawn < 100, figures)
})
