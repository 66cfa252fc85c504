// Integrations in the dashboard, against a real service with the real catalogue: finding one, adding it with its settings and subscriptions,
// errors at their fields, secrets that are not shown again, and mappings with suggestions from real messages. By mouse, by keyboard, and on a phone.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Gateway, startGateway } from '../integrations/gateway/recording-gateway.ts'
import { IS_LONG } from '../system/long-tests.ts'
import type { Service } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { NARROW, startBrowser, type Tab, type TestBrowser, type Theme, WIDE } from './browser.ts'
import { end, type Scene, shopTraffic, startScene } from './scene.ts'

const LONG_FORMS = ['actions-kafka', 'actions-hubspot-cloud', 'actions-google-sheets']

let browser: TestBrowser
let gateway: Gateway
let scene: Scene

before(async () => {
  gateway = await startGateway()
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true, env: gateway.env })])
  await shopTraffic(scene.service, 12)
})
after(() => end(browser, scene, gateway))

interface Integration {
  type: string
  name: string
  integration: string
  settings: Record<string, unknown>
  secretSettings: string[]
  subscriptions: { name: string; action: string; subscribe: string; enabled: boolean; mapping: Record<string, unknown> }[]
}

/** The destination whose page is open. */
async function shown(tab: Tab, service: Service): Promise<Integration> {
  await tab.page.waitForURL(/\/destinations\/dst_/)
  await tab.settled()
  return service.api<Integration>(`/destinations/${new URL(tab.page.url()).pathname.split('/')[2]}`)
}

const amplitude = (service: Service, name: string, more: object = {}) =>
  service.api<{ id: string }>('/destinations', {
    method: 'POST',
    body: {
      type: 'integration',
      integration: 'actions-amplitude',
      name,
      sourceIds: [service.sourceId],
      settings: { apiKey: 'key-of-amplitude', secretKey: 'secret-of-amplitude' },
      ...more,
    },
  })

suite('integrations', { concurrency: 2 }, () => {
  test('the catalogue is searched and filtered, and its cards are links that the keyboard reaches', async () => {
    await using tab = await browser.open(scene.service)
    const { page } = tab
    await tab.visit('/destinations')
    await page.getByRole('link', { name: 'Add a destination' }).first().click()
    await page.getByRole('heading', { level: 1, name: 'Add a destination' }).waitFor()
    const list = page.getByRole('list', { name: 'Destinations' })
    await page
      .getByText(/^\d+ integrations\. \d+ more need messages that say who is in an audience\. \d+ do not work and are listed last\.$/)
      .waitFor()
    const all = await list.getByRole('listitem').count()
    assert.ok(all > 200, `${all} cards`)
    assert.match(await list.getByRole('listitem').first().innerText(), /^Webhook/)

    await page.getByRole('textbox', { name: 'Search' }).fill('amplit')
    await page.getByText(/^\d integrations? found$/).waitFor()
    assert.match(
      await list.getByRole('link').first().innerText(),
      /Amplitude[^]*Analytics · API key · 2 required settings · \d+ actions · \d+ presets/,
    )
    assert.equal(new URL(page.url()).searchParams.get('q'), 'amplit')
    await page.getByRole('textbox', { name: 'Search' }).fill('nothing like it')
    await page.getByText('No matching integration').waitFor()
    await page.getByRole('button', { name: 'Show all' }).click()

    await page.getByRole('textbox', { name: 'Search' }).fill('surveys')
    await list
      .getByText(/Survicate/)
      .first()
      .waitFor()
    assert.equal(await list.getByText(/Amplitude/).count(), 0)

    await page.getByRole('textbox', { name: 'Search' }).fill('apollo')
    await list.getByText(/^Not available\. It sends to an address and with a secret that only Segment has/).waitFor()
    await eventually(
      () => list.getByRole('link').count(),
      (count) => count === 0,
      { what: 'only an integration that is not available' },
    )

    await page.getByRole('textbox', { name: 'Search' }).fill('slack')
    await page.getByText(/^\d integrations? found$/).waitFor()
    // The category, the authentication, the first card.
    for (let presses = 0; presses < 3; presses++) await page.keyboard.press('Tab')
    assert.match(await page.evaluate<string>('document.activeElement.textContent'), /Slack/)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Add Slack' }).waitFor()
    tab.check()
  })

  test('Slack has no presets: a subscription is filled in, with event names and a template', async () => {
    await using tab = await browser.open(scene.service)
    const { page } = tab
    await tab.visit('/catalog/actions-slack')
    await page.getByRole('button', { name: 'Create destination' }).click()
    await page.getByText('Correct the errors in the subscriptions.').waitFor()
    const action = page.getByRole('region', { name: 'Post Message' })
    const url = action.getByRole('group', { name: /^Webhook URL/ })
    await url.getByText('This field is required.').waitFor()
    await url.getByRole('textbox', { name: 'Webhook URL' }).fill('https://hooks.slack.example/services/T/B/x')
    const message = action.getByRole('group', { name: /^Message/ })
    await message.getByRole('combobox', { name: 'Where Message comes from' }).selectOption('Template')
    await message.getByRole('textbox', { name: 'Message' }).fill('{{event}} by {{userId}}')
    // Names of events are suggested from the last messages.
    await action.getByRole('combobox', { name: 'Event names' }).click()
    await page.getByRole('option', { name: 'Order Completed' }).click()
    await action.getByText('When a track event named Order Completed arrives.').first().waitFor()
    await page.getByRole('textbox', { name: 'Name' }).first().fill('Slack of the shop')
    await page.getByRole('button', { name: 'Create destination' }).click()

    const { type, name, integration, subscriptions } = await shown(tab, scene.service)
    assert.deepEqual([type, name, integration], ['integration', 'Slack of the shop', 'actions-slack'])
    assert.equal(subscriptions.length, 1)
    const [subscription] = subscriptions
    assert.equal(subscription?.subscribe, 'type = "track" and event = "Order Completed"')
    assert.deepEqual(subscription?.mapping['text'], { '@template': '{{event}} by {{userId}}' })
    assert.equal(subscription?.mapping['url'], 'https://hooks.slack.example/services/T/B/x')
    await page.getByText('Destination created').waitFor()
    tab.check()
  })

  test('Amplitude: presets are switches, missing settings are named at their fields, and secrets are not shown again', async () => {
    await using tab = await browser.open(scene.service, { width: NARROW, theme: 'dark' })
    const { page } = tab
    await tab.visit('/catalog/actions-amplitude')
    await page.getByRole('button', { name: 'Create destination' }).click()
    await page.getByText('Enter API Key.').waitFor()
    await tab.until('document.activeElement.getAttribute("aria-invalid") === "true"')
    await page.getByLabel('API Key', { exact: false }).first().fill('an-api-key-to-hide')
    await page.getByLabel('Secret Key', { exact: false }).first().fill('a-secret-key-to-hide')
    await page.getByText('When a track event named Order Completed arrives.').waitFor()
    const pages = page.getByRole('region', { name: 'Page Calls' })
    await pages.getByText('When a page event arrives.').waitFor()
    await pages.getByRole('switch').click()
    await page.getByRole('textbox', { name: 'Name' }).first().fill('Amplitude of the shop')
    await page.getByRole('button', { name: 'Create destination' }).click()

    const { secretSettings, settings, subscriptions } = await shown(tab, scene.service)
    assert.deepEqual([...secretSettings].sort(), ['apiKey', 'secretKey'])
    assert.equal(settings['endpoint'], 'north_america')
    assert.deepEqual(
      subscriptions.filter(({ enabled }) => !enabled).map(({ name }) => name),
      ['Page Calls'],
    )
    await page.getByRole('tab', { name: 'Settings' }).click()
    const secret = page.getByRole('group', { name: 'API Key' })
    await secret.getByText('set', { exact: true }).waitFor()
    assert.equal(await page.evaluate<boolean>('document.documentElement.outerHTML.includes("key-to-hide")'), false)
    await secret.getByRole('button', { name: 'Replace API Key' }).click()
    await page.getByRole('button', { name: 'Save changes' }).click()
    await secret.getByText('Enter the new value, or keep the current one.').waitFor()
    await secret.getByLabel('API Key', { exact: false }).first().fill('another-api-key-to-hide')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('Saved.').waitFor()
    await secret.getByText('set', { exact: true }).waitFor()
    assert.equal(await page.evaluate<boolean>('document.documentElement.outerHTML.includes("key-to-hide")'), false)
    await tab.visit('/destinations')
    await page.getByRole('link', { name: 'Amplitude of the shop' }).waitFor()
    tab.check()
  })

  test('an error of the service is shown at the setting that it names', async () => {
    await using tab = await browser.open(scene.service)
    tab.expected.push(/status of 400/)
    const { page } = tab
    await tab.visit('/catalog/actions-absmartly')
    await page.getByLabel('API Key', { exact: false }).first().fill('x')
    await page.getByLabel('Environment', { exact: false }).first().fill('production')
    const field = page.getByRole('textbox', { name: 'Collector Endpoint' })
    await field.fill('not a URL')
    await page.getByRole('button', { name: 'Create destination' }).click()
    await tab.until('document.activeElement.value === "not a URL"')
    await page.getByText(/^Must be .*URL/).waitFor()
    await field.fill('https://sandbox.absmartly.example/v1')
    await page.getByRole('button', { name: 'Create destination' }).click()
    const { settings } = await shown(tab, scene.service)
    assert.equal(settings['collectorEndpoint'], 'https://sandbox.absmartly.example/v1')
    tab.check()
  })

  test('a mapping is changed with a suggestion from a real message, previewed, saved as a version, and arrives', async () => {
    const { service } = scene
    const { id } = await amplitude(service, 'Mapped')
    await using tab = await browser.open(service)
    const { page } = tab
    await tab.visit(`/destinations/${id}?tab=subscriptions`)
    const orders = page.getByRole('region', { name: 'Order Completed Calls' })
    await orders.getByRole('button', { name: 'Edit Order Completed Calls' }).click()
    await orders.getByRole('button', { name: /^Show \d+ more fields/ }).click()
    const language = orders.getByRole('group', { name: /^Language/ })
    await language.getByText('default', { exact: true }).waitFor()
    const path = language.getByRole('combobox', { name: 'Language', exact: true })
    await path.fill('currency')
    const option = page.getByRole('option', { name: '$.properties.currency' })
    await option.getByText('EUR').waitFor()
    await option.click()
    assert.equal(await path.inputValue(), '$.properties.currency')
    await language.getByText('Last value: EUR').waitFor()
    await language.getByRole('button', { name: 'Use the default of Language' }).waitFor()

    await page
      .getByRole('button', { name: /^track: Order Completed .* sent$/ })
      .first()
      .click()
    const after = page.getByRole('region', { name: 'After', exact: true })
    await after.getByText('POST https://api2.amplitude.com/2/httpapi').first().waitFor()
    await after.getByText('"EUR"').first().waitFor()
    assert.doesNotMatch(await after.innerText(), /key-of-amplitude/)
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page
      .getByRole('dialog')
      .getByText(/would be sent differently/)
      .waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved as version 2.').waitFor()

    await service.send([
      { type: 'track', event: 'Order Completed', userId: `u-${id}`, messageId: `order-${id}`, properties: { currency: 'BRL' } },
    ])
    await gateway.until(() => gateway.requests().some(({ body }) => body.includes(`u-${id}`) && body.includes('"language":"BRL"')))
    const delivery = await eventually(
      async () => (await service.deliveries(`destinationId=${id}&state=delivered`)).find(({ messageId }) => messageId === `order-${id}`),
      (found) => found !== undefined,
      { what: 'the delivery' },
    )
    await tab.visit(`/deliveries/${delivery?.id}`)
    await page.getByText('Order Completed Calls').first().waitFor()
    await page.getByText('POST https://api2.amplitude.com/2/httpapi').first().waitFor()
    assert.equal(await page.getByText('signed').count(), 0)
    tab.check()
  })

  test('a test shows the requests of each subscription that matches', async () => {
    const { service } = scene
    const { id } = await amplitude(service, 'Tested')
    await using tab = await browser.open(service)
    const { page } = tab
    await tab.visit(`/destinations/${id}?tab=test`)
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('Test passed: all matching subscriptions succeeded.').waitFor()
    await page.getByText('Track Calls').waitFor()
    await page.getByText('POST https://api2.amplitude.com/2/httpapi').waitFor()
    assert.doesNotMatch(await page.locator('main').innerText(), /key-of-amplitude|not signed/)
    tab.check()
  })

  test('if the catalogue is not installed, it is installed from the page, with its progress, and a failure can be tried again', async () => {
    await using tab = await browser.open(scene.service, { width: NARROW })
    const { page } = tab
    // Installing really would need the npm registry: only its answers are given here.
    let installation = { state: 'missing', done: 0, total: 0, error: null as string | null }
    const answer = (body: object) => ({ contentType: 'application/json', body: JSON.stringify(body) })
    await tab.context.route('**/api/catalog/install', async (route) => {
      if (route.request().method() === 'POST') installation = { state: 'installing', done: 43, total: 131, error: null }
      await route.fulfill({ status: route.request().method() === 'POST' ? 202 : 200, ...answer(installation) })
    })
    await tab.context.route('**/api/catalog?*', (route) =>
      installation.state === 'installed' ? route.continue() : route.fulfill(answer({ data: [], next: null, hint: 'Install it.' })),
    )
    await tab.visit('/catalog')
    await page.getByRole('link', { name: 'Webhook' }).waitFor()
    await page.getByRole('button', { name: 'Install the integrations' }).click()
    await page.getByText('43 of 131 packages').waitFor()
    assert.deepEqual(await tab.accessibility(), [])
    installation = { state: 'failed', done: 0, total: 131, error: 'npm ended with code 1.' }
    await page.getByText('npm ended with code 1.').waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('43 of 131 packages').waitFor()
    installation = { state: 'installed', done: 131, total: 131, error: null }
    await page.getByText(/^\d+ integrations\. /).waitFor()
    tab.check()
  })

  test('no page is wider than a phone, and axe-core finds nothing serious', async (t) => {
    const { id } = await amplitude(scene.service, 'Looked at')
    await using tab = await browser.open(scene.service)
    const pages = [
      // With all its cards, axe-core takes ten times as long.
      [IS_LONG ? '/catalog?q=a' : '/catalog?q=sl', false],
      ['/catalog/actions-slack', false],
      ...(IS_LONG ? LONG_FORMS.map((slug) => [`/catalog/${slug}`, false] as const) : []),
      ['/catalog/nothing-of-this-slug', false],
      [`/destinations/${id}`, false],
      [`/destinations/${id}?tab=test`, false],
      [`/destinations/${id}?tab=subscriptions`, true],
      [`/destinations/${id}?tab=settings`, false],
    ] as const
    for (const [at, [address, open]] of pages.entries()) {
      await t.test(address, async () => {
        tab.expected.push(/status of 404/)
        await tab.go(address)
        if (open)
          await tab.page
            .getByRole('button', { name: /^Edit / })
            .first()
            .click()
        const looks: [number, Theme][] = [
          [WIDE, 'light'],
          [NARROW, 'dark'],
        ]
        for (const [lookAt, [width, theme]] of looks.entries()) {
          await tab.look(width, theme)
          assert.deepEqual(await tab.overflowing(), [])
          if (IS_LONG || lookAt === at % 2) assert.deepEqual(await tab.accessibility(), [])
        }
        tab.check()
      })
    }
  })
})
