// The pages Events and Plans, used as a team would: find an event and see what it contains and who receives it; learn a plan, hold back what
// violates it, and release that again.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../system/signals.ts'
import { NARROW, startBrowser, type TestBrowser } from './browser.ts'
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
  const rows = page.getByRole('table').getByRole('row')
  await eventually(
    () => rows.count(),
    (count) => count === 1 + 6,
    { what: 'a row for each event' },
  )
  await page.getByRole('textbox', { name: 'Event' }).fill('completed')
  await page
    .getByRole('status')
    .filter({ hasText: /^1 event$/ })
    .waitFor()
  await page.getByRole('link', { name: 'Order Completed' }).click()

  await page.getByRole('heading', { level: 1, name: 'Order Completed' }).waitFor()
  await tab.settled()
  await page.getByText('7 days', { exact: true }).click()
  await page.getByText('10 messages in the last 7 days').waitFor()
  const properties = page.getByRole('region', { name: 'Properties', exact: true })
  await properties.getByRole('row').filter({ hasText: 'currency' }).getByText('"EUR"').waitFor()
  await properties.getByRole('row').filter({ hasText: 'total' }).getByText('number').waitFor()
  const receivers = page.getByRole('list', { name: 'Destinations of this event' }).getByRole('listitem')
  await receivers
    .filter({ hasText: 'Warehouse' })
    .getByText(/Gets all of the last 10 messages/)
    .waitFor()
  await receivers
    .filter({ hasText: 'Newsletter' })
    .getByText(/filter allows only some types, and track is not one of them/)
    .waitFor()

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

interface Plan {
  id: string
  version: number
  sourceIds: string[]
  rules: { event?: string; mode: string }[]
}

test('a plan is learned, a rule put in quarantine, and a message that violates it released', async () => {
  const { service, receivers } = scene
  await using tab = await browser.open(service)
  const { page } = tab
  await tab.visit('/plans')
  await page.getByRole('link', { name: 'Learn a plan' }).click()
  await page.getByRole('button', { name: 'Learn', exact: true }).click()
  await page.getByRole('heading', { name: 'Found 6 events in 60 messages' }).waitFor()
  await page.getByRole('button', { name: /Order Completed/ }).click()
  const properties = page.getByRole('region', { name: 'Properties of the rule' })
  await properties.getByRole('row').filter({ hasText: 'total' }).getByText('number').waitFor()
  await page.getByRole('button', { name: 'Save plan' }).click()

  await page.getByRole('heading', { level: 1, name: 'Web shop' }).waitFor()
  await page.getByLabel('Mode of Order Completed').selectOption('quarantine')
  await page.getByText('Order Completed is now in mode quarantine.').waitFor()
  const plan = (await service.api<{ data: Plan[] }>('/plans')).data[0] as Plan
  assert.deepEqual(plan.sourceIds, [service.sourceId])
  assert.equal(plan.rules.find(({ event }) => event === 'Order Completed')?.mode, 'quarantine')

  const wrong = {
    userId: 'u-1',
    event: 'Order Completed',
    messageId: 'wrong-order',
    properties: { orderId: 'o-1', total: '19.90', currency: 'EUR' },
  }
  await service.post('/v1/track', JSON.stringify(wrong), { 'content-type': 'application/json' })
  await page.getByRole('tab', { name: 'Violations' }).click()
  await page.getByText('properties.total: expected a number, found a string.').waitFor()
  await page.getByRole('link', { name: 'wrong-order' }).click()

  await page.getByRole('alert').filter({ hasText: 'This message is in quarantine' }).waitFor()
  assert.equal(receivers.warehouse.byMessageId.has('wrong-order'), false)
  await tab.visit('/')
  await page
    .getByText('1 message of the source "Web shop" is in quarantine: stored, but not sent to any destination. Release or delete it.')
    .first()
    .waitFor()
  await page
    .getByRole('link', { name: /^View quarantine/ })
    .first()
    .click()
  await page.getByText('wrong-order').waitFor()
  await page.getByLabel('Select wrong-order').check()
  await page.getByRole('button', { name: 'Release 1 message' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Release', exact: true }).click()
  await page.getByRole('heading', { name: 'No messages match the filters' }).waitFor()
  await receivers.warehouse.until(() => receivers.warehouse.byMessageId.has('wrong-order'))
  tab.check()
})

test('an error of the API is shown at the line of the plan, on a phone too', async () => {
  const plan = (await scene.service.api<{ data: Plan[] }>('/plans')).data[0] as Plan
  await using tab = await browser.open(scene.service, { width: NARROW, theme: 'dark' })
  const { page } = tab
  tab.expected.push(/status of 400/)
  await tab.visit(`/plans/${plan.id}?tab=edit`)
  const editor = page.getByRole('textbox', { name: 'The plan as YAML or JSON' })
  // In the schema of the last rule, which ends the text. A new line starts below the one before.
  await editor.click()
  await page.keyboard.press('ControlOrMeta+End')
  await page.keyboard.press('Backspace')
  await page.keyboard.press('Enter')
  await page.keyboard.type('minProperties: none')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page
    .getByRole('alert')
    .getByText(/^Line [1-9]\d+: .*rules\[5\]\.schema/)
    .waitFor()
  assert.deepEqual(await tab.overflowing(), [])
  assert.deepEqual(await tab.accessibility(), [])
  await editor.click()
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.insertText('{ "name": "Shop", "rules": [{ "type": "page", "schema": {} }] }')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText(`Saved as version ${plan.version + 1}.`).waitFor()
  const saved = await scene.service.api<Plan>(`/plans/${plan.id}`)
  assert.deepEqual([saved.sourceIds, saved.rules.length], [plan.sourceIds, 1])
  tab.check()
})
