// Dialogs that ask before messages are sent twice (a replay of messages that were replayed before, a second destination with the same URL), and the
// pages that show warnings of a source and why deliveries are pending.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { track } from '../system/service.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import { end, startScene } from './scene.ts'

let browser: TestBrowser

before(async () => {
  browser = await startBrowser()
})
after(() => end(browser))

test('messages that were replayed before are sent again only on demand, and so is a second destination created', async () => {
  await using scene = await startScene({ empty: true })
  const { service } = scene
  await using receiver = await startReceiver(() => ({ status: 400 }))
  const id = await service.destination({ name: 'Warehouse', urls: [receiver.url] })
  await service.send([track('m-1'), track('m-2')])
  await service.settled(2)
  receiver.answer = () => undefined
  await service.api('/replays', { method: 'POST', body: { destinationId: id, states: ['failed'] } })
  await service.settled(4)
  await using tab = await browser.open(service)
  const { page } = tab
  const dialog = page.getByRole('dialog')

  await tab.visit('/deliveries?state=failed&view=list')
  await page.getByRole('button', { name: /^Replay all/ }).click()
  const again = dialog.getByLabel('Also send messages that were replayed before')
  await again.waitFor()
  assert.equal(await dialog.getByRole('button', { name: /^Replay/ }).count(), 0, 'nothing else is left to replay')
  await again.check()
  await dialog.getByRole('button', { name: /^Replay/ }).click()
  await page.waitForURL(/\/replays\/rpl_/)
  await service.settled(6)
  assert.deepEqual([receiver.byMessageId.get('m-1')?.length, receiver.byMessageId.get('m-2')?.length], [3, 3])

  const countOf = async (): Promise<number> => (await service.api<{ data: unknown[] }>('/destinations')).data.length
  await tab.visit('/destinations/new')
  tab.expected.push(/409/)
  await page.getByLabel('Name', { exact: false }).first().fill('Warehouse')
  await page.getByRole('textbox', { name: /^URL/ }).fill(receiver.url)
  const create = page.getByRole('button', { name: /^(Add|Create)/ }).last()
  await create.click()
  await dialog.getByText('Create a second destination?').waitFor()
  await dialog.getByText(/^The destination dst_\w+ already has this name and the same URL, .* would be sent twice\.$/).waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'hidden' })
  assert.equal(await countOf(), 1)
  await create.click()
  await dialog.getByRole('button', { name: 'Create anyway' }).click()
  await page.waitForURL(/\/destinations\/dst_/)
  assert.equal(await countOf(), 2)
  tab.check()
})

test('a source shows its warnings, and pending deliveries show why their last attempt failed', async () => {
  await using scene = await startScene({ empty: true })
  const { service } = scene
  await service.destination({ name: 'Down', urls: [scene.receivers.dead.url] })
  await service.send([{ ...track('m-1'), timestamp: 'yesterday' }])
  await using tab = await browser.open(service)
  const { page } = tab
  await tab.visit(`/sources/${service.sourceId}`)
  const warnings = page.getByRole('list', { name: 'Accepted with a warning' })
  await warnings.getByText('timestamp_invalid').waitFor()
  await warnings.getByText('1 message', { exact: true }).waitFor()
  await tab.visit('/deliveries?state=pending&view=list')
  await page.getByRole('table', { name: 'Deliveries' }).getByText('The receiver refused the connection.').waitFor()
  await page.getByRole('link', { name: 'Tested' }).first().click()
  await page
    .getByRole('status', { name: 'State of the delivery' })
    .getByText('Last attempt: The receiver refused the connection.')
    .waitFor()
  tab.check()
})
