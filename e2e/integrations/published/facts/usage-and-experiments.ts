// Tools that bill for usage, run experiments or predict.

import { bearer, EVENT_MS, EVENT_SECONDS, EVENT_TIME, type PublishedFact } from './published-fact.ts'

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 9_1 like Mac OS X) AppleWebKit/601.1.46 (KHTML, like Gecko) Version/9.0 Mobile/13B143 Safari/601.1'
const PAGE = { path: '/tea/', referrer: '', search: '', title: 'Tea', url: 'https://shop.example.com/tea/' }

export const USAGE_AND_EXPERIMENTS: readonly PublishedFact[] = [
  {
    integration: 'metronome-actions',
    settings: { apiToken: 'token-1' },
    event: {
      type: 'track',
      messageId: 'metronome-1',
      userId: 'u-7',
      event: 'Tea Brewed',
      properties: { grams: 3 },
      context: { groupId: 'g-1' },
    },
    requests: [
      {
        request: 'POST https://api.metronome.com/v1/ingest',
        headers: { ...bearer('token-1'), 'content-type': 'application/json' },
        partOfBody: [{ event_type: 'Tea Brewed', customer_id: 'g-1', transaction_id: 'metronome-1', timestamp: EVENT_TIME }],
      },
    ],
  },
  {
    integration: 'actions-lark',
    settings: { apiKey: 'key-1' },
    event: { type: 'track', messageId: 'lark-1', userId: 'u-7', event: 'Job Done', properties: { hours: 2.5 } },
    requests: [
      {
        request: 'POST https://api.uselark.ai/usage-events',
        partOfBody: { event_name: 'Job Done', subject_id: 'u-7', idempotency_key: 'lark-1', data: { hours: 2.5 } },
      },
    ],
  },
  {
    integration: 'actions-launchdarkly',
    settings: { client_id: '123123123' },
    event: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed', properties: { revenue: 12.5 } },
    requests: [
      {
        request: 'POST https://events.launchdarkly.com/events/bulk/123123123',
        partOfBody: [
          {
            kind: 'custom',
            key: 'Tea Brewed',
            contextKeys: { user: 'u-7', unauthenticatedUser: 'a-7' },
            metricValue: 12.5,
            creationDate: EVENT_MS,
          },
        ],
      },
    ],
  },
  {
    integration: 'actions-launchdarkly',
    settings: { client_id: '123123123', events_host_name: 'events2.launchdarkly.com' },
    event: { type: 'identify', userId: 'u-7', anonymousId: 'a-7' },
    requests: [
      {
        request: 'POST https://events2.launchdarkly.com/events/bulk/123123123',
        partOfBody: [
          {
            kind: 'alias',
            key: 'u-7',
            previousKey: 'a-7',
            contextKind: 'user',
            previousContextKind: 'anonymousUser',
            creationDate: EVENT_MS,
          },
        ],
      },
    ],
  },
  {
    integration: 'actions-vwo-cloud',
    settings: { vwoAccountId: 654331 },
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'teaBrewed',
      properties: { vwo_uuid: 'ABC123', amount: 3 },
      context: { page: PAGE, ip: '8.8.8.8', userAgent: IPHONE },
    },
    requests: [
      {
        request: 'POST https://dev.visualwebsiteoptimizer.com/events/t?en=segment.teaBrewed&a=654331',
        headers: { 'user-agent': IPHONE, 'x-forwarded-for': '8.8.8.8' },
        partOfBody: {
          d: {
            visId: 'ABC123',
            event: {
              name: 'segment.teaBrewed',
              props: { amount: 3, page: PAGE, isCustomEvent: true, vwoMeta: { source: 'segment.cloud', ogName: 'teaBrewed', metric: {} } },
            },
          },
        },
      },
    ],
  },
  {
    integration: 'actions-actable-predictive',
    settings: { client_id: 'client-1', client_secret: 'secret-1' },
    action: 'sendWebEvent',
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Cart Add',
      context: { campaign: { name: 'spring', source: 'letter', medium: 'email' } },
    },
    requests: [
      {
        request: 'POST https://api.converscience.com/events',
        partOfBody: {
          data: [
            {
              customer_id: 'u-7',
              datetime: EVENT_SECONDS,
              stream_key: 'web',
              interaction_type: 'Cart Add',
              utm_campaign: 'spring',
              utm_medium: 'email',
              utm_source: 'letter',
            },
          ],
        },
      },
    ],
  },
]
