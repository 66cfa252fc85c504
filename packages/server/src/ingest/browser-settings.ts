// The settings that public browser clients load when a page opens. Segment's client needs the write key, where to send, and exactly
// one integration: for a second one it would download code. The client's own metrics are turned off with a sample rate of 0. RudderStack's
// client needs an empty list of integrations to load, and its reporting of errors and metrics turned off.

import type { Source } from '../store/store.ts'

/** Returns null if the request has no valid host. Without a host in the settings, the client would send to its vendor. */
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

/** Anyone who has seen the page can request this, so it contains nothing about the source that is not in the page, not even its name. */
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

/** Whether this is a host name or an address, optionally with a port, and contains nothing that has another meaning in a URL. */
function isHost(host: string): boolean {
  return /^[\w.:[\]-]{1,300}$/.test(host) && URL.canParse(`http://${host}/`)
}
