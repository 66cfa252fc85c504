// The clients for servers, and what came of each feature: the data behind the tests of node.test.ts and the page. A note says
// what a reader must know and is held by the row's attempt; what the clients do among themselves is not told here.

import * as attempts from './node-attempts.ts'
import type { NodeBench } from './node-bench.ts'
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
    title: 'The lines as written',
    how: 'The lines that its section shows are run in a process of their own, and the message arrives.',
  },
  kinds: {
    title: 'All six kinds',
    how: '`identify`, `track`, `page`, `screen`, `group` and `alias`, with ids, traits, properties and times.',
  },
  requests: {
    title: 'Its requests',
    how: 'What it sends is looked at on the way: where the write key is, how the body is called and packed.',
  },
  batching: { title: 'Batching on and off', how: '40 calls with the default settings, and 40 with `flushAt: 1`.' },
  callbacks: { title: 'Callbacks', how: 'A call’s callback is told of no error, and the message can be asked for at that moment.' },
  closing: {
    title: 'Flush and close',
    how: 'What was called before is stored when `flush()` resolves; where there is a close, it sends the rest and nothing is taken after it.',
  },
  retries: {
    title: 'Retry after a 503',
    how: 'One batch is answered 503 before the service has it, one after it was stored: all messages arrive, each once.',
  },
  rateLimit: {
    title: 'Rate limit',
    how: 'The source has sent more than `SWITCHYARD_RATE_LIMIT` allows: 429 with `Retry-After`.',
  },
  wrongKey: { title: 'A wrong write key', how: 'The service answers 401.' },
  pastTimes: {
    title: 'Past times',
    how: 'A call of 2020 arrives with its time, and not at a destination with `historical: false`.',
  },
  integrations: {
    title: 'Selecting destinations',
    how: '`integrations` with `All`, `Webhooks`, a destination’s name, and options in the place of `true`.',
  },
  duplicates: {
    title: 'Duplicates',
    how: 'The same `messageId` again, in another request and in the same one; and ids that the client makes.',
  },
  refusals: { title: 'A refused message', how: 'A batch with one message that breaks a rule, and one with no other.' },
  oauth: { title: 'OAuth 2.0', how: 'Against a source that requires it; then the token is revoked. See [OAuth](oauth.md).' },
} as const

type Feature = keyof typeof FEATURES
type NodeClient = Client<NodeBench, Feature>

const PARTLY_REFUSED =
  'The service takes the good messages, answers 200 and names the others in its answer, which the client does not read: it reports success. `switchyard rejections` shows them. Where no message of a batch is good, the answer is 400 and every callback is told.'
const SENDS_FIRST_ALONE = 'The first message goes alone and at once, then 20 at a time.'

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
        : 'Set `host`; for OAuth also `oauthSettings.authServer`, to the same address with `/oauth2` behind it.',
    setup: segmentSetup,
    tried: {
      asWritten: { result: 'works', attempt: attempts.runsAsWritten({ installedAs }, segmentSetup) },
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
    note: `The callback and the \`error\` event get \`[401] Unauthorized\`, after ${tries === 1 ? 'one request' : `${tries} requests: it takes a 401 for temporary`}.`,
    attempt: attempts.reportsWrongKey(create, /\[401\] Unauthorized/, tries),
  }
}

function waits(create: CreateSender): Row<NodeBench> {
  return { result: 'works', note: 'It waits as long as `Retry-After` says.', attempt: attempts.waitsForTheLimit(create) }
}

function givesUp(create: CreateSender, error: RegExp): Row<NodeBench> {
  return {
    result: 'fails',
    note: 'It does not look at `Retry-After`: it sends 4 times in quick succession and gives the batch up, which the callbacks are told.',
    attempt: attempts.givesUpAtTheLimit(create, error, 4),
  }
}

function noOAuth(create: CreateSender, error: RegExp): Row<NodeBench> {
  return {
    result: 'fails',
    note: 'It has no such setting. A source that requires OAuth refuses what it sends with 401 `oauth_required`, which it reports.',
    attempt: attempts.sendsNoToken(create, error),
  }
}

const SEGMENT_1 = segment('segment-node-1', createSegment1, {
  requests: {
    result: 'works',
    note: 'The write key as the user of Basic authentication.',
    attempt: attempts.isUnderstood(createSegment1, { authorization: 'Basic', writeKey: false, contentType: /^application\/json$/ }),
  },
  rateLimit: givesUp(createSegment1, /\[429\] Too Many Requests/),
  wrongKey: segmentWrongKey(createSegment1, 4),
  duplicates: {
    result: 'differs',
    note: 'It takes no `messageId` from the caller and makes each itself. A batch that it sends again carries the same ones, so a retry doubles nothing.',
    attempt: attempts.takesNoMessageId(createSegment1),
  },
  oauth: noOAuth(createSegment1, /\[401\] Unauthorized/),
})

const SEGMENT_2 = segment('segment-node-2', createSegment2, {
  requests: {
    result: 'works',
    note: 'The write key in the body, and no `Authorization` header.',
    attempt: attempts.isUnderstood(createSegment2, { authorization: 'none', writeKey: true, contentType: /^application\/json$/ }),
  },
  rateLimit: givesUp(createSegment2, /\[429\] Too Many Requests/),
  wrongKey: segmentWrongKey(createSegment2, 4),
  duplicates: { result: 'works', attempt: attempts.isDeduplicated(createSegment2) },
  oauth: {
    result: 'works',
    note: 'After a revocation it gets another token and sends the batch again.',
    attempt: attempts.sendsWithToken(createSegment2, { revoked: 'sent again' }),
  },
})

const SEGMENT_3 = segment('@segment/analytics-node', createSegment3, {
  requests: {
    result: 'works',
    note: 'The write key in the body and as the user of Basic authentication.',
    attempt: attempts.isUnderstood(createSegment3, { authorization: 'Basic', writeKey: true, contentType: /^application\/json$/ }),
  },
  rateLimit: waits(createSegment3),
  wrongKey: segmentWrongKey(createSegment3, 1),
  duplicates: { result: 'works', attempt: attempts.isDeduplicated(createSegment3) },
  oauth: {
    result: 'differs',
    note: 'The batch that meets a revoked token is given up, and its callbacks get `[401] Unauthorized`; the next batch goes with another token.',
    attempt: attempts.sendsWithToken(createSegment3, { revoked: 'given up' }),
  },
})

/** `analytics-node`, and RudderStack's, which came of it. */
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
      asWritten: { result: 'works', attempt: attempts.runsAsWritten({ installedAs }, setup) },
      batching: { result: 'works', note: SENDS_FIRST_ALONE, attempt: attempts.batches(create, [20, 19, 1]) },
      callbacks: { result: 'works', attempt: attempts.callsBack(create) },
      retries: { result: 'works', attempt: attempts.retries(create) },
      wrongKey: {
        result: 'differs',
        note: 'The callback and `errorHandler` are told. **Give it an `errorHandler`:** without one a flush that the client starts itself rejects, nobody handles that, and Node.js ends the process.',
        attempt: attempts.endsProcessOnWrongKey({ installedAs }, setup, reports),
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
      note: 'The write key as the user of Basic authentication.',
      attempt: attempts.isUnderstood(createAnalyticsNode, { authorization: 'Basic', writeKey: false, contentType: /^application\/json$/ }),
    },
    closing: {
      result: 'differs',
      note: 'There is no close, and `flush()` does not wait for what is under way, such as the first message: wait for the callbacks before you end the process.',
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
      note: 'It calls itself `analytics-node` in `context.library.name`, with its own version. Its `channel` is not sent on.',
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
      note: 'The write key as the user of Basic authentication; a compressed body that is called a form, or JSON with `gzip: false`.',
      attempt: async (bench) => {
        const basic = { authorization: 'Basic', writeKey: false } as const
        const packed = { ...basic, contentType: /^application\/x-www-form-urlencoded/ }
        await attempts.isUnderstood(createRudderstack, packed, { gzip: true })(bench)
        await attempts.isUnderstood(createRudderstack, { ...basic, contentType: /^application\/json$/ }, { gzip: false })(bench)
      },
    },
    closing: {
      result: 'works',
      note: 'There is no close. `flush()` waits for what is under way, too.',
      attempt: attempts.flushes(createRudderstack, { waits: true }),
    },
    rateLimit: waits(createRudderstack),
    pastTimes: {
      result: 'differs',
      note: 'Give the time as `originalTimestamp`. The client sets that field to the moment of the call where it is missing, and the service goes by it: a `timestamp` beside it is not looked at, and the message counts as of now.',
      attempt: async (bench) => {
        await attempts.keepsPastTimes(createRudderstack, 'originalTimestamp')(bench)
        await attempts.losesPastTimestamp(createRudderstack)(bench)
      },
    },
  },
)

export const NODE_CLIENTS: Group<NodeBench, Feature> = {
  title: 'On servers',
  introduction:
    'Each was tried against the service as a process of its own, with a webhook behind it. A feature counts as tried when its messages were followed to the webhook and the books said that no other was owed.',
  testFile: 'node.test.ts',
  atOnce: true,
  features: FEATURES,
  clients: [SEGMENT_3, SEGMENT_2, SEGMENT_1, ANALYTICS_NODE, RUDDERSTACK],
}
