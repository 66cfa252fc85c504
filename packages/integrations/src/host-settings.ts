// Settings of ours for integrations whose code expects values that only Segment's own machines have: credentials from the environment, a role at AWS,
// a token URL. A user has such values too, so each of these integrations gets settings for them, beside those of its definition.
// This is data: the catalogue describes the settings, and host-values.ts hands them to the code of that integration alone.

import type { JsonObject } from '@switchyard/protocol'
import type { FieldSchema } from './catalog.ts'
import { FEATURES_SETTING } from './feature-flags.ts'

export interface HostSettings {
  /** Added to the settings of the definition. None has the name of a setting of the definition. */
  settings?: Readonly<Record<string, FieldSchema>>
  required?: readonly string[]
  /** Settings that the definition requires and that are optional here, with the value that its code gets if they are missing. */
  replaced?: Readonly<Record<string, string>>
  /** The environment variables that its code reads, with the setting that each gets its value from. */
  env?: Readonly<Record<string, string>>
  /** Environment variables that have the same value for everybody. */
  constants?: Readonly<Record<string, string>>
  /** Where access tokens are renewed, for code that asks for it. */
  tokenUrl?: string
  /** The setting with that URL, for code that reads it from what users enter about their OAuth server in Segment's app. */
  tokenUrlSetting?: string
}

const secret = (title: string, description: string): FieldSchema => ({ title, description, type: 'string', writeOnly: true })

/** With these keys, files and records are written to an account of the user. The role is assumed with them if there is one. */
const AWS: Required<Pick<HostSettings, 'settings' | 'required'>> = {
  settings: {
    awsAccessKeyId: secret('AWS access key ID', 'The ID of an access key of your AWS account. It is used instead of a role of Segment.'),
    awsSecretAccessKey: secret('AWS secret access key', 'The secret of the access key.'),
    awsSessionToken: secret('AWS session token', 'Only for temporary access keys, which have one. They stop working when they expire.'),
  },
  required: ['awsAccessKeyId', 'awsSecretAccessKey'],
}
/** What takes the place of a role that is missing: the access keys are then used as they are. */
export const NO_ROLE = 'none'

export const HOST_SETTINGS: Readonly<Record<string, HostSettings>> = {
  'actions-amazon-amc': { env: { ACTIONS_AMAZON_AMC_CLIENT_ID: 'oauth.clientId', ACTIONS_AMAZON_AMC_CLIENT_SECRET: 'oauth.clientSecret' } },
  'actions-amazon-conversions-api': {
    env: {
      ACTIONS_AMAZON_CONVERSIONS_API_CLIENT_ID: 'oauth.clientId',
      ACTIONS_AMAZON_CONVERSIONS_API_CLIENT_SECRET: 'oauth.clientSecret',
    },
  },
  'actions-aws-kinesis': { ...AWS, replaced: { iamRoleArn: NO_ROLE, iamExternalId: NO_ROLE } },
  'actions-facebook-conversions-api': {
    settings: { accessToken: secret('Access token', 'A Conversions API access token, from the Events Manager or of a system user.') },
    required: ['accessToken'],
    env: { ACTIONS_FB_CAPI_SYSTEM_USER_TOKEN: 'accessToken' },
  },
  'actions-google-enhanced-conversions': {
    settings: { developerToken: secret('Developer token', 'The developer token of your Google Ads manager account, from its API Center.') },
    required: ['developerToken'],
    env: {
      ADWORDS_DEVELOPER_TOKEN: 'developerToken',
      GOOGLE_ENHANCED_CONVERSIONS_CLIENT_ID: 'oauth.clientId',
      GOOGLE_ENHANCED_CONVERSIONS_CLIENT_SECRET: 'oauth.clientSecret',
    },
  },
  'actions-google-sheets-dev': { tokenUrl: 'https://oauth2.googleapis.com/token' },
  'actions-linkedin-conversions': {
    env: { ACTIONS_LINKEDIN_CONVERSIONS_CLIENT_ID: 'oauth.clientId', ACTIONS_LINKEDIN_CONVERSIONS_CLIENT_SECRET: 'oauth.clientSecret' },
  },
  // Without it, they send to a test system of Twilio. Both have the same code, which reads it when it is loaded.
  'actions-memora': { constants: { ACTIONS_MEMORA_ENV: 'production' } },
  'actions-memora-internal': { constants: { ACTIONS_MEMORA_ENV: 'production' } },
  'actions-ms-bing-ads-audiences': {
    settings: { developerToken: secret('Developer token', 'The developer token of your Microsoft Advertising account.') },
    required: ['developerToken'],
    env: { ACTIONS_MS_BING_ADS_AUDIENCES_DEVELOPER_TOKEN: 'developerToken' },
  },
  'actions-webhook-extensible': {
    settings: {
      tokenUrl: {
        title: 'Token URL',
        description: 'The URL at which your OAuth server issues access tokens.',
        type: 'string',
        format: 'uri',
      },
    },
    required: ['tokenUrl'],
    tokenUrlSetting: 'tokenUrl',
  },
  'actions-s3': { ...AWS, replaced: { iam_role_arn: NO_ROLE, iam_external_id: NO_ROLE } },
  'actions-s3-csv': { ...AWS, replaced: { iam_role_arn: NO_ROLE, iam_external_id: NO_ROLE } },
}

/** The settings that the code of the definition gets: without ours, `oauth` and `features`, and with what replaces those that it requires and we do not. */
export function definitionSettings(slug: string, settings: Readonly<JsonObject>): JsonObject {
  const { settings: ours = {}, replaced = {}, tokenUrlSetting } = hostSettings(slug)
  const own = Object.entries(settings).filter(
    ([name, value]) => name !== 'oauth' && name !== FEATURES_SETTING && !Object.hasOwn(ours, name) && !isReplaced(value, replaced[name]),
  )
  const server = tokenUrlSetting === undefined ? {} : { dynamicAuthSettings: oauthServer(settings, tokenUrlSetting) }
  return { ...replaced, ...Object.fromEntries(own), ...server }
}

/** In the form in which Segment's app saves it. Without a refresh token, a token is requested with the client's credentials alone. */
function oauthServer(settings: Readonly<JsonObject>, tokenUrlSetting: string): JsonObject {
  const type = valueAt(settings, 'oauth.refreshToken') === null ? 'clientCredentials' : 'authCode'
  return { oauth: { type, refreshTokenServerUrl: settings[tokenUrlSetting] ?? null } }
}

/** An empty setting counts as missing. */
function isReplaced(value: unknown, replacement: string | undefined): boolean {
  return replacement !== undefined && (value === '' || value === null)
}

/** The environment variables that the code of the integration sees while it runs. */
export function environmentOf(slug: string, settings: Readonly<JsonObject>): Readonly<Record<string, string>> {
  const { env = {}, constants = {} } = hostSettings(slug)
  const given = Object.entries(env).flatMap(([variable, name]) => {
    const value = valueAt(settings, name)
    return value === null ? [] : [[variable, value] as const]
  })
  return { ...constants, ...Object.fromEntries(given) }
}

export function hostSettings(slug: string): HostSettings {
  return Object.hasOwn(HOST_SETTINGS, slug) ? (HOST_SETTINGS[slug] as HostSettings) : {}
}

function valueAt(settings: Readonly<JsonObject>, name: string): string | null {
  let value: unknown = settings
  for (const part of name.split('.')) {
    const parent = value as Record<string, unknown> | null
    value = typeof parent === 'object' && parent !== null && Object.hasOwn(parent, part) ? parent[part] : null
  }
  return typeof value === 'string' && value !== '' ? value : null
}
