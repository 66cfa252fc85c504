// What a user of an integration knows and its schemas do not tell, by slug: settings of a certain form, fields of the mapping, fields of the event.
// The service and the library both get it, so a value here could hide a default that is missing in the service. Therefore each has a reason why it
// has to come from the user. A value that the form or the catalogue should add does not belong here.

import type { JsonObject } from '@switchyard/protocol'

export interface SpecialCase {
  /** Why the user has to give it. */
  why: string
  settings?: JsonObject
  /** Of each of its subscriptions. */
  mapping?: JsonObject
  /** Of each of its events. */
  event?: JsonObject
  /** For actions that do not say when they run. */
  subscribe?: string
  /** For single actions, if they need another one than their own. */
  subscribes?: Readonly<Record<string, string>>
  /** Actions that must run before the others, in their order. */
  first?: readonly string[]
  /** By action: values that its mapping reads, but its event must not contain. */
  without?: Readonly<Record<string, readonly string[]>>
}

const UUID = '6a1f4a3c-5b1e-4c0e-9d0a-2f6f1c1b7a55'
const URL = 'https://tool.example.com/path'

/** The settings of an audience, which Segment adds to its events. */
const audience = (settings: JsonObject): JsonObject => ({ context: { personas: { audience_settings: settings } } })

export const SPECIAL_CASES: Readonly<Record<string, SpecialCase>> = {
  'actions-absmartly': {
    why: 'The exposure is an object that the SDK of ABsmartly makes.',
    event: {
      properties: {
        exposure: {
          publishedAt: '2026-11-01T10:20:00.000Z',
          units: [{ type: 'userId', uid: 'user1234' }],
          exposures: [{ name: 'sample', exposedAt: 1793528400000 }],
        },
      },
    },
  },
  'actions-acoustic': {
    why: 'The alias and the prefix have a form that Acoustic prescribes. The pairs are chosen by the user.',
    settings: { s3_bucket_accesspoint_alias: 'sample-alias-s3alias', fileNamePrefix: 'acme_' },
    mapping: { key_value_pairs: { plan: 'premium' }, properties: { plan: 'premium' } },
  },
  'actions-acoustic-campaign': {
    why: 'The ID of a table, and credentials, which only Acoustic has.',
    settings: { tableListId: '1234', a_clientId: 'sample', a_clientSecret: 'sample', a_refreshToken: 'sample' },
  },
  'actions-adjust': {
    why: 'Tokens of the app and the event, which Adjust issues.',
    settings: { default_app_token: 'sample-token', default_event_token: 'sample-token' },
  },
  'actions-amplitude-cohorts': {
    why: 'The settings of the audience are part of the message.',
    event: audience({ id_type: 'BY_USER_ID', owner: 'jane@example.com' }),
  },
  'actions-braze-cohorts': {
    why: 'The key of the audience is part of the message.',
    event: { properties: { personas_audience_key: 'sample_audience' } },
    mapping: { personas_audience_key: 'sample_audience' },
  },
  'actions-cloud-gwen': {
    why: 'Gwen accepts UUIDs only.',
    event: { userId: UUID },
  },
  'actions-contentstack': {
    why: 'The URL differs for each region.',
    settings: { personalizeEdgeApiBaseUrl: URL },
  },
  'actions-courier': {
    why: 'Messages about audiences are for its other action.',
    without: { postToCourier: ['context', 'personas'] },
  },
  'actions-criteo-audiences': {
    why: 'The ID of an advertiser is a number.',
    settings: { advertiser_id: '1234' },
  },
  'actions-dotdigital': {
    why: 'The sender has to be one of the account.',
    mapping: { fromAddress: 'jane@example.com' },
  },
  'actions-equals': {
    why: 'The URL belongs to the account.',
    settings: { url: URL },
  },
  'actions-google-analytics-4': {
    why: 'The ID starts with G- for websites.',
    settings: { measurementId: 'G-1234' },
  },
  'actions-google-enhanced-conversions': {
    why: 'IDs of the account and labels of its conversions. The settings of the audience are part of the message.',
    settings: { customerId: '123-456-7890', conversionTrackingId: '1234' },
    mapping: { conversion_label: 'sample' },
    event: audience({ external_id_type: 'CONTACT_INFO' }),
  },
  'actions-google-sheets': {
    why: 'The spreadsheet is chosen by the user.',
    mapping: { spreadsheet_id: 'sample', spreadsheet_name: 'Sheet1' },
  },
  'actions-google-sheets-dev': {
    why: 'The spreadsheet is chosen by the user.',
    mapping: { spreadsheet_id: 'sample', spreadsheet_name: 'Sheet1' },
  },
  'actions-hubspot-cloud': {
    why: 'Events and objects are defined in HubSpot. A company is associated with the contact that the same event creates before.',
    mapping: { eventName: 'pe1234_sample', record_details: { object_id: '1234', object_type: 'contact' } },
    event: { traits: { email: 'jane@example.com' } },
    first: ['upsertContact'],
    subscribes: { upsertContact: 'type = "identify" or type = "group"' },
  },
  'actions-klaviyo': {
    why: 'Events for Klaviyo contain the address of the profile.',
    mapping: { profile: { email: { '@path': '$.properties.email' } } },
    event: { properties: { email: 'jane@example.com' } },
  },
  'actions-koala-cloud': {
    why: 'Koala accepts only events that its own clients do not send already.',
    event: { properties: { email: 'jane@example.com' }, context: { library: { name: '@segment/analytics-node' } } },
  },
  'actions-linkedin-conversions': {
    why: 'The ID of a conversion rule, which is created in LinkedIn.',
    mapping: { onMappingSave: { outputs: { id: '1234' } } },
  },
  'actions-marketo-static-lists': {
    why: 'The endpoint and the client belong to the account.',
    settings: { api_endpoint: URL, client_id: 'sample', client_secret: 'sample' },
  },
  'actions-movable-ink': {
    why: 'The URL belongs to the account.',
    settings: { movable_ink_url: URL },
  },
  'actions-optimizely-feature-experimentation-cloud': {
    why: 'The file belongs to the project.',
    settings: { dataFileUrl: 'https://cdn.optimizely.com/json/1234.json' },
  },
  'actions-ortto': {
    why: 'The key starts with the region.',
    settings: { api_key: 'aus-sample-key' },
  },
  'actions-ortto-audiences': {
    why: 'The key starts with the region.',
    settings: { api_key: 'aus-sample-key' },
  },
  'actions-pendo-audiences': {
    why: 'The code compares the region in upper case.',
    settings: { region: 'US' },
  },
  'actions-personas-messaging-sendgrid': {
    why: 'Messages are sent only if the mapping says so, to whom, and what.',
    mapping: {
      send: true,
      externalIds: [{ id: 'jane@example.com', type: 'email', subscriptionStatus: 'subscribed' }],
      bodyType: 'html',
      bodyHtml: '<p>sample</p>',
      fromEmail: 'sender@example.com',
      replyToEmail: 'sender@example.com',
      bcc: '[]',
      url: URL,
      method: 'get',
      responseType: 'json',
      // Its cache is a service of Segment.
      cacheTtl: 0,
    },
  },
  'actions-personas-messaging-twilio': {
    why: 'Messages are sent only if the mapping says so, to whom, and what.',
    mapping: {
      send: true,
      externalIds: [{ id: '+14155552671', type: 'phone', channelType: 'sms', subscriptionStatus: 'subscribed' }],
      from: '+14155552672',
      body: 'sample',
      contentSid: 'HX1234',
    },
  },
  'actions-salesforce': {
    why: 'The URL belongs to the account. The fields are those of its records.',
    settings: { instanceUrl: 'https://sample.my.salesforce.com/' },
    mapping: { customFields: { plan__c: 'premium' }, close_date: '2026-12-01', name: 'sample', stage_name: 'sample' },
  },
  'actions-salesforce-marketing-cloud': {
    why: 'The data extension is chosen by the user.',
    mapping: { key: 'sample', id: 'sample', onMappingSave: { outputs: { id: 'sample' } } },
  },
  'actions-sendgrid': {
    why: 'The ID of a template starts with d-.',
    mapping: { template_id: 'd-sample' },
  },
  'actions-slack': {
    why: 'The URL belongs to the channel.',
    mapping: { url: 'https://hooks.slack.com/services/T000/B000/sample' },
  },
  'actions-snap-conversions': {
    why: 'At least one of the three IDs is needed, depending on where events come from.',
    settings: { pixel_id: 'sample', snap_app_id: 'sample', app_id: 'sample' },
  },
  'actions-taboola-actions': {
    why: 'The settings of the audience are part of the message.',
    event: audience({ account_id: '1234' }),
  },
  'actions-taguchi': {
    why: 'The URL belongs to the account. The target is chosen by the user.',
    settings: { integrationURL: URL },
    mapping: { target: { email: 'jane@example.com' } },
  },
  'actions-twilio-messaging': {
    why: 'Which fields are needed depends on the channel. The numbers belong to the account.',
    mapping: {
      channel: 'SMS',
      senderType: 'Phone number',
      contentTemplateType: 'Inline',
      toPhoneNumber: '+14155552671',
      fromPhoneNumber: '+14155552672',
      inlineBody: 'sample',
    },
  },
  'actions-twilio-studio': {
    why: 'The action accepts identify events only, and does not say so.',
    subscribe: 'type = "identify"',
  },
  'actions-voiceops': {
    why: 'The properties have the form of VoiceOps.',
    event: { properties: { call_started_at: '1793528430', agentLegs: null } },
  },
  'actions-zapier': {
    why: 'The URL belongs to the Zap.',
    mapping: { zapSubscriptionUrl: 'https://hooks.zapier.com/hooks/catch/1/sample' },
  },
  'voucherify-actions': {
    why: 'The URL belongs to the region of the account.',
    settings: { customURL: 'https://api.voucherify.io' },
  },
  'actions-memora': {
    why: 'Identifiers and traits are named as in Memora.',
    mapping: { profile_identifiers: { 'Contact.$.email': 'jane@example.com' }, profile_traits: { 'Contact.$.firstName': 'Jane' } },
  },
  'actions-memora-internal': {
    why: 'Identifiers and traits are named as in Memora.',
    mapping: { profile_identifiers: { 'Contact.$.email': 'jane@example.com' }, profile_traits: { 'Contact.$.firstName': 'Jane' } },
  },
  'actions-google-campaign-manager-360': {
    why: 'IDs of the account. One of several identifiers is needed, and the user chooses which.',
    settings: { defaultFloodlightActivityId: '1', defaultFloodlightConfigurationId: '1' },
    mapping: { requiredId: { gclid: 'sample' } },
  },
}
