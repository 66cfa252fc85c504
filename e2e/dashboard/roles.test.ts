// What the dashboard offers to each role: every page is opened as a viewer, as an editor of one source, as an editor of all sources and as an admin. No page
// calls a route that the role may not use, and the controls that change something are exactly those that the role may use.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { PAGE_PATHS } from '../../packages/server/src/pages/paths.ts'
import { startBrowser, type Tab, type TestBrowser } from './browser.ts'
import { end, type Scene, startScene, TABS } from './scene.ts'

type Role = 'viewer' | 'editor of one source' | 'editor' | 'admin'

let browser: TestBrowser
let scene: Scene
const tokens: Partial<Record<Role, string>> = {}
/** A destination of the first source only. The others of the scene also serve a second source. */
let own: string

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene()])
  const { service, receivers } = scene
  own = await service.destination({ name: 'Own', urls: [`${receivers.warehouse.url}own`] })
  const bodies = {
    viewer: { role: 'viewer' },
    'editor of one source': { role: 'editor', sources: [service.sourceId] },
    editor: { role: 'editor' },
    admin: { role: 'admin' },
  }
  for (const [name, body] of Object.entries(bodies))
    tokens[name as Role] = (await service.api<{ token: string }>('/tokens', { method: 'POST', body: { name, ...body } })).token
})
after(() => end(browser, scene))

const addresses = (): string[] => [
  ...new Set([
    ...PAGE_PATHS.map((path) => scene.views[path] as string),
    ...TABS.map((tab) => `/settings/${tab}`),
    ...['send', 'webhook', 'arrive', 'alerts'].map((step) => `/start?step=${step}`),
    '/start?step=webhook&add=yes',
    ...['health', 'test', 'settings', 'request', 'transformation'].flatMap((tab) => [
      `/destinations/${own}?tab=${tab}`,
      `/destinations/${scene.destinations['crm']}?tab=${tab}`,
    ]),
    '/alerts?tab=rules',
    '/alerts?tab=receivers',
    '/alerts?tab=mutes',
    '/deletions?tab=suppressions',
    '/plans?tab=quarantine',
    '/deliveries?state=failed',
  ]),
]

/** The names of the enabled controls that may change something: not those that only change what the page shows. */
async function controls(tab: Tab): Promise<string[]> {
  const found = await tab.page.evaluate<{ name: string; isEnabled: boolean }[]>(CONTROLS)
  return found.filter(({ isEnabled }) => isEnabled).map(({ name }) => name)
}

const CONTROLS = `[...document.querySelectorAll('main button, main a[role=button], main input[type=checkbox], main [role=switch]')]
  .filter((element) => element.getBoundingClientRect().width > 0)
  .map((element) => ({
    name: (element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent ?? '').trim(),
    isEnabled: !element.disabled && element.getAttribute('aria-disabled') !== 'true' && element.closest('fieldset[disabled]') === null,
  }))`

/** What every role may use, because it only changes what is shown, or copies it. */
const HARMLESS = [
  /^(Copy|Show|Select|Load|Open|Close|Choose|Search|Refresh|Download|View|Clear|Next: )/,
  /^(Health|Test|Request|Transformation|Settings|Subscriptions|Plans|Violations|Quarantine|Rules|Edit|YAML|Incidents|Receivers|Mutes|Requests|Suppressed users|Body|Headers|curl|Formatted|Raw)$/,
  /^(Tokens|People|OAuth applications|Audit log|Configuration|Nodes|About)$/,
  /^(Send a message|Add a destination|See it arrive|4Where should alerts go\?)(done|to do)$|^\d[A-Z].*(done|to do)$/,
  // The sections of a form that can only be read, and the entries of the audit log.
  /^(Signing|Order|Headers|Authentication|Secrets|TLS|Filter|Batching|Retries)/,
  /(created|changed|logged in|logged out|requested|started|suppressed)/,
  /^▸/,
  // The period and the form of charts.
  /^Custom: choose|as a table$|as a chart$|^Reset zoom|^Zoom/,
  // A token may revoke itself.
  /^Revoke viewer$/,
  // What a list shows, and a comparison of messages.
  /^(Columns|Saved views|What differs)/,
  // The live view, and a plan that is learned from messages and shown.
  /^(Pause|Learn|Write a plan by hand|Load example)$/,
]

async function walk(role: Role): Promise<Map<string, string[]>> {
  await using tab = await browser.open(scene.service, { token: tokens[role] as string })
  // A limited editor cannot see the replay job and the deletion request of all sources.
  if (role === 'editor of one source') tab.expected.push(/404 \(Not Found\) \(.*\/api\/(replays|deletions)\//)
  const offered = new Map<string, string[]>()
  for (const address of addresses()) {
    await tab.go(address)
    tab.check()
    offered.set(address, await controls(tab))
  }
  return offered
}

suite('roles', { concurrency: 2 }, () => {
  test('a viewer is offered nothing that changes anything but their own token', async () => {
    const offered = await walk('viewer')
    const changing = [...offered].flatMap(([address, names]) =>
      names.filter((name) => !HARMLESS.some((pattern) => pattern.test(name))).map((name) => `${address}: ${name}`),
    )
    assert.deepEqual(changing, [])
    // Header values are hidden from viewers, which is no error of the form.
    const shown = offered.get(`/destinations/${scene.destinations['crm']}?tab=settings`) as string[]
    assert.deepEqual(
      shown.filter((name) => name.includes('has errors')),
      [],
    )
  })

  test('an editor of one source changes what belongs to it, and nothing that is shared or for admins', async () => {
    const offered = await walk('editor of one source')
    const at = (address: string): string[] => offered.get(address) as string[]
    assert.ok(at(`/destinations/${own}?tab=health`).includes('Pause'))
    assert.ok(at(`/destinations/${own}?tab=health`).includes('Delete'))
    assert.ok(!at(`/destinations/${scene.destinations['crm']}?tab=health`).includes('Pause'))
    assert.ok(at('/start?step=webhook&add=yes').includes('Add webhook'))
    assert.ok(at('/deletions?tab=suppressions').includes('Suppress users'))
    assert.ok(!at('/deletions').includes('Delete users'))
    assert.ok(!at('/alerts?tab=mutes').includes('Mute all alerts'))
    assert.ok(!at('/start?step=alerts').includes('Add webhook'))
    forAdminsOnly(offered)
  })

  test('an editor of all sources can also mute all alerts and choose where alerts go', async () => {
    const offered = await walk('editor')
    const at = (address: string): string[] => offered.get(address) as string[]
    assert.ok(at('/alerts?tab=mutes').includes('Mute all alerts'))
    assert.ok(at('/start?step=alerts').includes('Add webhook'))
    assert.ok(at(`/destinations/${scene.destinations['crm']}?tab=health`).includes('Pause'))
    forAdminsOnly(offered)
  })

  test('an admin is offered all of it', async () => {
    const offered = await walk('admin')
    for (const [address, name] of FOR_ADMINS) assert.ok((offered.get(address) as string[]).includes(name), `${name} at ${address}`)
  })

  test('the start page tells a viewer who can add a destination, and lets an editor add one', async () => {
    await using viewer = await browser.open(scene.service, { token: tokens.viewer as string })
    await viewer.visit('/start?step=webhook&add=yes')
    await viewer.page.getByText('Ask an editor or admin to add a destination').waitFor()

    await using editor = await browser.open(scene.service, { token: tokens['editor of one source'] as string })
    const { page } = editor
    await editor.visit('/start?step=webhook&add=yes')
    await page.getByRole('textbox', { name: 'URL' }).fill(`${scene.receivers.warehouse.url}added`)
    await page.getByRole('button', { name: 'Add webhook' }).click()
    await page.getByRole('button', { name: 'Send test' }).click()
    await page.getByText('Test delivered').waitFor()
    editor.check()
  })
})

const FOR_ADMINS: readonly (readonly [address: string, name: string])[] = [
  ['/sources', 'Add a source'],
  ['/deletions', 'Delete users'],
  ['/settings/tokens', 'Create token'],
  ['/settings/oauth', 'Add an application'],
  ['/settings/about', 'Run checks'],
]

function forAdminsOnly(offered: ReadonlyMap<string, readonly string[]>): void {
  for (const [address, name] of FOR_ADMINS) assert.ok(!(offered.get(address) as string[]).includes(name), `${name} at ${address}`)
}
