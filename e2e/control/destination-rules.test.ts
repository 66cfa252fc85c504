// The dashboard's form and the control API must accept and reject the same destination settings, so each value here is checked by both. The
// messages differ: the form shows its message next to the field, so it does not name the field.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createBodyOf,
  type WebhookDraft as Draft,
  newWebhook,
  webhookProblems as problemsOf,
} from '../../packages/dashboard/src/kinds/webhook/form/webhook-draft.ts'
import { NEW_DESTINATION } from '../../packages/server/src/control/destinations/destination-settings.ts'

const GOOD: Draft = { ...newWebhook(), name: 'Hook', urls: ['https://example.com/hook'] }
const set = (...values: string[]) => ({ kind: 'set', values }) as const
const header = (name: string, value = 'x'): Partial<Draft> => ({ headers: [{ name, value }] })

const DRAFTS: Record<string, Partial<Draft>[]> = {
  names: ['Hook', ' ', '', 'All', 'Webhooks', 'webhooks', 'a\u0000b', 'a\nb', 'x'.repeat(100), 'x'.repeat(101), '\ud800', '名前'].map(
    (name) => ({ name }),
  ),
  aliases: [
    ['Webhooks (Actions)', 'Webhooks', ' kept as it is '],
    ['All'],
    ['aLL'],
    [''],
    [' '],
    ['a\nb'],
    ['\ud800'],
    ['x'.repeat(200)],
    ['x'.repeat(201)],
    ['one', 'one'],
    Array.from({ length: 100 }, (_, at) => `name ${at}`),
    Array.from({ length: 101 }, (_, at) => `name ${at}`),
  ].map((aliases) => ({ aliases })),
  urls: [
    'https://example.com',
    'HTTP://EXAMPLE.com/a?b=c',
    'http://127.0.0.1:9000/',
    'http://[::1]:80/',
    'ftp://example.com',
    'example.com',
    'https://',
    'https:// example.com',
    'https://exa mple.com',
    'https://example.com/a\\b',
    'https://example.com/#x',
    'https://example.com/#',
    'https://user@example.com/',
    'https://user:word@example.com/',
    'https://example.com:99999/',
    'https://example.com/?key=(hidden)',
    'https://exämple.com/ü',
    `https://example.com/${'x'.repeat(2_028)}`,
    `https://example.com/${'x'.repeat(2_029)}`,
    ' https://example.com',
    'https://example.com/\ud800',
  ].map((url) => ({ urls: [url] })),
  'several URLs': [
    { urls: [] },
    { urls: ['https://a.com', 'https://b.com'] },
    { urls: ['https://a.com', 'https://A.com/'] },
    { urls: Array.from({ length: 5 }, (_, at) => `https://a.com/${at}`) },
    { urls: Array.from({ length: 6 }, (_, at) => `https://a.com/${at}`) },
  ],
  headers: [
    header('Authorization', 'Bearer x'),
    header('X-Empty', ''),
    header(''),
    header('X Y'),
    header('X:Y'),
    header('Ünicode'),
    header('host'),
    header('Content-Type'),
    header('X-Signature'),
    header('traceparent'),
    header('Webhook-Id'),
    header('Proxy-Authorization'),
    header('x'.repeat(128)),
    header('x'.repeat(129)),
    header('X-Value', 'é'),
    header('X-Value', 'a\tb'),
    header('X-Value', 'a\nb'),
    header('X-Value', '(hidden)'),
    header('X-Value', 'x'.repeat(4_096)),
    header('X-Value', 'x'.repeat(4_097)),
    {
      headers: [
        { name: 'X-A', value: '1' },
        { name: 'x-a', value: '2' },
      ],
    },
    { headers: Array.from({ length: 50 }, (_, at) => ({ name: `X-${at}`, value: '' })) },
    { headers: Array.from({ length: 51 }, (_, at) => ({ name: `X-${at}`, value: '' })) },
    { headers: Array.from({ length: 4 }, (_, at) => ({ name: `X-${at}`, value: 'x'.repeat(4_000) })) },
  ],
  secrets: [
    { sharedSecret: set('s') },
    { sharedSecret: set('') },
    { sharedSecret: set('x'.repeat(1_024)) },
    { sharedSecret: set('x'.repeat(1_025)) },
    ...[
      'whsec_',
      'whsec_AAAA',
      'AAAA',
      'whsec_AAA',
      'whsec_AAA=',
      'whsec_AA',
      'whsec_AA=',
      'whsec_AB==',
      'whsec_A',
      'whsec_AA A',
      'whsec_é',
      'whsec_____',
      `whsec_${'A'.repeat(192)}`,
      `whsec_${'A'.repeat(196)}`,
    ].map((secret) => ({ signingSecrets: set(secret) })),
    { signingSecrets: set('whsec_AAAA', 'whsec_BBBB') },
    { signingSecrets: set('whsec_AAAA', 'whsec_AAAA') },
  ],
  numbers: [0, 1, 1_000, 1_001, 1.5, -1]
    .flatMap((value) => [{ batchSize: value }, { maxInFlight: value }])
    .concat([0, 1, 5_242_880, 5_242_881].map((batchBytes) => ({ batchBytes })) as never),
  order: [
    { orderBy: 'none', orderPath: '..' },
    ...(['user', 'source'] as const).map((orderBy) => ({ orderBy })),
    ...['context.groupId', ' properties.a.b ', 'userId', 'user', '', '.', 'context.', 'context..a', `properties.${'x'.repeat(489)}`].map(
      (orderPath) => ({ orderBy: 'path' as const, orderPath }),
    ),
    { orderBy: 'path', orderPath: `properties.${'x'.repeat(490)}` },
    { orderBy: 'user', orderOnFailure: 'hold' },
    ...[99, 100, 1_000_000, 1_000_001, 100.5].map((orderMaxWaiting) => ({ orderBy: 'user' as const, orderMaxWaiting })),
  ],
  durations: [
    ...['0 s', '60 s', '60001 ms'].map((linger) => ({ linger })),
    ...['99 ms', '100 ms', '5 s', '5001 ms'].map((timeout) => ({ timeout })),
    ...['999 ms', '1 s', '4 h', '14 d', '14 d 1 ms'].map((retryWindow) => ({ retryWindow })),
    ...['99 ms', '100 ms', '10 min', '1 h', '1 h 1 ms'].map((retryInitial) => ({ retryInitial, retryMax: '1 d' })),
    ...['99 ms', '5 s', '1 d', '1 d 1 ms'].map((retryMax) => ({ retryMax })),
  ],
  events: [
    { eventsAllow: ['Order Completed'] },
    { eventsAllow: [''] },
    { eventsDeny: ['x'.repeat(1_000)] },
    { eventsDeny: ['x'.repeat(1_001)] },
    { eventsDeny: ['a', 'a'] },
    { eventsAllow: Array.from({ length: 1_000 }, (_, at) => `e${at}`) },
    { eventsAllow: Array.from({ length: 1_001 }, (_, at) => `e${at}`) },
  ],
}

for (const [what, drafts] of Object.entries(DRAFTS)) {
  test(`the form and the API agree on ${what}`, () => {
    for (const changes of drafts) {
      const draft = { ...GOOD, ...changes }
      const shown = JSON.stringify(changes).slice(0, 120)
      assert.equal(problemsOf(draft).size === 0, isTaken(draft), `${shown}: ${JSON.stringify([...problemsOf(draft)])}`)
    }
  })
}

function isTaken(draft: Draft): boolean {
  try {
    // As sent over the wire: two headers with exactly the same name become one.
    NEW_DESTINATION.parse(JSON.parse(JSON.stringify(createBodyOf(draft))), '')
    return true
  } catch {
    return false
  }
}
