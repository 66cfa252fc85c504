// Ordered destinations in the dashboard: the setting in the form, with errors of the service at their field; the keys that wait, with the buttons to retry
// and to skip; and the number of messages without a key. In both widths and themes.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { eventually } from '../system/signals.ts'
import { wire } from '../system/wiring.ts'
import { LOOKS, startBrowser, type Tab, type TestBrowser, WIDE } from './browser.ts'
import { end, startScene } from './scene.ts'

let browser: TestBrowser

before(async () => {
  browser = await startBrowser()
})
after(() => end(browser))

const RETRY = { initialMs: 3_600_000, maxMs: 3_600_000, factor: 2 }

/** Looks at the current page in every width and theme. */
async function lookAt(tab: Tab, name: string): Promise<void> {
  const folder = process.env['SCREENSHOTS']
  for (const [width, theme] of LOOKS) {
    await tab.look(width, theme)
    assert.deepEqual(await tab.overflowing(), [], `${name} ${width} ${theme}`)
    if (folder !== undefined) await tab.page.screenshot({ path: `${folder}/${name}-${width}-${theme}.png`, fullPage: true })
  }
  assert.deepEqual(await tab.accessibility(), [], name)
  await tab.look(WIDE, 'light')
}

test('the order is set in the form, and an error of the service is shown at its field', async () => {
  await using scene = await startScene({ empty: true })
  const { service } = scene
  await using receiver = await startReceiver()
  const id = await service.destination({ name: 'CRM', urls: [receiver.url] })
  const saved = async () => (await service.api<{ order: object | null }>(`/destinations/${id}`)).order
  await using tab = await browser.open(service)
  // The browser logs the answer of the service to the wrong path.
  tab.expected.push(/status of 400/)
  const { page } = tab
  const save = () => page.getByRole('button', { name: 'Save changes' }).click()
  const isSaved = () => page.getByText('Unsaved changes.').waitFor({ state: 'detached' })
  const choose = async (label: string, option: string): Promise<void> => {
    await page.getByRole('combobox', { name: label }).click()
    await page.getByRole('option', { name: option }).click()
  }

  await tab.visit(`/destinations/${id}?tab=settings`)
  const section = page.getByRole('button', { name: /^Order/ })
  assert.match(await section.innerText(), /not ordered/)
  await section.click()
  await choose('Order', 'In order for each value of a field')
  await save()
  await page.getByText('Enter the path of a field, such as context.groupId.').waitFor()
  const field = page.getByRole('textbox', { name: /^Field/ })
  await field.fill('groups.id')
  await save()
  // The form does not know the fields of messages; the service does.
  await page.getByText(/^Must be user, source or the path of a field of a message/).waitFor()
  assert.equal(await field.getAttribute('aria-invalid'), 'true')
  await lookAt(tab, 'order-error')
  assert.equal(await saved(), null)

  await field.fill('context.groupId')
  await choose('When a message fails permanently or expires', 'Hold the later messages')
  const most = page.getByRole('textbox', { name: 'Waiting messages of one key' })
  await most.fill('99')
  await save()
  await page.getByText('Enter a whole number from 100 to 1,000,000.').waitFor()
  await most.fill('500')
  await save()
  await isSaved()
  assert.deepEqual(await saved(), { by: 'context.groupId', onFailure: 'hold', maxWaiting: 500 })

  await tab.visit(`/destinations/${id}?tab=settings`)
  assert.match(await section.innerText(), /by context\.groupId, held after a failure/)
  assert.equal(await field.inputValue(), 'context.groupId')
  await lookAt(tab, 'order-form')
  await choose('Order', 'Not ordered')
  await field.waitFor({ state: 'detached' })
  await save()
  await isSaved()
  assert.equal(await saved(), null)
  tab.check()
})

test('keys that wait are listed with what blocks them, and can be retried and skipped; messages without a key are counted', async () => {
  await using scene = await startScene({ empty: true })
  const { service } = scene
  await using receiver = await startReceiver(({ messages: [first] }) =>
    first?.['userId'] === 'ann' && first['event'] === 'First' ? { status: 500 } : undefined,
  )
  const wiring = await wire(service, { name: 'CRM', urls: [receiver.url], retry: RETRY, order: {} })
  const event = (messageId: string, userId: string, name: string) => ({ type: 'track', event: name, userId, messageId })
  await wiring.send([event('ann-1', 'ann', 'First'), event('bob-1', 'bob', 'First')])
  await wiring.attempted('ann-1', 1)
  await wiring.send([event('ann-2', 'ann', 'Second'), event('ann-3', 'ann', 'Third'), event('none-1', 'x'.repeat(1_025), 'First')])
  await eventually(
    () => service.api<{ waitingMessages: number; keylessMessages: number }>(`/destinations/${wiring.destinationId}/order`),
    ({ waitingMessages, keylessMessages }) => waitingMessages === 2 && keylessMessages === 1,
  )
  await using tab = await browser.open(service)
  const { page } = tab
  await tab.visit(`/destinations/${wiring.destinationId}`)
  await page.getByText('1 key waiting, 0 held, 2 messages behind them.').waitFor()
  await page.getByText('1 message without a key').waitFor()
  const row = page.getByRole('listitem').filter({ hasText: 'ann-1' })
  assert.match(await row.innerText(), /^ann\s+waiting\s+Since .*, 2 messages waiting for ann-1, 1 attempt\./is)
  await lookAt(tab, 'order-keys')

  await row.getByRole('button', { name: 'Retry now' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click()
  await wiring.attempted('ann-1', 2)
  await row.getByText(/2 attempts/).waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })

  await row.getByRole('button', { name: 'Skip' }).click()
  await page.getByText('Its delivery is cancelled and not sent any more, and the 2 messages behind it are sent in order.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Skip' }).click()
  await page.getByText('The message was skipped.').waitFor()
  const { state, reason } = await wiring.settled('ann-1')
  assert.deepEqual([state, reason], ['cancelled', 'skipped_by_operator'])
  assert.equal((await wiring.settled('ann-3')).state, 'delivered')
  await row.waitFor({ state: 'detached' })
  await page.getByText('1 message without a key').waitFor()
  await lookAt(tab, 'order-keyless')

  // The timeline of a message that waited says for which one.
  await wiring.send([event('ann-4', 'ann', 'First'), event('ann-5', 'ann', 'Last')])
  await wiring.attempted('ann-4', 1)
  await eventually(
    () => service.api<{ waitingMessages: number }>(`/destinations/${wiring.destinationId}/order`),
    ({ waitingMessages }) => waitingMessages === 1,
  )
  await tab.visit('/messages/ann-5')
  await page.getByText('Waits for the message "ann-4", which has the same key "ann" and must end first at "CRM".').first().waitFor()
  tab.check()
})
