// The clients for browsers, and what came of each feature: the data behind browser.test.ts and the page. A note says what a reader
// must know and is held by the row's attempt.

import * as attempts from './browser-attempts.ts'
import type { BrowserBench } from './browser-bench.ts'
import { type Client, type Group, installed } from './results.ts'

const FEATURES = {
  asWritten: {
    title: 'The lines as written',
    how: 'The lines that its section shows are bundled with esbuild and run in a page, and the message arrives.',
  },
  kinds: {
    title: 'All kinds of calls',
    how: '`page`, `identify`, `track`, `group`, `alias` and `screen`, with ids, traits, properties, the page and the address of the visitor.',
  },
  settings: {
    title: 'Settings from the service',
    how: 'What it loads at its start comes from the service; then the visitor opens a second page.',
  },
  wrongKey: { title: 'A wrong write key', how: 'What it loads at its start is answered 404, with a sentence.' },
  batching: {
    title: 'Batching off and on',
    how: 'Four calls with the default settings, and four with at most three messages in a request.',
  },
  retries: {
    title: 'Retry queue',
    how: 'Three calls while 503 is answered before the service has them, and three whose answers are lost after it stored them: all arrive, each once.',
  },
  batchRetries: { title: 'Retry of a batch', how: 'The same with batching on.' },
  offline: { title: 'Offline', how: 'Two calls while the browser is offline: both arrive when it is online again.' },
  reset: { title: 'reset()', how: 'After it, the user is unknown and has another anonymous ID.' },
  leaving: {
    title: 'Leaving the page',
    how: 'A call in the same moment in which the page goes away arrives, by what the client has for that.',
  },
  leavingBatch: { title: 'Leaving with a batch', how: 'The same with batching on, while the batch is not full.' },
  nextPage: {
    title: 'Kept for the next page',
    how: 'A call in the moment of leaving, with the default settings, and then the next page of the same visit.',
  },
  nobodyElse: {
    title: 'Asks nobody else',
    how: 'The page’s requests are looked at: none goes to another host than the page’s and the service’s.',
  },
} as const

type BrowserClient = Client<BrowserBench, keyof typeof FEATURES>

const segmentPage: attempts.PageClient = {
  script: 'segment',
  imports: `import { AnalyticsBrowser } from '@segment/analytics-next'
window.AnalyticsBrowser = AnalyticsBrowser`,
  load(host, writeKey, { batching = false, leaving = false } = {}) {
    const config = { keepalive: leaving, ...(batching ? { size: 3, timeout: 500 } : {}) }
    const deliveryStrategy = { ...(batching ? { strategy: 'batching' } : {}), config }
    const options = batching || leaving ? { integrations: { 'Segment.io': { deliveryStrategy } } } : {}
    const settings = { writeKey, cdnURL: host }
    return `window.analytics = AnalyticsBrowser.load(${JSON.stringify(settings)}, ${JSON.stringify(options)}); analytics.ready().then(() => undefined)`
  },
  anonymousId: 'analytics.user().then((user) => user.anonymousId())',
  settingsPath: (writeKey) => `/v1/projects/${writeKey}/settings`,
  batchPath: '/v1/b',
  unknownKey: /No source has this write key/,
}

const segmentSetup = `import { AnalyticsBrowser } from '@segment/analytics-next'

const analytics = AnalyticsBrowser.load({ writeKey: 'WRITE_KEY', cdnURL: 'http://localhost:8080' })
analytics.track('Order Completed', { total: 12.5 })`

const SEGMENT_NAME = { installedAs: '@segment/analytics-next' }

const SEGMENT: BrowserClient = {
  ...SEGMENT_NAME,
  host: 'Set `cdnURL`. Where to send to is in the settings that the client loads from there, so nothing else is to be set.',
  setup: segmentSetup,
  tried: {
    asWritten: { result: 'works', attempt: attempts.runsAsWritten(SEGMENT_NAME, segmentSetup) },
    kinds: {
      result: 'works',
      note: 'An `alias` after an `identify` has the identified user as its new ID, whatever it was called with: the client writes it over.',
      attempt: attempts.sendsAllKinds(segmentPage, {
        library: { name: 'analytics.js', version: `npm:next-${installed(SEGMENT_NAME).version}` },
        screen: true,
        traits: 'traits',
        aliasedTo: 'u-1',
      }),
    },
    settings: {
      result: 'works',
      note: 'The browser keeps them for five minutes and then asks whether they have changed.',
      attempt: attempts.loadsSettings(segmentPage, { cached: true }),
    },
    wrongKey: {
      result: 'works',
      note: 'The client does not start, sends nothing, and the console shows the sentence.',
      attempt: attempts.refusesUnknownKey(segmentPage),
    },
    batching: {
      result: 'works',
      note: "`integrations: { 'Segment.io': { deliveryStrategy: { strategy: 'batching' } } }` in the second argument of `load`.",
      attempt: attempts.batches(segmentPage),
    },
    retries: { result: 'works', attempt: attempts.retries(segmentPage) },
    batchRetries: { result: 'works', attempt: attempts.retries(segmentPage, { batching: true }) },
    offline: { result: 'works', attempt: attempts.waitsForNetwork(segmentPage) },
    reset: { result: 'works', attempt: attempts.resets(segmentPage, { call: 'analytics.reset()' }) },
    leaving: {
      result: 'works',
      note: 'With `deliveryStrategy: { config: { keepalive: true } }`.',
      attempt: attempts.outlivesPage(segmentPage),
    },
    leavingBatch: {
      result: 'works',
      note: 'With `keepalive: true` in the strategy’s `config`.',
      attempt: attempts.outlivesPage(segmentPage, { batching: true, leaving: true }),
    },
    nextPage: {
      result: 'works',
      note: 'It sends at once and again from the next page, because it cannot know; the service drops the second by its `messageId`.',
      attempt: attempts.sendsAgainFromNextPage(segmentPage),
    },
    nobodyElse: {
      result: 'works',
      note: 'The settings name no destination that is loaded into the page, and turn off the client’s metrics about itself.',
      attempt: attempts.asksNobodyElse(segmentPage),
    },
  },
}

const rudderPage: attempts.PageClient = {
  script: 'rudderstack',
  imports: `import { RudderAnalytics } from '@rudderstack/analytics-js/bundled'
window.RudderAnalytics = RudderAnalytics`,
  load(host, writeKey, { batching = false, leaving = false } = {}) {
    const options = {
      configUrl: `${host}/v1`,
      ...(batching && !leaving ? { queueOptions: { batch: { enabled: true, maxItems: 3, flushInterval: 500 } } } : {}),
      ...(leaving ? { useBeacon: true, beaconQueueOptions: { maxItems: 3, flushQueueInterval: 500 } } : {}),
    }
    return `window.analytics = new RudderAnalytics(); analytics.load('${writeKey}', '${host}', ${JSON.stringify(options)}); new Promise((resolve) => analytics.ready(() => resolve()))`
  },
  anonymousId: 'analytics.getAnonymousId()',
  settingsPath: () => '/v1/sourceConfig/',
  batchPath: '/v1/batch',
  unknownKey: /Failed to fetch the source config.*No source has this write key/,
}

const rudderSetup = `import { RudderAnalytics } from '@rudderstack/analytics-js/bundled'

const analytics = new RudderAnalytics()
analytics.load('WRITE_KEY', 'http://localhost:8080', { configUrl: 'http://localhost:8080/v1' })
analytics.track('Order Completed', { total: 12.5 })`

const RUDDER_NAME = { installedAs: '@rudderstack/analytics-js' }

const RUDDERSTACK: BrowserClient = {
  ...RUDDER_NAME,
  host: 'Give the address as the second argument of `load`, set `configUrl` to the same with `/v1` behind it, and import the `bundled` build.',
  setup: rudderSetup,
  tried: {
    asWritten: { result: 'works', attempt: attempts.runsAsWritten(RUDDER_NAME, rudderSetup) },
    kinds: {
      result: 'differs',
      note: 'The traits of an `identify` arrive as `context.traits`, which is where this client puts them, and `traits` is empty. It has no `screen`.',
      attempt: attempts.sendsAllKinds(rudderPage, {
        library: { name: 'RudderLabs JavaScript SDK', version: installed(RUDDER_NAME).version },
        screen: false,
        traits: 'context.traits',
        aliasedTo: 'u-2',
      }),
    },
    settings: {
      result: 'works',
      note: 'The service says that there is a source and that nothing is to be loaded for it. The client asks anew on each page.',
      attempt: attempts.loadsSettings(rudderPage, { cached: false }),
    },
    wrongKey: {
      result: 'works',
      note: 'The client does not start, sends nothing, and the console shows the sentence.',
      attempt: attempts.refusesUnknownKey(rudderPage),
    },
    batching: { result: 'works', note: '`queueOptions: { batch: { enabled: true } }`.', attempt: attempts.batches(rudderPage) },
    retries: { result: 'works', attempt: attempts.retries(rudderPage) },
    batchRetries: { result: 'works', attempt: attempts.retries(rudderPage, { batching: true }) },
    offline: { result: 'works', attempt: attempts.waitsForNetwork(rudderPage) },
    reset: {
      result: 'differs',
      note: '`reset()` keeps the anonymous ID, which is how this client is made; `reset(true)` gives a new one.',
      attempt: attempts.resets(rudderPage, { kept: 'analytics.reset()', call: 'analytics.reset(true)' }),
    },
    leaving: { result: 'works', note: 'With `useBeacon: true`.', attempt: attempts.outlivesPage(rudderPage) },
    leavingBatch: {
      result: 'differs',
      note: 'It sends the batch, but by a request that may end with the page. What was not answered is kept, and sent by the next page some seconds after it was loaded. With `useBeacon: true` it arrives at once.',
      attempt: attempts.sendsLaterFromNextPage(rudderPage, { batching: true }),
    },
    nextPage: {
      result: 'works',
      note: 'What was not answered when the page went away is sent again by the next page, some seconds after it was loaded; the service drops what it has already.',
      attempt: attempts.sendsLaterFromNextPage(rudderPage),
    },
    nobodyElse: {
      result: 'differs',
      note: 'The `bundled` build asks nobody else. The default build of the package loads its plugins, the one that sends among them, from `cdn.rudderlabs.com`, and sends nothing without it.',
      async attempt(bench) {
        await attempts.asksNobodyElse(rudderPage)(bench)
        await attempts.dependsOn(rudderPage, rudderPage.imports.replace('/bundled', ''), 'cdn.rudderlabs.com')(bench)
      },
    },
  },
}

export const BROWSER_CLIENTS: Group<BrowserBench, keyof typeof FEATURES> = {
  title: 'In browsers',
  introduction:
    'Each client is bundled from the registry’s package and runs in a real Chromium, in a page of another origin than the service, so that its requests are those of a customer’s site. Nothing of the page may ask another host than these two. The service does not serve the clients’ own code, so the snippet that loads `analytics.min.js` from a host is replaced by the package: see [decision 0030](../decisions/0030-browser-clients.md).',
  testFile: 'browser.test.ts',
  features: FEATURES,
  clients: [SEGMENT, RUDDERSTACK],
}
