// How programs use the types of @segment/analytics-node, apart from calls. It is only compiled: unchanged, and then with our package as the
// import.

import {
  Analytics,
  Context,
  FetchHTTPClient,
  type HTTPClientRequest,
  type HTTPResponse,
  type Plugin,
  type TrackParams,
} from '@segment/analytics-node'

const analytics = new Analytics({ writeKey: 'key' })

// Applications hide the client behind their own interface.
interface Tracker {
  track(params: TrackParams): void
  flush(): Promise<void>
  closeAndFlush(options?: { timeout?: number }): Promise<void>
}
export const tracker: Tracker = analytics
export async function shutDown(): Promise<void> {
  return analytics.closeAndFlush({ timeout: 1000 })
}

// The types of their values are interfaces, which have no index signatures.
interface Place {
  city: string
}
interface Person {
  name: string
  address: { street: string }
}
export function visit(place: Place, person: Person, path: string | undefined): void {
  analytics.track({ userId: 'u', event: 'Visit', properties: person, context: { location: place, traits: person, page: { path } } })
  analytics.identify({ userId: 'u', traits: { address: place, company: person } })
  analytics.group({ userId: 'u', groupId: 'g', traits: { address: place } })
}

// Plugins read and write the event.
export const plugin: Plugin = {
  name: 'reader',
  type: 'before',
  isLoaded: () => true,
  load: () => Promise.resolve(),
  track(ctx) {
    console.log(ctx.event.context?.location?.city?.toUpperCase(), ctx.event.context?.traits?.email?.toLowerCase())
    console.log(ctx.event.context?.['tenant'].id, ctx.event.context?.userAgentData?.mobile, ctx.event.context?.referrer?.url?.length)
    ctx.event.userId = null
    return ctx
  },
}

// Tests of plugins and of HTTP clients make their inputs by hand.
export const context = new Context({ type: 'track', event: 'By Hand' })
export const request: HTTPClientRequest = { url: 'http://localhost', method: 'POST', headers: {}, body: '{}', httpRequestTimeout: 1 }
export class Proxied extends FetchHTTPClient {
  override makeRequest({ url, method, headers, body, httpRequestTimeout }: HTTPClientRequest): Promise<HTTPResponse> {
    return super.makeRequest({ url: `http://proxy.example/${url}`, method, headers, body, httpRequestTimeout })
  }
}

// Handlers are declared before they are attached.
const onError = ({ code, reason, ctx }: { code: string; reason?: unknown; ctx?: Context }): void => console.error(code, reason, ctx?.id)
analytics.on('error', onError)
analytics.on('initialize', (settings) => console.log(settings.writeKey))
