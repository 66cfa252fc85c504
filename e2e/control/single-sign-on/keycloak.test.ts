// Single sign-on with a real Keycloak and a real browser: the login form of Keycloak, the role by group, logging out, and sessions that end because
// they ended in Keycloak. Skipped, with the reason, where there is no Java or Keycloak cannot be downloaded.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { buildDashboard } from '../../../scripts/build-dashboard.ts'
import { startBrowser, type Tab, type TestBrowser } from '../../dashboard/browser.ts'

import { environment, folderFor, startSwitchyard, switchyardWith } from '../../system/command-line.ts'
import type { Service } from '../../system/service.ts'
import { eventually } from '../../system/signals.ts'
import { CLIENT_ID, type Keycloak, prepareKeycloak, startKeycloak } from './keycloak.ts'
import { type Address, newAddress, startServiceAt } from './service.ts'

const PASSWORD = 'a password of the tests'
/** The service asks the provider at least every minute. */
const RECHECK_MS = 150_000
/** The first login of a Keycloak that has just started takes seconds on a busy machine. */
const FORM_MS = 120_000

const prepared = await prepareKeycloak()
const skip = 'missing' in prepared ? prepared.missing : false

let address: Address
let keycloak: Keycloak
let service: Service
let browser: TestBrowser
let shopId: string
const users: Record<string, string> = {}

suite('Keycloak', { skip, concurrency: 1 }, () => {
  before(async () => {
    if ('missing' in prepared) return
    if (!buildDashboard()) throw new Error('the dashboard could not be built: see above')
    address = await newAddress()
    ;[keycloak, browser] = await Promise.all([startKeycloak(prepared, address.url), startBrowser()])
    service = await startServiceAt(address, {
      issuer: keycloak.issuer,
      clientId: CLIENT_ID,
      clientSecret: keycloak.clientSecret,
      roles: [
        { claim: 'groups', value: 'switchyard-admins', role: 'admin', sources: 'all' },
        { claim: 'groups', value: 'shop-team', role: 'editor', sources: ['Shop'] },
        { claim: 'groups', value: 'analysts', role: 'viewer', sources: 'all' },
      ],
      env: { SWITCHYARD_OIDC_NAME: 'Keycloak', SWITCHYARD_OIDC_CONTACT: 'ask-the-admins@example.com' },
    })
    shopId = (await service.api<{ id: string }>('/sources', { method: 'POST', body: { name: 'Shop' } })).id
    for (const [username, groups] of Object.entries({ ada: ['shop-team'], ben: ['switchyard-admins'], cleo: ['analysts'], dan: [] }))
      users[username] = await keycloak.addUser({ username, password: PASSWORD, groups })
  })
  after(async () => {
    const stack = new AsyncDisposableStack()
    for (const each of [keycloak, service, browser]) if (each !== undefined) stack.use(each)
    await stack.disposeAsync()
  })

  test('a person logs in through the form of Keycloak, returns to the page, and has the role and the sources of the group', async () => {
    await using tab = await logIn('ada', '/deliveries?state=failed')
    await tab.page.getByRole('heading', { level: 1, name: 'Deliveries' }).waitFor()
    assert.equal(tab.page.url(), `${address.url}/deliveries?state=failed`)
    const session = await sessionOf(tab)
    assert.equal(session?.role, 'editor')
    assert.deepEqual(session?.sources, [shopId])
    assert.equal(session?.actor.email, 'ada@example.com')
    assert.equal(session?.actor.subject, users['ada'])
    await tab.page.getByRole('button', { name: 'Account of ada Example' }).click()
    await tab.page.getByText('Source: Shop').waitFor()
    await tab.page.getByRole('button', { name: 'Log out' }).click()
    await tab.page.getByRole('link', { name: 'Log in with Keycloak' }).waitFor()
    assert.equal(await sessionOf(tab), null)
  })

  test('an admin by group sees the people, and two people in two windows do not disturb each other', async () => {
    await using ben = await logIn('ben', '/settings/people')
    await using ada = await logIn('ada', '/sources')
    await ben.page.getByRole('row').filter({ hasText: 'ada@example.com' }).getByText('editor').waitFor()
    assert.equal((await sessionOf(ben))?.role, 'admin')
    assert.equal((await sessionOf(ada))?.role, 'editor')
    // An editor of one source does not find out that there is another.
    assert.equal(await ada.page.getByRole('link', { name: 'default' }).count(), 0)

    await ben.page.getByRole('button', { name: 'End sessions of ada Example' }).click()
    await ben.page.getByRole('dialog').getByRole('button', { name: 'End sessions' }).click()
    await ended(ada, 10_000)
    assert.equal((await sessionOf(ben))?.role, 'admin')
  })

  test('a person without a group is told whom to ask', async () => {
    await using tab = await openLogin('dan', '/')
    await tab.page.getByRole('heading', { name: 'No access' }).waitFor({ timeout: FORM_MS })
    await tab.page.getByText('ask-the-admins@example.com').waitFor()
    assert.equal(await sessionOf(tab), null)
  })

  test('a logout in Keycloak ends the session here, over the back channel', async () => {
    await using tab = await logIn('cleo', '/')
    await keycloak.admin(`/users/${users['cleo']}/logout`, { method: 'POST' })
    // Much sooner than the service would ask by itself.
    await ended(tab, 20_000)
    await tab.page.getByText('Your session has ended.').waitFor()
  })

  test('a session that ended in Keycloak ends here when the service asks again, also without a back channel', async () => {
    const [client] = await keycloak.admin<{ id: string; attributes: Record<string, string> }[]>(`/clients?clientId=${CLIENT_ID}`)
    if (client === undefined) throw new Error('Keycloak has no client')
    const attributes = { ...client.attributes, 'backchannel.logout.url': '' }
    await keycloak.admin(`/clients/${client.id}`, { method: 'PUT', body: { ...client, attributes } })
    await using tab = await logIn('cleo', '/')
    await keycloak.admin(`/users/${users['cleo']}/logout`, { method: 'POST' })
    await ended(tab, RECHECK_MS)
    await keycloak.admin(`/clients/${client.id}`, { method: 'PUT', body: client })
  })

  test('`switchyard login` gets a token of the person, which `logout` revokes', async (t) => {
    const env = { XDG_CONFIG_HOME: folderFor(t), SWITCHYARD_URL: address.url, SWITCHYARD_TOKEN: '' }
    await using tab = await logIn('ada', '/')
    await using command = startSwitchyard(null, ['login', '--no-browser'], { env })
    const page = await eventually(
      async () => /http:\S+\/api\/login\/cli\?\S+/.exec(command.stderr())?.[0],
      (found) => found !== undefined,
    )
    await tab.page.goto(page as string)
    await tab.page.getByRole('button', { name: 'Give access' }).click()
    await tab.page.getByRole('heading', { name: 'Logged in' }).waitFor()
    assert.equal((await command.ended).code, 0, command.stderr())
    const { stdout } = await switchyardWith(env, null, 'whoami')
    assert.match(stdout, /ada@example\.com, editor of 1 source/)
    assert.match(stdout, /Shop/)
    assert.equal((await switchyardWith(env, null, 'logout')).code, 0)
    assert.equal((await switchyardWith(env, null, 'sources')).code, 3)
    assert.ok(environment(null).XDG_CONFIG_HOME !== env.XDG_CONFIG_HOME)
  })
})

async function openLogin(username: string, path: string): Promise<Tab> {
  const tab = await browser.open(service, { token: null })
  tab.expected.push(/left the service/, /status of 40[134]/, new RegExp(new URL(keycloak.issuer).host), /password|autocomplete/i)
  const { page } = tab
  await tab.visit(path)
  await page.getByRole('link', { name: 'Log in with Keycloak' }).click()
  await page.locator('#username').fill(username, { timeout: FORM_MS })
  await page.locator('#password').fill(PASSWORD)
  await page.locator('#kc-login').click()
  return tab
}

async function logIn(username: string, path: string): Promise<Tab> {
  const tab = await openLogin(username, path)
  await tab.page.waitForURL(`${address.url}${path}`, { timeout: FORM_MS })
  await tab.page.getByRole('button', { name: /^Account of/ }).waitFor()
  await tab.settled()
  return tab
}

interface SessionView {
  role: string
  sources: 'all' | string[]
  actor: { email?: string; subject?: string }
}

async function sessionOf(tab: Tab): Promise<SessionView | null> {
  const answer = await tab.context.request.get(`${address.url}/api/session`)
  return answer.ok() ? ((await answer.json()) as SessionView) : null
}

/** Waits until the page shows the login, because its session has ended. */
async function ended(tab: Tab, deadlineMs: number): Promise<void> {
  await eventually(
    () => sessionOf(tab),
    (session) => session === null,
    { what: 'the session has ended', deadlineMs },
  )
  await tab.page.getByRole('link', { name: 'Log in with Keycloak' }).waitFor()
}
