// A program for @segment/analytics-node that uses every name of its public interface. The test compiles and runs it unchanged, then with our
// package as the import, and compares what arrived and what it printed. It uses only what both clients promise; do not change its imports.

import {
  type AliasParams,
  Analytics,
  type AnalyticsSettings,
  Context,
  FetchHTTPClient,
  type GroupParams,
  type GroupTraits,
  type HTTPClient,
  type HTTPClientRequest,
  type HTTPFetchFn,
  type HTTPFetchRequest,
  type HTTPResponse,
  type IdentifyParams,
  type OAuthSettings,
  type PageParams,
  type Plugin,
  type TrackParams,
  type UserTraits,
} from '@segment/analytics-node'

const [host = '', clientKey = ''] = process.argv.slice(2)
const seen = {
  calls: [] as string[],
  callbacks: [] as string[],
  plugins: [] as string[],
  http: [] as string[],
  late: [] as string[],
  errors: [] as string[],
}

function heard(name: string): (err?: unknown, ctx?: Context) => void {
  return (err, ctx) => seen.callbacks.push(`${name}: ${err === undefined ? 'ok' : 'failed'} ${ctx?.event.type}`)
}

class TracedClient extends FetchHTTPClient {
  override async makeRequest(options: HTTPClientRequest): Promise<HTTPResponse> {
    return super.makeRequest({ ...options, headers: { ...options.headers, 'x-traced': 'yes' } })
  }
}

class RecordingClient implements HTTPClient {
  readonly #inner = new FetchHTTPClient()
  async makeRequest(options: HTTPClientRequest): Promise<HTTPResponse> {
    const response = await this.#inner.makeRequest(options)
    seen.http.push(`recorded ${options.method} ${new URL(options.url).pathname} ${response.status} ${options.httpRequestTimeout}`)
    return response
  }
}

const fetchFunction: HTTPFetchFn = (url: string, init: HTTPFetchRequest) =>
  fetch(url, { ...init, headers: { ...init.headers, 'x-function': 'yes' } })

const region: Plugin = {
  name: 'Region',
  type: 'enrichment',
  version: '1.0.0',
  isLoaded: () => true,
  load: async (_ctx: Context, analytics: Analytics) => {
    seen.plugins.push(`loaded ${typeof analytics.track}`)
  },
  unload: async () => {
    seen.plugins.push('unloaded')
  },
  track(ctx: Context): Context {
    ctx.updateEvent('properties.region', 'eu')
    ctx.updateEvent('context.device.type', 'server')
    ctx.log('debug', 'enriched', { region: 'eu' })
    return ctx
  },
  identify: async (ctx) => {
    if (ctx.event.traits) ctx.event.traits['seenBy'] = 'plugin'
    return ctx
  },
}

class Auditor implements Plugin {
  name = 'Auditor'
  type = 'destination' as const
  version = '1.0.0'
  isLoaded(): boolean {
    return true
  }
  async load(): Promise<void> {}
  track(ctx: Context): Context {
    seen.plugins.push(`audited ${ctx.event.event} ${ctx.event.properties?.['region']}`)
    return ctx
  }
}

async function everyCall(): Promise<void> {
  const settings: AnalyticsSettings = {
    writeKey: 'migration',
    host,
    path: '/v1/batch',
    maxRetries: 1,
    flushAt: 4,
    flushInterval: 500,
    httpRequestTimeout: 5000,
  }
  const analytics = new Analytics(settings)
  await analytics.ready

  const onCall = (ctx: Context): void => void seen.calls.push(`${ctx.event.type} ${typeof ctx.id}`)
  const unwanted = (): void => void seen.calls.push('unwanted')
  analytics
    .on('identify', onCall)
    .on('track', onCall)
    .on('page', onCall)
    .on('screen', onCall)
    .on('group', onCall)
    .on('alias', onCall)
    .on('track', unwanted)
    .off('track', unwanted)
    .on('register', (names) => void seen.plugins.push(`registered ${names.join()}`))
    .on('deregister', (names: string[]) => void seen.plugins.push(`deregistered ${names.join()}`))
    .on('call_after_close', (event) => void seen.late.push(`${event.type} ${event.event}`))
    .on('error', (err) => void seen.errors.push(err.code))
    .once('http_request', ({ url, method, headers, body }) => {
      seen.http.push(`${method} ${new URL(url).pathname} ${headers['Content-Type']} ${typeof JSON.parse(body)}`)
    })
    .once('http_response', ({ status, statusText, url, headers, body }) => {
      seen.http.push(`${status} ${statusText} ${new URL(url).pathname} ${headers['content-type']} ${typeof body}`)
    })
  const drained = new Promise<void>((resolve) => analytics.once('drained', resolve))

  await analytics.register(region, new Auditor())

  const traits: UserTraits = {
    email: 'ada@example.com',
    age: 36,
    createdAt: new Date(0),
    address: { city: 'London' },
    plan: null,
    custom: [1, 2],
  }
  const identify: IdentifyParams = {
    userId: 'u-1',
    anonymousId: 'a-1',
    traits,
    context: { ip: '203.0.113.7', locale: 'en-GB', app: { name: 'Shop' } },
  }
  const track: TrackParams = {
    userId: 'u-1',
    event: 'Order Completed',
    properties: { total: 12.5, at: new Date(0), products: [{ sku: 'é ✓' }], none: null, missing: undefined },
    integrations: { All: true, Elsewhere: { session: 7 } },
    timestamp: new Date('2020-02-03T04:05:06.789Z'),
    messageId: 'order-42',
  }
  const page: PageParams = {
    anonymousId: 'a-1',
    category: 'Docs',
    name: 'Install',
    properties: { url: 'https://example.com/install', title: 'Install' },
  }
  const groupTraits: GroupTraits = { name: 'Acme', employees: 12, plan: 'enterprise' }
  const group: GroupParams = { userId: 'u-1', groupId: 'g-1', traits: groupTraits, timestamp: '2020-02-03T04:05:06.789Z' }
  const alias: AliasParams = { userId: 'u-1', previousId: 'a-1' }

  analytics.identify(identify, heard('identify'))
  analytics.track(track, heard('track'))
  analytics.page(page, heard('page'))
  analytics.screen({ userId: 'u-1', name: 'Basket' }, heard('screen'))
  analytics.group(group, heard('group'))
  analytics.alias(alias, heard('alias'))
  analytics.track({ anonymousId: 'a-2', event: 'No Callback' })
  await analytics.flush({ timeout: 10_000, close: false })
  await drained

  await analytics.deregister('Region')
  analytics.track({ userId: 'u-1', event: 'After Deregister' }, heard('deregistered'))
  await analytics.closeAndFlush({ timeout: 10_000 })
  analytics.track({ userId: 'u-1', event: 'Too Late' })
}

async function customHttp(httpClient: HTTPClient | HTTPFetchFn, event: string): Promise<void> {
  const analytics = new Analytics({ writeKey: 'migration', host, httpClient })
  analytics.track({ userId: 'u-2', event })
  await analytics.closeAndFlush()
}

async function oauth(): Promise<void> {
  const oauthSettings: OAuthSettings = {
    clientId: 'app',
    clientKey,
    keyId: 'key-1',
    authServer: `${host}/oauth2`,
    scope: 'tracking_api:write',
    maxRetries: 1,
  }
  const analytics = new Analytics({ writeKey: 'migration', host, oauthSettings })
  analytics.track({ userId: 'u-3', event: 'With Token' })
  await analytics.flush({ close: true })
}

async function failure(): Promise<void> {
  const analytics = new Analytics({ writeKey: 'refused', host, maxRetries: 0 })
  analytics.on('error', ({ code, reason, ctx }) => {
    seen.errors.push(
      `${code}: ${reason instanceof Error && reason.message.includes('400')} ${ctx?.event.event} ${ctx?.failedDelivery() !== undefined}`,
    )
  })
  analytics.track({ userId: 'u-4', event: 'Refused' }, heard('refused'))
  await analytics.closeAndFlush()
}

async function disabled(): Promise<void> {
  const analytics = new Analytics({ writeKey: 'migration', host, disable: true })
  analytics.track({ userId: 'u-5', event: 'Never Sent' }, heard('disabled'))
  await analytics.closeAndFlush()
}

const own = new Context({ type: 'track', event: 'Made By Hand', userId: 'u-6', messageId: 'm', timestamp: new Date(), context: {} })
seen.calls.push(`own ${own.toJSON().event.event} ${own.isSame(own)} ${own.logs().length} ${own.attempts}`)

await everyCall()
await customHttp(new TracedClient(), 'By Subclass')
await customHttp(new RecordingClient(), 'By Object')
await customHttp(fetchFunction, 'By Function')
await oauth()
await failure()
await disabled()
console.log(JSON.stringify(seen))
