// Tools that count what people do in a product.

import { basic, bearer, EVENT_MS, EVENT_TIME, type PublishedFact } from './published-fact.ts'

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 9_1 like Mac OS X) AppleWebKit/601.1.46 (KHTML, like Gecko) Version/9.0 Mobile/13B143 Safari/601.1'
const PAGE = { path: '/tea/', referrer: '', search: '', title: 'Tea', url: 'https://shop.example.com/tea/' }

export const PRODUCT_ANALYTICS: readonly PublishedFact[] = [
  {
    integration: 'actions-accoil-analytics',
    settings: { api_key: 'key-1' },
    event: { type: 'page', userId: 'u-7', name: 'Pricing' },
    requests: [{ request: 'POST https://in.accoil.com/segment', partOfBody: { type: 'page', userId: 'u-7', name: 'Pricing' } }],
  },
  {
    integration: 'actions-accoil-analytics',
    settings: { api_key: 'key-1' },
    event: { type: 'identify', userId: 'u-7', traits: { role: 'editor', createdAt: '2025-02-03T00:00:00.000Z' } },
    requests: [
      {
        request: 'POST https://in.accoil.com/segment',
        partOfBody: {
          type: 'identify',
          userId: 'u-7',
          timestamp: EVENT_TIME,
          traits: { role: 'editor', createdAt: '2025-02-03T00:00:00.000Z' },
        },
      },
    ],
  },
  {
    integration: 'actions-aggregations-io',
    settings: { api_key: 'key-1', ingest_id: 'ingest-1' },
    action: 'send',
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: 'POST https://ingest.aggregations.io/ingest-1',
        headers: { 'x-api-token': 'key-1' },
        partOfBody: [{ type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { grams: 3 } }],
      },
    ],
  },
  {
    integration: 'actions-amplitude',
    settings: { apiKey: 'key-1', secretKey: 'secret-1' },
    event: {
      type: 'track',
      userId: 'user-0007',
      anonymousId: 'device-0007',
      event: 'Tea Brewed',
      properties: { grams: 3 },
      context: {
        ip: '8.8.8.8',
        locale: 'en-GB',
        location: { city: 'Leeds', country: 'United Kingdom', latitude: 53.8, longitude: -1.5 },
        userAgent: IPHONE,
      },
    },
    requests: [
      {
        request: 'POST https://api2.amplitude.com/2/httpapi',
        partOfBody: {
          api_key: 'key-1',
          events: [
            {
              event_type: 'Tea Brewed',
              user_id: 'user-0007',
              device_id: 'device-0007',
              time: EVENT_MS,
              event_properties: { grams: 3 },
              ip: '8.8.8.8',
              language: 'en-GB',
              city: 'Leeds',
              country: 'United Kingdom',
              location_lat: 53.8,
              location_lng: -1.5,
              os_name: 'iOS',
              os_version: '9',
              device_manufacturer: 'Apple',
              device_model: 'iPhone',
              device_type: 'mobile',
            },
          ],
        },
      },
    ],
  },
  {
    integration: 'actions-app-fit',
    settings: { apiKey: 'key-1' },
    action: 'track',
    event: {
      type: 'track',
      messageId: 'appfit-1',
      userId: 'u-7',
      anonymousId: 'a-7',
      event: 'Tea Brewed',
      properties: { grams: 3 },
      context: {
        ip: '8.8.8.8',
        app: { version: '2.1.0' },
        device: { id: 'd-1', advertisingId: 'ad-1', type: 'ios', model: 'iPhone7,2', manufacturer: 'Apple' },
        os: { name: 'iPhone OS', version: '10.1' },
      },
    },
    requests: [
      {
        request: 'POST https://api.appfit.io/metric-events',
        partOfBody: {
          eventSource: 'segment',
          occurredAt: EVENT_TIME,
          version: '2',
          payload: {
            sourceEventId: 'appfit-1',
            eventName: 'Tea Brewed',
            userId: 'u-7',
            anonymousId: 'a-7',
            properties: { grams: 3 },
            systemProperties: { appVersion: '2.1.0', ipAddress: '8.8.8.8', os: { name: 'iPhone OS', version: '10.1' } },
          },
        },
      },
    ],
  },
  {
    integration: 'actions-fullstory-cloud',
    settings: { apiKey: 'key-1' },
    event: {
      type: 'identify',
      userId: 'u/7',
      anonymousId: 'a-7',
      traits: { email: 'jane@example.com', name: 'Jane', 'tea-kind': 'green', 'likes tea': true, 'tea.grams': 3.5 },
    },
    requests: [
      {
        request: 'POST https://api.fullstory.com/v2/users',
        headers: { authorization: 'Basic key-1' },
        body: {
          uid: 'u/7',
          email: 'jane@example.com',
          display_name: 'Jane',
          properties: {
            email: 'jane@example.com',
            name: 'Jane',
            segmentAnonymousId: 'a-7',
            teakind: 'green',
            likestea: true,
            teagrams: 3.5,
          },
        },
      },
    ],
  },
  {
    integration: 'actions-fullstory-cloud',
    settings: { apiKey: 'key-1' },
    event: { type: 'track', userId: 'u/7', event: 'Tea Brewed', properties: { 'tea-kind': 'green', tea_grams: 3 } },
    requests: [
      {
        request: 'POST https://api.fullstory.com/v2/events',
        partOfBody: { name: 'Tea Brewed', properties: { teakind: 'green', tea_grams: 3 }, user: { uid: 'u/7' }, timestamp: EVENT_TIME },
      },
    ],
  },
  {
    integration: 'actions-gainsight-px-cloud',
    settings: { apiKey: 'key-1', dataCenter: 'north_america' },
    event: { type: 'identify', userId: 'u-7', anonymousId: 'a-7', traits: { plan: 'gold' } },
    requests: [
      {
        request: 'POST https://segment-esp.aptrinsic.com/rte/segmentio/v1/push',
        headers: basic('key-1'),
        partOfBody: { type: 'identify', userId: 'u-7', anonymousId: 'a-7', traits: { plan: 'gold' } },
      },
    ],
  },
  {
    integration: 'actions-heap-cloud',
    settings: { appId: '11' },
    action: 'trackEvent',
    mapping: { identity: { '@path': '$.userId' } },
    event: {
      type: 'track',
      messageId: 'heap-1',
      userId: 'u-7',
      anonymousId: 'a-7',
      event: 'Tea Brewed',
      context: { traits: { name: 'Jane', email: 'jane@example.com' } },
    },
    requests: [
      {
        request: 'POST https://heapanalytics.com/api/add_user_properties',
        body: { app_id: '11', identity: 'u-7', properties: { anonymous_id: 'a-7', name: 'Jane', email: 'jane@example.com' } },
      },
      {
        request: 'POST https://heapanalytics.com/api/integrations/track',
        partOfBody: {
          app_id: '11',
          library: 'server',
          events: [{ event: 'Tea Brewed', idempotency_key: 'heap-1', timestamp: EVENT_TIME, user_identifier: { identity: 'u-7' } }],
        },
      },
    ],
  },
  {
    integration: 'actions-heap-cloud',
    settings: { appId: '11', region: 'EU' },
    event: { type: 'identify', userId: 'u-7', anonymousId: 'a-7', traits: { name: 'Jane', address: { city: 'Leeds' } } },
    requests: [
      {
        request: 'POST https://c.eu.heap-api.com/api/add_user_properties',
        body: { app_id: '11', identity: 'u-7', properties: { anonymous_id: 'a-7', name: 'Jane', 'address.city': 'Leeds' } },
      },
    ],
  },
  {
    integration: 'june-actions',
    settings: { apiKey: 'key-1' },
    event: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: 'POST https://api.june.so/api/track',
        headers: { authorization: 'Basic key-1' },
        partOfBody: { userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed', properties: { grams: 3 }, timestamp: EVENT_TIME },
      },
    ],
  },
  {
    integration: 'june-actions',
    settings: { apiKey: 'key-1' },
    event: { type: 'group', userId: 'u-7', anonymousId: 'a-7', groupId: 'g-1' },
    requests: [{ request: 'POST https://api.june.so/api/group', partOfBody: { userId: 'u-7', anonymousId: 'a-7', groupId: 'g-1' } }],
  },
  {
    integration: 'actions-launchpad',
    settings: { apiSecret: 'key-1', sourceName: 'web' },
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', context: { ip: '8.8.8.8' } },
    requests: [
      {
        request: 'POST https://data.launchpad.pm/capture',
        partOfBody: { event: 'Tea Brewed', properties: { distinct_id: 'u-7', user_id: 'u-7', ip: '8.8.8.8' } },
      },
    ],
  },
  {
    integration: 'actions-launchpad',
    settings: { apiSecret: 'key-1', sourceName: 'web' },
    event: { type: 'group', userId: 'u-7', groupId: 'g-1', traits: { name: 'Tea Ltd', employees: 3 } },
    requests: [
      {
        request: 'POST https://data.launchpad.pm/capture',
        partOfBody: { event: '$identify', type: 'screen', $set: { group_name: 'Tea Ltd', group_employees: 3 } },
      },
    ],
  },
  {
    integration: 'actions-mixpanel',
    settings: { projectToken: 'token-1', apiSecret: 'secret-1' },
    event: {
      type: 'track',
      userId: 'u-7',
      anonymousId: 'a-7',
      event: 'Tea Brewed',
      context: {
        ip: '8.8.8.8',
        locale: 'en-GB',
        location: { country: 'United Kingdom' },
        page: PAGE,
        library: { name: 'analytics.js', version: '2.11.1' },
      },
    },
    requests: [
      {
        request: 'POST https://api.mixpanel.com/import?strict=1',
        headers: basic('secret-1'),
        partOfBody: [
          {
            event: 'Tea Brewed',
            properties: {
              ip: '8.8.8.8',
              distinct_id: 'u-7',
              $anon_id: 'a-7',
              $device_id: 'a-7',
              $identified_id: 'u-7',
              $current_url: 'https://shop.example.com/tea/',
              $locale: 'en-GB',
              mp_country_code: 'United Kingdom',
              mp_lib: 'Segment Actions: analytics.js',
            },
          },
        ],
      },
    ],
  },
  {
    integration: 'actions-mixpanel',
    settings: { projectToken: 'token-1', apiSecret: 'secret-1', apiRegion: 'EU 🇪🇺' },
    event: {
      type: 'identify',
      userId: 'u-7',
      anonymousId: 'a-7',
      traits: { plan: 'gold', email: 'jane@example.com', firstName: 'Jane' },
      context: { ip: '8.8.8.8' },
    },
    requests: [
      {
        request: 'POST https://api-eu.mixpanel.com/track',
        body: {
          data: JSON.stringify({ event: '$identify', properties: { $identified_id: 'u-7', $anon_id: 'a-7', token: 'token-1' } }),
        },
      },
      {
        request: 'POST https://api-eu.mixpanel.com/engage',
        body: {
          data: JSON.stringify({
            $token: 'token-1',
            $distinct_id: 'u-7',
            $ip: '8.8.8.8',
            $set: { plan: 'gold', $email: 'jane@example.com', $first_name: 'Jane' },
          }),
        },
      },
    ],
  },
  {
    integration: 'actions-playerzero-cloud',
    settings: { projectToken: '000000000000000000000000' },
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed' },
    requests: [{ request: 'POST https://sdk.playerzero.app/connect/segment/event', headers: bearer('000000000000000000000000') }],
  },
  {
    integration: 'actions-posthog',
    settings: { api_key: 'key-1', project_id: 'project-1' },
    event: { type: 'identify', userId: 'u-7', traits: { name: 'Jane', plan: 'gold' } },
    requests: [
      {
        request: 'POST https://us.i.posthog.com/i/v0/e/',
        partOfBody: {
          event: '$identify',
          api_key: 'key-1',
          distinct_id: 'u-7',
          timestamp: EVENT_TIME,
          properties: { $set: { name: 'Jane', plan: 'gold' } },
        },
      },
    ],
  },
  {
    integration: 'actions-posthog',
    settings: { api_key: 'key-1', project_id: 'project-1' },
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { grams: 3 }, context: { ip: '8.8.8.8' } },
    requests: [
      {
        request: 'POST https://us.i.posthog.com/batch/',
        partOfBody: {
          api_key: 'key-1',
          historical_migration: false,
          batch: [{ event: 'Tea Brewed', properties: { grams: 3, distinct_id: 'u-7', $process_person_profile: false, $ip: '8.8.8.8' } }],
        },
      },
    ],
  },
  {
    integration: 'actions-trubrics',
    settings: { apiKey: 'key-1' },
    action: 'track',
    event: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed' },
    requests: [
      {
        request: 'POST https://app.trubrics.com/api/ingestion/publish_segment_events',
        headers: { 'x-api-key': 'key-1' },
        partOfBody: [{ anonymous_id: 'a-7', event: 'Tea Brewed', timestamp: EVENT_TIME, user_id: 'u-7' }],
      },
    ],
  },
  {
    integration: 'actions-usermaven',
    settings: { api_key: 'key-1', server_token: 'token-1' },
    event: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed' },
    requests: [
      {
        request: 'POST https://events.usermaven.com/api/v1/s2s/event?token=key-1.token-1',
        partOfBody: { event_type: 'Tea Brewed', user: { id: 'u-7', anonymous_id: 'a-7' } },
      },
    ],
  },
  {
    integration: 'actions-userpilot-cloud',
    settings: { apiKey: 'key-1' },
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: 'POST https://analytex.userpilot.io/v1/track',
        partOfBody: { user_id: 'u-7', event_name: 'Tea Brewed', metadata: { grams: 3 } },
      },
    ],
  },
  {
    integration: 'actions-userpilot-cloud',
    settings: { apiKey: 'key-1' },
    event: { type: 'group', userId: 'u-7', groupId: 'g-1', traits: { name: 'Tea Ltd' } },
    requests: [
      {
        request: 'POST https://analytex.userpilot.io/v1/companies/identify',
        partOfBody: { company_id: 'g-1', metadata: { name: 'Tea Ltd' } },
      },
    ],
  },
]
