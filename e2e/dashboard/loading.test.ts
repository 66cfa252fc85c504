// How the dashboard loads: how many bytes, how soon it can be used, and its font. URLs that can be shared and reloaded, returning to the
// same page after a login, and what a page shows while the service does not answer.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { PAGE_PATHS } from '../../packages/server/src/pages/paths.ts'
import { IS_LONG } from '../system/long-tests.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import { end, type Scene, startScene } from './scene.ts'

/** The compressed bytes that the browser transfers for the overview, without the font: text is readable before the font is loaded. */
const MOST_BYTES = 305_000
const MOST_FONT_BYTES = 50_000
/** For the fastest load. The target on an idle machine is one second (all times are printed), but other tests run at the same time. */
const MOST_MS = 3_000
const MOST_LOADS = 20

let browser: TestBrowser
let scene: Scene

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene()])
})
after(() => end(browser, scene))

interface Load {
  ms: number
  /** Without fonts. */
  bytes: number
  fontBytes: number
  /** One entry per request: a path that is requested twice, with different queries or the same one, counts twice. */
  transfers: Transfer[]
}

interface Transfer {
  /** With its query. */
  path: string
  bytes: number
}

/** Records when the overview shows its numbers and can be used. Does not wait for the charts, which are drawn afterwards, one by one. */
const INTERACTIVE = `(() => {
  const look = () => {
    const isThere = document.querySelector('main h1') !== null && document.querySelector('[aria-busy="true"]:not(figure *, [aria-label="Loading charts"])') === null
    if (isThere) setTimeout(() => { window.interactiveAt = performance.now() })
    else requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
})()`

/** The state of every visible control. Tabs in the background are skipped, because they are rendered later. */
const CHOSEN = `[
  ...[...document.querySelectorAll('main input, main select, main textarea')]
    .filter((control) => control.parentElement.checkVisibility())
    .map(({ type, value, checked }) => type + ' ' + value + ' ' + (checked ?? '')),
  ...[...document.querySelectorAll('main [aria-selected="true"], main [aria-current]')].map(({ textContent }) => textContent),
]`

/** A filter shows the id of its destination until the names are drawn, which nothing on the page announces. */
const HAS_NAMES = `![...document.querySelectorAll('[role="search"] input:not([type="hidden"])')].some(({ value }) => value.startsWith('dst_'))`

async function load(path: string): Promise<Load> {
  await using tab = await browser.open(scene.service)
  const { page } = tab
  const transfers: Transfer[] = []
  const addresses = new Map<string, string>()
  const session = await tab.context.newCDPSession(page)
  await session.send('Network.enable')
  session.on('Network.requestWillBeSent', ({ requestId, request }) => {
    const { pathname, search } = new URL(request.url)
    addresses.set(requestId, pathname + search)
  })
  session.on(
    'Network.loadingFinished',
    ({ requestId, encodedDataLength }) => void transfers.push({ path: addresses.get(requestId) ?? requestId, bytes: encodedDataLength }),
  )
  await page.addInitScript(INTERACTIVE)
  await page.goto(scene.service.url + path, { waitUntil: 'commit' })
  const ms = await tab.until<number>('window.interactiveAt')
  await tab.settled()
  return { ms, transfers, bytes: sizeOf(transfers, (path) => !isFont(path)), fontBytes: sizeOf(transfers, isFont) }
}

const isFont = (path: string): boolean => path.endsWith('.woff2')

function sizeOf(transfers: readonly Transfer[], isCounted: (path: string) => boolean): number {
  return transfers.filter(({ path }) => isCounted(path)).reduce((sum, { bytes }) => sum + bytes, 0)
}

test('the first load is under 305 KB plus 50 KB for the font, and can be used within a second, before the charts are drawn', async (t) => {
  // The first load is not measured: the service compresses a file when it is first requested.
  await load('/')
  const loads: Load[] = []
  // The fastest load counts, because other tests that run at the same time can only slow it down. If all are too slow, try more often.
  while (loads.length < 2 || (loads.length < MOST_LOADS && loads.every(({ ms }) => ms >= MOST_MS))) loads.push(await load('/'))
  const sorted = loads.sort((a, b) => a.ms - b.ms)
  const { ms, bytes, fontBytes, transfers } = sorted[0] as Load
  const largest = [...transfers].sort((a, b) => b.bytes - a.bytes).slice(0, 8)
  t.diagnostic(
    `${(bytes / 1_000).toFixed(1)} KB and a font of ${(fontBytes / 1_000).toFixed(1)} KB in ${transfers.length} requests; usable after ${Math.round(ms)} ms (fastest of ${sorted.length}: ${sorted.map((each) => Math.round(each.ms)).join(', ')})`,
  )
  for (const each of largest) t.diagnostic(`${(each.bytes / 1_000).toFixed(1).padStart(7)} KB ${each.path}`)
  assert.ok(bytes < MOST_BYTES, `${bytes} bytes: ${JSON.stringify(largest)}`)
  assert.ok(fontBytes > 0 && fontBytes < MOST_FONT_BYTES, `${fontBytes} bytes of fonts`)
  assert.ok(ms < MOST_MS, `${ms} ms`)
})

test('moving to another page loads only the code of that page', async () => {
  await using tab = await browser.open(scene.service)
  await tab.visit('/')
  tab.requested.length = 0
  await tab.page.getByRole('navigation').getByRole('link', { name: 'Sources' }).click()
  await tab.page.getByRole('heading', { level: 1, name: 'Sources' }).waitFor()
  await tab.settled()
  assert.equal(new URL(tab.page.url()).pathname, '/sources')
  assert.ok(!tab.requested.some((address) => /\/assets\/index-/.test(address)), tab.requested.join('\n'))
})

test('the text is set in Inter, which the service itself serves', async () => {
  await using tab = await browser.open(scene.service)
  await tab.visit('/')
  const family = await tab.page.evaluate<string>('getComputedStyle(document.querySelector("main h1")).fontFamily')
  assert.match(family, /^"?Inter Variable"?,/)
  await tab.until('document.fonts.check(\'1em "Inter Variable"\') && [...document.fonts].some(({ status }) => status === "loaded")')
  const fonts = tab.requested.filter((address) => address.endsWith('.woff2'))
  // Once, although it is preloaded: the preloaded copy is the one that is used.
  assert.deepEqual(
    fonts.map((address) => address.replace(/-[\w-]{8}\.woff2$/, '')),
    [`${scene.service.url}/assets/inter-latin-wght-normal`],
  )
  // Requests to another origin, and fonts that the policy blocks, are errors of the tab.
  tab.check()
})

suite('URLs', { concurrency: 2 }, () => {
  test('filters, tabs and periods are in the URL: a reload shows the same page', async (t) => {
    await using tab = await browser.open(scene.service)
    for (const address of [
      '/?period=1h&as=table',
      '/live?type=track',
      `/destinations/${scene.destinations.crm}?tab=settings`,
      '/messages?type=track&userId=u-2',
      `/deliveries?state=failed&view=list&destinationId=${scene.destinations.refusing}`,
      '/deliveries?state=failed&view=causes',
      '/replays?state=finished',
      '/settings/audit?action=token.create',
      '/start?step=webhook',
    ]) {
      await t.test(address, async () => {
        await tab.go(address)
        await tab.until(HAS_NAMES)
        const { search } = new URL(tab.page.url())
        const chosen = await tab.page.evaluate<string[]>(CHOSEN)
        await tab.page.reload()
        await tab.settled()
        await tab.until(HAS_NAMES)
        assert.equal(tab.page.url(), scene.service.url + address.split('?')[0] + search)
        assert.deepEqual(await tab.page.evaluate<string[]>(CHOSEN), chosen)
        for (const [name, value] of new URLSearchParams(address.split('?')[1])) assert.equal(new URLSearchParams(search).get(name), value)
        tab.check()
      })
    }
  })

  test('an unknown id shows that nothing was found, with a link to the list', async (t) => {
    await using tab = await browser.open(scene.service)
    tab.expected.push(/status of 404/)
    for (const path of PAGE_PATHS.filter((each) => each.endsWith(':id'))) {
      await t.test(path, async () => {
        await tab.go(path.replace(':id', 'nothing-of-this-id'))
        const text = await tab.page.locator('main').innerText()
        assert.match(
          text,
          /no (such )?(source|destination|message|event|plan|delivery|replay|incident|deletion)|not (found|there|known)|nothing|unknown/i,
          text,
        )
        assert.ok((await tab.page.locator('main a[href]').count()) > 0, `no link leads on from ${path}:\n${text}`)
      })
    }
  })

  test('a mistyped address shows the page with its navigation, and is JSON for programs', async () => {
    await using tab = await browser.open(scene.service)
    tab.expected.push(/status of 404/)
    await tab.visit('/destnations')
    await tab.page.getByText('Page not found').waitFor()
    await tab.page.getByRole('link', { name: 'Go to the overview' }).waitFor()
    const response = await fetch(`${scene.service.url}/destnations`)
    assert.deepEqual([response.status, ((await response.json()) as { code: string }).code], [404, 'not_found'])
    tab.check()
  })

  test('logging out and in again returns to the same page', async () => {
    await using tab = await browser.open(scene.service)
    const { page } = tab
    tab.expected.push(/status of 401/)
    const address = '/deliveries?state=failed'
    await tab.visit(address)
    // As if the session had expired while the page was open.
    await tab.context.clearCookies()
    await page.reload()
    await page.getByLabel('Control token').fill(scene.service.token)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Deliveries' }).waitFor()
    assert.equal(page.url(), scene.service.url + address)
    await page.getByRole('button', { name: 'Account of admin' }).click()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Control token').waitFor()
    assert.deepEqual(await tab.context.cookies(), [])
    await page.getByLabel('Control token').fill(scene.service.token)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Deliveries' }).waitFor()
    assert.equal(page.url(), scene.service.url + address)
  })

  test('the choice of light or dark survives a reload', async () => {
    await using tab = await browser.open(scene.service)
    const { page } = tab
    await tab.visit('/sources')
    await page.getByRole('button', { name: 'Switch to dark mode' }).click()
    await page.reload()
    await tab.settled()
    assert.equal(await page.evaluate('document.documentElement.dataset.mantineColorScheme'), 'dark')
    await page.getByRole('button', { name: 'Switch to light mode' }).click()
    await tab.until("document.documentElement.dataset.mantineColorScheme === 'light'")
  })

  test('every page can be reached by keyboard alone', async () => {
    await using tab = await browser.open(scene.service)
    const { page } = tab
    await tab.visit('/sources')
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to content')
    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('Search, or type what to do: pause …').fill('Loyalty')
    await page.getByRole('dialog').getByText('Loyalty programme').first().waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/destinations\/dst_/)
    await tab.settled()
    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('Search, or type what to do: pause …').fill('Deletions')
    await tab.until("document.querySelector('[role=dialog] [data-action]').textContent === 'Deletions'")
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Deletions' }).waitFor()
  })

  test('the search finds actions of a destination, which ask first, and users', async () => {
    await using tab = await browser.open(scene.service)
    const { page } = tab
    const search = page.getByPlaceholder('Search, or type what to do: pause …')
    await tab.visit('/sources')
    await page.keyboard.press('Control+k')
    await search.fill('pause loyalty')
    await page.getByRole('dialog').getByText('Pause Loyalty programme').waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Pause Loyalty programme?' }).waitFor()
    assert.equal(new URL(page.url()).search, '')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await search.fill('replay failed loyalty')
    await page.getByRole('dialog').getByText('Replay failed of Loyalty programme').click()
    await page.getByRole('dialog', { name: 'Replay deliveries' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await search.fill('u-1')
    await page.getByRole('dialog').getByText('Messages of user u-1').click()
    await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('userId'), 'u-1')
  })
})

test('while the service does not answer, a page says so and then recovers', async () => {
  await using tab = await browser.open(scene.service)
  tab.expected.push(/ERR_CONNECTION_REFUSED|Failed to load resource|Failed to fetch/)
  const { page, context } = tab
  // Follows links within the page, because a reload would need the service.
  await tab.visit('/signature')
  const more = IS_LONG ? ['Destinations', 'Replays', 'Deletions'] : []
  for (const name of ['Sources', 'Messages', 'Deliveries', ...more]) {
    await context.route('**/api/**', (route) => route.abort('connectionrefused'))
    await page.getByRole('navigation').getByRole('link', { name }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
    const alert = page.getByRole('alert').filter({ hasText: 'The service is not responding' })
    await alert.first().waitFor()
    await context.unroute('**/api/**')
    await alert.first().getByRole('button', { name: 'Try again' }).click()
    await alert.first().waitFor({ state: 'detached' })
    await tab.settled()
  }
})
