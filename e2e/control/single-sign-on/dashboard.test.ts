// The dashboard with single sign-on, in a real browser and against oidc-provider: the login page and what it says if the provider does not work, the menu
// of the person, two people at once, the people in the settings, and tokens of one's own. keycloak.test.ts uses a real Keycloak.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import {
  CLIENT,
  type IdentityProvider,
  startIdentityProvider,
} from '../../../packages/server/src/control/people/fixtures/identity-provider.ts'
import { buildDashboard } from '../../../scripts/build-dashboard.ts'
import { NARROW, startBrowser, type Tab, type TabOptions, type TestBrowser, WIDE } from '../../dashboard/browser.ts'
import type { Service } from '../../system/service.ts'
import { type Address, newAddress, startServiceAt } from './service.ts'

let address: Address
let provider: IdentityProvider
let service: Service
let browser: TestBrowser
const stack = new AsyncDisposableStack()

before(async () => {
  if (!buildDashboard()) throw new Error('the dashboard could not be built: see above')
  address = await newAddress()
  provider = await startIdentityProvider(
    {
      after: (end) =>
        stack.defer(async () => {
          await (end as () => unknown)()
        }),
    },
    address,
  )
  provider.accounts.set('ada', { email: 'ada@example.com', email_verified: true, name: 'Ada Lovelace', groups: ['shop-team'] })
  provider.accounts.set('ben', { email: 'ben@example.com', email_verified: true, name: 'Ben Franklin', groups: ['admins'] })
  provider.accounts.set('dan', { email: 'dan@example.com', email_verified: true, name: 'Dan', groups: [] })
  ;[service, browser] = await Promise.all([
    startServiceAt(address, {
      issuer: provider.issuer,
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      roles: [
        { claim: 'groups', value: 'admins', role: 'admin', sources: 'all' },
        { claim: 'groups', value: 'shop-team', role: 'editor', sources: ['Shop'] },
      ],
      env: { SWITCHYARD_OIDC_NAME: 'Example ID', SWITCHYARD_OIDC_CONTACT: 'Ask ben@example.com.' },
    }),
    startBrowser(),
  ])
  stack.use(service)
  stack.use(browser)
  await service.api('/sources', { method: 'POST', body: { name: 'Shop' } })
})
after(() => stack.disposeAsync())

async function open(options: TabOptions = {}): Promise<Tab> {
  const tab = await browser.open(service, { token: null, ...options })
  tab.expected.push(/left the service/, /status of 40[134]/)
  return tab
}

async function logIn(person: string, path = '/', options: TabOptions = {}): Promise<Tab> {
  const tab = await open(options)
  await tab.visit(path)
  provider.person = person
  await tab.page.getByRole('link', { name: 'Log in with Example ID' }).click()
  await tab.page.getByRole('button', { name: /^Account of/ }).waitFor()
  await tab.settled()
  return tab
}

async function looksGood(tab: Tab): Promise<void> {
  for (const [width, theme] of [
    [NARROW, 'light'],
    [WIDE, 'dark'],
  ] as const) {
    await tab.look(width, theme)
    assert.deepEqual(await tab.overflowing(), [])
    assert.deepEqual(await tab.accessibility(), [])
  }
}

// One after the other: the provider logs in whoever is set.
suite('single sign-on in the dashboard', { concurrency: 1 }, () => {
  test('the login page offers single sign-on first, and a control token below it', async () => {
    await using tab = await open()
    await tab.visit('/plans?tab=quarantine')
    const texts = await tab.page.getByRole('main').innerText()
    assert.ok(texts.indexOf('Log in with Example ID') < texts.indexOf('Control token'), texts)
    await looksGood(tab)
    await tab.page.getByLabel('Control token').fill(service.token)
    await tab.page.getByRole('button', { name: 'Log in', exact: true }).click()
    await tab.page.getByRole('heading', { level: 1, name: 'Plans' }).waitFor()
    tab.check()
  })

  test('a person returns to the page, and sees their name, role and sources in the menu, which also logs out', async () => {
    await using tab = await logIn('ada', '/deliveries?state=failed')
    assert.equal(tab.page.url(), `${address.url}/deliveries?state=failed`)
    await tab.page.getByRole('button', { name: 'Account of Ada Lovelace' }).click()
    const menu = tab.page.getByRole('dialog')
    for (const text of ['ada@example.com', 'editor', 'Source: Shop', 'Session ends']) await menu.getByText(text).waitFor()
    await looksGood(tab)
    await menu.getByRole('button', { name: 'Log out' }).click()
    await tab.page.getByRole('link', { name: 'Log in with Example ID' }).waitFor()
    assert.equal(new URL(tab.page.url()).pathname, '/deliveries')
    tab.check()
  })

  test('without a role, the page says whom to ask', async () => {
    await using tab = await open()
    await tab.visit('/')
    provider.person = 'dan'
    await tab.page.getByRole('link', { name: 'Log in with Example ID' }).click()
    await tab.page.getByRole('heading', { name: 'No access' }).waitFor()
    await tab.page.getByText('Ask ben@example.com.').waitFor()
    for (const width of [NARROW, WIDE]) {
      await tab.page.setViewportSize({ width, height: 844 })
      assert.deepEqual(await tab.overflowing(), [])
    }
  })

  test('if the provider does not work, the login page says why, and the next login returns to the page that was opened', async () => {
    await using tab = await open()
    // As the service answers a login while the provider is away: packages/server/src/control/people/single-sign-on.test.ts.
    await tab.visit('/?login=unreachable&returnTo=%2Fsources')
    await tab.page.getByRole('alert').getByText('The identity provider does not respond.').waitFor()
    await looksGood(tab)
    provider.person = 'ada'
    // The page that was opened is not lost on the way.
    await tab.page.getByRole('link', { name: 'Log in with Example ID' }).click()
    await tab.page.getByRole('heading', { level: 1, name: 'Sources' }).waitFor()
    assert.equal(tab.page.url(), `${address.url}/sources`)
  })

  test('every reason of a failed login is shown in words, and a text in the address is not', async () => {
    await using tab = await open()
    for (const [reason, words] of [
      ['certificate_expired', 'The TLS certificate of the identity provider has expired.'],
      ['client_rejected', 'The identity provider rejects the client id or the client secret of this service.'],
      ['certificate_invalid', 'The TLS certificate of the identity provider is not trusted.'],
      ['misconfigured', 'The identity provider did not answer as an OpenID Connect provider.'],
      ['clock_wrong', 'The identity provider sent a token that is expired or not valid yet.'],
      ['login_refused', 'The identity provider refused the login.'],
    ] as const) {
      await tab.visit(`/?login=${reason}`)
      await tab.page.getByRole('alert').getByText(words).waitFor()
    }
    await tab.visit('/?login=Send%20your%20token%20to%20evil.example')
    await tab.page.getByRole('link', { name: 'Log in with Example ID' }).waitFor()
    assert.equal(await tab.page.getByRole('alert').count(), 0)
  })

  test('two people in two windows work at once, and an admin ends the sessions of the other', async () => {
    await using ada = await logIn('ada', '/sources')
    await using ben = await logIn('ben', '/settings/people')
    await ada.page.getByRole('link', { name: 'Shop' }).waitFor()
    assert.equal(await ada.page.getByText('default').count(), 0)
    const row = ben.page.getByRole('row').filter({ hasText: 'ada@example.com' })
    await row.getByText('editor').waitFor()
    await row.getByText('Shop').waitFor()
    await looksGood(ben)
    await ben.look(WIDE, 'light')
    await ben.page.getByRole('button', { name: 'End sessions of Ada Lovelace' }).click()
    await ben.page.getByRole('dialog').getByRole('button', { name: 'End sessions' }).click()
    await ada.go('/live')
    await ada.page.getByText('Your session has ended.').waitFor()
    await ben.page.getByRole('button', { name: 'Account of Ben Franklin' }).waitFor()
    await ben.go('/settings/audit')
    await ben.page.getByText('ended the sessions of the person').first().waitFor()
    ben.check()
  })

  test('if another person logs in in another tab of the browser, no tab goes on with the old name', async () => {
    await using tab = await logIn('ada', '/sources')
    const other = await tab.context.newPage()
    await other.goto(address.url)
    await other.getByRole('button', { name: 'Account of Ada Lovelace' }).click()
    await other.getByRole('button', { name: 'Log out' }).click()
    await tab.page.getByRole('link', { name: 'Log in with Example ID' }).waitFor()
    // The provider has a session of its own, which the logout here does not end.
    await tab.context.clearCookies()
    provider.person = 'ben'
    await other.getByRole('link', { name: 'Log in with Example ID' }).click()
    await other.getByRole('button', { name: 'Account of Ben Franklin' }).waitFor()
    await tab.page.getByRole('button', { name: 'Account of Ben Franklin' }).waitFor()
    await tab.page.getByRole('link', { name: 'default' }).waitFor()
  })

  test('an editor makes tokens of their own, with at most their own role and sources, and sees nobody else’s', async () => {
    await service.api('/tokens', { method: 'POST', body: { name: 'of nobody' } })
    await using tab = await logIn('ada', '/settings/tokens')
    const { page } = tab
    assert.equal(await page.getByText('of nobody').count(), 0)
    await page.getByRole('button', { name: 'Create token' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox', { name: 'Name' }).fill('my script')
    assert.equal(await dialog.getByRole('radio', { name: 'Admin' }).isDisabled(), true)
    await dialog.getByRole('radio', { name: 'Editor' }).check()
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('This is the token of').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    const row = page.getByRole('row').filter({ hasText: 'my script' })
    for (const text of ['ada@example.com', 'editor', 'Shop']) await row.getByText(text, { exact: true }).waitFor()
    await looksGood(tab)
    await tab.look(WIDE, 'light')
    await page.getByRole('button', { name: 'Revoke my script' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await row.waitFor({ state: 'detached' })
    // Where an editor would look for people, a hint says who can see them.
    await tab.go('/settings/people')
    await page.getByText('Requires the admin role.').waitFor()
    tab.check()
  })
})
