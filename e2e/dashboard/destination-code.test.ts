// What a destination sends, edited in the dashboard against a real service and real receivers: the transformation and the request with their
// preview, errors at their line, versions, and the retry policy with its picture. By mouse, by keyboard, and on a phone.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { IS_LONG } from '../system/long-tests.ts'
import { startReceiver } from '../system/receiver.ts'
import type { Service } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { NARROW, startBrowser, type Tab, type TabOptions, type TestBrowser, type Theme, WIDE } from './browser.ts'
import { end, type Scene, shopTraffic, startScene } from './scene.ts'

let browser: TestBrowser
let scene: Scene

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true })])
})
after(() => end(browser, scene))

const CODE =
  'export default function (message) {\nif (message.event === "Product Viewed") return null\nreturn { who: message.userId, what: message.type }\n}'

/**
 * Pastes into an editor, because the page is rendered for every key that is typed. The test of the keyboard types. The preview of invalid code is
 * answered with 400, which the browser logs.
 */
async function write(tab: Tab, name: 'Code' | 'Mapping', text: string): Promise<void> {
  const editor = tab.page.getByRole('textbox', { name, exact: true })
  await editor.click()
  await tab.page.keyboard.press('ControlOrMeta+a')
  await tab.page.keyboard.press('Delete')
  await tab.page.keyboard.insertText(text)
}

const bodies = ({ arrivals }: { arrivals: readonly { bytes: Buffer }[] }): string[] => arrivals.map(({ bytes }) => String(bytes))

const region = (tab: Tab, name: string) => tab.page.getByRole('region', { name, exact: true })

/**
 * The browser logs refused previews: 400 while the code is invalid, and 429 while the previews of the other test and those of earlier text still
 * run, which takes longer on a busy machine. The page asks again.
 */
async function openTab(service: Service, options?: TabOptions): Promise<Tab> {
  const tab = await browser.open(service, options)
  tab.expected.push(/status of (400|429)/)
  return tab
}

/** Twelve messages: two of each kind of the shop. The tests share a source, so the messages of others arrive, too. */
async function destinationWithMessages(
  service: Service,
  name: string,
): Promise<{ id: string; receiver: Awaited<ReturnType<typeof startReceiver>> }> {
  const receiver = await startReceiver()
  const id = await service.destination({ name, urls: [receiver.url] })
  await shopTraffic(service, 12)
  await receiver.until(() => receiver.arrivals.length >= 12)
  return { id, receiver }
}

suite('what a destination sends', { concurrency: 2 }, () => {
  test('a transformation is previewed while it is edited, saved after its effect is said, and restored', async () => {
    const { service } = scene
    const { id, receiver } = await destinationWithMessages(service, 'Transformed')
    await using _ = receiver
    await using tab = await openTab(service)
    const { page } = tab
    await tab.visit(`/destinations/${id}?tab=transformation`)
    await page.getByRole('button', { name: 'Add a transformation' }).click()
    await page.getByText(/^Of the last \d+ messages: \d+ sent\./).waitFor()

    await write(tab, 'Code', CODE)
    await page.getByText(/\d+ sent, \d+ dropped\. This is a preview: nothing leaves the service\.$/).waitFor()
    await page
      .getByRole('button', { name: /^track: Product Viewed .* dropped$/ })
      .first()
      .click()
    await region(tab, 'After').getByText('The transformation returns null').waitFor()
    await page
      .getByRole('button', { name: /^track: Order Completed .* sent$/ })
      .first()
      .click()
    await region(tab, 'Before').getByText('"orderId"').waitFor()
    await region(tab, 'After').getByText('"who"').waitFor()

    await page.getByRole('button', { name: 'Save', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(/^\d+ of the last \d+ messages would be dropped \(now: 0\)\.$/).waitFor()
    await dialog.getByText(/^\d+ of the last \d+ messages would be sent differently\.$/).waitFor()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved as version 2.').waitFor()
    await service.send([{ type: 'track', event: 'Order Completed', userId: `user of ${id}`, messageId: `after-${id}` }])
    await receiver.until(() => bodies(receiver).includes(`{"who":"user of ${id}","what":"track"}`))

    await page.getByRole('button', { name: 'Restore version 1' }).click()
    await page.getByText('Version 1 was restored as version 3.').waitFor()
    await page.getByText('No transformation').waitFor()
    await service.send([{ type: 'track', event: 'Order Completed', userId: 'u-9', messageId: `restored-${id}` }])
    await receiver.until(() => receiver.byMessageId.has(`restored-${id}`))
    tab.check()
  })

  test('a syntax error and an error of the preview are shown at their line, and the page says since which version the code fails', async () => {
    const { service } = scene
    const { id, receiver } = await destinationWithMessages(service, 'Faulty')
    await using _ = receiver
    await using tab = await openTab(service)
    const { page } = tab
    await tab.visit(`/destinations/${id}?tab=transformation`)
    await page.getByRole('button', { name: 'Add a transformation' }).click()

    await write(tab, 'Code', 'export default function (message) {\nreturn message\nconst = 1\n}')
    await page
      .getByRole('alert')
      .filter({ hasText: /line 3/i })
      .waitFor()
    await marked(tab, ['3'])
    const save = page.getByRole('button', { name: 'Save', exact: true })
    await eventually(() => save.isDisabled(), Boolean, { what: 'it cannot be saved' })

    await write(tab, 'Code', 'export default function (message) {\n\nreturn { total: message.properties.total.toFixed(2) }\n}')
    await page
      .getByRole('alert')
      .filter({ hasText: /line 3.*messages? fail/i })
      .first()
      .waitFor()
    await marked(tab, ['3'])
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page
      .getByRole('dialog')
      .getByText(/\d+ of the last \d+ messages would fail \(now: 0\)\./)
      .waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved as version 2.').waitFor()
    await service.send([{ type: 'identify', userId: 'u-9', messageId: `faulty-${id}` }])
    await eventually(
      () => service.deliveries(`destinationId=${id}&state=failed`),
      (rows) => rows.some(({ messageId }) => messageId === `faulty-${id}`),
      { what: 'the failed delivery' },
    )
    await tab.visit(`/destinations/${id}`)
    const banner = page.getByRole('status').filter({ hasText: 'The transformation fails since version 2' })
    await banner.getByText(/line 3/i).waitFor()
    await banner.getByRole('link', { name: 'View failed deliveries' }).click()
    await page.getByRole('heading', { level: 1, name: 'Deliveries' }).waitFor()
    await tab.settled()
    assert.match(await page.locator('main').innerText(), /transformation/i)
    tab.check()
  })

  test('a request with another method, path and mapping arrives in that shape', async () => {
    const { service } = scene
    const { id, receiver } = await destinationWithMessages(service, 'Shaped')
    await using _ = receiver
    await using tab = await openTab(service, { width: NARROW })
    const { page } = tab
    await tab.visit(`/destinations/${id}?tab=request`)
    await page.getByRole('button', { name: 'Customize the request' }).click()
    await page
      .getByRole('combobox', { name: 'Method' })
      .or(page.getByRole('textbox', { name: 'Method' }))
      .first()
      .click()
    await page.getByRole('option', { name: 'PUT' }).click()
    await page.getByRole('textbox', { name: 'Path' }).fill('/users/{{userId}}')
    await page.getByText('A mapping', { exact: true }).click()
    await write(tab, 'Mapping', '{ "id": { "@path": "$.userId" } }')
    await page
      .getByRole('button', { name: /^identify .* sent$/ })
      .first()
      .click()
    await region(tab, 'After')
      .getByText(/PUT .*\/users\/u-\d+/)
      .waitFor()

    await write(tab, 'Mapping', '{\n"id": oops\n}')
    await page.getByRole('alert').filter({ hasText: 'Line 2: Not valid JSON: expected a value.' }).waitFor()
    await write(tab, 'Mapping', '{\n"id": { "@path": "$.userId" }\n}')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page
      .getByRole('dialog')
      .getByText(/would be sent differently/)
      .waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved as version 2.').waitFor()
    await service.send([{ type: 'identify', userId: 'a/b', messageId: `shaped-${id}` }])
    await receiver.until(() => receiver.arrivals.some(({ path }) => path === '/users/a%2Fb'))
    const arrival = receiver.arrivals.find(({ path }) => path === '/users/a%2Fb')
    assert.deepEqual([arrival?.method, String(arrival?.bytes)], ['PUT', '{"id":"a/b"}'])
    assert.deepEqual(await tab.overflowing(), [])
    tab.check()
  })

  test('by keyboard alone: into the editor, out with Escape and Tab, and saved', async () => {
    const { service } = scene
    const { id, receiver } = await destinationWithMessages(service, 'Typed')
    await using _ = receiver
    await using tab = await openTab(service)
    const { page } = tab
    await tab.visit(`/destinations/${id}`)
    await page.getByRole('tab', { name: 'Health' }).focus()
    for (let at = 0; at < 3; at++) await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Add a transformation' }).waitFor()
    await focusByTab(tab, 'Add a transformation')
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'Code' }).waitFor()
    await focusByTab(tab, 'Code')
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.press('Delete')
    await page.keyboard.type('export default function (message) {\n')
    await page.keyboard.press('Tab')
    await page.keyboard.type('return { who: message.userId }')
    assert.equal(await page.evaluate('document.activeElement.getAttribute("aria-label")'), 'Code', 'Tab indents')
    await page.getByText('To leave the editor by keyboard', { exact: false }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Tab')
    assert.notEqual(await page.evaluate('document.activeElement.getAttribute("aria-label")'), 'Code', 'Escape and Tab leave')
    await page.getByText(/^Of the last \d+ messages: \d+ sent\./).waitFor()
    await tab.settled()
    await focusByTab(tab, 'Save')
    await page.keyboard.press('Enter')
    await page
      .getByRole('dialog')
      .getByText(/would be sent differently/)
      .waitFor()
    await focusByTab(tab, 'Save')
    await page.keyboard.press('Enter')
    await page.getByText('Saved as version 2.').waitFor()
    tab.check()
  })

  test('the picture of the retries follows what is typed, and the policy and the dead-letter destination are saved', async () => {
    const { service } = scene
    await using receiver = await startReceiver()
    const id = await service.destination({ name: 'Retried', urls: [receiver.url] })
    const other = await service.destination({ name: 'Lost and found', urls: [receiver.url], sourceIds: [] })
    await using tab = await openTab(service)
    const { page } = tab
    await tab.visit(`/destinations/${id}?tab=settings`)
    await page.getByRole('button', { name: /^Retries/ }).click()
    await page.getByText('Up to 31 attempts: the first at once, then after 5 s, 10 s, 20 s …').waitFor()
    assert.equal(await page.locator('svg[data-attempts]').getAttribute('data-attempts'), '31')
    await page.getByRole('textbox', { name: 'Retry window' }).fill('1 min')
    await page.getByText('Up to 5 attempts', { exact: false }).waitFor()
    assert.equal(await page.locator('svg[data-attempts] circle').count(), 5)
    await page.getByRole('textbox', { name: 'First wait' }).fill('soon')
    await page.getByText('Correct the values above').waitFor()
    await page.getByRole('textbox', { name: 'First wait' }).fill('10 s')
    await page.getByRole('combobox', { name: 'Also retry these statuses' }).fill('409')
    await page.keyboard.press('Enter')
    await page.getByRole('combobox', { name: 'Dead-letter destination' }).click()
    await page.getByRole('option', { name: 'Lost and found' }).click()
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('Saved.', { exact: true }).waitFor()
    const saved = await service.api<{ retry: object; deadLetter: string }>(`/destinations/${id}`)
    assert.deepEqual(saved.retry, {
      windowMs: 60_000,
      initialMs: 10_000,
      maxMs: 600_000,
      factor: 2,
      retryStatuses: [409],
      failStatuses: [],
    })
    assert.equal(saved.deadLetter, other)
    tab.check()
  })

  test('an expression is checked while it is typed, with the place of its error; secrets are write-only', async () => {
    const { service } = scene
    await using receiver = await startReceiver()
    const id = await service.destination({
      name: 'Choosy',
      urls: [receiver.url],
      auth: { type: 'basic', username: 'me', password: 'first' },
    })
    await using tab = await openTab(service)
    const { page } = tab
    await tab.visit(`/destinations/${id}?tab=settings`)
    const expression = page.getByRole('textbox', { name: 'Expression' })
    await expression.fill('type = "track" and and')
    await page.getByText(/column 20/).waitFor()
    await page.locator('mark').getByText('and', { exact: true }).waitFor()
    await expression.fill('type = "track" and properties.total > 100')
    await page.getByText(/column 20/).waitFor({ state: 'detached' })
    const password = page.getByLabel('Password', { exact: true })
    assert.deepEqual([await password.inputValue(), await password.getAttribute('placeholder')], ['', 'set; leave empty to keep it'])
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('Saved.', { exact: true }).waitFor()
    const { subscribe } = await service.api<{ subscribe: string }>(`/destinations/${id}`)
    assert.equal(subscribe, 'type = "track" and properties.total > 100')
    await service.send([
      { type: 'track', event: 'Small', userId: 'u', properties: { total: 1 }, messageId: `small-${id}` },
      { type: 'track', event: 'Large', userId: 'u', properties: { total: 200 }, messageId: `large-${id}` },
    ])
    await receiver.until(() => receiver.byMessageId.has(`large-${id}`))
    const [arrival] = receiver.arrivals
    assert.equal(receiver.byMessageId.has(`small-${id}`), false)
    assert.equal(arrival?.headers['authorization'], `Basic ${Buffer.from('me:first').toString('base64')}`, 'the password was kept')
    await tab.visit(`/messages/small-${id}`)
    await page.getByText('type = "track" and properties.total > 100', { exact: false }).first().waitFor()
    tab.check()
  })
})

test('every tab fits at both widths and in both themes, without serious findings of axe-core', async (t) => {
  const { service } = scene
  const { id, receiver } = await destinationWithMessages(service, 'Looked at')
  await using _ = receiver
  const body = {
    request: {
      method: 'PUT',
      path: '/users/{{userId}}',
      headers: { 'X-Tenant': '{{context.tenant}}' },
      body: { id: { '@path': '$.userId' } },
    },
    transformation: { code: CODE },
    auth: { type: 'oauth2', tokenUrl: 'http://127.0.0.1:9/token', clientId: 'x', clientSecret: 'y' },
    retry: { initialMs: 1_000 },
  }
  await service.api(`/destinations/${id}`, { method: 'PATCH', body })
  await using tab = await openTab(service)
  const all: [number, Theme][] = [
    [WIDE, 'light'],
    [NARROW, 'dark'],
    [NARROW, 'light'],
    [WIDE, 'dark'],
  ]
  const looks = IS_LONG ? all : all.slice(0, 2)
  for (const [tabAt, name] of ['request', 'transformation', 'settings'].entries()) {
    await t.test(name, async () => {
      await tab.go(`/destinations/${id}?tab=${name}`)
      for (const [at, [width, theme]] of looks.entries()) {
        await tab.look(width, theme)
        assert.deepEqual(await tab.overflowing(), [], `${width} ${theme}`)
        if (IS_LONG || at === tabAt % 2) assert.deepEqual(await tab.accessibility(), [], `${width} ${theme}`)
      }
      tab.check()
    })
  }
})

test('the editor is loaded only where it is shown', async () => {
  await using tab = await browser.open(scene.service)
  const id = await scene.service.destination({ name: 'Plain', urls: ['http://127.0.0.1:9/'] })
  await tab.visit(`/destinations/${id}`)
  await tab.go(`/destinations/${id}?tab=transformation`)
  const isEditor = (address: string): boolean => /\/assets\/code-mirror-/.test(address)
  assert.deepEqual(tab.requested.filter(isEditor), [])
  await tab.page.getByRole('button', { name: 'Add a transformation' }).click()
  await tab.page.getByRole('textbox', { name: 'Code' }).waitFor()
  assert.equal(tab.requested.filter(isEditor).length, 1)
  tab.check()
})

/** Waits until exactly these lines have the mark of an error: a mark of the text before stays until the preview of the new one is there. */
async function marked(tab: Tab, lines: string[]): Promise<void> {
  const markedLines = (): Promise<string[]> =>
    tab.page.evaluate<string[]>(`(() => {
      const numbers = [...document.querySelectorAll('.cm-lineNumbers .cm-gutterElement')].filter((each) => each.style.visibility !== 'hidden')
      return [...document.querySelectorAll('.cm-lint-marker-error')].map((mark) => {
        const { top } = mark.closest('.cm-gutterElement').getBoundingClientRect()
        return numbers.find((each) => Math.abs(each.getBoundingClientRect().top - top) < 2)?.textContent
      })
    })()`)
  await eventually(markedLines, (found) => String(found) === String(lines), { what: `errors at the lines ${String(lines)}` })
}

/** Presses Tab until the element with this name has the focus. */
async function focusByTab({ page }: Tab, name: string): Promise<void> {
  for (let at = 0; at < 60; at++) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate<string>(
      'document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim()',
    )
    if (focused === name) return
  }
  assert.fail(`${name} was not reached by Tab`)
}
