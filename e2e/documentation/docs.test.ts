// The documentation site in a real browser: the pages in the sidebars open at both widths, nothing is wider than the window, the console has
// no errors (violations of the content security policy are errors there), and no request goes to another host. Search, dark mode, navigation
// within the site and the API reference work.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { buildDocs } from '../../scripts/build-docs.ts'
import { NARROW, startBrowser, type Tab, type TestBrowser, type Theme, WIDE } from '../dashboard/browser.ts'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { IS_LONG } from '../system/long-tests.ts'

let browser: TestBrowser
let service: InProcessService

before(async () => {
  assert.ok(await buildDocs(), 'the site cannot be built')
  ;[browser, service] = await Promise.all([startBrowser(), startInProcess()])
})
after(async () => {
  await browser[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const open = (width: number, theme: Theme = 'light'): Promise<Tab> =>
  browser.open({ url: service.url, token: '' }, { token: null, width, theme })

/** The links in the sidebar and navigation bar of a page that lead to other pages of the site. */
const LINKS = `[...document.querySelectorAll('.VPSidebar a[href], .VPNavBarMenu a[href]')]
  .filter((link) => link.origin === location.origin && !link.hasAttribute('target')).map((link) => link.pathname)`

/** Whether the page is loaded and Vue has hydrated it, which it could not do if the content security policy blocked its scripts. */
const IS_READY = `document.readyState === 'complete' && document.querySelector('#app')?.__vue_app__ !== undefined`

/** Collects the pages of the site. One page of each sidebar is enough, because its sidebar links to the others. */
async function pages(tab: Tab): Promise<string[]> {
  // Integrations are in no sidebar. One page is enough: all are generated, and this one is the largest.
  const found = new Set(['/docs/', LARGEST])
  for (const from of ['/docs/', '/docs/reference/http', '/docs/reference/cli', '/docs/decisions/']) {
    await tab.visit(from)
    for (const path of await tab.page.evaluate<string[]>(LINKS)) found.add(path)
  }
  return [...found].sort()
}

const LARGEST = '/docs/integrations/actions-facebook-conversions-api'

suite('documentation', { concurrency: 2 }, () => {
  test('pages open at 1280 and 390 pixels without errors, violations of the content security policy or overflow', async () => {
    await using tab = await open(WIDE)
    const all = await pages(tab)
    assert.ok(all.length > 40, `${all.length} pages`)
    // Opens only some of the pages, unless SWITCHYARD_LONG_TESTS=1. The build already checks that no link is broken.
    const opened = all.filter(
      (path, at) => IS_LONG || path.startsWith('/docs/integrations/') || at % (/decisions\/\d/.test(path) ? 20 : 5) === 0,
    )
    let width = WIDE
    for (const path of opened) {
      const answer = await tab.page.goto(service.url + path, { waitUntil: 'load' })
      assert.equal(answer?.status(), 200, path)
      await tab.until(IS_READY)
      assert.equal(await tab.page.evaluate('document.querySelectorAll("main h1").length'), 1, `${path} has one heading`)
      assert.deepEqual(await tab.overflowing(), [], `${path} at ${width}`)
      // Each page is loaded at one width and resized to the other. The first width alternates.
      width = width === WIDE ? NARROW : WIDE
      await tab.page.setViewportSize({ width, height: 844 })
      assert.deepEqual(await tab.overflowing(), [], `${path} at ${width}`)
      tab.check()
    }
  })

  test('no table with up to five columns is cut at 1280 pixels', async () => {
    await using tab = await open(WIDE)
    const wide = `[...document.querySelectorAll('.vp-doc table')]
      .filter((table) => table.rows[0].cells.length <= 5 && table.scrollWidth > table.clientWidth + 1)
      .map((table) => table.innerText.slice(0, 40))`
    for (const path of [
      'guide/alerts',
      'operations/alerts',
      'reference/metrics',
      'reference/config',
      'reference/cli',
      'reference/cli/destinations',
    ]) {
      await tab.page.goto(`${service.url}/docs/${path}`, { waitUntil: 'load' })
      assert.deepEqual(await tab.page.evaluate(wide), [], path)
      // A wider table has a shadow at the edge where it goes on.
      const edges = `[...new Set([...document.querySelectorAll('.vp-doc table')].map((table) => getComputedStyle(table).backgroundAttachment))]`
      const found = await tab.page.evaluate<string[]>(edges)
      assert.ok(found.length > 0 || ['operations/alerts', 'reference/cli/destinations'].includes(path), `${path} has no table`)
      for (const edge of found) assert.equal(edge, 'local, local, scroll, scroll', path)
      // The page with all commands was 67,000 pixels high.
      if (path.startsWith('reference/cli'))
        assert.ok((await tab.page.evaluate<number>('document.documentElement.scrollHeight')) < 25_000, path)
    }
  })

  test('the text is set in Inter, which the service itself serves', async () => {
    await using tab = await open(WIDE)
    await tab.visit('/docs/')
    assert.match(await tab.page.evaluate<string>('getComputedStyle(document.body).fontFamily'), /^"?Inter Variable"?,/)
    await tab.until('document.fonts.check(\'1em "Inter Variable"\') && [...document.fonts].some(({ status }) => status === "loaded")')
    const fonts = tab.requested.filter((address) => address.endsWith('.woff2'))
    // Only one request, because the preloaded copy is used.
    assert.deepEqual(
      fonts.map((address) => address.replace(/\.[\w-]{8}\.woff2$/, '')),
      [`${service.url}/docs/assets/inter-latin-wght-normal`],
    )
    tab.check()
  })

  test('search finds a page by a word in it, and opens the page', async () => {
    await using tab = await open(NARROW)
    await tab.visit('/docs/')
    await tab.page.getByRole('button', { name: 'Search' }).click()
    await tab.page.locator('#localsearch-input').fill('SWITCHYARD_RETENTION_DAYS')
    const result = tab.page.locator('#localsearch-list a').first()
    await result.waitFor()
    assert.deepEqual(await tab.overflowing(), [])
    await result.click()
    await tab.page.waitForURL(/\/docs\/(reference|operations|guide)\//)
    await tab.page.locator('main h1').waitFor()
    tab.check()
  })

  test('navigation within the site does not reload the document, and code is highlighted', async () => {
    await using tab = await open(WIDE, 'dark')
    await tab.visit('/docs/')
    await tab.page.locator('.VPSidebar').getByRole('link', { name: 'OAuth 2.0' }).click()
    await tab.page.getByRole('heading', { level: 1, name: /OAuth/ }).waitFor()
    assert.equal(tab.requested.filter((address) => address.endsWith('/docs/guide/oauth')).length, 0, 'the document is not loaded again')
    const colours = await tab.page.evaluate<string[]>(
      `[...new Set([...document.querySelectorAll('.vp-code span span')].map((each) => getComputedStyle(each).color))]`,
    )
    assert.ok(colours.length > 2, `colours of code: ${colours.join(' ')}`)
    tab.check()
  })

  test('dark mode follows the system and the switch, and the choice is remembered', async () => {
    await using tab = await open(WIDE)
    const background = (): Promise<string> => tab.page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    await tab.visit('/docs/')
    assert.equal(await background(), 'rgb(255, 255, 255)')
    await tab.page.locator('.VPNavBar').getByRole('switch').click()
    await tab.until(`document.documentElement.classList.contains('dark')`)
    await tab.visit('/docs/')
    assert.equal(await background(), 'rgb(27, 27, 31)')
    await using other = await open(NARROW, 'dark')
    await other.visit('/docs/')
    assert.equal(await background(), await other.page.evaluate<string>('getComputedStyle(document.body).backgroundColor'))
    tab.check()
    other.check()
  })

  test('/docs/api redirects into the site; the search finds an operation by its path, and the operation links to its error codes', async () => {
    await using tab = await open(WIDE)
    await tab.visit('/docs/api')
    await tab.page.waitForURL(`${service.url}/docs/reference/http`)
    await tab.page.getByRole('button', { name: 'Search' }).click()
    await tab.page.locator('#localsearch-input').fill('/api/sources/{id}/write-keys')
    await tab.page.locator('#localsearch-list a').first().click()
    await tab.page.waitForURL(/\/docs\/reference\/http\/sources#post-apisourcesidwrite-keys$/)
    const command = tab.page.locator('.vp-code', { hasText: 'sources/SOURCE_ID/write-keys' }).first()
    assert.match((await command.textContent()) ?? '', /^curl "\$SWITCHYARD_URL\/api\/sources\/SOURCE_ID\/write-keys"/)
    await tab.page.locator('main').getByRole('link', { name: 'too_many_write_keys' }).click()
    await tab.page.waitForURL(`${service.url}/docs/reference/errors#too_many_write_keys`)
    await tab.until(`document.getElementById('too_many_write_keys')?.getBoundingClientRect().top < innerHeight`)
    tab.check()
  })

  test('an unknown address shows the 404 page of the site', async () => {
    await using tab = await open(NARROW)
    tab.expected.push(/status of 404/)
    const answer = await tab.page.goto(`${service.url}/docs/guide/nothing`)
    assert.equal(answer?.status(), 404)
    await tab.page.getByText('404').first().waitFor()
    tab.check()
  })

  test('axe-core finds no serious problems', async () => {
    const all = [
      ['/docs/', WIDE, 'light'],
      ['/docs/guide/oauth', NARROW, 'dark'],
      ['/docs/operations/alerts', WIDE, 'light'],
      ['/docs/reference/http', NARROW, 'light'],
      ['/docs/reference/http/destinations', WIDE, 'dark'],
    ] as const
    for (const [path, width, theme] of IS_LONG ? all : all.slice(0, 2)) {
      await using tab = await open(width, theme)
      await tab.visit(path)
      assert.deepEqual(await tab.accessibility(), [], `${path} ${width} ${theme}`)
    }
  })
})
