// The list of deliveries has pages: a page is short, is found again after a look at a delivery, and another filter begins with its first page.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../system/signals.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import { end, type Scene, startScene } from './scene.ts'

const OWED = 130
const PAGE = 50
const MAX_HEIGHT_PX = 4_000

let browser: TestBrowser
let scene: Scene

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true })])
  const { service, receivers } = scene
  // Paused, because an attempt would move the rest of its shipment to another page.
  await service.destination({ name: 'Away', urls: [receivers.dead.url], paused: true })
  const batch = Array.from({ length: OWED }, (_, at) => ({
    type: 'track',
    messageId: `m-${at}`,
    userId: `u-${at}`,
    event: 'Order Completed',
  }))
  assert.equal((await service.send(batch)).status, 200)
})
after(() => end(browser, scene))

test('the page opens on what failed', async () => {
  await using tab = await browser.open(scene.service)
  await tab.visit('/deliveries')
  await tab.page.getByText('No failed deliveries').waitFor()
  await tab.page.getByRole('link', { name: 'Show all deliveries' }).click()
  await tab.page.getByRole('table', { name: 'Deliveries' }).waitFor()
  tab.check()
})

test(`${OWED} deliveries are on three pages`, async () => {
  await using tab = await browser.open(scene.service)
  const { page } = tab
  await tab.visit('/deliveries?state=pending&view=list')
  const table = page.getByRole('table', { name: 'Deliveries' })
  // Without the row of headings.
  const shown = async (): Promise<string[]> => {
    await tab.until(`document.querySelector('main [aria-busy="false"] [role="table"]') !== null`)
    return (await table.getByRole('row').allInnerTexts()).slice(1).map((text) => /u-\d+/.exec(text)?.[0] ?? text)
  }
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const first = await shown()
  assert.equal(first.length, PAGE)
  assert.ok((await page.evaluate<number>('document.documentElement.scrollHeight')) < MAX_HEIGHT_PX)
  assert.equal(await button('Previous').isDisabled(), true)

  await button('Next').click()
  await page.waitForURL(/[?&]page=/)
  const second = await eventually(shown, ([row]) => row !== first[0])
  await table.getByRole('checkbox').nth(1).check()
  await button('Next').click()
  await page.getByRole('status').filter({ hasText: '30 deliveries on this page' }).waitFor()
  const third = await shown()
  assert.equal(new Set([...first, ...second, ...third]).size, OWED)
  assert.equal(await button('Next').isDisabled(), true)
  // What was selected on another page stays selected.
  await page.getByText('1 selected').waitFor()

  await table.getByRole('link', { name: 'Order Completed' }).first().click()
  await page.waitForURL(/\/deliveries\/\d/)
  await page.goBack()
  await page.getByRole('status').filter({ hasText: '30 deliveries on this page' }).waitFor()
  assert.deepEqual(await shown(), third)

  await page.getByLabel('User').fill('u-7')
  await page.getByLabel('User').press('Enter')
  await page
    .getByRole('status')
    .filter({ hasText: /^1 delivery$/ })
    .waitFor()
  assert.equal(new URL(page.url()).searchParams.get('page'), null)
  tab.check()
})
