// A real Chromium for the tests of the dashboard: one per test file, with a separate tab (cookies, width, theme) per test. Each tab collects
// errors in the console (which include violations of the content security policy), exceptions, and requests to anywhere but the service.
// They fail the test that calls check(), or else the test file.
//
//   await using browser = await startBrowser()
//   await using tab = await browser.open(service, { width: 390, theme: 'dark' })     logged in
//   await tab.visit('/sources')                                                       loaded and rendered, no request in flight
//   tab.page.getByRole('button', { name: 'Replay' })                                  playwright's page
//   tab.expected.push(/404/)                                                          this error is expected

import { existsSync, lstatSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type BrowserContext, type CDPSession, type Browser as Chromium, chromium, type Page } from 'playwright-core'
import type { Service } from '../system/service.ts'
import { DEADLINE_MS, eventually } from '../system/signals.ts'

/** Chromium's sandbox does not work for root in a container. The isolation of pages from each other stays enabled. */
const ARGS = ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none', '--hide-scrollbars', '--disable-dev-shm-usage']
const QUIET_MS = 80

export type Theme = 'light' | 'dark'
export const WIDE = 1280
export const NARROW = 390
/** Every width with every theme. */
export const LOOKS: readonly (readonly [width: number, theme: Theme])[] = [
  [WIDE, 'light'],
  [NARROW, 'light'],
  [NARROW, 'dark'],
  [WIDE, 'dark'],
]

export interface TabOptions {
  width?: number
  height?: number
  theme?: Theme
  /** The token to log in with; null to stay logged out. Default: the service's admin token. */
  token?: string | null
  /** Device pixels per CSS pixel. */
  scale?: number
}

export interface Finding {
  id: string
  impact: string
  help: string
  nodes: string[]
}

export interface Tab extends AsyncDisposable {
  page: Page
  context: BrowserContext
  /** The errors so far. */
  problems: string[]
  /** Patterns of expected errors. */
  expected: RegExp[]
  /** The URLs of all requests. */
  requested: string[]
  /** Opens a page and waits until it is rendered. */
  visit(path: string): Promise<void>
  /** Navigates without a reload, as a link does, which is much faster. Opens the page if none is open yet. */
  go(path: string): Promise<void>
  /** Waits until nothing is loading and no request is in flight. */
  settled(): Promise<void>
  /** Waits until an expression in the page is truthy, and returns its value. */
  until<T>(expression: string): Promise<T>
  look(width: number, theme: Theme): Promise<void>
  /** The elements that are wider than the window, outermost first. */
  overflowing(): Promise<string[]>
  /** The serious and critical findings of axe-core. */
  accessibility(): Promise<Finding[]>
  /** The bytes of the page's heap, by default after a garbage collection. */
  heap(options?: { isSwept?: boolean }): Promise<number>
  /** Throws if there were errors since the last call. */
  check(): void
}

export interface TestBrowser extends AsyncDisposable {
  chromium: Chromium
  open(service: Pick<Service, 'url' | 'token'>, options?: TabOptions): Promise<Tab>
}

export async function startBrowser(): Promise<TestBrowser> {
  const instance = await launch()
  const tabs: Tab[] = []
  return {
    chromium: instance,
    async open(service, options = {}) {
      const tab = await openTab(instance, service, options)
      tabs.push(tab)
      return tab
    },
    async [Symbol.asyncDispose]() {
      await instance.close()
      for (const tab of tabs) tab.check()
    },
  }
}

async function openTab(instance: Chromium, { url, token: admin }: Pick<Service, 'url' | 'token'>, options: TabOptions): Promise<Tab> {
  const { width = WIDE, height = width === NARROW ? 844 : 900, theme = 'light', token = admin, scale = 1 } = options
  const context = await instance.newContext({
    viewport: { width, height },
    colorScheme: theme,
    deviceScaleFactor: scale,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
  })
  context.setDefaultTimeout(DEADLINE_MS)
  if (token !== null) {
    const answer = await context.request.post(`${url}/api/login`, { data: { token } })
    if (!answer.ok()) throw new Error(`login: ${answer.status()} ${await answer.text()}`)
  }
  const page = await context.newPage()
  const problems: string[] = []
  const requested: string[] = []
  const expected: RegExp[] = []
  const inFlight = new Set<unknown>()
  let quietSince = performance.now()
  let tools: CDPSession | undefined
  const { origin } = new URL(url)

  page.on('console', (message) => {
    if (message.type() !== 'error') return
    const at = message.location().url
    // The page asks for the session to find out whether somebody is logged in.
    if (at.endsWith('/api/session') && message.text().includes('401')) return
    problems.push(`console: ${message.text()} (${at})`)
  })
  page.on('pageerror', (error) => problems.push(`exception: ${error.stack ?? error.message}`))
  page.on('request', (request) => {
    const address = request.url()
    requested.push(address)
    if (!address.startsWith('data:') && new URL(address).origin !== origin) problems.push(`left the service: ${address}`)
    // The stream of live events never ends.
    if (!new URL(address).pathname.startsWith('/api/live')) inFlight.add(request)
  })
  const done = (request: unknown): void => {
    if (inFlight.delete(request) && inFlight.size === 0) quietSince = performance.now()
  }
  page.on('requestfinished', done)
  page.on('requestfailed', done)

  const settled = async (): Promise<void> => {
    await eventually(
      async () => ({
        waiting: await page.evaluate<string>(BUSY),
        requests: inFlight.size,
        quietMs: performance.now() - quietSince,
      }),
      ({ waiting, requests, quietMs }) => {
        if (problems.some((problem) => problem.startsWith('exception'))) tab.check()
        return waiting === '' && requests === 0 && quietMs >= QUIET_MS
      },
      { what: `${page.url()} is drawn`, state: () => problems.join('\n') },
    )
  }
  const tab: Tab = {
    page,
    context,
    problems,
    expected,
    requested,
    async visit(path) {
      await page.goto(url + path)
      await settled()
    },
    async go(path) {
      if (!page.url().startsWith(url)) return tab.visit(path)
      quietSince = performance.now()
      await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)}); ${TWO_FRAMES}`)
      await settled()
    },
    settled,
    // Not with Playwright's own waiting, which uses eval in the page: the content security policy forbids that.
    until: <T>(expression: string) => eventually(() => page.evaluate<T>(expression), Boolean, { what: expression }),
    async look(nextWidth, nextTheme) {
      await page.setViewportSize({ width: nextWidth, height: nextWidth === NARROW ? 844 : 900 })
      await page.emulateMedia({ colorScheme: nextTheme, reducedMotion: 'reduce' })
      await tab.until(`document.documentElement.dataset.mantineColorScheme === '${nextTheme}'`)
      // Wait until charts have been redrawn at the new width and colour transitions have ended.
      await tab.until(
        'document.getAnimations().every(({ playState, effect }) => playState !== "running" || effect?.getTiming().iterations === Infinity)',
      )
      await page.evaluate(TWO_FRAMES)
    },
    overflowing: () => page.evaluate<string[]>(OVERFLOWING),
    async accessibility() {
      if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(`${axeSource()}; undefined`)
      return page.evaluate<Finding[]>(AXE)
    },
    async heap({ isSwept = true } = {}) {
      tools ??= await context.newCDPSession(page)
      if (isSwept) await tools.send('HeapProfiler.collectGarbage')
      return (await tools.send('Runtime.getHeapUsage')).usedSize
    },
    check() {
      const real = problems.splice(0).filter((problem) => !expected.some((pattern) => pattern.test(problem)))
      if (real.length > 0) throw new Error(`Errors in the page at ${page.url()}:\n${real.join('\n')}`)
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
  return tab
}

/** Waits until pending changes have been rendered. */
const TWO_FRAMES = 'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 30))))'

/** Returns what is still loading; empty if nothing is. */
const BUSY = `(() => {
  if (document.readyState !== 'complete') return 'document'
  if (document.querySelector('h1') === null) return 'no heading'
  const busy = document.querySelector('[aria-busy="true"]')
  return busy === null ? '' : 'busy: ' + (busy.getAttribute('aria-label') ?? busy.tagName)
})()`

/**
 * Returns whether the document is wider than the window, and elements beyond its edge that no scrolling or clipping box contains. Notifications
 * are ignored, because they slide out over the edge.
 */
const OVERFLOWING = `(() => {
  const width = document.documentElement.clientWidth
  const found = []
  if (document.documentElement.scrollWidth > width) found.push('document: ' + document.documentElement.scrollWidth + ' of ' + width)
  if (document.body.scrollWidth > width) found.push('body: ' + document.body.scrollWidth + ' of ' + width)
  const clipped = (element) => {
    for (let box = element.parentElement; box !== null && box !== document.body; box = box.parentElement) {
      const { overflowX, position } = getComputedStyle(box)
      if (overflowX !== 'visible') return true
      if (position === 'fixed') return false
    }
    return false
  }
  for (const element of document.body.querySelectorAll('*')) {
    const { left, right, width: own, height } = element.getBoundingClientRect()
    if (own === 0 || height === 0 || (right <= width + 1 && left >= -1)) continue
    const style = getComputedStyle(element)
    if (style.visibility === 'hidden' || style.position === 'fixed' || element.closest('.skip-link, [aria-hidden="true"], svg, nav, .mantine-Notifications-root') !== null) continue
    if (clipped(element)) continue
    found.push(element.tagName.toLowerCase() + '.' + String(element.className).slice(0, 80) + ' ' + Math.round(left) + '…' + Math.round(right) + ': ' + (element.textContent ?? '').slice(0, 60))
    if (found.length > 8) break
  }
  return found
})()`

/** Without the rules whose findings are at most moderate: they would be dropped below, and take a quarter of the time. */
const AXE = `axe.run(document, {
  resultTypes: ['violations'],
  rules: Object.fromEntries(axe._audit.rules.filter(({ impact }) => !['serious', 'critical'].includes(impact)).map(({ id }) => [id, { enabled: false }])),
}).then(({ violations }) =>
  violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, impact, help, nodes }) => ({ id, impact, help, nodes: nodes.slice(0, 6).map(({ html, failureSummary }) => html.slice(0, 300) + ' — ' + failureSummary.replaceAll('\\n', ' ').slice(0, 260)) })))`

let axe: string | undefined
function axeSource(): string {
  return (axe ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'))
}

async function launch(): Promise<Chromium> {
  const own = process.env['SWITCHYARD_TEST_BROWSER']
  if (own !== undefined) return chromium.launch({ executablePath: own, args: ARGS, headless: true })
  // The package has a binary for Linux on x64 only; elsewhere the installed Chrome is used.
  if (process.platform !== 'linux' || process.arch !== 'x64') return chromium.launch({ channel: 'chrome', args: ARGS, headless: true })
  const folder = await unpacked()
  const executablePath = join(folder, 'chromium')
  try {
    return await chromium.launch({ executablePath, args: ARGS, headless: true })
  } catch {
    // The system lacks the shared libraries that Chromium needs: use those of the package.
    const LD_LIBRARY_PATH = join(folder, 'al2023', 'lib')
    const env = { ...(process.env as Record<string, string>), LD_LIBRARY_PATH, FONTCONFIG_PATH: join(folder, 'fonts') }
    return chromium.launch({ executablePath, args: ARGS, headless: true, env })
  }
}

/** Unpacks Chromium once per version and user. If other test files do so at the same time, the first to finish wins. */
async function unpacked(): Promise<string> {
  const packed = join(dirname(createRequire(import.meta.url).resolve('@sparticuz/chromium')), '..')
  const { version } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as { version: string }
  const cache = process.env['SWITCHYARD_TEST_CACHE'] ?? tmpdir()
  const folder = join(cache, `switchyard-chromium-${version}-${process.getuid?.()}`)
  if (existsSync(folder)) {
    // Every user can write to the temporary folder: another user may have created a folder of this name.
    const { uid, mode } = lstatSync(folder)
    if (uid === process.getuid?.() && (mode & 0o170_077) === 0o040_000) return folder
    throw new Error(`${folder} must be a folder of this user that nobody else can open. Remove it and run the tests again.`)
  }
  const { inflate } = await import('@sparticuz/chromium')
  const place = mkdtempSync(join(cache, 'switchyard-chromium-'))
  const before = process.env['TMPDIR']
  process.env['TMPDIR'] = place
  try {
    // The target folder is read from TMPDIR within the call.
    const parts = ['chromium.br', 'fonts.tar.br', 'al2023.tar.br'].map((name) => inflate(join(packed, 'bin', name)))
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
    await Promise.all(parts)
    renameSync(place, folder)
  } catch (error) {
    rmSync(place, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
  return folder
}
