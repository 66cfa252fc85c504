// Tools for customers, orders, support and surveys.

import { basic, bearer, EVENT_MS, EVENT_SECONDS, EVENT_TIME, type PublishedFact } from './published-fact.ts'

const PIPEDRIVE = { domain: 'tea', apiToken: 'token-1' }
const INTERCOM = { 'oauth.accessToken': 'access-1' }

export const SALES: readonly PublishedFact[] = [
  {
    integration: 'close',
    settings: {
      api_key: 'api_1.secret',
      contact_custom_field_id_for_user_id: 'cf_user',
      lead_custom_field_id_for_company_id: 'cf_company',
    },
    action: 'createUpdateContactAndLead',
    event: {
      type: 'identify',
      userId: 'u-7',
      traits: {
        company: { name: 'Tea Ltd', id: 'c-1' },
        name: 'Jane',
        email: 'jane@example.com',
        phone: '+12025550123',
        website: 'https://tea.example.com',
        title: 'Brewer',
      },
    },
    requests: [
      {
        request: 'POST https://services.close.com/webhooks/segment/actions/create-update-contact-and-lead/',
        headers: basic('api_1.secret'),
        body: {
          action_payload: {
            lead_name: 'Tea Ltd',
            lead_external_id: 'c-1',
            contact_name: 'Jane',
            contact_email: 'jane@example.com',
            contact_phone: '+12025550123',
            contact_url: 'https://tea.example.com',
            contact_title: 'Brewer',
            contact_external_id: 'u-7',
          },
          settings: {
            contact_custom_field_id_for_user_id: 'cf_user',
            lead_custom_field_id_for_company_id: 'cf_company',
            allow_creating_new_leads: true,
            allow_updating_existing_leads: true,
            allow_creating_new_contacts: true,
            allow_updating_existing_contacts: true,
            allow_creating_duplicate_contacts: true,
          },
        },
      },
    ],
  },
  {
    integration: 'actions-intercom-cloud',
    settings: INTERCOM,
    action: 'trackEvent',
    mapping: { revenue: { '@path': '$.properties.payment' } },
    event: { type: 'track', userId: 'u-7', event: 'Tea Paid', properties: { payment: 100 } },
    requests: [
      {
        request: 'POST https://api.intercom.io/events',
        headers: bearer('access-1'),
        body: {
          event_name: 'Tea Paid',
          created_at: EVENT_SECONDS,
          user_id: 'u-7',
          metadata: { payment: 100, price: { amount: 10_000, currency: 'USD' } },
        },
      },
    ],
  },
  {
    integration: 'actions-intercom-cloud',
    settings: INTERCOM,
    action: 'identifyContact',
    mapping: { role: { '@path': '$.traits.role' } },
    event: { type: 'identify', userId: 'u-7', traits: { role: 'lead', name: 'Jane', email: 'jane@example.com' } },
    answers: { 'POST https://api.intercom.io/contacts/search': { body: { total_count: 1, data: [{ id: 'contact-1' }] } } },
    requests: [
      {
        request: 'POST https://api.intercom.io/contacts/search',
        partOfBody: { query: { field: 'external_id', operator: '=', value: 'u-7' } },
      },
      {
        request: 'PUT https://api.intercom.io/contacts/contact-1',
        body: { role: 'lead', external_id: 'u-7', email: 'jane@example.com', name: 'Jane', last_seen_at: EVENT_SECONDS },
      },
    ],
  },
  {
    integration: 'actions-intercom-cloud',
    settings: INTERCOM,
    action: 'groupIdentifyContact',
    event: { type: 'group', userId: 'u-7', groupId: 'Tea Ltd' },
    answers: {
      'POST https://api.intercom.io/contacts/search': { body: { total_count: 1, data: [{ id: 'contact-1' }] } },
      'POST https://api.intercom.io/companies': { body: { id: 'company-1' } },
    },
    requests: [
      { request: 'POST https://api.intercom.io/contacts/search', body: { query: { field: 'external_id', operator: '=', value: 'u-7' } } },
      { request: 'POST https://api.intercom.io/companies', body: { company_id: 'Tea Ltd' } },
      { request: 'POST https://api.intercom.io/contacts/contact-1/companies', body: { id: 'company-1' } },
    ],
  },
  {
    integration: 'actions-pipedrive',
    settings: PIPEDRIVE,
    action: 'createUpdateDeal',
    mapping: { title: 'Ten pots', person_match_field: 'name', person_match_value: { '@path': '$.properties.person' } },
    event: { type: 'track', userId: 'u-7', event: 'Deal Upserted', properties: { person: 'Jane' } },
    answers: { 'GET https://tea.pipedrive.com/api/v1/itemSearch/field': { body: { data: [{ id: 420 }] } } },
    requests: [
      {
        request: 'GET https://tea.pipedrive.com/api/v1/itemSearch/field',
        partOfQuery: { api_token: 'token-1', field_key: 'name', field_type: 'personField', term: 'Jane' },
      },
      {
        request: 'POST https://tea.pipedrive.com/api/v1/deals?api_token=token-1',
        partOfBody: { title: 'Ten pots', person_id: 420 },
      },
    ],
  },
  {
    integration: 'actions-canny',
    settings: { apiKey: 'key-1' },
    event: { type: 'group', userId: 'u-7', groupId: 'g-1', traits: { name: 'Tea Ltd' } },
    requests: [
      {
        request: 'POST https://canny.io/api/segment/group',
        body: { groupId: 'g-1', traits: { name: 'Tea Ltd' }, type: 'group', userId: 'u-7' },
      },
    ],
  },
  {
    integration: 'actions-canny',
    settings: { apiKey: 'key-1' },
    event: { type: 'identify', userId: 'u-7', traits: { email: 'jane@example.com', name: 'Jane' } },
    requests: [
      {
        request: 'POST https://canny.io/api/segment/v2/identify',
        body: { traits: { email: 'jane@example.com', name: 'Jane' }, type: 'identify', userId: 'u-7' },
      },
    ],
  },
  {
    integration: 'actions-chartmogul',
    settings: { chartmogul_webhook_url: 'https://chartmogul.example.com' },
    action: 'sendCustomer',
    event: {
      type: 'group',
      messageId: 'chartmogul-1',
      userId: 'u-7',
      groupId: 'g-1',
      traits: { name: 'Tea Ltd' },
      sentAt: EVENT_TIME,
    },
    requests: [
      {
        request: 'POST https://chartmogul.example.com/',
        partOfBody: { type: 'Send Customer', message_id: 'chartmogul-1', group_id: 'g-1', user_id: 'u-7', name: 'Tea Ltd' },
      },
    ],
  },
  {
    integration: 'actions-dub',
    settings: { apiKey: 'key-1' },
    action: 'trackLead',
    mapping: {
      clickId: { '@path': '$.properties.click' },
      eventName: { '@path': '$.event' },
      customerName: { '@path': '$.properties.name' },
      customerEmail: { '@path': '$.properties.email' },
    },
    event: { type: 'track', userId: 'u-7', event: 'Sign Up', properties: { click: 'click-1', name: 'Jane', email: 'jane@example.com' } },
    requests: [{ request: 'POST https://api.dub.co/track/lead', headers: bearer('key-1') }],
  },
  {
    integration: 'actions-mantle',
    settings: { appId: 'app-1', apiKey: 'key-1' },
    action: 'identify',
    mapping: { platformId: { '@path': '$.traits.platformId' }, myshopifyDomain: { '@path': '$.traits.domain' } },
    event: {
      type: 'identify',
      userId: 'u-7',
      traits: { email: 'jane@example.com', name: 'Jane', platformId: 'p-1', domain: 'tea.myshopify.com' },
    },
    requests: [
      {
        request: 'POST https://appapi.heymantle.com/v1/identify',
        partOfBody: {
          platform: 'shopify',
          platformId: 'p-1',
          myshopifyDomain: 'tea.myshopify.com',
          email: 'jane@example.com',
          name: 'Jane',
        },
      },
    ],
  },
  {
    integration: 'actions-mantle',
    settings: { appId: 'app-1', apiKey: 'key-1' },
    action: 'pushEvent',
    mapping: { customerId: { '@path': '$.properties.customer' } },
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { customer: 'c-1', grams: 3 } },
    requests: [
      {
        request: 'POST https://appapi.heymantle.com/v1/usage_events',
        partOfBody: { event_name: 'Tea Brewed', customerId: 'c-1', properties: { customer: 'c-1', grams: 3 }, timestamp: EVENT_TIME },
      },
    ],
  },
  {
    integration: 'actions-koala-cloud',
    settings: { public_key: 'key-1' },
    action: 'identify',
    event: {
      type: 'identify',
      messageId: 'koala-1',
      userId: 'u-7',
      sentAt: EVENT_TIME,
      traits: { vip: true, email: 'jane@example.com' },
      context: { ip: '8.8.8.8', library: { name: '@segment/analytics-node' } },
    },
    requests: [
      {
        request: 'POST https://api2.getkoala.com/web/projects/key-1/batch',
        partOfBody: {
          ip: '8.8.8.8',
          email: 'jane@example.com',
          traits: { vip: true, email: 'jane@example.com' },
          identifies: [
            {
              type: 'identify',
              message_id: 'koala-1',
              traits: { vip: true, email: 'jane@example.com' },
              context: { source: 'segment-cloud' },
            },
          ],
        },
      },
    ],
  },
  {
    integration: 'outfunnel',
    settings: { userId: 'account-1', apiToken: 'token-1' },
    event: { type: 'identify', userId: 'u-7', anonymousId: 'a-7', traits: { name: 'Jane', email: 'jane@example.com' } },
    requests: [
      {
        request: 'POST https://sink.outfunnel.com/events/segment/account-1?api_token=token-1',
        partOfBody: { action: 'identify', user_id: 'u-7', anonymous_id: 'a-7', email: 'jane@example.com' },
      },
    ],
  },
  {
    integration: 'actions-rehook',
    settings: { api_key: 'key-1', api_secret: 'secret-1' },
    action: 'identifyUser',
    event: { type: 'identify', userId: 'u-7', traits: { name: 'Jane' } },
    requests: [
      {
        request: 'POST https://api.rehook.ai/customers',
        headers: basic('key-1', 'secret-1'),
        body: { source_id: 'u-7', metadata: { name: 'Jane' } },
      },
    ],
  },
  {
    integration: 'actions-rehook',
    settings: { api_key: 'key-1', api_secret: 'secret-1' },
    action: 'trackEvent',
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: 'POST https://api.rehook.ai/events/invoke',
        partOfBody: { event_name: 'Tea Brewed', metadata: { grams: 3 }, source_id: 'u-7' },
      },
    ],
  },
  {
    integration: 'actions-ripe-cloud',
    settings: { apiKey: 'key-1' },
    event: { type: 'track', userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed', properties: { grams: 3 } },
    requests: [
      {
        request: 'POST https://api.getripe.com/event/track',
        partOfBody: { userId: 'u-7', anonymousId: 'a-7', event: 'Tea Brewed', properties: { grams: 3 } },
      },
    ],
  },
  {
    integration: 'actions-schematic',
    settings: { apiKey: 'key-1' },
    action: 'trackEvent',
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed' },
    requests: [{ request: 'POST https://c.schematichq.com/e' }],
  },
  {
    integration: 'actions-sprig',
    settings: { apiKey: 'key-1' },
    event: { type: 'identify', userId: 'u-7', traits: { firstName: 'Jane', products: { tea: true, details: { grams: 3 } } } },
    requests: [
      {
        request: 'POST https://api.sprig.com/v2/users',
        partOfBody: { userId: 'u-7', attributes: { firstName: 'Jane', 'products.tea': true, 'products.details.grams': 3 } },
      },
    ],
  },
  {
    integration: 'actions-sprig',
    settings: { apiKey: 'key-1' },
    event: { type: 'track', userId: 'u-7', event: 'Tea Brewed' },
    requests: [
      {
        request: 'POST https://api.sprig.com/v2/users',
        partOfBody: { userId: 'u-7', events: [{ event: 'Tea Brewed', timestamp: EVENT_MS }] },
      },
    ],
  },
  {
    integration: 'actions-surveysparrow',
    settings: { apiToken: 'token-1' },
    action: 'createContact',
    event: { type: 'identify', userId: 'u-7', traits: { name: 'Jane', email: 'jane@example.com' } },
    mapping: { full_name: { '@path': '$.traits.name' }, email: { '@path': '$.traits.email' } },
    requests: [{ request: 'POST https://api.surveysparrow.com/v3/contacts', headers: bearer('token-1') }],
  },
  {
    integration: 'actions-toplyne-cloud',
    settings: { apiKey: 'key-1' },
    event: { type: 'group', userId: 'u-7', groupId: 'g-1', traits: { name: 'Tea Ltd' } },
    requests: [{ request: 'POST https://api.toplyne.io/v1/upload/accounts/profiles' }],
  },
  {
    integration: 'actions-toplyne-cloud',
    settings: { apiKey: 'key-1' },
    event: { type: 'identify', userId: 'u-7', traits: { name: 'Jane' } },
    requests: [{ request: 'POST https://api.toplyne.io/v1/upload/users/profiles' }],
  },
]
