// What the public browser client loads when a page opens. It must name the key, where to send, and one integration only:
// with a second one the client would go and fetch code for it. Its own metrics are turned off by their sample rate.

export function browserSettings(writeKey: string, { protocol, host }: { protocol: 'http' | 'https'; host: string | undefined }): object {
  // The client takes https and its maker's host unless it is told otherwise.
  const where = host !== undefined && /^[\w.:[\]-]+$/.test(host) ? { apiHost: `${host}/v1`, protocol } : {}
  return {
    integrations: {
      'Segment.io': {
        apiKey: writeKey,
        ...where,
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
