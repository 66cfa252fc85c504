// What an integration needs that its schemas do not tell, by slug: settings of a certain form, fields of the mapping, fields of the event.

import type { JsonObject } from '@switchyard/protocol'

export interface SpecialCase {
  settings?: JsonObject
  /** Of each of its subscriptions. */
  mapping?: JsonObject
  /** Of each of its events. */
  event?: JsonObject
  /** For actions that do not say when they run. */
  subscribe?: string
  /** For single actions, if they need another one than their own. */
  subscribes?: Readonly<Record<string, string>>
}

const UUID = '6a1f4a3c-5b1e-4c0e-9d0a-2f6f1c1b7a55'
const URL = 'https://tool.example.com/path'

/** The settings of an audience, which Segment adds to its events. */
const audience = (settings: JsonObject): JsonObject => ({ context: { personas: { audience_settings: settings } } })

export const SPECIAL_CASES: Readonly<Record<string, SpecialCase>> = {
  'actions-absmartly': {
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
    settings: { s3_bucket_accesspoint_alias: 'sample-alias-s3alias', fileNamePrefix: 'acme_' },
    mapping: { key_value_pairs: { plan: 'premium' }, properties: { plan: 'premium' } },
  },
  'actions-acoustic-campaign': {
    settings: { tableListId: '1234', a_clientId: 'sample', a_clientSecret: 'sample', a_refreshToken: 'sample' },
  },
  'actions-adjust': { settings: { default_app_token: 'sample-token', default_event_token: 'sample-token' } },
  'actions-amplitude-cohorts': { event: audience({ id_type: 'BY_USER_ID', owner: 'jane@example.com' }) },
  'actions-braze-cohorts': {
    event: { properties: { personas_audience_key: 'sample_audience' } },
    mapping: { personas_audience_key: 'sample_audience' },
  },
  'actions-cloud-gwen': { event: { userId: UUID } },
  'actions-contentstack': { settings: { personalizeEdgeApiBaseUrl: URL } },
  'actions-criteo-audiences': { settings: { advertiser_id: '1234' } },
  'actions-dotdigital': { mapping: { fromAddress: 'jane@example.com' } },
  'actions-equals': { settings: { url: URL } },
  'actions-google-analytics-4': { settings: { measurementId: 'G-1234' } },
  'actions-google-enhanced-conversions': {
    settings: { customerId: '123-456-7890', conversionTrackingId: '1234' },
    mapping: { conversion_label: 'sample' },
  },
  'actions-google-sheets': { mapping: { spreadsheet_id: 'sample', spreadsheet_name: 'Sheet1' } },
  'actions-google-sheets-dev': { mapping: { spreadsheet_id: 'sample', spreadsheet_name: 'Sheet1' } },
  'actions-hubspot-cloud': {
    mapping: { eventName: 'pe1234_sample', record_details: { object_id: '1234', object_type: 'contact' } },
    // A company is associated with the contact that the same event creates.
    subscribes: { upsertContact: 'type = "identify" or type = "group"' },
  },
  'actions-kafka': { settings: { brokers: 'broker.example.com:9092', username: 'sample', password: 'sample' } },
  'actions-klaviyo': {
    mapping: { profile: { email: { '@path': '$.properties.email' } } },
    event: { properties: { email: 'jane@example.com' } },
  },
  'actions-koala-cloud': {
    event: { properties: { email: 'jane@example.com' }, context: { library: { name: '@segment/analytics-node' } } },
  },
  'actions-linkedin-conversions': { mapping: { onMappingSave: { outputs: { id: '1234' } } } },
  'actions-marketo-static-lists': { settings: { api_endpoint: URL, client_id: 'sample', client_secret: 'sample' } },
  'actions-movable-ink': { settings: { movable_ink_url: URL } },
  'actions-ortto': { settings: { api_key: 'aus-sample-key' } },
  'actions-ortto-audiences': { settings: { api_key: 'aus-sample-key' } },
  'actions-pendo-audiences': { settings: { region: 'US' } },
  'actions-salesforce': {
    settings: { instanceUrl: 'https://sample.my.salesforce.com/' },
    mapping: { customFields: { plan__c: 'premium' }, close_date: '2026-12-01', name: 'sample', stage_name: 'sample' },
  },
  'actions-salesforce-marketing-cloud': { mapping: { key: 'sample', id: 'sample', onMappingSave: { outputs: { id: 'sample' } } } },
  'actions-sendgrid': { mapping: { template_id: 'd-sample' } },
  'actions-slack': { mapping: { url: 'https://hooks.slack.com/services/T000/B000/sample' } },
  'actions-snap-conversions': { settings: { pixel_id: 'sample', snap_app_id: 'sample', app_id: 'sample' } },
  'actions-taboola-actions': { event: audience({ account_id: '1234' }) },
  'actions-taguchi': { settings: { integrationURL: URL }, mapping: { target: { email: 'jane@example.com' } } },
  'actions-twilio-messaging': {
    mapping: {
      channel: 'SMS',
      senderType: 'Phone number',
      contentTemplateType: 'Inline',
      toPhoneNumber: '+14155552671',
      fromPhoneNumber: '+14155552672',
      inlineBody: 'sample',
    },
  },
  'actions-twilio-studio': { subscribe: 'type = "identify"' },
  'actions-voiceops': { event: { properties: { call_started_at: '1793528430', agentLegs: null } } },
  'actions-zapier': { mapping: { zapSubscriptionUrl: 'https://hooks.zapier.com/hooks/catch/1/sample' } },
  'voucherify-actions': { settings: { customURL: 'https://api.voucherify.io' } },
  'actions-segment': {
    mapping: {
      user_id: { '@path': '$.userId' },
      anonymous_id: { '@path': '$.anonymousId' },
      group_id: 'group1234',
      previous_id: 'anonId1234',
      event_name: 'Test Event',
      email: 'jane@example.com',
    },
  },
  'actions-segment-profiles': {
    mapping: {
      user_id: { '@path': '$.userId' },
      anonymous_id: { '@path': '$.anonymousId' },
      group_id: 'group1234',
      previous_id: 'anonId1234',
      event_name: 'Test Event',
      email: 'jane@example.com',
    },
  },
  'actions-memora': {
    mapping: { profile_identifiers: { 'Contact.$.email': 'jane@example.com' }, profile_traits: { 'Contact.$.firstName': 'Jane' } },
  },
  'actions-memora-internal': {
    mapping: { profile_identifiers: { 'Contact.$.email': 'jane@example.com' }, profile_traits: { 'Contact.$.firstName': 'Jane' } },
  },
  'actions-google-campaign-manager-360': {
    settings: { defaultFloodlightActivityId: '1', defaultFloodlightConfigurationId: '1' },
    mapping: { requiredId: { gclid: 'sample' } },
  },
  'actions-s3': { settings: { s3_aws_region: 'us-east-1' } },
  'actions-s3-csv': { settings: { s3_aws_region: 'us-east-1' } },
}
