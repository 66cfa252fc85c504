// The pages Events and Plans, used as a team would: find an event and see what it contains and who receives it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startBrowser, type TestBrowser } from './browser.ts'
import { end, type Scene, shopTraffic, startScene } from './scene.ts'

let browser: TestBrowser
let scene: Scene

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true })])
  const { service, receivers } = scene
  await service.api(`/sources/${service.sourceId}`, { method: 'PATCH', body: { name: 'Web shop' } })
  const sourceIds = [service.sourceId]
  await service.destination({ name: 'Warehouse', urls: [receivers.warehouse.url], sourceIds })
  await service.destination({ name: 'Newsletter', urls: [receivers.slow.url], sourceIds, filter: { types: { allow: ['identify'] } } })
})
after(() => end(browser, scene))

test('an event is found, and its page shows its properties, who receives it and its last messages', async () => {
  await using tab = await browser.open(scene.service)
  const { page } = tab
  await tab.visit('/events')
  await page.getByRole('heading', { name: 'No events yet' }).waitFor()

  await shopTraffic(scene.service, 60)
  await tab.visit('/events?order=lastSeen')
  await page.getByRole('link', { name: 'Product Viewed' }).waitFor()
  assert.equal(await page.getByRole('table').getByRole('row').count(), 1 + 6)
  await page.getByRole('textbox', { name: 'Event' }).fill('completed')
  await page
    .getByRole('status')
    .filter({ hasText: /^1 event$/ })
    .waitFor()
  await page.getByRole('link', { name: 'Order Completed' }).click()

  await page.getByRole('heading', { level: 1, name: 'Order Completed' }).waitFor()
  await tab.settled()
  await page.getByText('10 messages in the last 7 days').waitFor()
  const properties = page.getByRole('region', { name: 'Properties', exact: true })
  await properties.getByRole('row').filter({ hasText: 'currency' }).getByText('"EUR"').waitFor()
  await properties.getByRole('row').filter({ hasText: 'total' }).getByText('number').waitFor()
  const receivers = page.getByRole('list', { name: 'Destinations of this event' }).getByRole('listitem')
  assert.match(await receivers.filter({ hasText: 'Warehouse' }).innerText(), /Gets all of the last 10 messages/)
  assert.match(await receivers.filter({ hasText: 'Newsletter' }).innerText(), /filter allows only some types, and track is not one of them/)

  await page.getByRole('button', { name: 'Show the last ten' }).click()
  await page.getByRole('region', { name: 'The last ten messages, newest first' }).waitFor()
  assert.equal(await page.getByRole('region', { name: 'The last ten messages, newest first' }).getByRole('link').count(), 10)
  await page.getByRole('link', { name: 'View all messages' }).click()
  await page
    .getByRole('status')
    .filter({ hasText: /^10 messages/ })
    .waitFor()
  assert.equal(await page.getByRole('textbox', { name: 'Event' }).inputValue(), 'Order Completed')
  tab.check()
})
