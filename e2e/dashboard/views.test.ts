// Every view, with what a shop sends and as after the first start: at 1280 and 390 pixels, light and dark. Nothing is wider than the
// window, axe-core finds nothing serious, the console stays clean, and no request leaves the service (see browser.ts).

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { PAGE_PATHS } from '../../packages/server/src/dashboard/paths.ts'
import { IS_LONG } from '../long-tests.ts'
import { NARROW, startBrowser, type Tab, type TestBrowser, type Theme, WIDE } from './browser.ts'
import { end, type Scene, startScene, TABS } from './scene.ts'

let browser: TestBrowser
let full: Scene
let empty: Scene

before(async () => {
  ;[browser, full, empty] = await Promise.all([startBrowser(), startScene(), startScene({ empty: true })])
})
after(() => end(browser, full, empty))

/** Addresses that the dashboard is answered under, and what is chosen in them. */
const addresses = (scene: Scene): string[] => [
  ...PAGE_PATHS.map((path) => scene.views[path] as string),
  ...TABS.map((tab) => `/settings/${tab}`),
  '/deliveries?state=failed',
  '/messages?type=track',
]

type Look = [width: number, theme: Theme, withAxe: boolean]

/**
 * Drawing a view in other colours and axe-core take longest. So every day half of the views are seen in light and half in dark, each at
 * both widths and held to axe-core at one; with SWITCHYARD_LONG_TESTS=1 each in all four looks.
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

/** First those that are seen in light. */
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
  test('with a shop’s traffic: no overflow, nothing serious for axe-core, in both widths and themes', async (t) => {
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

  test('in an empty installation, and of what is not there: likewise', async (t) => {
    await using tab = await browser.open(empty.service, { width: NARROW })
    // What is asked for by an id is not there, and the browser notes that.
    tab.expected.push(/status of 404/)
    for (const [address, looks] of inTurn(empty, 1)) {
      await t.test(address, async () => {
        await tab.go(address)
        assert.deepEqual(await findings(tab, looks), [])
        tab.check()
      })
    }
  })

  test('the login: no overflow, nothing serious, also with a wrong token', async () => {
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

  test('a link with a token in its fragment logs in where it leads to, and the token is gone from the address; a wrong one asks', async () => {
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
