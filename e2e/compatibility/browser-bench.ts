// The environment for a client in a browser: a real Chromium, a page of another origin than the service, the service in a separate process, a
// webhook, and a gate in front of the service that records what the page sends and can answer 503. The scripts are bundled, as users do it. A
// request to any other host fails the test.
//
//   await using source = await bench.source()                       a new source with a webhook, for one test
//   await using tab = await bench.open('segment')                   a page with that script, in a new browser profile
//   await tab.run(`analytics.track('Tested')`)                      in the page
//   bench.gate.down = true                                          answers 503 to everything except preflights, and forwards nothing
//   bench.gate.losing = true                                        answers 503, but forwards the request: the answer is lost
//   await source.books(2)                                           both are delivered once, and nothing else is pending

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request as passOn, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import type { BrowserContext, Page } from 'playwright-core'
import { startBrowser } from '../dashboard/browser.ts'
import { type ReceivedMessage, type Receiver, startReceiver } from '../system/receiver.ts'
import { type LedgerRow, type Service, startService } from '../system/service.ts'
import { eventually, Signals, type Waiting } from '../system/signals.ts'
import { type Wiring, wire } from '../system/wiring.ts'

export interface PageRequest {
  method: string
  path: string
  headers: Record<string, string>
  text: string
  /** Null while it is in flight. */
  status: number | null
}

export interface Gate {
  url: string
  down: boolean
  losing: boolean
  requests: PageRequest[]
  until(condition: () => boolean, waiting?: Waiting): Promise<void>
}

export interface PageSource extends Wiring, AsyncDisposable {
  receiver: Receiver
  /** Waits until so many are delivered. Fails if there are more. */
  books(delivered: number): Promise<void>
  /** Waits for the message of this type or event name at the webhook. */
  got(name: string): Promise<ReceivedMessage>
  stats(): Promise<{ accepted: number; duplicates: number; rejected: number }>
}

export interface PageTab extends AsyncDisposable {
  page: Page
  context: BrowserContext
  /** The output of the page's console. */
  console: string[]
  /** Other hosts that got requests. */
  strangers: Set<string>
  /** Evaluates in the page, and awaits promises. */
  run<T = unknown>(lines: string): Promise<T>
  /** Moves the clock of the page by seconds until the condition holds, for clients that wait before a retry. */
  later(condition: () => boolean): Promise<void>
  /** Goes to another page of the same origin, like a click, while the lines before it are still running. */
  leave(lines: string, script?: string): Promise<void>
}

export interface BrowserBench extends AsyncDisposable {
  service: Service
  gate: Gate
  /** The origin of the pages. */
  origin: string
  source: () => Promise<PageSource>
  /** Adds a script with this name: bundled lines, or an unchanged file. */
  script: (name: string, lines: string | URL) => Promise<void>
  open: (script: string, options?: { headers?: Record<string, string> }) => Promise<PageTab>
}

export async function startBrowserBench(): Promise<BrowserBench> {
  const [service, browser] = await Promise.all([startService(), startBrowser()])
  const gateServer = await startGate(service.url)
  const scripts = new Map<string, string>([['blank', '']])
  const pageHeaders = new Map<string, Record<string, string>>()
  const pages = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://page')
    const [, name = '', kind] = /^\/([\w-]+)\.(js|html)$/.exec(pathname) ?? []
    const script = scripts.get(name)
    if (script === undefined) response.writeHead(404).end()
    else if (kind === 'js') response.writeHead(200, { 'content-type': 'text/javascript; charset=utf-8' }).end(script)
    else {
      const own = pageHeaders.get(searchParams.get('headers') ?? '') ?? {}
      const lines = `<title>Shop</title><link rel="icon" href="data:,"><script src="/${name}.js"></script>`
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...own }).end(`<!doctype html><html lang="en">${lines}</html>`)
    }
  })
  const origin = await listening(pages)

  return {
    service,
    gate: gateServer.gate,
    origin,
    source: () => newSource(service),
    async script(name, lines) {
      if (!scripts.has(name)) scripts.set(name, lines instanceof URL ? readFileSync(lines, 'utf8') : await bundled(lines))
    },
    async open(script, { headers } = {}) {
      const context = await browser.chromium.newContext()
      const page = await context.newPage()
      const said: string[] = []
      const strangers = new Set<string>()
      const exceptions: string[] = []
      page.on('console', (message) => void said.push(message.text()))
      page.on('pageerror', (error) => void exceptions.push(error.message))
      page.on('request', (request) => {
        const address = new URL(request.url())
        if (address.protocol !== 'data:' && address.origin !== origin && address.origin !== gateServer.gate.url) strangers.add(address.host)
      })
      await context.clock.install()
      if (headers !== undefined) pageHeaders.set(script, headers)
      await page.goto(`${origin}/${script}.html${headers === undefined ? '' : `?headers=${script}`}`)
      return {
        page,
        context,
        console: said,
        strangers,
        run: (lines) => page.evaluate(lines),
        async later(condition) {
          const look = async (): Promise<boolean> => {
            if (!condition()) await context.clock.fastForward(500)
            return condition()
          }
          await eventually(look, Boolean, { what: String(condition), deadlineMs: 20_000 })
        },
        async leave(lines, next = 'blank') {
          await page.evaluate(`${lines}; location.href = '/${next}.html?next'; undefined`)
          await page.waitForURL('**/*?next')
        },
        async [Symbol.asyncDispose]() {
          await context.close()
          assert.deepEqual(exceptions, [])
          assert.deepEqual(
            said.filter((text) => text.includes('CORS policy')),
            [],
          )
          assert.deepEqual([...strangers], [], 'the page asked somebody else')
        },
      }
    },
    async [Symbol.asyncDispose]() {
      await browser[Symbol.asyncDispose]()
      for (const server of [gateServer.server, pages]) {
        server.close()
        server.closeAllConnections()
      }
      await service[Symbol.asyncDispose]()
    },
  }
}

async function bundled(lines: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: lines, resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    logLevel: 'error',
  })
  return outputFiles[0]?.text ?? ''
}

async function newSource(service: Service): Promise<PageSource> {
  const receiver = await startReceiver()
  const wiring = await wire(service, { urls: [receiver.url] })
  const find = (name: string): ReceivedMessage | undefined => receiver.messages().find(({ type, event }) => (event ?? type) === name)
  return {
    ...wiring,
    receiver,
    async books(delivered) {
      const row = await eventually(
        async () => (await service.ledger()).find(({ destinationId }) => destinationId === wiring.destinationId),
        (found) => (found?.delivered ?? 0) >= delivered && (found?.pending ?? 0) === 0,
        { what: `${delivered} delivered`, deadlineMs: 20_000 },
      )
      const { owed, delivered: counted } = row ?? ({ owed: 0, delivered: 0 } as LedgerRow)
      assert.deepEqual(
        { owed, delivered: counted, requests: receiver.arrivals.length },
        { owed: delivered, delivered, requests: delivered },
      )
    },
    async got(name) {
      await receiver.until(() => find(name) !== undefined, { what: `${name} at the webhook`, deadlineMs: 20_000 })
      return find(name) as ReceivedMessage
    },
    async stats() {
      const { data } = await service.api<{ data: { sourceId: string; accepted: number; duplicates: number; rejected: number }[] }>(
        '/stats/totals',
      )
      const row = data.find(({ sourceId }) => sourceId === wiring.sourceId)
      return { accepted: row?.accepted ?? 0, duplicates: row?.duplicates ?? 0, rejected: row?.rejected ?? 0 }
    },
    [Symbol.asyncDispose]: () => receiver.close(),
  }
}

async function startGate(target: string): Promise<{ gate: Gate; server: Server }> {
  const signals = new Signals()
  const { hostname, port } = new URL(target)
  const requests: PageRequest[] = []
  const server = createServer((request, response) => {
    void wholeOf(request).then(
      (bytes) => {
        const { method = '', url = '', headers } = request
        const seen: PageRequest = { method, path: url, headers: headers as Record<string, string>, text: bytes.toString(), status: null }
        requests.push(seen)
        const answered = (status: number): void => {
          seen.status = status
          signals.notify()
        }
        // As the service answers while its store is unavailable.
        const refuse = (): void => {
          response.writeHead(503, { 'retry-after': '1', 'access-control-allow-origin': '*', 'content-type': 'application/json' })
          response.end('{"success":false}')
          answered(503)
        }
        const isLost = gate.losing && method !== 'OPTIONS'
        if (gate.down && method !== 'OPTIONS') return refuse()
        const onward = passOn({ hostname, port, method, path: url, headers }, (answer) => {
          if (isLost) return void answer.resume().on('end', refuse)
          response.writeHead(answer.statusCode ?? 500, answer.headers)
          answer.pipe(response)
          answered(answer.statusCode ?? 500)
        })
        onward.on('error', () => response.destroy())
        onward.end(bytes)
      },
      () => response.destroy(),
    )
  })
  const gate: Gate = {
    url: await listening(server),
    down: false,
    losing: false,
    requests,
    until: (condition, waiting = {}) =>
      signals.until(condition, {
        state: () =>
          requests
            .slice(-20)
            .map(({ method, path, status }) => `${method} ${path} ${status}`)
            .join('\n'),
        ...waiting,
      }),
  }
  return { gate, server }
}

async function wholeOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function listening(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  })
}
