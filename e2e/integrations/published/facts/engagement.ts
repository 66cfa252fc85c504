// Suites for engagement: profiles, orders, recommendations and offers.

import { bearer, EVENT_MS, EVENT_SECONDS, EVENT_TIME, type PublishedFact } from './published-fact.ts'

const BRAZE = { api_key: 'key-1', app_id: 'app-1', endpoint: 'https://rest.iad-01.braze.com' }
const ENCHARGE = { apiKey: 'key-1' }
const ENCHARGE_HEADERS = { 'x-encharge-token': 'key-1', 'content-type': 'application/json', 'user-agent': 'Segment (Actions)' }
const RECOMBEE = { databaseId: 'tea', privateToken: 'token-1' }
const TALON_ONE = { apiKey: 'key-1', deployment: 'https://tea.europe-west1.talon.one' }
const TALON_ONE_HEADERS = { authorization: 'ApiKey-v1 key-1', 'destination-hostname': 'https://tea.europe-west1.talon.one' }
const AAMPE = 'https://ingestion-service-asia-southeast1-toqowp62ka-as.a.run.app/v1'

export const ENGAGEMENT: readonly PublishedFact[] = [
  {
    integration: 'actions-aampe',
    settings: { apiKey: 'key-1' },
    action: 'sendEvent',
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: `POST ${AAMPE}/events`,
        headers: bearer('key-1'),
        partOfBody: { contact_id: 'u-7', event_name: 'Tea Brewed', timestamp: EVENT_SECONDS, metadata: { grams: 3 } },
      },
    ],
  },
  {
    integration: 'actions-attentive',
    settings: { apiKey: 'key-1' },
    action: 'customEvents',
    event: {
      type: 'track',
      messageId: 'attentive-1',
      userId: 'u-7',
      event: 'Tea Brewed',
      properties: { kind: 'green' },
      context: { traits: { phone: '+12025550123', email: 'jane@example.com' } },
    },
    requests: [
      {
        request: 'POST https://api.attentivemobile.com/v1/events/custom',
        headers: bearer('key-1'),
        body: {
          type: 'Tea Brewed',
          user: { phone: '+12025550123', email: 'jane@example.com', externalIdentifiers: { clientUserId: 'u-7' } },
          properties: { kind: 'green' },
          externalEventId: 'attentive-1',
          occurredAt: EVENT_TIME,
        },
      },
    ],
  },
  {
    integration: 'actions-braze-cloud',
    settings: BRAZE,
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Order Completed',
      properties: {
        order_id: 'o-1',
        cart_id: 'c-1',
        total: 19,
        discount: 2,
        currency: 'USD',
        source: 'shop',
        products: [
          { product_id: 'p-1', name: 'Pot', variant: 'red', image_url: 'https://shop.example.com/pot.jpg', quantity: 1, price: 19 },
        ],
      },
    },
    requests: [
      {
        request: 'POST https://rest.iad-01.braze.com/users/track',
        headers: bearer('key-1'),
        partOfBody: {
          events: [
            {
              external_id: 'u-7',
              app_id: 'app-1',
              name: 'ecommerce.order_placed',
              time: EVENT_TIME,
              properties: {
                currency: 'USD',
                source: 'shop',
                order_id: 'o-1',
                cart_id: 'c-1',
                total_value: 19,
                total_discounts: 2,
                products: [
                  {
                    product_id: 'p-1',
                    product_name: 'Pot',
                    variant_id: 'red',
                    image_url: 'https://shop.example.com/pot.jpg',
                    quantity: 1,
                    price: 19,
                  },
                ],
              },
            },
          ],
        },
      },
    ],
  },
  {
    integration: 'actions-braze-cloud',
    settings: BRAZE,
    event: { type: 'identify', userId: 'u-7', traits: { email: 'jäne@example.com' } },
    requests: [
      {
        request: 'POST https://rest.iad-01.braze.com/users/track',
        partOfBody: { attributes: [{ external_id: 'u-7', email: 'jäne@example.com' }] },
      },
    ],
  },
  {
    integration: 'actions-canvas',
    settings: { apiToken: 'token-1' },
    event: {
      type: 'group',
      userId: 'u-7',
      anonymousId: 'a-7',
      groupId: 'g-1',
      // Required by the action. With it, the timestamp is corrected by the clock of the service.
      sentAt: EVENT_TIME,
      traits: { name: 'Tea Ltd' },
      context: { userAgent: 'Agent/1.0', page: { url: 'https://shop.example.com/' } },
    },
    requests: [
      {
        request: 'POST https://events.canvasapp.com/v1/event/group',
        partOfBody: [
          {
            user_id: 'u-7',
            anonymous_id: 'a-7',
            group_id: 'g-1',
            sent_at: EVENT_TIME,
            traits: { name: 'Tea Ltd' },
            context: { userAgent: 'Agent/1.0', page: { url: 'https://shop.example.com/' } },
          },
        ],
      },
    ],
  },
  {
    integration: 'encharge-cloud-actions',
    settings: ENCHARGE,
    event: { type: 'alias', messageId: 'encharge-1', userId: 'u-7', previousId: 'a-7' },
    requests: [
      {
        request: 'POST https://ingest.encharge.io/v1',
        headers: ENCHARGE_HEADERS,
        body: { type: 'alias', messageId: 'encharge-1', userId: 'u-7', previousUserId: 'a-7', timestamp: EVENT_TIME },
      },
    ],
  },
  {
    integration: 'encharge-cloud-actions',
    settings: ENCHARGE,
    event: { type: 'group', userId: 'u-7', groupId: 'g-1', traits: { name: 'Tea Ltd', size: 3 } },
    requests: [
      {
        request: 'POST https://ingest.encharge.io/v1',
        headers: ENCHARGE_HEADERS,
        body: {
          type: 'group',
          objectType: 'company',
          properties: { externalId: 'g-1', name: 'Tea Ltd', size: 3 },
          user: { userId: 'u-7' },
        },
      },
    ],
  },
  {
    integration: 'encharge-cloud-actions',
    settings: ENCHARGE,
    action: 'addTag',
    subscribe: 'type = "identify"',
    event: { type: 'identify', userId: 'u-7', anonymousId: 'a-7', traits: { tag: 'tea' } },
    requests: [{ request: 'POST https://api.encharge.io/v1/tags', body: { tag: 'tea', userId: 'u-7', segmentAnonymousId: 'a-7' } }],
  },
  {
    integration: 'encharge-cloud-actions',
    settings: ENCHARGE,
    action: 'removeTag',
    subscribe: 'type = "identify"',
    event: { type: 'identify', userId: 'u-7', anonymousId: 'a-7', traits: { tag: 'tea' } },
    requests: [{ request: 'DELETE https://api.encharge.io/v1/tags', body: { tag: 'tea', userId: 'u-7', segmentAnonymousId: 'a-7' } }],
  },
  {
    integration: 'actions-google-analytics-4',
    settings: { apiSecret: 'secret-1', measurementId: 'G-TEA' },
    action: 'addToCart',
    mapping: { client_id: { '@path': '$.anonymousId' }, user_properties: { kind: 'drinker' } },
    event: {
      type: 'track',
      userId: 'u-7',
      anonymousId: 'a-7',
      event: 'Product Added',
      properties: { product_id: 'p-1', name: 'Pot', currency: 'USD', price: 12.5, quantity: 1 },
    },
    requests: [
      {
        request: 'POST https://www.google-analytics.com/mp/collect?measurement_id=G-TEA&api_secret=secret-1',
        partOfBody: {
          client_id: 'a-7',
          events: [
            {
              name: 'add_to_cart',
              params: {
                currency: 'USD',
                items: [{ item_id: 'p-1', item_name: 'Pot', price: 12.5, quantity: 1 }],
                engagement_time_msec: 1,
              },
            },
          ],
          user_properties: { kind: { value: 'drinker' } },
          timestamp_micros: EVENT_MS * 1_000,
        },
      },
    ],
  },
  {
    integration: 'actions-klaviyo',
    settings: { api_key: 'key-1' },
    action: 'trackEvent',
    mapping: { profile: { anonymous_id: { '@path': '$.anonymousId' } }, value: 10, unique_id: { '@path': '$.messageId' } },
    event: { type: 'track', messageId: 'klaviyo-1', anonymousId: 'a-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: 'POST https://a.klaviyo.com/api/events/',
        headers: { authorization: 'Klaviyo-API-Key key-1' },
        body: {
          data: {
            type: 'event',
            attributes: {
              properties: { grams: 3 },
              time: EVENT_TIME,
              value: 10,
              unique_id: 'klaviyo-1',
              metric: { data: { type: 'metric', attributes: { name: 'Tea Brewed' } } },
              profile: { data: { type: 'profile', attributes: { anonymous_id: 'a-7' } } },
            },
          },
        },
      },
    ],
  },
  {
    integration: 'actions-recombee',
    settings: RECOMBEE,
    event: { type: 'track', userId: 'u-7', event: 'Product Viewed', properties: { product_id: 'p-1' } },
    requests: [
      {
        request: 'POST https://rapi-eu-west.recombee.com/tea/detailviews/',
        partOfQuery: {},
        partOfBody: { userId: 'u-7', itemId: 'p-1', timestamp: EVENT_TIME, cascadeCreate: true },
      },
    ],
  },
  {
    integration: 'actions-recombee',
    settings: { ...RECOMBEE, databaseRegion: 'us-west' },
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Order Completed',
      properties: {
        products: [
          { product_id: 'p-1', quantity: 1, price: 10 },
          { product_id: 'p-2', quantity: 2, price: 20 },
        ],
      },
    },
    answers: {
      'POST https://rapi-us-west.recombee.com/tea/batch/': {
        body: [
          { code: 200, json: 'ok' },
          { code: 200, json: 'ok' },
        ],
      },
    },
    requests: [
      {
        request: 'POST https://rapi-us-west.recombee.com/tea/batch/',
        partOfQuery: {},
        partOfBody: {
          requests: [
            {
              method: 'POST',
              path: '/purchases/',
              params: { userId: 'u-7', itemId: 'p-1', timestamp: EVENT_TIME, cascadeCreate: true, amount: 1, price: 10 },
            },
            {
              method: 'POST',
              path: '/purchases/',
              params: { userId: 'u-7', itemId: 'p-2', timestamp: EVENT_TIME, cascadeCreate: true, amount: 2, price: 20 },
            },
          ],
        },
      },
    ],
  },
  {
    integration: 'actions-survicate-cloud',
    settings: { apiKey: 'key-1' },
    event: { type: 'group', userId: 'u-7', anonymousId: 'a-7', groupId: 'g-1', traits: { name: 'Tea Ltd', size: 3 } },
    requests: [
      {
        request: 'POST https://integrations.survicate.com/endpoint/segment/group',
        body: {
          user_id: 'u-7',
          anonymous_id: 'a-7',
          group_id: 'g-1',
          traits: { group_name: 'Tea Ltd', group_size: 3 },
          timestamp: EVENT_TIME,
        },
      },
    ],
  },
  {
    integration: 'actions-survicate-cloud',
    settings: { apiKey: 'key-1' },
    event: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: 'POST https://integrations.survicate.com/endpoint/segment/track',
        body: { name: 'Tea Brewed', user_id: 'u-7', anonymous_id: 'a-7', properties: { grams: 3 }, timestamp: EVENT_TIME },
      },
    ],
  },
  {
    integration: 'actions-talon-one',
    settings: TALON_ONE,
    action: 'updateAudience',
    mapping: { audienceId: { '@path': '$.properties.audience' }, audienceName: 'Tea drinkers' },
    event: { type: 'track', userId: 'u-7', event: 'Audience Renamed', properties: { audience: 'aud-1' } },
    requests: [
      {
        request: 'PUT https://integration.talon.one/segment/audiences/aud-1',
        headers: TALON_ONE_HEADERS,
        body: { audienceName: 'Tea drinkers' },
      },
    ],
  },
  {
    integration: 'actions-talon-one',
    settings: TALON_ONE,
    action: 'deleteAudience',
    mapping: { audienceId: { '@path': '$.properties.audience' } },
    event: { type: 'track', userId: 'u-7', event: 'Audience Removed', properties: { audience: 'aud-1' } },
    requests: [{ request: 'DELETE https://integration.talon.one/segment/audiences/aud-1', headers: TALON_ONE_HEADERS }],
  },
  {
    integration: 'actions-talon-one',
    settings: TALON_ONE,
    action: 'trackEventV2',
    mapping: {
      customerProfileId: { '@path': '$.userId' },
      eventType: 'tea_brewed',
      attributes: { '@path': '$.properties' },
      skipNonExistingAttributes: true,
    },
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { kind: 'green', hot: true } },
    requests: [
      {
        request: 'PUT https://integration.talon.one/segment/v2/events?skipNonExistingAttributes=true',
        headers: TALON_ONE_HEADERS,
        body: { customerProfileId: 'u-7', eventType: 'tea_brewed', eventAttributes: { kind: 'green', hot: true } },
      },
    ],
  },
]
