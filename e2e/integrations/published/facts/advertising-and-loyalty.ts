// Tools for advertising, loyalty and personal offers, and a few others.

import { createHash } from 'node:crypto'
import { bearer, EVENT_SECONDS, EVENT_TIME, type PublishedFact } from './published-fact.ts'

const ALGOLIA = { appId: 'app-1', apiKey: 'key-1' }
const ALGOLIA_HEADERS = {
  'X-Algolia-Application-Id': 'app-1',
  'X-Algolia-API-Key': 'key-1',
  'X-Algolia-Agent': 'algolia-segment-action-destination: 0.1',
}
const APPCUES = { apiKey: 'key-1', apiSecret: 'secret-1', accountId: 42 }
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

export const ADVERTISING_AND_LOYALTY: readonly PublishedFact[] = [
  {
    integration: 'actions-adjust',
    settings: { environment: 'sandbox', default_app_token: 'app-1', default_event_token: 'event-1' },
    action: 'sendEvent',
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Conversion Completed',
      context: { device: { id: 'd-1', advertisingId: 'ad-1', type: 'ios' }, library: { name: 'analytics-ios', version: '4.0.0' } },
      properties: { revenue: 10, currency: 'USD' },
    },
    requests: [{ request: 'POST https://s2s.adjust.com/event' }],
  },
  {
    integration: 'actions-adobe-target-cloud',
    settings: { client_code: 'teashop' },
    action: 'updateProfile',
    mapping: { traits: { city: { '@path': '$.traits.city' }, age: { '@path': '$.traits.age' } }, user_id: { '@path': '$.userId' } },
    event: { type: 'identify', userId: 'u-7', traits: { city: 'New York City', age: '21' } },
    requests: [
      {
        request: 'GET https://teashop.tt.omtrdc.net/rest/v1/profiles/thirdPartyId/u-7?client=teashop',
        headers: { 'user-agent': 'Segment (Actions)' },
      },
      {
        request:
          'POST https://teashop.tt.omtrdc.net/m2/teashop/profile/update?mbox3rdPartyId=u-7&profile.city=New%20York%20City&profile.age=21',
        headers: { 'user-agent': 'Segment (Actions)' },
      },
    ],
  },
  {
    integration: 'actions-algolia-insights',
    settings: ALGOLIA,
    event: {
      type: 'track',
      userId: 'u-7',
      anonymousId: 'a-7',
      event: 'Product Clicked',
      properties: { query_id: 'q-1', search_index: 'tea', product_id: 'p-1', position: 5 },
    },
    requests: [
      {
        request: 'POST https://insights.algolia.io/1/events',
        headers: ALGOLIA_HEADERS,
        partOfBody: {
          events: [
            {
              eventName: 'Product Clicked',
              eventType: 'click',
              index: 'tea',
              userToken: 'a-7',
              authenticatedUserToken: 'u-7',
              queryID: 'q-1',
              objectIDs: ['p-1'],
              positions: [5],
            },
          ],
        },
      },
    ],
  },
  {
    integration: 'actions-algolia-insights',
    settings: ALGOLIA,
    event: {
      type: 'track',
      userId: 'u-7',
      anonymousId: 'a-7',
      event: 'Order Completed',
      properties: { query_id: 'q-1', search_index: 'tea', products: [{ product_id: 'p-1' }, { product_id: 'p-2' }] },
    },
    requests: [
      {
        request: 'POST https://insights.algolia.io/1/events',
        headers: ALGOLIA_HEADERS,
        partOfBody: {
          events: [
            {
              eventName: 'Conversion Event',
              eventType: 'conversion',
              eventSubtype: 'purchase',
              index: 'tea',
              objectIDs: ['p-1', 'p-2'],
            },
          ],
        },
      },
    ],
  },
  {
    integration: 'actions-antavo',
    settings: { stack: 'tea', api_key: 'key-1' },
    action: 'event',
    mapping: {
      action: { '@path': '$.properties.kind' },
      account: { '@path': '$.properties.account' },
      data: { points: { '@path': '$.properties.points' } },
    },
    event: { type: 'track', userId: 'u-7', event: 'Points', properties: { kind: 'earn', account: 'tea', points: 12 } },
    requests: [
      {
        request: 'POST https://api.tea.antavo.com/v1/webhook/segment',
        partOfBody: { customer: 'u-7', action: 'earn', account: 'tea', data: { points: 12 }, api_key: 'key-1' },
      },
    ],
  },
  {
    integration: 'actions-antavo',
    settings: { stack: 'tea', api_key: 'key-1' },
    action: 'profile',
    event: { type: 'identify', userId: 'u-7', traits: { first_name: 'Jane', email: 'jane@example.com', phone: 123456 } },
    requests: [
      {
        request: 'POST https://api.tea.antavo.com/v1/webhook/segment',
        partOfBody: {
          customer: 'u-7',
          action: 'profile',
          data: { first_name: 'Jane', email: 'jane@example.com', phone: '123456' },
          api_key: 'key-1',
        },
      },
    ],
  },
  {
    integration: 'actions-appcues',
    settings: APPCUES,
    event: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Product Viewed', properties: { product_id: 'p-1' } },
    requests: [
      {
        request: 'POST https://segment.appcues.com/v2/accounts/42/segment/direct',
        partOfBody: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Product Viewed', properties: { product_id: 'p-1' } },
      },
    ],
  },
  {
    integration: 'actions-appcues',
    settings: { ...APPCUES, region: 'EU' },
    event: { type: 'page', userId: 'u-7', name: 'Home', properties: { url: 'https://shop.example.com/' } },
    requests: [
      {
        request: 'POST https://segment.eu.appcues.com/v2/accounts/42/segment/direct',
        partOfBody: { type: 'page', userId: 'u-7', name: 'Home', properties: { url: 'https://shop.example.com/' } },
      },
    ],
  },
  {
    integration: 'actions-attribution',
    settings: { projectID: 'project-1' },
    event: {
      type: 'track',
      messageId: 'attribution-1',
      userId: 'u-7',
      anonymousId: 'a-7',
      event: 'Tea Paid',
      properties: { price: 9.5 },
      context: { ip: '8.8.8.8', traits: { email: 'jane@example.com' } },
    },
    requests: [
      {
        request: 'POST https://track.attributionapp.com/v1/t',
        partOfBody: {
          type: 'track',
          messageId: 'attribution-1',
          timestamp: EVENT_TIME,
          userId: 'u-7',
          anonymousId: 'a-7',
          event: 'Tea Paid',
          properties: { price: 9.5 },
          traits: { email: 'jane@example.com' },
          context: { ip: '8.8.8.8', traits: { email: 'jane@example.com' } },
        },
      },
    ],
  },
  {
    integration: 'actions-dawn',
    settings: { writeKey: 'key-1' },
    action: 'identifyUser',
    subscribe: 'type = "identify"',
    event: { type: 'identify', userId: 'u-7', traits: { name: 'Jane' } },
    requests: [
      {
        request: 'POST https://api2.dawnai.com/v1/sinks/segment/identify',
        headers: bearer('key-1'),
        body: [{ user_id: 'u-7', traits: { name: 'Jane' } }],
      },
    ],
  },
  {
    integration: 'actions-gameball',
    settings: { apiKey: 'key-1', secretKey: 'secret-1' },
    action: 'trackEvent',
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { mobile: '+12025550123', grams: 3 } },
    requests: [{ request: 'POST https://api.gameball.co/api/v3.0/integrations/event' }],
  },
  {
    integration: 'actions-gameball',
    settings: { apiKey: 'key-1', secretKey: 'secret-1' },
    event: { type: 'identify', userId: 'u-7', traits: { mobile: '+12025550123', displayName: 'Jane' } },
    requests: [{ request: 'POST https://api.gameball.co/api/v3.0/integrations/player' }],
  },
  {
    integration: 'actions-ironclad',
    settings: { sid: 'site-1', staging_endpoint: true, test_mode: true },
    action: 'recordAction',
    mapping: { group_id: 1335, event_name: 'displayed', sig: { '@path': '$.userId' } },
    event: { type: 'track', userId: 'u-7', event: 'Terms Shown' },
    answers: { 'GET https://staging.pactsafe.io/published': { body: { '15299': 'version-1', '15483': 'version-2' } } },
    requests: [
      { request: 'GET https://staging.pactsafe.io/published?sid=site-1&gid=1335' },
      {
        request: 'POST https://staging.pactsafe.io/send/sync',
        partOfBody: { sid: 'site-1', sig: 'u-7', gid: 1335, vid: 'version-1,version-2', et: 'displayed', server_side: true, tm: true },
      },
    ],
  },
  {
    integration: 'actions-jimo-cloud',
    settings: { apiKey: 'key-1' },
    action: 'sendUserdata',
    event: { type: 'identify', userId: 'u-7', traits: { email: 'jane@example.com' } },
    requests: [
      {
        request: 'POST https://karabor-sewers.usejimo.com/segmentio-cloud/user',
        headers: bearer('key-1'),
        partOfBody: { userId: 'u-7', email: 'jane@example.com' },
      },
    ],
  },
  {
    integration: 'actions-kameleoon',
    settings: { apiKey: btoa(JSON.stringify({ id: 'client-1', secret: 'secret-1' })), sitecode: 'site-1' },
    event: { type: 'identify', userId: 'u-7', traits: { kameleoonVisitorCode: 'visitor-1', plan: 'gold' } },
    requests: [{ request: 'POST https://integrations.kameleoon.com/segmentio' }],
  },
  {
    integration: 'actions-klime',
    settings: { writeKey: 'key-1' },
    event: { type: 'track', messageId: 'klime-1', userId: 'u-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: 'POST https://i.klime.com/v1/batch',
        headers: bearer('key-1'),
        partOfBody: {
          batch: [
            { type: 'track', messageId: 'klime-1', event: 'Tea Brewed', userId: 'u-7', properties: { grams: 3 }, timestamp: EVENT_TIME },
          ],
        },
      },
    ],
  },
  {
    integration: 'actions-podscribe',
    settings: { advertiser: 'tea', userId: 'account-1' },
    event: { type: 'page', userId: 'u-7', name: 'Home', context: { ip: '8.8.8.8' } },
    requests: [
      {
        request: 'GET https://verifi.podscribe.com/tag',
        partOfQuery: { advertiser: 'tea', user_id: 'account-1', action: 'view', ip: '8.8.8.8', timestamp: EVENT_TIME },
      },
    ],
  },
  {
    integration: 'actions-avo',
    settings: { apiKey: 'key-1', env: 'dev' },
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [{ request: 'POST https://api.avo.app/inspector/segment/v1/track' }],
  },
  {
    integration: 'tiktok-conversions',
    settings: { accessToken: 'token-1', pixelCode: 'pixel-1' },
    event: {
      type: 'track',
      messageId: 'tiktok-1',
      userId: 'u-7',
      event: 'Checkout Started',
      properties: { email: 'jane@example.com', ttclid: 'click-1', currency: 'USD', value: 100, query: 'tea' },
      context: {
        page: { url: 'https://shop.example.com/', referrer: 'https://search.example.com/' },
        userAgent: 'Agent/1.0',
        ip: '8.8.8.8',
      },
    },
    requests: [
      {
        request: 'POST https://business-api.tiktok.com/open_api/v1.3/event/track/',
        partOfBody: {
          event_source: 'web',
          event_source_id: 'pixel-1',
          partner_name: 'Segment',
          data: [
            {
              event: 'InitiateCheckout',
              event_id: 'tiktok-1',
              event_time: EVENT_SECONDS,
              limited_data_use: false,
              page: { referrer: 'https://search.example.com/', url: 'https://shop.example.com/' },
              properties: { content_type: 'product', currency: 'USD', query: 'tea', value: 100 },
              user: {
                email: [sha256('jane@example.com')],
                external_id: [sha256('u-7')],
                ip: '8.8.8.8',
                ttclid: 'click-1',
                user_agent: 'Agent/1.0',
              },
            },
          ],
        },
      },
    ],
  },
]
