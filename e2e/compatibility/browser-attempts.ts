// The tests of each client for browsers, up to the webhook. One function per feature; differences between clients are in PageClient, so that
// every statement of browser-clients.ts is asserted here.

import assert from 'node:assert/strict'
import type { BrowserBench, PageRequest, PageSource, PageTab } from './browser-bench.ts'
import { installed } from './results.ts'

type Attempt = (bench: BrowserBench) => Promise<void>

export interface LoadOptions {
  /** At most three messages in a request. */
  batching?: boolean
  /** How it sends messages when the page is closed. */
  leaving?: boolean
}

export interface PageClient {
  /** The name and the lines of the script, which puts the client's class on the window. */
  script: string
  imports: string
  /** In the page: creates `analytics`, ready to be called. */
  load(host: string, writeKey: string, options?: LoadOptions): string
  /** In the page: the anonymous ID, or a promise of it. */
  anonymousId: string
  /** The paths that it requests at its start, and to which it sends batches. */
  settingsPath(writeKey: string): string
  batchPath: string
  /** What a page sees with an unknown write key. */
  unknownKey: RegExp
}

interface Opened {
  source: PageSource
  tab: PageTab
}

/** A page in which the client has loaded, and its requests to the gate since then. */
async function withPage(
  bench: BrowserBench,
  client: PageClient,
  options: LoadOptions,
  use: (opened: Opened & { requests: () => PageRequest[]; load: string }) => Promise<void>,
): Promise<void> {
  await bench.script(client.script, client.imports)
  await using source = await bench.source()
  await using tab = await bench.open(client.script)
  const from = bench.gate.requests.length
  const load = client.load(bench.gate.url, source.writeKey, options)
  await tab.run(load)
  await use({ source, tab, load, requests: () => bench.gate.requests.slice(from) })
}

const isPost = ({ method }: PageRequest): boolean => method === 'POST'

export function runsAsWritten(client: { installedAs: string }, setup: string): Attempt {
  return async (bench) => {
    await using source = await bench.source()
    const name = `written-${installed(client).version.replaceAll('.', '-')}`
    await bench.script(name, setup.replace('WRITE_KEY', source.writeKey).replaceAll('http://localhost:8080', bench.gate.url))
    await using tab = await bench.open(name)
    assert.equal((await source.got('Order Completed')).type, 'track')
    await source.books(1)
    assert.deepEqual([...tab.strangers], [])
  }
}

export interface KindsClaims {
  library: { name: string; version: string }
  screen: boolean
  /** Where the traits of an identify are. */
  traits: 'traits' | 'context.traits'
  /** The new ID of an alias to u-2 when u-1 has been identified. */
  aliasedTo: 'u-1' | 'u-2'
}

export function sendsAllKinds(client: PageClient, { library, screen, traits, aliasedTo }: KindsClaims): Attempt {
  return (bench) =>
    withPage(bench, client, {}, async ({ source, tab, requests }) => {
      await tab.run(`analytics.alias('u-1', 'a-0')`)
      await source.got('alias')
      await tab.run(`analytics.page('Docs', 'Home', { shown: true }); analytics.identify('u-1', { plan: 'pro' })`)
      await source.got('identify')
      await tab.run(`analytics.track('Order Completed', { total: 12.5, note: 'é ✓' }); analytics.group('g-1', { seats: 7 })`)
      assert.equal(await tab.run('typeof analytics.screen'), screen ? 'function' : 'undefined')
      if (screen) await tab.run(`analytics.screen('App', 'Welcome', { dark: true })`)
      await source.books(screen ? 6 : 5)
      const page = `${bench.origin}/${client.script}.html`
      const anonymousId = await tab.run<string>(client.anonymousId)
      for (const message of source.receiver.messages()) {
        const context = message['context'] as { page: { url: string }; ip: string; userAgent: string; library: object }
        assert.deepEqual([message['version'], message['anonymousId'], context.ip], [1, anonymousId, '127.0.0.1'])
        assert.match(context.userAgent, /Chrome/)
        assert.equal(context.page.url, page)
        assert.deepEqual({ ...context.library, ...library }, context.library)
        for (const time of ['timestamp', 'originalTimestamp', 'sentAt', 'receivedAt'])
          assert.match(String(message[time]), /^\d{4}-.*\.\d{3}Z$/)
      }
      const viewed = await source.got('page')
      assert.deepEqual([viewed['category'], viewed['name']], ['Docs', 'Home'])
      const { url, title, path, shown } = viewed['properties'] as Record<string, unknown>
      assert.deepEqual([url, title, path, shown], [page, 'Shop', new URL(page).pathname, true])
      const identified = await source.got('identify')
      const { traits: inContext } = identified['context'] as { traits?: object }
      assert.deepEqual([identified['userId'], traits === 'traits' ? identified['traits'] : inContext], ['u-1', { plan: 'pro' }])
      if (traits === 'context.traits') assert.deepEqual(identified['traits'], {})
      const tracked = await source.got('Order Completed')
      assert.deepEqual([tracked['userId'], tracked['properties']], ['u-1', { total: 12.5, note: 'é ✓' }])
      const grouped = await source.got('group')
      assert.deepEqual([grouped['groupId'], grouped['traits']], ['g-1', { seats: 7 }])
      const aliased = await source.got('alias')
      assert.deepEqual([aliased['User ID'], aliased['Previous ID']], ['u-1', 'a-0'])
      if (screen) assert.deepEqual([(await source.got('screen'))['name'], (await source.got('screen'))['category']], ['Welcome', 'App'])
      await tab.run(`analytics.alias('u-2', 'u-1')`)
      await source.books(screen ? 7 : 6)
      assert.equal(source.receiver.messages().at(-1)?.['User ID'], aliasedTo)
      // The page has another origin, so the browser has sent a preflight request.
      assert.ok(requests().some(({ method, status }) => method === 'OPTIONS' && status === 204))
    })
}

/** `cached`: whether the second page of a visit gets them from the browser's cache. */
export function loadsSettings(client: PageClient, { cached }: { cached: boolean }): Attempt {
  return (bench) =>
    withPage(bench, client, {}, async ({ source, tab, load, requests }) => {
      const settings = (): PageRequest[] => {
        const path = client.settingsPath(source.writeKey)
        return requests().filter(({ method, path: asked }) => method === 'GET' && asked.split('?')[0] === path)
      }
      await tab.run(`analytics.track('First')`)
      await source.got('First')
      assert.deepEqual(
        settings().map(({ status }) => status),
        [200],
      )
      await tab.leave('', client.script)
      await tab.run(load)
      await tab.run(`analytics.track('Second')`)
      await source.got('Second')
      assert.equal(settings().length, cached ? 1 : 2)
      await source.books(2)
    })
}

export function refusesUnknownKey(client: PageClient): Attempt {
  return async (bench) => {
    await bench.script(client.script, client.imports)
    await using tab = await bench.open(client.script)
    const from = bench.gate.requests.length
    await tab.run(`${client.load(bench.gate.url, 'nobody')}; undefined`)
    await tab.run(`void Promise.resolve(analytics.track('Lost')).catch(() => {})`)
    await bench.gate.until(() => bench.gate.requests.slice(from).some(({ status, method }) => method === 'GET' && status === 404))
    const { page } = tab
    const isSaid = (): boolean => tab.console.some((text) => client.unknownKey.test(text))
    while (!isSaid()) await page.waitForEvent('console', { timeout: 60_000 })
    assert.deepEqual(bench.gate.requests.slice(from).filter(isPost), [])
  }
}

export function batches(client: PageClient): Attempt {
  return async (bench) => {
    const sizes = async (options: LoadOptions): Promise<[path: string | undefined, messages: number][]> => {
      const found: [string | undefined, number][] = []
      await withPage(bench, client, options, async ({ source, tab, requests }) => {
        await tab.run(`for (let number = 0; number < 4; number++) analytics.track('Call ' + number)`)
        await source.books(4)
        for (const { path, text } of requests().filter(isPost))
          found.push([path, (JSON.parse(text) as { batch?: object[] }).batch?.length ?? 0])
      })
      return found
    }
    const alone = await sizes({})
    assert.deepEqual(
      alone.map(([, messages]) => messages),
      [0, 0, 0, 0],
      'each on its own, and not as a batch',
    )
    assert.deepEqual(await sizes({ batching: true }), [
      [client.batchPath, 3],
      [client.batchPath, 1],
    ])
  }
}

/** Three calls that the service does not get, and three whose answer is lost. */
export function retries(client: PageClient, options: LoadOptions = {}): Attempt {
  return (bench) =>
    withPage(bench, client, options, async ({ source, tab, requests }) => {
      const failing = options.batching === true ? 1 : 3
      for (const [at, way] of (['down', 'losing'] as const).entries()) {
        const from = requests().length
        bench.gate[way] = true
        try {
          await tab.run(`for (let number = 0; number < 3; number++) analytics.track('${way} ' + number)`)
          await bench.gate.until(
            () =>
              requests()
                .slice(from)
                .filter(({ status }) => status === 503).length >= failing,
          )
        } finally {
          bench.gate[way] = false
        }
        const taken = (): number =>
          requests()
            .slice(from)
            .filter((request) => isPost(request) && request.status === 200).length
        await tab.later(() => taken() >= failing)
        await source.books(3 * (at + 1))
      }
      const { accepted, duplicates, rejected } = await source.stats()
      assert.deepEqual([accepted, rejected], [6, 0])
      assert.ok(duplicates >= 3, 'what was stored and came again was known')
    })
}

export function waitsForNetwork(client: PageClient): Attempt {
  return (bench) =>
    withPage(bench, client, {}, async ({ source, tab, requests }) => {
      await tab.run(`analytics.track('Before')`)
      await source.got('Before')
      await tab.context.setOffline(true)
      await tab.run(`analytics.track('Offline 1'); analytics.track('Offline 2')`)
      assert.equal(await tab.run('navigator.onLine'), false)
      assert.equal(requests().filter(isPost).length, 1)
      await tab.context.setOffline(false)
      await tab.later(() => source.receiver.arrivals.length >= 3)
      await source.books(3)
    })
}

/** `call`: creates a new anonymous ID; `kept`: does not change it. */
export function resets(client: PageClient, { call, kept }: { call: string; kept?: string }): Attempt {
  return (bench) =>
    withPage(bench, client, {}, async ({ source, tab }) => {
      await tab.run(`analytics.identify('u-1'); analytics.track('Known')`)
      const { userId, anonymousId } = await source.got('Known')
      assert.deepEqual([userId, anonymousId], ['u-1', await tab.run(client.anonymousId)])
      if (kept !== undefined) {
        await tab.run(`${kept}; analytics.track('Kept')`)
        const { userId: nobody, anonymousId: same } = await source.got('Kept')
        assert.deepEqual([nobody || null, same], [null, anonymousId])
      }
      await tab.run(`${call}; analytics.track('New')`)
      const { userId: nobody, anonymousId: other } = await source.got('New')
      assert.deepEqual([nobody || null, other], [null, await tab.run(client.anonymousId)])
      assert.notEqual(other, anonymousId)
      await source.books(kept === undefined ? 3 : 4)
    })
}

/** Called while the page is being closed. */
export function outlivesPage(client: PageClient, options: LoadOptions = { leaving: true }): Attempt {
  return (bench) =>
    withPage(bench, client, options, async ({ source, tab }) => {
      await tab.leave(`analytics.track('Last Words')`)
      await source.got('Last Words')
      await source.books(1)
    })
}

/** It sends the message at once and also keeps it for the next page; the service recognises the duplicate by its ID. */
export function sendsAgainFromNextPage(client: PageClient): Attempt {
  return (bench) =>
    withPage(bench, client, {}, async ({ source, tab, load, requests }) => {
      // The gate delays the answer; without it, this would be a race.
      bench.gate.losing = true
      await tab.leave(`analytics.track('Last Words')`, client.script).finally(() => {
        bench.gate.losing = false
      })
      await tab.run(load)
      await source.got('Last Words')
      await bench.gate.until(() => requests().some(({ headers, status }) => 'x-retry-count' in headers && status === 200))
      await source.books(1)
      const { accepted, duplicates } = await source.stats()
      assert.ok(accepted === 1 && duplicates <= 1)
    })
}

/** It keeps unanswered messages, and the next page sends them after a while. */
export function sendsLaterFromNextPage(client: PageClient, options: LoadOptions = {}): Attempt {
  return (bench) =>
    withPage(bench, client, options, async ({ source, tab, load }) => {
      bench.gate.down = true
      await tab.leave(`analytics.track('Last Words')`, client.script).finally(() => {
        bench.gate.down = false
      })
      await tab.run(load)
      await tab.later(() => source.receiver.arrivals.length > 0)
      await source.books(1)
    })
}

/** `imports` loads code from `host`, and sends nothing without it. */
export function dependsOn(client: PageClient, imports: string, host: string): Attempt {
  return async (bench) => {
    const script = `${client.script}-default`
    await bench.script(script, imports)
    await using source = await bench.source()
    const tab = await bench.open('blank')
    try {
      await tab.context.route(`https://${host}/**`, (route) => route.abort())
      await tab.page.goto(`${bench.origin}/${script}.html`)
      const from = bench.gate.requests.length
      const asked = tab.page.waitForRequest((request) => new URL(request.url()).host === host)
      const failed = tab.page.waitForEvent('console', (message) => /Failed to load plugin "XhrQueue"/.test(message.text()))
      await tab.run(client.load(bench.gate.url, source.writeKey))
      await tab.run(`analytics.track('Lost')`)
      await Promise.all([asked, failed])
      assert.deepEqual([...tab.strangers], [host])
      assert.deepEqual(bench.gate.requests.slice(from).filter(isPost), [])
    } finally {
      await tab.context.close()
    }
  }
}

/** Uses all features of the client, and checks that no other host gets a request: see PageTab. */
export function asksNobodyElse(client: PageClient): Attempt {
  return (bench) =>
    withPage(bench, client, { batching: true, leaving: true }, async ({ source, tab }) => {
      await tab.run(`analytics.page(); analytics.identify('u-1'); analytics.track('Tested')`)
      await source.books(3)
      assert.deepEqual([...tab.strangers], [])
    })
}
