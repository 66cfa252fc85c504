// The clients for servers and the result of each feature: the data of node.test.ts and of the page. A note says what a reader must know, and the
// test of its row checks it. Differences between the clients that do not concern the service are left out.

import * as attempts from './node-attempts.ts'
import type { NodeBench } from './node-bench.ts'
import { endsProcessOnWrongKey, runsAsWritten } from './node-program-attempts.ts'
import {
  type CreateSender,
  createAnalyticsNode,
  createRudderstack,
  createSegment1,
  createSegment2,
  createSegment3,
} from './node-senders.ts'
import { type Client, type Group, installed, type Row } from './results.ts'

const FEATURES = {
  asWritten: {
    title: 'Setup code',
    how: 'The code in the client’s section is run in a separate process, and the message arrives.',
  },
  kinds: {
    title: 'All six message types',
    how: '`identify`, `track`, `page`, `screen`, `group` and `alias`, with ids, traits, properties and timestamps.',
  },
  requests: {
    title: 'Request format',
    how: 'The requests are captured: where the write key is, and the content type and compression of the body.',
  },
  batching: { title: 'Batching on and off', how: '40 calls with the default settings, and 40 with `flushAt: 1`.' },
  callbacks: { title: 'Callbacks', how: 'A call’s callback gets no error, and the message can be read from the service at that moment.' },
  closing: {
    title: 'Flush and close',
    how: 'Messages of earlier calls are stored when `flush()` resolves; if there is a close, it sends the rest, and later calls are rejected.',
  },
  retries: {
    title: 'Retry after a 503',
    how: 'One batch gets 503 before it reaches the service, and one after it was stored: all messages arrive, each once.',
  },
  rateLimit: {
    title: 'Rate limit',
    how: 'The source exceeds `SWITCHYARD_RATE_LIMIT`: 429 with `Retry-After`.',
  },
  wrongKey: { title: 'A wrong write key', how: 'The service answers 401.' },
  pastTimes: {
    title: 'Past timestamps',
    how: 'A call with a timestamp of 2020 arrives with it, but not at a destination with `historical: false`.',
  },
  integrations: {
    title: 'Selecting destinations',
    how: '`integrations` with `All`, `Webhooks`, a destination’s name, and options instead of `true`.',
  },
  duplicates: {
    title: 'Duplicates',
    how: 'A repeated `messageId`, in another request and in the same one; and ids that the client generates.',
  },
  refusals: { title: 'A rejected message', how: 'A batch with one invalid message, and a batch with only invalid messages.' },
  oauth: { title: 'OAuth 2.0', how: 'With a source that requires it; then the token is revoked. See [OAuth](oauth.md).' },
} as const

type Feature = keyof typeof FEATURES
type NodeClient = Client<NodeBench, Feature>

const PARTLY_REFUSED =
  'The service stores the valid messages, answers 200 and lists the others in its response, which the client ignores: it reports success. `./switchyard rejections` shows them. If no message of a batch is valid, the response is 400 and every callback gets the error.'
const SENDS_FIRST_ALONE = 'The first message is sent alone and immediately, then 20 at a time.'

const segmentSetup = `import { Analytics } from '@segment/analytics-node'

const analytics = new Analytics({ writeKey: 'WRITE_KEY', host: 'http://localhost:8080' })
analytics.track({ userId: 'u-1', event: 'Order Completed' })
await analytics.closeAndFlush()`

/** What all versions of `@segment/analytics-node` share. */
function segment(
  installedAs: string,
  create: CreateSender,
  own: Pick<NodeClient['tried'], 'requests' | 'rateLimit' | 'wrongKey' | 'duplicates' | 'oauth'>,
): NodeClient {
  return {
    installedAs,
    host:
      own.oauth.result === 'fails'
        ? 'Set `host`.'
        : 'Set `host`; for OAuth also `oauthSettings.authServer`, to the same address followed by `/oauth2`.',
    setup: segmentSetup,
    tried: {
      asWritten: { result: 'works', attempt: runsAsWritten({ installedAs }, segmentSetup) },
      kinds: { result: 'works', attempt: attempts.sendsAllKinds(create, installed({ installedAs })) },
      batching: { result: 'works', note: '15 at a time.', attempt: attempts.batches(create, [15, 15, 10]) },
      callbacks: { result: 'works', attempt: attempts.callsBack(create) },
      closing: {
        result: 'works',
        note: 'After `closeAndFlush()` a call is reported as `call_after_close` and not sent.',
        attempt: attempts.flushesAndCloses(create),
      },
      retries: { result: 'works', attempt: attempts.retries(create) },
      pastTimes: { result: 'works', attempt: attempts.keepsPastTimes(create) },
      integrations: { result: 'works', attempt: attempts.selectsDestinations(create) },
      refusals: { result: 'differs', note: PARTLY_REFUSED, attempt: attempts.isSilentOnPartialRefusal(create, /\[400\] Bad Request/) },
      ...own,
    },
  }
}

function segmentWrongKey(create: CreateSender, tries: number): Row<NodeBench> {
  return {
    result: 'works',
    note: `The callback and the \`error\` event get \`[401] Unauthorized\`, after ${tries === 1 ? 'one request' : `${tries} requests: the client treats a 401 as temporary`}.`,
    attempt: attempts.reportsWrongKey(create, /\[401\] Unauthorized/, tries),
  }
}

function waits(create: CreateSender): Row<NodeBench> {
  return { result: 'works', note: 'It waits for the time in `Retry-After`.', attempt: attempts.waitsForTheLimit(create) }
}

function givesUp(create: CreateSender, error: RegExp): Row<NodeBench> {
  return {
    result: 'fails',
    note: 'It ignores `Retry-After`: it sends the batch 4 times in quick succession, then drops it and reports the error to the callbacks.',
    attempt: attempts.givesUpAtTheLimit(create, error, 4),
  }
}

function noOAuth(create: CreateSender, error: RegExp): Row<NodeBench> {
  return {
    result: 'fails',
    note: 'It does not support OAuth. A source that requires OAuth rejects its requests with 401 `oauth_required`, which it reports.',
    attempt: attempts.sendsNoToken(create, error),
  }
}

const SEGMENT_1 = segment('segment-node-1', createSegment1, {
  requests: {
    result: 'works',
    note: 'The write key is the user name of Basic authentication.',
    attempt: attempts.isUnderstood(createSegment1, { authorization: 'Basic', writeKey: false, contentType: /^application\/json$/ }),
  },
  rateLimit: givesUp(createSegment1, /\[429\] Too Many Requests/),
  wrongKey: segmentWrongKey(createSegment1, 4),
  duplicates: {
    result: 'differs',
    note: 'The caller cannot set a `messageId`: the client generates it. A batch that it retries has the same ids, so a retry creates no duplicates.',
    attempt: attempts.takesNoMessageId(createSegment1),
  },
  oauth: noOAuth(createSegment1, /\[401\] Unauthorized/),
})

const SEGMENT_2 = segment('segment-node-2', createSegment2, {
  requests: {
    result: 'works',
    note: 'The write key is in the body, and there is no `Authorization` header.',
    attempt: attempts.isUnderstood(createSegment2, { authorization: 'none', writeKey: true, contentType: /^application\/json$/ }),
  },
  rateLimit: givesUp(createSegment2, /\[429\] Too Many Requests/),
  wrongKey: segmentWrongKey(createSegment2, 4),
  duplicates: { result: 'works', attempt: attempts.isDeduplicated(createSegment2) },
  oauth: {
    result: 'works',
    note: 'After a revocation it gets a new token and sends the batch again.',
    attempt: attempts.sendsWithToken(createSegment2, { revoked: 'sent again' }),
  },
})

const SEGMENT_3 = segment('@segment/analytics-node', createSegment3, {
  requests: {
    result: 'works',
    note: 'The write key is in the body and is the user name of Basic authentication.',
    attempt: attempts.isUnderstood(createSegment3, { authorization: 'Basic', writeKey: true, contentType: /^application\/json$/ }),
  },
  rateLimit: waits(createSegment3),
  wrongKey: segmentWrongKey(createSegment3, 1),
  duplicates: { result: 'works', attempt: attempts.isDeduplicated(createSegment3) },
  oauth: {
    result: 'differs',
    note: 'A batch that is sent with a revoked token is dropped, and its callbacks get `[401] Unauthorized`; the next batch is sent with a new token.',
    attempt: attempts.sendsWithToken(createSegment3, { revoked: 'given up' }),
  },
})

/** `analytics-node`, and RudderStack's client, which is derived from it. */
function classic(
  installedAs: string,
  create: CreateSender,
  { host, setup, notTried }: Pick<NodeClient, 'host' | 'setup' | 'notTried'>,
  own: Pick<NodeClient['tried'], 'kinds' | 'requests' | 'closing' | 'rateLimit' | 'pastTimes'>,
): NodeClient {
  const reports = attempts.reportsWrongKey(create, /401/, 1)
  return {
    installedAs,
    host,
    setup,
    ...(notTried === undefined ? {} : { notTried }),
    tried: {
      asWritten: { result: 'works', attempt: runsAsWritten({ installedAs }, setup) },
      batching: { result: 'works', note: SENDS_FIRST_ALONE, attempt: attempts.batches(create, [20, 19, 1]) },
      callbacks: { result: 'works', attempt: attempts.callsBack(create) },
      retries: { result: 'works', attempt: attempts.retries(create) },
      wrongKey: {
        result: 'differs',
        note: 'The callback and `errorHandler` get the error. **Always set an `errorHandler`:** without one, a flush that the client starts itself causes an unhandled rejection, which ends the process.',
        attempt: endsProcessOnWrongKey({ installedAs }, setup, reports),
      },
      integrations: { result: 'works', attempt: attempts.selectsDestinations(create) },
      duplicates: { result: 'works', attempt: attempts.isDeduplicated(create) },
      refusals: { result: 'differs', note: PARTLY_REFUSED, attempt: attempts.isSilentOnPartialRefusal(create, /400/) },
      oauth: noOAuth(create, /401/),
      ...own,
    },
  }
}

const ANALYTICS_NODE = classic(
  'analytics-node',
  createAnalyticsNode,
  {
    host: 'Set `host` in the second argument.',
    setup: `import Analytics from 'analytics-node'

const analytics = new Analytics('WRITE_KEY', { host: 'http://localhost:8080' })
analytics.track({ userId: 'u-1', event: 'Order Completed' })
await analytics.flush()`,
  },
  {
    kinds: { result: 'works', attempt: attempts.sendsAllKinds(createAnalyticsNode, installed({ installedAs: 'analytics-node' })) },
    requests: {
      result: 'works',
      note: 'The write key is the user name of Basic authentication.',
      attempt: attempts.isUnderstood(createAnalyticsNode, { authorization: 'Basic', writeKey: false, contentType: /^application\/json$/ }),
    },
    closing: {
      result: 'differs',
      note: 'There is no close, and `flush()` does not wait for requests in flight, such as that of the first message: wait for the callbacks before you end the process.',
      attempt: attempts.flushes(createAnalyticsNode, { waits: false }),
    },
    rateLimit: givesUp(createAnalyticsNode, /429/),
    pastTimes: { result: 'works', attempt: attempts.keepsPastTimes(createAnalyticsNode) },
  },
)

const RUDDERSTACK_NAME = '@rudderstack/rudder-sdk-node'
const RUDDERSTACK = classic(
  RUDDERSTACK_NAME,
  createRudderstack,
  {
    host: 'Set `dataPlaneUrl` in the second argument.',
    notTried: 'its queue in Redis (`createPersistenceQueue`).',
    setup: `import Analytics from '@rudderstack/rudder-sdk-node'

const analytics = new Analytics('WRITE_KEY', { dataPlaneUrl: 'http://localhost:8080' })
analytics.track({ userId: 'u-1', event: 'Order Completed' })
await analytics.flush()`,
  },
  {
    kinds: {
      result: 'works',
      note: 'Its `context.library.name` is `analytics-node`, with its own version. Its `channel` is not passed on.',
      attempt: attempts.sendsAllKinds(
        createRudderstack,
        {
          name: 'analytics-node',
          version: installed({ installedAs: RUDDERSTACK_NAME }).version,
        },
        ['_metadata', 'channel'],
      ),
    },
    requests: {
      result: 'works',
      note: 'The write key is the user name of Basic authentication. The body is gzip with the content type of a form, or JSON with `gzip: false`.',
      attempt: async (bench) => {
        const basic = { authorization: 'Basic', writeKey: false } as const
        const packed = { ...basic, contentType: /^application\/x-www-form-urlencoded/ }
        await attempts.isUnderstood(createRudderstack, packed, { gzip: true })(bench)
        await attempts.isUnderstood(createRudderstack, { ...basic, contentType: /^application\/json$/ }, { gzip: false })(bench)
      },
    },
    closing: {
      result: 'works',
      note: 'There is no close. `flush()` also waits for requests in flight.',
      attempt: attempts.flushes(createRudderstack, { waits: true }),
    },
    rateLimit: waits(createRudderstack),
    pastTimes: {
      result: 'differs',
      note: 'Set the time as `originalTimestamp`. If it is missing, the client sets it to the time of the call, and the service uses it: a `timestamp` is then ignored, and the message counts as current.',
      attempt: async (bench) => {
        await attempts.keepsPastTimes(createRudderstack, 'originalTimestamp')(bench)
        await attempts.losesPastTimestamp(createRudderstack)(bench)
      },
    },
  },
)

export const NODE_CLIENTS: Group<NodeBench, Feature> = {
  title: 'Server clients',
  introduction:
    'Each client is tested against the service, which runs as a separate process and delivers to a webhook. Each test checks that its messages reached the webhook and that the ledger contains no other deliveries.',
  testFile: 'node.test.ts',
  atOnce: true,
  features: FEATURES,
  clients: [SEGMENT_3, SEGMENT_2, SEGMENT_1, ANALYTICS_NODE, RUDDERSTACK],
}
