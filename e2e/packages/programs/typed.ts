// Checks the published types; this program is compiled, never run. A @ts-expect-error fails if the mistake below it compiles.

// oxlint-disable-next-line import/no-named-as-default -- as users of the public client write it
import Analytics, {
  AnalyticsError,
  type AnalyticsSettings,
  type Context,
  FetchHTTPClient,
  type FlushResult,
  type HTTPClient,
  type HTTPFetchFn,
  Analytics as Named,
  type Plugin,
  type TrackParams,
} from '@switchyard/node'
import { createTestClient, type TrackingPlan } from '@switchyard/node/testing'
import { isMessageType, type Message, parseMessage } from '@switchyard/protocol'
import { signBody, type VerifiedWebhook, type VerifyOptions, verify, verifySignature } from '@switchyard/webhook'

const settings: AnalyticsSettings = { writeKey: 'key', host: 'http://localhost:8080', flushAt: 1, spool: { dir: 'spool' } }

// A catalog of events: names and properties are checked.
const typed = new Analytics<{ 'Order Completed': { total: number }; 'Signed Up': {} }>(settings)
typed.track({ userId: 'u', event: 'Order Completed', properties: { total: 1 } })
typed.track({ anonymousId: 'a', event: 'Signed Up' })
typed.track({ userId: 'u', event: 'Signed Up', properties: {} }, (err, ctx) => console.log(err?.code, ctx?.event.messageId))
// @ts-expect-error -- not in the catalog
typed.track({ userId: 'u', event: 'Order Complete', properties: { total: 1 } })
// @ts-expect-error -- a string for a number
typed.track({ userId: 'u', event: 'Order Completed', properties: { total: '1' } })
// @ts-expect-error -- a property is missing
typed.track({ userId: 'u', event: 'Order Completed', properties: {} })
// @ts-expect-error -- all properties are missing
typed.track({ userId: 'u', event: 'Order Completed' })
// @ts-expect-error -- neither userId nor anonymousId
typed.track({ event: 'Signed Up' })

// A catalog can be an interface, and parameters can be built before the call.
interface Catalog {
  'Order Completed': { total: number; coupon?: string }
}
const params: TrackParams<Catalog> = { userId: 'u', event: 'Order Completed', properties: { total: 1 }, timestamp: new Date() }
new Analytics<Catalog>(settings).track(params)
// @ts-expect-error -- a catalog maps names to objects
export type Wrong = Analytics<{ 'Order Completed': number }>

// Without a catalog every event is allowed.
const free: Named = new Named({ writeKey: 'key' })
free.track({ userId: 'u', event: 'Anything', properties: { at: new Date(), nested: { list: [1, 2] } } })
free.identify({ userId: 'u', traits: { email: 'u@example.com', plan: null, custom: 1 } })
// @ts-expect-error -- a number for an ID
free.identify({ userId: 1 })
// @ts-expect-error -- no groupId
free.group({ userId: 'u' })
// @ts-expect-error -- no previousId
free.alias({ userId: 'u' })
// @ts-expect-error -- no writeKey
export const keyless = new Analytics({ host: 'http://localhost:8080' })
// @ts-expect-error -- no such setting
export const misspelt = new Analytics({ writeKey: 'key', flushAfter: 3 })

free.on('error', (error) => console.log(error instanceof AnalyticsError, error.code, error.ctx?.id))
free.once('http_response', ({ status, headers }) => console.log(status, headers['date']))
// @ts-expect-error -- no such event
free.on('trak', () => {})

const plugin: Plugin = {
  name: 'enrich',
  type: 'enrichment',
  version: '1.0.0',
  isLoaded: () => true,
  load: async (_ctx, instance) => void instance.VERSION,
  track(ctx: Context) {
    ctx.updateEvent('properties.enriched', true)
    return ctx
  },
}
// A plugin does not depend on the catalog, so it works with any client.
void typed.register(plugin)
void free.register(plugin).then(() => free.deregister('enrich'))

class Proxied extends FetchHTTPClient {
  override makeRequest(options: Parameters<HTTPClient['makeRequest']>[0]): ReturnType<HTTPClient['makeRequest']> {
    return super.makeRequest({ ...options, url: `http://proxy.example/${options.url}` })
  }
}
const byFetch: HTTPFetchFn = fetch
export const clients = [new Proxied(), byFetch].map((httpClient) => new Analytics({ writeKey: 'key', httpClient }))

export async function shutDown(): Promise<FlushResult> {
  const { delivered, failed, pending } = await free.flush({ timeout: 1000 })
  console.log(delivered + failed + pending)
  return free.closeAndFlush()
}

// The other two packages.
export function take(input: unknown): Message | string {
  const parsed = parseMessage(input)
  if (!parsed.ok) return parsed.code
  return isMessageType(parsed.message.type) ? parsed.message : parsed.message.type
}

const options: VerifyOptions = { sharedSecret: 'shared', signingSecrets: ['whsec_a', 'whsec_b'] }
export async function receive(request: Request): Promise<VerifiedWebhook | number> {
  const verdict = await verify(request, options)
  return verdict.ok ? verdict : verdict.status
}
export const signed: boolean = verifySignature('{}', signBody('{}', 'shared'), 'shared')

// The client for tests can replace the client, also with a catalog.
const plan: TrackingPlan = { name: 'Shop', unplanned: 'allow', rules: [{ type: 'identify', mode: 'observe', schema: {} }] }
const fake: Analytics = createTestClient({ plan })
fake.identify({ userId: 'u' })
const typedFake: Analytics<Catalog> = createTestClient<Catalog>()
// @ts-expect-error -- not in the catalog
typedFake.track({ userId: 'u', event: 'Order Complete' })
