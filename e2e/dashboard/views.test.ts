// Every page of the dashboard, with the traffic of a shop and in an empty installation, at 1280 and 390 pixels, light and dark: nothing is
// wider than the window, axe-core finds nothing serious, the console has no errors, and no request leaves the service (see browser.ts).

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { PAGE_PATHS } from '../../packages/server/src/pages/paths.ts'
import { IS_LONG } from '../system/long-tests.ts'
import { NARROW, startBrowser, type Tab, type TestBrowser, type Theme, WIDE } from './browser.ts'
import { end, type Scene, startScene, TABS } from './scene.ts'

/** Focuses one element after the other, and returns those whose outline reaches out of a box that cuts it off. */
const CUT_RINGS = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].flatMap((element) => {
  element.focus({ focusVisible: true, preventScroll: true })
  const style = getComputedStyle(element)
  const out = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset)
  if (document.activeElement !== element || style.outlineStyle === 'none' || out <= 0) return []
  let box = element.parentElement
  while (box !== document.body && getComputedStyle(box).overflowX === 'visible' && getComputedStyle(box).overflowY === 'visible') box = box.parentElement
  if (box === document.body) return []
  const [own, edge] = [element.getBoundingClientRect(), box.getBoundingClientRect()]
  const isCut = own.left - out < edge.left - 0.5 || own.right + out > edge.right + 0.5 || own.top - out < edge.top - 0.5 || own.bottom + out > edge.bottom + 0.5
  const isScrolledAway = own.bottom < edge.top || own.top > edge.bottom || own.right < edge.left || own.left > edge.right
  return isCut && !isScrolledAway ? [element.tagName + ' ' + (element.getAttribute('aria-label') ?? element.textContent).slice(0, 40) + ' in ' + box.className] : []
})`

let browser: TestBrowser
let full: Scene
let empty: Scene

before(async () => {
  ;[browser, full, empty] = await Promise.all([startBrowser(), startScene(), startScene({ empty: true })])
})
after(() => end(browser, full, empty))

/** The URLs of all pages, and some with filters or tabs. */
const addresses = (scene: Scene): string[] => [
  ...new Set([
    ...PAGE_PATHS.map((path) => scene.views[path] as string),
    ...TABS.map((tab) => `/settings/${tab}`),
    '/deliveries?state=failed',
    '/messages?type=track',
  ]),
]

type Look = [width: number, theme: Theme, withAxe: boolean]

/**
 * Switching colours and axe-core take most of the time. So by default half of the pages are tested in light and half in dark, each at both
 * widths and with axe-core at one of them. With SWITCHYARD_LONG_TESTS=1 every page is tested in all four combinations.
 */
const looksAt = (at: number): Look[] =>
  IS_LONG
    ? [WIDE, NARROW].flatMap((width) => (['light', 'dark'] as const).map((theme): Look => [width, theme, true]))
    : at % 2 === 0
      ? [
          [NARROW, 'light', false],
          [WIDE, 'light', true],
        ]
      : [
          [WIDE, 'dark', false],
          [NARROW, 'dark', true],
        ]

/** The pages that are tested in light come first. */
const inTurn = (scene: Scene, first: 0 | 1): [address: string, looks: Look[]][] =>
  addresses(scene)
    .map((address, at): [number, string] => [(at + first) % 2, address])
    .sort(([a], [b]) => a - b)
    .map(([turn, address]) => [address, looksAt(turn)])

async function findings(tab: Tab, looks: Look[]): Promise<string[]> {
  const found: string[] = []
  for (const [width, theme, withAxe] of looks) {
    await tab.look(width, theme)
    const where = `${width} ${theme}`
    found.push(...(await tab.overflowing()).map((each) => `${where}: too wide: ${each}`))
    if (!withAxe) continue
    for (const { id, impact, help, nodes } of await tab.accessibility())
      found.push(`${where}: ${impact} ${id}: ${help}\n    ${nodes.join('\n    ')}`)
  }
  return found
}

suite('views', { concurrency: 2 }, () => {
  test('with the traffic of a shop: no overflow and no serious axe-core findings, at both widths and in both themes', async (t) => {
    await using tab = await browser.open(full.service)
    for (const [address, looks] of inTurn(full, 0)) {
      await t.test(address, async () => {
        await tab.go(address)
        assert.match(await tab.page.title(), /.+ · Switchyard$/)
        assert.deepEqual(await findings(tab, looks), [])
        tab.check()
      })
    }
  })

  test('in an empty installation and for unknown ids: no overflow and no serious axe-core findings', async (t) => {
    await using tab = await browser.open(empty.service, { width: NARROW })
    // Requests for unknown ids get 404, which the browser logs as an error.
    tab.expected.push(/status of 404/)
    for (const [address, looks] of inTurn(empty, 1)) {
      await t.test(address, async () => {
        await tab.go(address)
        // Less text fits more easily: the other width is for the pages with the traffic of a shop.
        assert.deepEqual(await findings(tab, IS_LONG ? looks : looks.slice(-1)), [])
        tab.check()
      })
    }
  })

  test('a switch of the theme changes the colours of cards out of sight at once', async () => {
    await using tab = await browser.open(empty.service, { theme: 'light' })
    await tab.visit('/catalog')
    for (const theme of ['dark', 'light'] as const) {
      await tab.look(WIDE, theme)
      // axe-core reads the styles of cards that were never laid out: a transition of colours would begin then, with the colours of the other theme.
      assert.deepEqual(await tab.accessibility(), [], theme)
    }
  })

  test('the ring of the focus keeps its sides: no box cuts it off', async () => {
    await using tab = await browser.open(full.service)
    for (const path of ['/', '/destinations/:id', '/deliveries', '/messages', '/plans', '/live']) {
      await tab.go(full.views[path] as string)
      assert.deepEqual(await tab.page.evaluate<string[]>(CUT_RINGS), [], path)
    }
  })

  test('the login form has no overflow and no serious axe-core findings, also with a wrong token', async () => {
    await using tab = await browser.open(empty.service, { token: null, width: NARROW })
    tab.expected.push(/status of 401/)
    await tab.visit('/')
    await tab.page.getByLabel('Control token').fill('wrong')
    await tab.page.getByRole('button', { name: 'Log in' }).click()
    await tab.page.getByText('Invalid token. Enter a control token of this service.').waitFor()
    const looks: Look[] = [
      [NARROW, 'light', true],
      [WIDE, 'dark', true],
    ]
    assert.deepEqual(await findings(tab, looks), [])
  })

  test('a login link opens its page and removes the token from the URL; with a wrong token the login form is shown', async () => {
    await using tab = await browser.open(empty.service, { token: null })
    tab.expected.push(/status of 401/)
    const { url, token } = empty.service
    await tab.visit('/sources?from=link#token=wrong')
    await tab.page.getByLabel('Control token').waitFor()
    assert.equal(tab.page.url(), `${url}/sources?from=link`)
    await tab.page.goto('about:blank')
    await tab.visit(`/sources?from=link#token=${token}`)
    await tab.page.getByRole('heading', { level: 1, name: 'Sources' }).waitFor()
    assert.equal(tab.page.url(), `${url}/sources?from=link`)
    assert.equal(await tab.page.evaluate<boolean>(`document.documentElement.outerHTML.includes(${JSON.stringify(token)})`), false)
  })
})
