// User journeys through the dashboard, with clicks only, against a real service and real receivers: the first run, a receiver that fails
// and is fixed, and pausing a destination. The live feed with thousands of messages is tested in live.test.ts.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, suite, test } from 'node:test'
import { promisify } from 'node:util'
import { IS_LONG } from '../system/long-tests.ts'
import { startReceiver } from '../system/receiver.ts'
import { NARROW, startBrowser, type TestBrowser } from './browser.ts'
import { end, shopTraffic, startScene } from './scene.ts'

let browser: TestBrowser

before(async () => {
  browser = await startBrowser()
})
after(() => end(browser))

suite('journeys', { concurrency: 2 }, () => {
  // All steps in one go, as a new user would do them. Single steps are tested in first-run.test.ts.
  test('first run: from the printed token to a message that arrives', {
    skip: !IS_LONG && 'a long test',
  }, async () => {
    await using scene = await startScene({ empty: true, token: null })
    const { service } = scene
    await using receiver = await startReceiver()
    await using tab = await browser.open(service, { token: null })
    const { page } = tab

    // The token that the service printed.
    const [, token = ''] = /Admin token +(\S+)/.exec(service.stdout()) ?? []
    await page.goto(service.url)
    await page.getByLabel('Control token').fill(token)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page
      .getByRole('link', { name: /get started|send|first message/i })
      .first()
      .click()
    await page.getByRole('heading', { level: 1, name: 'Get started' }).waitFor()

    // The snippet contains the write key and works as is.
    await page.getByText('Waiting for the first message').waitFor()
    const snippet = await page
      .locator('main pre, main code')
      .filter({ hasText: /^curl / })
      .first()
      .innerText()
    assert.ok(snippet.includes(service.writeKey), snippet)
    await promisify(execFile)('sh', ['-c', snippet])
    await page.getByText('Message received and stored').waitFor()

    await page.getByRole('button', { name: 'Next: add a destination' }).click()
    await page.getByRole('textbox', { name: 'URL' }).fill('not an address')
    await page.getByRole('button', { name: 'Add webhook' }).click()
    assert.equal(await page.getByRole('textbox', { name: 'URL' }).getAttribute('aria-invalid'), 'true')
    await page.getByRole('textbox', { name: 'URL' }).fill(`${receiver.url}hooks`)
    await page.getByRole('button', { name: 'Add webhook' }).click()
    await page.getByRole('button', { name: 'Send test' }).click()
    await page.getByText('Test delivered', { exact: true }).waitFor()
    assert.equal(receiver.arrivals.length, 1)

    await page.getByRole('button', { name: 'Next: see a message arrive' }).click()
    await page.getByRole('button', { name: 'Send a message from this page' }).click()
    await page.getByRole('heading', { name: /^Delivered/ }).waitFor()
    await receiver.until(() => receiver.arrivals.length === 2)
    await page.getByText('Your first message was delivered').waitFor()
    tab.check()
  })

  test('a failing receiver is found and diagnosed on a phone, and its deliveries are replayed after it is fixed', async () => {
    await using scene = await startScene({ empty: true })
    const { service } = scene
    const body = '{"error":"unknown field: total"}'
    await using receiver = await startReceiver(() => ({ status: 400, headers: { 'content-type': 'application/json' }, body }))
    await service.destination({ name: 'Loyalty programme', urls: [receiver.url] })
    await shopTraffic(service, 40)
    await service.settled(40)
    await using tab = await browser.open(service, { width: NARROW })
    const { page } = tab

    // The overview lists it first and links to the failed deliveries.
    await tab.visit('/')
    const attention = page.getByRole('region', { name: 'Needs attention' }).or(page.locator('section[aria-labelledby="attention"]')).first()
    await attention.getByText('Loyalty programme').first().waitFor()
    await attention
      .getByRole('link', { name: /View failed deliveries/ })
      .first()
      .click()

    // The deliveries page shows the cause; one delivery shows its attempt and the receiver's response.
    await page.getByRole('heading', { level: 1, name: 'Deliveries' }).waitFor()
    await tab.settled()
    assert.match(await page.locator('main').innerText(), /400/)
    const list = page.getByRole('radiogroup', { name: 'View' }).getByText('List', { exact: true })
    if ((await list.count()) > 0) await list.click()
    await page.locator('main a[href^="/deliveries/"]').first().click()
    await page.getByRole('heading', { level: 1, name: 'Delivery to Loyalty programme' }).waitFor()
    await tab.settled()
    assert.ok((await page.locator('main').innerText()).includes('unknown field: total'), await page.locator('main').innerText())

    // After the fix, one delivery is replayed alone, then the others as a job.
    receiver.answer = () => undefined
    await page.getByRole('button', { name: /^Replay to Loyalty programme/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Replay', exact: true }).click()
    await page.locator('main').getByText('delivered', { exact: false }).first().waitFor()
    await receiver.until(() => receiver.arrivals.some(({ status }) => status === 200))

    await tab.visit('/deliveries?state=failed')
    await page.getByRole('button', { name: 'Replay all matches' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('No rate limit').click()
    await dialog.getByRole('button', { name: 'Replay 39' }).click()
    await page.waitForURL(/\/replays\/rpl_/)
    await receiver.until(() => receiver.arrivals.filter(({ status }) => status === 200).length === 40)
    await page
      .locator('main')
      .getByText(/finished/i)
      .first()
      .waitFor()
    const [row] = await service.settled()
    assert.deepEqual([row?.failed, row?.delivered], [40, 40])
    tab.check()
  })

  test('pausing a destination loses no message, disabling it skips messages, and both dialogs say so', async () => {
    await using scene = await startScene({ empty: true })
    const { service } = scene
    await using receiver = await startReceiver()
    const id = await service.destination({ name: 'Warehouse', urls: [receiver.url] })
    await using tab = await browser.open(service)
    const { page } = tab
    const button = (name: string) => page.locator('main').getByRole('button', { name, exact: true })
    const dialog = page.getByRole('dialog')
    await tab.visit(`/destinations/${id}`)

    await button('Pause').click()
    await dialog.getByText('New messages are queued and sent when you resume it.').waitFor()
    await dialog.getByRole('button', { name: 'Pause' }).click()
    await button('Resume').waitFor()
    await shopTraffic(service, 10)
    await tab.visit(`/destinations/${id}`)
    await page.getByText('held while paused').first().waitFor()
    await tab.visit('/')
    await page.getByText('Paused: 10 deliveries pending. Resume the destination to send them.').waitFor()
    assert.equal(receiver.arrivals.length, 0)
    await tab.visit(`/destinations/${id}`)
    await button('Resume').click()
    await page.getByText('Warehouse was resumed. Pending deliveries are being sent.').waitFor()
    await receiver.until(() => receiver.arrivals.length === 10)

    await button('Disable').click()
    await dialog.getByText(/New messages skip it\..* not sent to it later\./).waitFor()
    await dialog.getByRole('button', { name: 'Disable' }).click()
    await button('Enable').waitFor()
    await shopTraffic(service, 5)
    await button('Enable').click()
    await page.getByText('Warehouse was enabled. Pending deliveries are being sent.').waitFor()
    await button('Disable').waitFor()
    const [row] = await service.settled()
    assert.deepEqual([row?.owed, row?.delivered], [10, 10])
    assert.equal(receiver.arrivals.length, 10)
    tab.check()
  })
})
