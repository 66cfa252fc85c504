// The feature flags that the code of integrations asks for, and what each is here. Segment's app switches them on for some customers, or for a version
// that is being tried out; its defaults are not published. This is data: a test compares it with the code of the definitions, so a flag that a new
// version of the library asks for has to be decided here. A destination can override each of them: `settings.features`.

import type { JsonObject } from '@switchyard/protocol'
import type { FieldSchema } from './catalog.ts'

export interface FeatureFlag {
  isOn: boolean
  /** What it does, and why it is on or off, in sentences. */
  reason: string
}

type Flags = Readonly<Record<string, FeatureFlag>>

/** The name of the setting that overrides them. No definition has a setting of this name. */
export const FEATURES_SETTING = 'features'

const on = (reason: string): FeatureFlag => ({ isOn: true, reason })
const off = (reason: string): FeatureFlag => ({ isOn: false, reason })

const canary = (api: string): FeatureFlag =>
  off(`Uses the next version of ${api}, which Segment is trying out. Off: the library uses the current version by default.`)

const rewritten = (event: string): FeatureFlag =>
  off(
    `Uses a rewritten version of the code for ${event} events, which Segment is trying out. Off: the library uses the current version by default.`,
  )

/** Segment's own service for messages. Its cache and its locks exist only there. */
const ENGAGE: Flags = {
  'engage-cache-send-message': off('Keeps the result of each message in a cache of Segment. Off: there is no such cache here.'),
  'engage-messaging-lock-expiration-extended': off('Holds the locks of that cache for longer. Off: there are no such locks here.'),
  'engage-messaging-log-error': off('Logs failures. Off: attempts show them, and what is logged may contain data of users.'),
  'engage-messaging-log-info': off('Logs each step. Off: attempts show the requests, and what is logged may contain data of users.'),
  'engage-messaging-request-timeout-extended': off('Waits longer for an answer. Off: `timeoutMs` of the destination limits the whole run.'),
}

const FLAGS: Readonly<Record<string, Flags>> = {
  'actions-amazon-amc': {
    'actions-amazon-amc-consent': off(
      'Sends the consent of users with each record. Off: the library does not do this by default. Switch it on if you map consent fields.',
    ),
    'actions-amazon-amc-consent-enable-errors': off(
      'Refuses records of users in the UK and the EEA without consent. Has an effect only together with `actions-amazon-amc-consent`.',
    ),
  },
  'actions-facebook-conversions-api': {
    'facebook-capi-actions-canary-version': canary('the Graph API'),
    FB_CAPI_REFACTOR_ADD_TO_CART_EVENT: rewritten('Add to Cart'),
    FB_CAPI_REFACTOR_CUSTOM_EVENT: rewritten('custom'),
    FB_CAPI_REFACTOR_INITIATE_CHECKOUT_EVENT: rewritten('Initiate Checkout'),
    FB_CAPI_REFACTOR_PAGE_VIEW_EVENT: rewritten('Page View'),
    FB_CAPI_REFACTOR_PURCHASE_EVENT: rewritten('Purchase'),
    FB_CAPI_REFACTOR_SEARCH_EVENT: rewritten('Search'),
    FB_CAPI_REFACTOR_VIEW_CONTENT_EVENT: rewritten('View Content'),
  },
  'actions-facebook-custom-audiences': {
    'facebook-custom-audience-actions-canary-version': canary('the Graph API'),
    'facebook-custom-audience-actions-journeys-support': off(
      'Adds users of a step of a journey to the audience. Off: only Segment computes journeys.',
    ),
  },
  'actions-first-party-dv360': { 'first-party-dv360-canary-version': canary('the Display & Video 360 API') },
  'actions-google-campaign-manager-360': { 'cm360-canary-api-version': canary('the Campaign Manager 360 API') },
  'actions-google-enhanced-conversions': {
    'google-enhanced-canary-version': canary('the Google Ads API'),
    'google-enhanced-phone-validation-check': off(
      'Refuses messages whose phone number is not valid. Off: without it the number is sent as it is, with the country code, and the conversion still counts.',
    ),
  },
  'actions-hubspot-cloud': {
    'actions-hubspot-lists-association-support': off(
      'Adds records to lists and removes associations. Off: the library does not do this by default. Switch it on if you map `list_details` or `dissociations`.',
    ),
  },
  'actions-kafka': {
    'actions-kafka-optimize-connection': on(
      'Keeps connections to the brokers. On: without it, each message or batch opens a connection and closes it. Connections that have not been used for a minute are closed.',
    ),
  },
  'actions-linkedin-audiences': { 'linkedin-audiences-canary-version': canary('the LinkedIn Marketing API') },
  'actions-linkedin-conversions': { 'linkedin-conversions-canary-version': canary('the LinkedIn Marketing API') },
  'actions-liveramp-audiences': {
    'actions-liveramp-audiences-legacy-flow': on('Uploads files to LiveRamp. On: without it, they are written to a bucket of Segment.'),
  },
  'actions-mixpanel': {
    'mixpanel-multistatus': off(
      'Reads which events of a batch Mixpanel refused. Off: with it, a failure without a response of Mixpanel, such as a 502 of a proxy, has no status, so it is not retried.',
    ),
  },
  'actions-personas-messaging-sendgrid': {
    ...ENGAGE,
    'engage-cache-email-template': off('Keeps email templates in a cache of Segment. Off: there is no such cache here.'),
    'is-datafeeds-enabled': off('Calls APIs that a template names. Off: Segment checks and configures these in its app.'),
  },
  'actions-personas-messaging-twilio': ENGAGE,
  'actions-salesforce': {
    'salesforce-advanced-logging': off('Logs the records of bulk jobs. Off: what is logged contains data of users.'),
  },
  'actions-the-trade-desk-crm': {
    'actions-the-trade-desk-crm-legacy-flow': on(
      'Uploads users to The Trade Desk. On: without it, they are written to a bucket of Segment.',
    ),
  },
  'actions-twilio-messaging': {
    'actions-twilio-messenger-facebook': on('Offers Facebook Messenger as a channel in forms. On: the action can send to it in any case.'),
    'twilio-messaging-stringify-content-variables': off(
      'Sends numbers and booleans in content variables as strings. Off: the library does not do this by default. Switch it on if Twilio refuses such variables.',
    ),
  },
}

export function featureFlags(slug: string): Flags {
  return Object.hasOwn(FLAGS, slug) ? (FLAGS[slug] as Flags) : {}
}

/** The slugs of the integrations that ask for flags. */
export function flaggedIntegrations(): string[] {
  return Object.keys(FLAGS)
}

/** What the code of an integration gets: each of its flags. */
export function featuresOf(slug: string, settings: Readonly<JsonObject>): Record<string, boolean> {
  const own = (settings[FEATURES_SETTING] ?? {}) as Readonly<Record<string, unknown>>
  const flags = Object.entries(featureFlags(slug)).map(([name, { isOn }]) => {
    const value = Object.hasOwn(own, name) ? own[name] : undefined
    return [name, typeof value === 'boolean' ? value : isOn] as const
  })
  return Object.fromEntries(flags)
}

/** The setting that overrides them; null if the integration asks for none. Forms hide it, because few people ever need it. */
export function featuresSchema(slug: string): FieldSchema | null {
  const flags = Object.entries(featureFlags(slug))
  if (flags.length === 0) return null
  const properties = flags.map(([name, { isOn, reason }]): [string, FieldSchema] => [
    name,
    { title: name, description: `${reason} Default: ${isOn}.`, type: 'boolean' },
  ])
  return {
    title: 'Feature flags',
    description: 'Feature flags of the integration, each true or false. A flag that is missing has its default.',
    type: 'object',
    properties: Object.fromEntries(properties),
    additionalProperties: false,
    'x-hidden': true,
  }
}
