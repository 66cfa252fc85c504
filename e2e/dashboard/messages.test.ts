// The page of messages: outcomes in the list, the search with suggestions, saved views and columns.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { NARROW, startBrowser, type Tab, type TestBrowser, WIDE } from './browser.ts'
import { end, type Scene, startScene } from './scene.ts'

let browser: TestBrowser
let scene: Scene

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true })])
  const { service, receivers } = scene
  await service.destination({ name: 'Works', urls: [receivers.warehouse.url] })
  await service.destination({ name: 'Refuses', urls: [receivers.refusing.url] })
  const batch = [
    { type: 'track', messageId: 'm-1', userId: 'ann-lee', event: 'Order Completed', properties: { plan: 'professional', total: 7 } },
    { type: 'track', messageId: 'm-2', userId: 'bob', event: 'Product Viewed', properties: { plan: 'free' } },
    { type: 'identify', messageId: 'm-3', userId: 'cyd', traits: { email: 'cyd@example.com' } },
  ]
  assert.equal((await service.send(batch)).status, 200)
  await service.settled(6)
})
after(() => end(browser, scene))

const names = (tab: Tab): Promise<string[]> =>
  tab.page.evaluate(`[...document.querySelectorAll('[aria-label="Messages, newest first"] [role=listitem]')].map((row) => row.innerText)`)

suite('messages', () => {
  test('each row shows the outcomes, what failed first', async () => {
    await using tab = await browser.open(scene.service)
    await tab.visit('/messages')
    const rows = tab.page.getByRole('list', { name: 'Messages, newest first' }).getByRole('listitem')
    assert.equal(await rows.count(), 3)
    const first = rows.first()
    await first.getByText('failed: Refuses').waitFor()
    assert.deepEqual(
      await first
        .locator('[data-state]')
        .evaluateAll((dots) => dots.map((dot) => (dot as unknown as { dataset: { state: string } }).dataset.state)),
      ['failed', 'delivered'],
    )
    for (const width of [WIDE, NARROW]) {
      for (const theme of ['light', 'dark'] as const) {
        await tab.look(width, theme)
        assert.deepEqual(await tab.overflowing(), [], `${width} ${theme}`)
        assert.deepEqual(await tab.accessibility(), [], `${width} ${theme}`)
      }
    }
    tab.check()
  })

  test('a search finds parts of names, and suggests events, users and properties', async () => {
    await using tab = await browser.open(scene.service)
    const { page } = tab
    await tab.visit('/messages')
    const box = page.getByPlaceholder(/^Part of a user/)
    await box.fill('order')
    await page.getByRole('option', { name: 'Order Completed' }).click()
    await page.waitForURL(/[?&]event=Order(\+|%20)Completed/)
    await page.getByRole('status').filter({ hasText: '1 message' }).waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()

    await box.fill('LEE')
    await box.press('Enter')
    await page.waitForURL(/[?&]search=LEE/)
    await page.getByRole('status').filter({ hasText: '1 message' }).waitFor()
    assert.match((await names(tab)).join(), /ann-lee/)

    await box.fill('plan')
    await page.getByRole('option', { name: 'properties.plan' }).click()
    assert.equal(await box.inputValue(), 'properties.plan=')
    await box.pressSequentially('prof')
    await page.getByRole('option', { name: 'properties.plan=professional' }).click()
    await page.waitForURL(/[?&]property=properties.plan%3Dprofessional/)
    await page.getByRole('status').filter({ hasText: '1 message' }).waitFor()

    await box.fill('nothing like this')
    await box.press('Enter')
    await page.getByText('No messages match the filters').waitFor()
    tab.check()
  })

  test('columns are chosen, and a view with filters and columns is saved by name', async () => {
    await using tab = await browser.open(scene.service)
    const { page } = tab
    await tab.visit('/messages?type=track')
    await page.getByRole('button', { name: 'Columns' }).click()
    const menu = page.getByRole('dialog', { name: 'Columns' })
    await menu.getByLabel('Source').uncheck()
    await menu.getByLabel('messageId').check()
    await menu.getByLabel('Property').fill('plan')
    await menu.getByRole('button', { name: 'Add' }).click()
    await page.waitForURL(/columns=[^&]*properties\.plan/)
    await page.keyboard.press('Escape')
    await page.getByRole('list').getByText('professional').first().waitFor()
    assert.match((await names(tab)).join('\n'), /m-1[^]*professional/)

    await page.getByRole('button', { name: 'Saved views' }).click()
    const views = page.getByRole('dialog', { name: 'Saved views' })
    await views.getByLabel('Name').fill('Plans')
    await views.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'View: Plans' }).waitFor()

    // The view is in this browser, the columns are remembered, and the address is enough to show the same.
    const address = new URL(page.url())
    await tab.visit('/messages')
    await page.getByRole('button', { name: 'Saved views' }).click()
    await page.getByRole('dialog', { name: 'Saved views' }).getByRole('link', { name: 'Plans' }).click()
    await page.waitForURL(/type=track/)
    assert.equal(new URL(page.url()).searchParams.get('columns'), address.searchParams.get('columns'))
    await page.getByRole('list').getByText('professional').first().waitFor()
    tab.check()
  })
})
