// The clients for browsers and the result of each feature: the data of browser.test.ts and of the page. A note says what a reader must know,
// and the test of its row checks it.

import * as attempts from './browser-attempts.ts'
import type { BrowserBench } from './browser-bench.ts'
import { type Client, type Group, installed } from './results.ts'

const FEATURES = {
  asWritten: {
    title: 'Setup code',
    how: 'The code in the client’s section is bundled with esbuild and run in a page, and the message arrives.',
  },
  kinds: {
    title: 'All message types',
    how: '`page`, `identify`, `track`, `group`, `alias` and `screen`, with ids, traits, properties, the page, and the visitor’s IP address.',
  },
  settings: {
    title: 'Settings from the service',
    how: 'The settings that it loads at the start come from the service; then the visitor opens a second page.',
  },
  wrongKey: { title: 'A wrong write key', how: 'The request for its settings gets 404 with an error message.' },
  batching: {
    title: 'Batching off and on',
    how: 'Four calls with the default settings, and four with at most three messages per request.',
  },
  retries: {
    title: 'Retry queue',
    how: 'Three calls get 503 before they reach the service, and the responses of three others are lost after they were stored: all arrive, each once.',
  },
  batchRetries: { title: 'Retry of a batch', how: 'The same with batching on.' },
  offline: { title: 'Offline', how: 'Two calls while the browser is offline: both arrive when it is online again.' },
  reset: { title: 'reset()', how: 'Afterwards, the user is unknown and has a new anonymous ID.' },
  leaving: {
    title: 'Leaving the page',
    how: 'A call made at the moment when the page is closed arrives, with the client’s setting for this case.',
  },
  leavingBatch: { title: 'Leaving with a batch', how: 'The same with batching on, while the batch is not full.' },
  nextPage: {
    title: 'Sent from the next page',
    how: 'A call made at the moment of leaving, with the default settings, and then the next page of the same visit.',
  },
  nobodyElse: {
    title: 'No requests to other hosts',
    how: 'The page’s requests are captured: all go to the page’s own host or to the service.',
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
  host: 'Set `cdnURL`. The client loads its settings from there, and these contain the address to send to, so nothing else has to be set.',
  setup: segmentSetup,
  tried: {
    asWritten: { result: 'works', attempt: attempts.runsAsWritten(SEGMENT_NAME, segmentSetup) },
    kinds: {
      result: 'works',
      note: 'An `alias` after an `identify` always has the identified user as its new ID: the client overwrites the argument.',
      attempt: attempts.sendsAllKinds(segmentPage, {
        library: { name: 'analytics.js', version: `npm:next-${installed(SEGMENT_NAME).version}` },
        screen: true,
        traits: 'traits',
        aliasedTo: 'u-1',
      }),
    },
    settings: {
      result: 'works',
      note: 'The browser caches them for five minutes and then revalidates them.',
      attempt: attempts.loadsSettings(segmentPage, { cached: true }),
    },
    wrongKey: {
      result: 'works',
      note: 'The client does not start, sends nothing, and the console shows the error message.',
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
      note: 'It sends the message immediately and again from the next page, because it cannot know whether it arrived; the service drops the second one by its `messageId`.',
      attempt: attempts.sendsAgainFromNextPage(segmentPage),
    },
    nobodyElse: {
      result: 'works',
      note: 'The settings contain no destination that is loaded into the page, and turn off the client’s metrics about itself.',
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
  host: 'Pass the address as the second argument of `load`, set `configUrl` to the same address followed by `/v1`, and import the `bundled` build.',
  setup: rudderSetup,
  tried: {
    asWritten: { result: 'works', attempt: attempts.runsAsWritten(RUDDER_NAME, rudderSetup) },
    kinds: {
      result: 'differs',
      note: 'The traits of an `identify` arrive in `context.traits`, where this client puts them, and `traits` is empty. It has no `screen`.',
      attempt: attempts.sendsAllKinds(rudderPage, {
        library: { name: 'RudderLabs JavaScript SDK', version: installed(RUDDER_NAME).version },
        screen: false,
        traits: 'context.traits',
        aliasedTo: 'u-2',
      }),
    },
    settings: {
      result: 'works',
      note: 'The service answers that the source exists and has nothing to load. The client requests its configuration again on each page.',
      attempt: attempts.loadsSettings(rudderPage, { cached: false }),
    },
    wrongKey: {
      result: 'works',
      note: 'The client does not start, sends nothing, and the console shows the error message.',
      attempt: attempts.refusesUnknownKey(rudderPage),
    },
    batching: { result: 'works', note: '`queueOptions: { batch: { enabled: true } }`.', attempt: attempts.batches(rudderPage) },
    retries: { result: 'works', attempt: attempts.retries(rudderPage) },
    batchRetries: { result: 'works', attempt: attempts.retries(rudderPage, { batching: true }) },
    offline: { result: 'works', attempt: attempts.waitsForNetwork(rudderPage) },
    reset: {
      result: 'differs',
      note: '`reset()` keeps the anonymous ID, by the design of this client; `reset(true)` creates a new one.',
      attempt: attempts.resets(rudderPage, { kept: 'analytics.reset()', call: 'analytics.reset(true)' }),
    },
    leaving: { result: 'works', note: 'With `useBeacon: true`.', attempt: attempts.outlivesPage(rudderPage) },
    leavingBatch: {
      result: 'differs',
      note: 'It sends the batch, but in a request that may be aborted with the page. Unanswered messages are kept, and sent by the next page some seconds after it was loaded. With `useBeacon: true` the batch arrives immediately.',
      attempt: attempts.sendsLaterFromNextPage(rudderPage, { batching: true }),
    },
    nextPage: {
      result: 'works',
      note: 'Messages that were not answered when the page was closed are sent again by the next page, some seconds after it was loaded; the service drops duplicates.',
      attempt: attempts.sendsLaterFromNextPage(rudderPage),
    },
    nobodyElse: {
      result: 'differs',
      note: 'The `bundled` build sends no requests to other hosts. The default build of the package loads its plugins, including the one that sends messages, from `cdn.rudderlabs.com`, and sends nothing without them.',
      async attempt(bench) {
        await attempts.asksNobodyElse(rudderPage)(bench)
        await attempts.dependsOn(rudderPage, rudderPage.imports.replace('/bundled', ''), 'cdn.rudderlabs.com')(bench)
      },
    },
  },
}

export const BROWSER_CLIENTS: Group<BrowserBench, keyof typeof FEATURES> = {
  title: 'Browser clients',
  introduction:
    'Each client is bundled from its package in the registry and runs in a real Chromium, in a page whose origin differs from the service’s, as on a customer’s site. The page may not send requests to any other host. The service does not serve the clients’ own code, so use the package instead of the snippet that loads `analytics.min.js` from a host: see [decision 0030](../decisions/0030-browser-clients.md).',
  testFile: 'browser.test.ts',
  features: FEATURES,
  clients: [SEGMENT, RUDDERSTACK],
}
