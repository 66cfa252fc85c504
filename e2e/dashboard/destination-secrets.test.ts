// Secrets in the form of a destination: they are entered once, never shown, and asked for again if the URL points to another server.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import { end, startScene } from './scene.ts'

let browser: TestBrowser

before(async () => {
  browser = await startBrowser()
})
after(() => end(browser))

test('a secret is added, kept, and entered again for another server', async () => {
  await using scene = await startScene({ empty: true })
  const { service } = scene
  await using receiver = await startReceiver()
  await using other = await startReceiver()
  const id = await service.destination({ name: 'Pager', urls: [receiver.url], headers: { 'X-Team': 'data' } })
  await using tab = await browser.open(service)
  const { page } = tab
  const save = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('Unsaved changes.').waitFor({ state: 'detached' })
  }

  await tab.visit(`/destinations/${id}?tab=settings`)
  await page.getByRole('button', { name: /^Secrets/ }).click()
  await page.getByRole('button', { name: 'Add a secret' }).click()
  await page.getByLabel('Secret 1 name').fill('routingKey')
  await page.getByLabel('Secret 1 value').fill('the-secret-value')
  await save()
  const saved = await service.api<{ secrets: object }>(`/destinations/${id}`)
  assert.deepEqual(saved.secrets, { routingKey: '(hidden)' })

  const request = { body: { routing_key: { '@path': '$.secrets.routingKey' } } }
  await service.api(`/destinations/${id}`, { method: 'PATCH', body: { request } })
  await tab.visit(`/destinations/${id}?tab=settings`)
  assert.equal(await page.getByLabel('Secret 1 value').inputValue(), '')
  assert.ok(!(await page.content()).includes('the-secret-value'))

  await page.getByRole('textbox', { name: /^URL/ }).fill(other.url)
  await page.getByText('The URL points to another server.').waitFor()
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('Enter it again').waitFor()
  await page.getByLabel('Secret 1 value').fill('the-second-value')
  await save()
  await service.api(`/destinations/${id}/test`, { method: 'POST', body: {} })
  assert.deepEqual(
    [receiver.arrivals.length, other.arrivals[0]?.headers['x-team'], other.arrivals[0]?.bytes.toString()],
    [0, 'data', '{"routing_key":"the-second-value"}'],
  )
  tab.check()
})
