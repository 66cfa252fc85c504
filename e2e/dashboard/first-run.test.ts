// The first run in a real browser: a wrong write key is reported, the copied snippet sends the first message, a webhook is added and tested,
// and a real message is followed to its response. Then the write keys of a source are rotated, and the source is deleted.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, suite, test } from 'node:test'
import { promisify } from 'node:util'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { eventually } from '../system/signals.ts'
import { NARROW, startBrowser, type TestBrowser } from './browser.ts'
import { end, type Scene, startScene } from './scene.ts'

const run = promisify(execFile)

let browser: TestBrowser
let scene: Scene
let receiver: Receiver

before(async () => {
  ;[browser, scene, receiver] = await Promise.all([startBrowser(), startScene({ empty: true }), startReceiver()])
})
after(() => end(browser, scene, receiver))

suite('first run', { concurrency: 1 }, () => {
  test('from an empty installation to a delivered message, on a phone', async () => {
    await using tab = await browser.open(scene.service, { width: NARROW })
    const { page } = tab
    await tab.visit('/start')
    await page.getByText('Waiting for the first message').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('step'), 'send')

    await fetch(`${scene.service.url}/v1/track`, { method: 'POST', body: '{"writeKey":"wrong","userId":"u","event":"<b>x</b>"}' })
    const rejected = page.getByRole('list', { name: 'Rejected calls' })
    await rejected.getByText('invalid_write_key').waitFor()
    await rejected.getByText('<b>x</b>').waitFor()

    const lines = await page.getByRole('region', { name: 'code for curl' }).innerText()
    const { stdout } = await run('sh', ['-c', lines])
    assert.deepEqual(JSON.parse(stdout), { success: true })
    await page.getByText('Message received and stored').waitFor()
    await page.getByRole('button', { name: 'Send a message', exact: false }).getByText('done').waitFor()

    await page.getByRole('button', { name: 'Next: add a destination' }).click()
    await page.getByRole('link', { name: 'View all integrations' }).waitFor()
    const url = page.getByRole('textbox', { name: 'URL' })
    await url.fill('ftp://example.com')
    await page.getByText('Start the URL with https:// or http://.').waitFor()
    await url.fill(receiver.url)
    await page.getByRole('button', { name: 'Add webhook' }).click()
    await page.getByRole('button', { name: 'Send test' }).click()
    await page.getByText('Test delivered').waitFor()
    assert.equal(receiver.arrivals.length, 1)

    await page.getByRole('button', { name: 'Next: see a message arrive' }).click()
    await page.getByRole('button', { name: 'Send a message from this page' }).click()
    await page.getByText('Setup complete').waitFor()
    await page.getByText('Your first message was delivered').waitFor()
    assert.equal(receiver.arrivals.length, 2)
    assert.deepEqual(await tab.overflowing(), [])
    assert.deepEqual(await tab.accessibility(), [])
    await page.getByRole('link', { name: 'View timeline' }).click()
    await page.waitForURL(/\/messages\//)
    tab.check()
  })

  test('completed steps are shown as completed to another user', async () => {
    await using tab = await browser.open(scene.service)
    await tab.visit('/start')
    await tab.page.getByText('Your first message was delivered').waitFor()
    assert.equal(new URL(tab.page.url()).searchParams.get('step'), 'alerts')
  })

  test('a webhook for alerts is added and tested, and an incident is shown, explained and muted', async () => {
    const { service } = scene
    await using pager = await startReceiver()
    // So that one rejected call is an incident.
    const rules = { messages_rejected: { openAfterMinutes: 1, leastRejected: 1, rejectedPercent: 1 } }
    await service.api('/alerts', { method: 'PATCH', body: { rules } })
    await fetch(`${service.url}/v1/track`, { method: 'POST', body: JSON.stringify({ writeKey: service.writeKey, userId: 'u' }) })

    await using tab = await browser.open(service)
    const { page } = tab
    await tab.visit('/start?step=alerts')
    await page.getByRole('textbox', { name: 'A new webhook' }).fill(pager.url)
    await page.getByRole('button', { name: 'Add webhook' }).click()
    await page.getByRole('list', { name: 'Destinations that receive alerts' }).getByRole('link', { name: 'Alerts' }).waitFor()
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByRole('link', { name: 'View its delivery status' }).waitFor()
    await eventually(
      async () => pager.arrivals.length,
      (count) => count > 0,
    )

    await tab.visit('/alerts')
    await page.getByRole('link', { name: /^Messages Rejected: / }).click({ timeout: 180_000 })
    await page.getByRole('heading', { level: 1, name: /^Messages Rejected: / }).waitFor()
    await page.getByRole('link', { name: 'Show the message' }).waitFor()
    await page.getByRole('button', { name: 'Mute' }).click()
    await page.getByRole('dialog').getByRole('textbox', { name: 'Note' }).fill('known')
    await page.getByRole('dialog').getByRole('button', { name: 'Mute' }).press('Enter')
    await page.getByText('open, muted').waitFor()
    await tab.visit('/alerts?tab=mutes')
    await page.getByRole('row').filter({ hasText: 'Messages Rejected, source default' }).getByText('known').waitFor()
    for (const at of ['/alerts', '/alerts?tab=rules', '/alerts?tab=receivers']) {
      await tab.visit(at)
      await tab.settled()
      assert.deepEqual(await tab.overflowing(), [])
      assert.deepEqual(await tab.accessibility(), [])
    }
    tab.check()
  })

  test('a source is added, its keys are rotated, its rejected calls are explained, and it is deleted', async () => {
    await using tab = await browser.open(scene.service)
    const { page } = tab
    await tab.visit('/sources')
    await page.getByRole('button', { name: 'Add a source' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('<i>shop</i>')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: '<i>shop</i>' }).waitFor()
    const id = new URL(page.url()).pathname.split('/')[2] as string
    const source = () => scene.service.api<{ writeKeys: string[] }>(`/sources/${id}`)

    // With the keyboard, because parts of the page that are loaded later move the button.
    await page.getByRole('button', { name: 'Rotate key' }).press('Enter')
    await page.getByText('Key rotation in progress').waitFor()
    const [old, newest] = (await source()).writeKeys
    await page.getByRole('button', { name: 'Show write key 2' }).click()
    await page
      .getByRole('list', { name: 'Write keys' })
      .getByText(newest as string)
      .waitFor()
    await page.getByRole('button', { name: 'Remove write key 1' }).click()
    await page.getByRole('button', { name: 'Remove key' }).click()
    await eventually(source, ({ writeKeys }) => writeKeys.length === 1 && !writeKeys.includes(old as string), {
      what: 'the old key is removed',
    })

    await fetch(`${scene.service.url}/v1/track`, { method: 'POST', body: JSON.stringify({ writeKey: newest, userId: 'u' }) })
    await tab.visit(`/sources/${id}`)
    await page.getByText('A track call requires event, a non-empty string.').waitFor()

    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByLabel('Type <i>shop</i> to confirm').fill('<i>shop</i>')
    // Requests for the source during its deletion are answered with 404.
    tab.expected.push(/status of 404/)
    await page.getByRole('button', { name: 'Delete source' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Sources' }).waitFor()
    assert.equal(await page.getByText('<i>shop</i>', { exact: true }).count(), 0)
    tab.check()
  })
})
