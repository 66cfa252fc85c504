// What public browser clients load when a page opens. Segment's must be told the key, where to send, and one integration only:
// with a second one it would go and fetch code for it. Its own metrics are turned off by their sample rate. RudderStack's must be
// told that there is nothing to load into the page, and nobody to report its errors to.

import type { Source } from '../store/store.ts'

/** Null where the request does not say under which name it reached this service: without one, the client would send to its maker. */
export function browserSettings(
  writeKey: string,
  { protocol, host }: { protocol: 'http' | 'https'; host: string | undefined },
): object | null {
  if (host === undefined || !isHost(host)) return null
  return {
    integrations: {
      'Segment.io': {
        apiKey: writeKey,
        apiHost: `${host}/v1`,
        protocol,
        addBundledMetadata: true,
        unbundledIntegrations: [],
        maybeBundledConfigIds: {},
        versionSettings: { version: '4.4.7', componentTypes: ['browser'] },
      },
    },
    plan: { track: { __default: { enabled: true } }, identify: { __default: { enabled: true } }, group: { __default: { enabled: true } } },
    analyticsNextEnabled: true,
    middlewareSettings: {},
    enabledMiddleware: {},
    metrics: { sampleRate: 0 },
    legacyVideoPluginsEnabled: false,
    remotePlugins: [],
    edgeFunction: {},
  }
}

/** Anybody who has seen a page may ask, so it says nothing of the source that the page does not know: not even its name. */
export function sourceConfig({ id, enabled }: Pick<Source, 'id' | 'enabled'>, writeKey: string): object {
  const off = { enabled: false }
  return {
    source: {
      id,
      name: id,
      writeKey,
      enabled,
      workspaceId: '',
      config: { statsCollection: { errors: off, metrics: off } },
      destinations: [],
      connections: [],
    },
  }
}

/** A name or an address, perhaps with a port: what a browser would put into the header, and nothing that means more in a URL. */
function isHost(host: string): boolean {
  return /^[\w.:[\]-]{1,300}$/.test(host) && URL.canParse(`http://${host}/`)
}
