// What running an action costs in addition to the library's own work: CPU time per message of the runner, and of `onEvent` of the library with the
// same settings, mapping and message, in one process. The rounds of both take turns, and the median is printed, so that other load on the machine
// affects both alike. All connections go to a TLS server in another process. Run: npm run bench:runner

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { createAuthority, polyglotServer } from '../../e2e/integrations/gateway/recording-gateway.ts'
import { readIntegration } from '../../packages/integrations/src/catalog.ts'
import { loadDefinition, require } from '../../packages/integrations/src/definitions.ts'
import { installRecorder, openIntegration } from '../../packages/integrations/src/runner.ts'
import { spreadOf, spreadText, tableText } from '../client/table.ts'

const ROUNDS = 15
const MESSAGES = 400
const IN_FLIGHT = 8
const TIMEOUT_MS = 30_000

const CASES = [
  [
    'actions-amplitude',
    { apiKey: '0123456789abcdef0123456789abcdef', secretKey: 'fedcba9876543210fedcba9876543210', endpoint: 'north_america' },
  ],
  ['actions-customerio', { siteId: 'site-0123456789', apiKey: 'api-0123456789', accountRegion: 'US 🇺🇸' }],
  ['actions-posthog', { api_key: 'phc_0123456789abcdef', endpoint: 'https://us.i.posthog.com', project_id: '1' }],
] as const

const MESSAGE = {
  messageId: 'm-1',
  type: 'track',
  event: 'Report Viewed',
  userId: 'user-1',
  anonymousId: 'anonymous-1',
  timestamp: '2026-11-14T09:00:00.000Z',
  properties: { order_id: 'o-1', total: 12.5, currency: 'EUR', products: [{ sku: 'a', price: 6.25, quantity: 2 }] },
  context: {
    ip: '192.0.2.7',
    userAgent: 'Mozilla/5.0',
    locale: 'en-US',
    page: { url: 'https://shop.example/cart' },
    traits: { plan: 'pro' },
  },
  integrations: {},
}

interface Library {
  Destination: new (definition: unknown) => { onEvent(event: object, settings: object): Promise<unknown> }
}

/** What the process that measures needs to know. */
interface Serving {
  port: number
  /** The certificate of the authority. */
  ca: string
}

function serve(): void {
  const { authority, folder } = createAuthority()
  rmSync(folder, { recursive: true })
  const server = polyglotServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"code":200}'))
  }, authority)
  server.listen(0, '127.0.0.1', () => {
    const serving: Serving = { port: (server.address() as AddressInfo).port, ca: authority.cert }
    process.send?.(serving)
  })
}

async function round(run: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  const worker = async (): Promise<void> => {
    for (let at = 0; at < MESSAGES / IN_FLIGHT; at++) await run()
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / MESSAGES
}

async function measured(slug: string, settings: Record<string, string>): Promise<string[]> {
  const integration = await readIntegration(slug)
  const preset = integration?.presets.find(({ subscribe }) => subscribe.includes('track'))
  if (integration == null || preset === undefined) throw new Error(`${slug} has no preset for track calls`)
  const { action, mapping, subscribe } = preset
  const { Destination } = require('@segment/actions-core') as Library
  const library = new Destination(loadDefinition(integration.directory))
  const opened = await openIntegration(slug, settings)
  const byLibrary = (): Promise<unknown> =>
    library.onEvent(structuredClone(MESSAGE), { ...settings, subscription: { subscribe, partnerAction: action, mapping } })
  const byRunner = async (): Promise<void> => {
    const { results, requests } = await opened.run({ action, mapping }, [MESSAGE], { signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (results[0]?.kind !== 'success' || requests.length === 0) throw new Error(`${slug} failed: ${JSON.stringify(results)}`)
  }
  const us: [number[], number[]] = [[], []]
  for (let at = -1; at < ROUNDS; at++) {
    const both = [await round(byLibrary), await round(byRunner)] as const
    // The first round warms up.
    if (at >= 0) for (const side of [0, 1] as const) us[side].push(both[side])
  }
  const [direct, own] = us.map((values) => spreadOf(values))
  if (direct === undefined || own === undefined) throw new Error('no rounds')
  return [slug, spreadText(direct, 0), spreadText(own, 0), (own.median / direct.median).toFixed(2)]
}

if (process.argv[2] === 'serve') serve()
else {
  const server = fork(import.meta.filename, ['serve'])
  const [{ port, ca }] = (await once(server, 'message')) as [Serving]
  setDefaultCACertificates([...getCACertificates('default'), ca])
  process.env['GATEWAY_PORT'] = String(port)
  await import('../../e2e/integrations/connect-to-gateway.ts')
  installRecorder()
  const rows: string[][] = []
  for (const [slug, settings] of CASES) rows.push(await measured(slug, settings))
  console.log(tableText(['Integration', 'Library, µs CPU', 'Runner, µs CPU', 'Ratio'], rows))
  server.kill()
}
