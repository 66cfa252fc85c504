// Tools that send letters, texts and notifications to people.

import { basic, bearer, EVENT_SECONDS, EVENT_TIME, type PublishedFact } from './published-fact.ts'

const CUSTOMER_IO = { siteId: 'site-1', apiKey: 'key-1' }
const ITERABLE = { apiKey: 'key-1' }

export const MESSAGING: readonly PublishedFact[] = [
  {
    integration: 'actions-slack',
    settings: {},
    action: 'postToChannel',
    mapping: {
      url: 'https://hooks.slack.com/services/T00000000/B00000000/sample',
      text: { '@template': '{{event}} by {{userId}}' },
      channel: 'tea',
    },
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed' },
    requests: [
      {
        request: 'POST https://hooks.slack.com/services/T00000000/B00000000/sample',
        body: { text: 'Tea Brewed by u-7', username: 'Switchyard', channel: 'tea' },
      },
    ],
  },
  {
    integration: 'actions-twilio',
    settings: { accountId: 'AC1', token: 'token-1', phoneNumber: '+12025550100' },
    action: 'sendSMS',
    mapping: {
      To: { '@path': '$.properties.phone' },
      Body: { '@path': '$.properties.text' },
      MediaUrl: { '@path': '$.properties.picture' },
    },
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Tea Brewed',
      properties: { phone: '+12025550123', text: 'Ready!', picture: 'https://shop.example.com/tea.png' },
    },
    requests: [
      {
        request: 'POST https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json',
        headers: {
          ...basic('AC1', 'token-1'),
          'content-type': 'application/x-www-form-urlencoded;charset=UTF-8',
          'user-agent': 'Segment (Actions)',
        },
        body: { From: '+12025550100', To: '+12025550123', Body: 'Ready!', MediaUrl: 'https://shop.example.com/tea.png' },
      },
    ],
  },
  {
    integration: 'actions-customerio',
    settings: CUSTOMER_IO,
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Report Delivery Event',
      properties: { deliveryId: 'd-1', metric: 'clicked', actionName: 'score', actionValue: '3', other: 'ignored' },
    },
    requests: [
      {
        request: 'POST https://track.customer.io/api/v1/metrics',
        headers: basic('site-1', 'key-1'),
        body: { delivery_id: 'd-1', metric: 'clicked', metadata: { action_name: 'score', action_value: '3' }, timestamp: EVENT_SECONDS },
      },
    ],
  },
  {
    integration: 'actions-customerio',
    settings: CUSTOMER_IO,
    event: {
      type: 'track',
      anonymousId: 'a-7',
      event: 'Report Content Event',
      properties: { actionType: 'viewed_content', contentType: 'letter', contentId: 1, templateId: 2 },
    },
    requests: [
      {
        request: 'POST https://track.customer.io/api/v2/entity',
        body: {
          type: 'person',
          action: 'viewed_content',
          name: 'viewed_content',
          identifiers: { anonymous_id: 'a-7' },
          attributes: { contentType: 'letter', contentId: 1, templateId: 2 },
          timestamp: EVENT_SECONDS,
        },
      },
    ],
  },
  {
    integration: 'actions-iterable',
    settings: ITERABLE,
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { brewedAt: '2026-05-17T22:49:53.310Z', day: '2026-05-17' } },
    requests: [
      {
        request: 'POST https://api.iterable.com/api/events/track',
        headers: { 'api-key': 'key-1' },
        partOfBody: { userId: 'u-7', eventName: 'Tea Brewed', dataFields: { brewedAt: '2026-05-17 22:49:53 +00:00', day: '2026-05-17' } },
      },
    ],
  },
  {
    integration: 'actions-iterable',
    settings: ITERABLE,
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Order Completed',
      context: { traits: { email: 'jane@example.com', phone: '+12025550123' } },
      properties: {
        total: 19,
        products: [
          { product_id: 'p-1', name: 'Pot', price: 19, quantity: 1, category: 'Tea', sku: 's-1', url: 'https://shop.example.com/pot' },
        ],
      },
    },
    requests: [
      {
        request: 'POST https://api.iterable.com/api/commerce/trackPurchase',
        partOfBody: {
          user: { userId: 'u-7', email: 'jane@example.com', dataFields: { phoneNumber: '+12025550123' } },
          items: [{ id: 'p-1', name: 'Pot', price: 19, quantity: 1, sku: 's-1', categories: ['Tea'], url: 'https://shop.example.com/pot' }],
          total: 19,
        },
      },
    ],
  },
  {
    integration: 'actions-iterable',
    settings: { ...ITERABLE, dataCenterLocation: 'europe' },
    event: { type: 'identify', userId: 'u-7', traits: { phone: '+12025550123', plan: 'gold' } },
    requests: [
      {
        request: 'POST https://api.eu.iterable.com/api/users/update',
        partOfBody: { userId: 'u-7', dataFields: { phoneNumber: '+12025550123', plan: 'gold' } },
      },
    ],
  },
  {
    integration: 'actions-drip',
    settings: { accountId: '42', apiKey: 'key-1' },
    event: {
      type: 'identify',
      userId: 'u-7',
      context: { ip: '8.8.8.8', timezone: 'Europe/London' },
      traits: {
        email: 'jane@example.com',
        phone: '12025550123',
        initial_status: 'active',
        custom_fields: { grams: 3, green: true, list: ['a', 1], object: { kind: 'green' }, nothing: null },
        tags: 'tea,green',
      },
    },
    requests: [
      {
        request: 'POST https://api.getdrip.com/v2/42/subscribers',
        partOfBody: {
          subscribers: [
            {
              email: 'jane@example.com',
              phone: '12025550123',
              initial_status: 'active',
              ip_address: '8.8.8.8',
              time_zone: 'Europe/London',
              tags: ['tea', 'green'],
              custom_fields: { grams: '3', green: 'true', list: '["a",1]', object: '{"kind":"green"}' },
            },
          ],
        },
      },
    ],
  },
  {
    integration: 'actions-drip',
    settings: { accountId: '42', apiKey: 'key-1' },
    action: 'trackEvent',
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { grams: 3, email: 'jane@example.com' } },
    requests: [
      {
        request: 'POST https://api.getdrip.com/v2/42/events',
        body: { events: [{ email: 'jane@example.com', action: 'Tea Brewed', properties: { grams: 3, email: 'jane@example.com' } }] },
      },
    ],
  },
  {
    integration: 'actions-courier',
    settings: { apiKey: 'key-1', region: 'EU' },
    action: 'postToCourier',
    event: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: 'POST https://api.eu.courier.com/inbound/segment',
        headers: bearer('key-1'),
        partOfBody: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed', properties: { grams: 3 } },
      },
    ],
  },
  {
    integration: 'actions-courier',
    settings: { apiKey: 'key-1' },
    action: 'audienceToList',
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Audience Entered',
      properties: { tea_drinkers: true },
      context: { personas: { computation_key: 'tea_drinkers', computation_id: 'aud-1', computation_class: 'audience' } },
    },
    requests: [{ request: 'PUT https://api.courier.com/lists/tea_drinkers-aud-1/subscriptions/u-7' }],
  },
  {
    integration: 'actions-courier',
    settings: { apiKey: 'key-1' },
    action: 'audienceToList',
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Audience Exited',
      properties: { tea_drinkers: false },
      context: { personas: { computation_key: 'tea_drinkers', computation_id: 'aud-1', computation_class: 'audience' } },
    },
    requests: [{ request: 'DELETE https://api.courier.com/lists/tea_drinkers-aud-1/subscriptions/u-7' }],
  },
  {
    integration: 'actions-loops',
    settings: { apiKey: 'key-1' },
    action: 'sendEvent',
    mapping: { email: { '@path': '$.context.traits.email' } },
    event: { type: 'track', userId: 'u-7', event: 'signup', context: { traits: { email: 'jane@example.com' } } },
    requests: [
      {
        request: 'POST https://app.loops.so/api/v1/events/send',
        headers: bearer('key-1'),
        partOfBody: { email: 'jane@example.com', eventName: 'signup', userId: 'u-7' },
      },
    ],
  },
  {
    integration: 'actions-loops',
    settings: { apiKey: 'key-1' },
    action: 'createOrUpdateContact',
    mapping: {
      customAttributes: { color: { '@path': '$.traits.color' } },
      subscribed: true,
      userGroup: 'Tea drinkers',
      source: 'Shop',
      createdAt: { '@path': '$.traits.createdAt' },
    },
    event: {
      type: 'identify',
      userId: 'u-7',
      traits: { email: 'jane@example.com', firstName: 'Jane', lastName: 'Doe', color: 'blue', createdAt: '2026-05-05T14:17:38.089Z' },
    },
    requests: [
      {
        request: 'PUT https://app.loops.so/api/v1/contacts/update',
        partOfBody: {
          userId: 'u-7',
          email: 'jane@example.com',
          firstName: 'Jane',
          lastName: 'Doe',
          color: 'blue',
          subscribed: true,
          userGroup: 'Tea drinkers',
          source: 'Shop',
          createdAt: '2026-05-05T14:17:38.089Z',
        },
      },
    ],
  },
  {
    integration: 'actions-moengage',
    settings: { api_id: 'app-1', api_key: 'key-1', region: 'DC_02' },
    action: 'trackEvent',
    mapping: { project_name: 'Tea' },
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Tea Brewed',
      properties: { grams: 3 },
      context: { library: { name: 'analytics.js', version: '2.11.1' } },
    },
    requests: [
      {
        request: 'POST https://api-02.moengage.com/v1/integrations/segment?appId=app-1',
        partOfBody: {
          type: 'track',
          event: 'Tea Brewed',
          context: { library: { version: '2.11.1' } },
          properties: { grams: 3, moe_project_name: 'Tea' },
        },
      },
    ],
  },
  {
    integration: 'actions-moengage',
    settings: { api_id: 'app-1', api_key: 'key-1' },
    action: 'identifyUser',
    event: {
      type: 'identify',
      userId: 'u-7',
      anonymousId: 'a-7',
      traits: { name: 'Jane' },
      context: { library: { name: 'analytics.js', version: '2.11.1' } },
    },
    requests: [
      {
        request: 'POST https://api-01.moengage.com/v1/integrations/segment?appId=app-1',
        body: {
          type: 'identify',
          user_id: 'u-7',
          traits: { name: 'Jane' },
          context: { app: {}, os: {}, library: { version: '2.11.1' } },
          anonymous_id: 'a-7',
          timestamp: EVENT_TIME,
          update_existing_only: false,
        },
      },
    ],
  },
  {
    integration: 'actions-clevertap',
    settings: { clevertapAccountId: 'account-1', clevertapPasscode: 'pass-1' },
    action: 'userUpload',
    event: { type: 'identify', userId: 'u-7' },
    subscribe: 'type = "identify"',
    requests: [{ request: 'POST https://sk1.api.clevertap.com/1/upload' }],
  },
  {
    integration: 'actions-clevertap',
    settings: { clevertapAccountId: 'account-1', clevertapPasscode: 'pass-1', clevertapEndpoint: 'https://eu1.api.clevertap.com' },
    action: 'userDelete',
    event: { type: 'track', userId: 'u-7', event: 'Account Deleted' },
    requests: [{ request: 'POST https://eu1.api.clevertap.com/1/delete/profiles.json' }],
  },
  {
    integration: 'actions-xtremepush',
    settings: { url: 'https://api.xtremepush.com', apiKey: 'key-1' },
    event: { type: 'identify', userId: 'u-7', traits: { plan: 'gold' } },
    requests: [
      {
        request: 'POST https://api.xtremepush.com/api/integration/segment/handle',
        headers: { ...basic('key-1'), 'content-type': 'application/json', 'user-agent': 'Segment (Actions)' },
      },
    ],
  },
  {
    integration: 'actions-voyage',
    settings: { apiKey: 'key-1' },
    action: 'trackOrderPlaced',
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'OrderPlaced',
      properties: {
        CustomerId: 'c-1',
        Url: 'https://shop.example.com/pot',
        OrderTotal: 10,
        TotalSpent: 100,
        Phone: '+12025550123',
        Zip: '84032',
      },
    },
    requests: [
      {
        request: 'POST https://api.voyagetext.com/api/v1/customEvent',
        partOfBody: {
          eventTypeId: 7310,
          phone: '+12025550123',
          eventMeta: { CustomerId: 'c-1', OrderTotal: 10, TotalSpent: 100, DateCreated: EVENT_TIME, LastUpdated: EVENT_TIME },
        },
      },
    ],
  },
  {
    integration: 'actions-nudge',
    settings: { apikey: 'key-1' },
    action: 'identifyUser',
    event: { type: 'identify', userId: 'u-7', traits: { phone: '2025550123', email: 'jane@example.com', name: 'Jane' } },
    requests: [{ request: 'PUT https://main-api.nudgenow.com/api/integration/segment/identify' }],
  },
  {
    integration: 'actions-ambee',
    settings: { companyName: 'tea', apiKey: 'key-1', email: 'jane@example.com', segmentWriteKey: 'write-1' },
    action: 'subscribeUserToCampaign',
    event: {
      type: 'track',
      userId: 'u-7',
      event: 'Subscribed',
      properties: { campaignId: 'c-1' },
      context: { ip: '8.8.8.8', library: { name: 'analytics.js', version: '2.11.1' } },
    },
    requests: [{ request: 'POST https://segment-api.ambeedata.com/v1/campaign-info' }],
  },
]
