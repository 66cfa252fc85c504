// What the dashboard says and checks by the same rules as the service: limits and defaults of settings, names of headers, and sentences about
// codes. Generated from the tables of the service, so that nothing is written twice. scripts/reference.ts writes them to
// packages/dashboard/src/api/rules.ts.

import { STATUS_CODES } from 'node:http'
import { MESSAGE_TYPES, REFUSALS } from '../../packages/protocol/src/index.ts'
import { REASONS } from '../../packages/server/src/api/attempt-reasons.ts'
import type { JsonSchema } from '../../packages/server/src/api/schema.ts'
import { LOGIN_PROBLEMS } from '../../packages/server/src/control/access/people/login-failures.ts'
import { newDestinationFields } from '../../packages/server/src/control/destinations/destination-settings.ts'
import { WITHOUT_ATTEMPT } from '../../packages/server/src/control/history/reasons.ts'
import { BATCH_ERRORS, REQUEST_ERRORS } from '../../packages/server/src/control/openapi/tracking-operations.ts'
import { KINDS } from '../../packages/server/src/destinations/kinds.ts'
import { RESERVED_NAMES } from '../../packages/server/src/destinations/settings/common-settings.ts'
import { MAIL_URL_FORM } from '../../packages/server/src/destinations/webhook/email/mail-server.ts'
import { SECRET_NAME } from '../../packages/server/src/destinations/webhook/secret-settings.ts'
import { HEADER_RULES } from '../../packages/server/src/destinations/webhook/shaping/headers.ts'
import { URL_FORM } from '../../packages/server/src/destinations/webhook/url-problem.ts'
import { API_ERRORS } from '../../packages/server/src/errors.ts'
import type { DestinationType } from '../../packages/server/src/model/configuration.ts'
import { HIDDEN } from '../../packages/server/src/secrets/hidden-url.ts'

export function dashboardRules(): string {
  const kinds = (Object.keys(KINDS) as DestinationType[]).map((type) => [type, newDestinationFields(type)] as const)
  const fields = kinds.flatMap(([, settings]) => Object.entries(settings).flatMap(([name, field]) => rulesOf(name, field.toJsonSchema())))
  const timeouts = kinds.map(([type, { timeoutMs }]) => [type, ruleOf(timeoutMs.toJsonSchema())])
  const { timeoutMs: _, ...shared } = Object.fromEntries(fields)
  const sentences = Object.entries(REASONS).map(([code, [, sentence]]) => [code, sentence])
  const rejections = [...REQUEST_ERRORS, ...BATCH_ERRORS].map((code) => [code, API_ERRORS[code][1]])
  const statuses = Object.entries(STATUS_CODES).filter(([status]) => Number(status) >= 300)
  return [
    '// Written by scripts/reference.ts from the tables of the service. Change them there, then run: node scripts/run.mjs scripts/reference.ts',
    declared('The types of messages.', 'MESSAGE_TYPES', MESSAGE_TYPES),
    declared(
      'Limits and defaults of the settings of a destination. `min` and `max` are of the value, or else of its length.',
      'FIELDS',
      shared,
    ),
    declared('The timeout of an attempt, by kind of destination.', 'TIMEOUT_MS', Object.fromEntries(timeouts)),
    declared('Names that no destination can have.', 'RESERVED_NAMES', [...RESERVED_NAMES]),
    declared('Replaces a value that viewers must not see.', 'HIDDEN', HIDDEN),
    declared('The form of a URL, before it is parsed.', 'URL_FORM', URL_FORM),
    declared('The form of the URL of a mail server.', 'MAIL_URL_FORM', MAIL_URL_FORM),
    declared('Which headers can be configured.', 'HEADER_RULES', HEADER_RULES),
    declared('The name of a secret.', 'SECRET_NAME', SECRET_NAME),
    declared('Why an attempt or a delivery failed.', 'REASONS', { ...Object.fromEntries(sentences), ...WITHOUT_ATTEMPT }),
    declared('The names of HTTP statuses.', 'STATUS_NAMES', Object.fromEntries(statuses)),
    declared('Why a login with single sign-on failed, and what to do.', 'LOGIN_PROBLEMS', LOGIN_PROBLEMS),
    declared('Why the tracking API rejected a call.', 'REJECTIONS', { ...REFUSALS, ...Object.fromEntries(rejections) }),
    '',
  ].join('\n\n')
}

/** The rules of a field and of those in it, by name: `batch.size`; `urls[]` for the entries of a list or of an object. */
function rulesOf(name: string, schema: JsonSchema): [name: string, rule: object][] {
  const { properties, items, additionalProperties } = schema as Record<string, unknown>
  const inner = [
    ...Object.entries((properties ?? {}) as Record<string, JsonSchema>).flatMap(([key, field]) => rulesOf(`${name}.${key}`, field)),
    ...[items, additionalProperties].flatMap((each) =>
      typeof each === 'object' && each !== null ? rulesOf(`${name}[]`, each as JsonSchema) : [],
    ),
  ]
  const own = ruleOf(schema)
  return Object.keys(own).length === 0 ? inner : [[name, own], ...inner]
}

function ruleOf(schema: JsonSchema): object {
  const {
    minimum,
    maximum,
    minLength,
    maxLength,
    minItems,
    maxItems,
    maxProperties,
    default: usual,
    properties,
  } = schema as Record<string, unknown>
  const [min, max] = [minimum ?? minLength ?? minItems, maximum ?? maxLength ?? maxItems ?? maxProperties]
  return {
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    // The default of an object is in its fields.
    ...(usual === undefined || (properties !== undefined && usual !== null) ? {} : { default: usual }),
  }
}

function declared(about: string, name: string, value: unknown): string {
  return `/** ${about} */\nexport const ${name} = ${written(value)} as const`
    .replace(/ = (\/.*\/\w*) as const$/, ' = $1')
    .replace(/ = ('.*') as const$/, ' = $1')
}

function written(value: unknown, indent = ''): string {
  if (value instanceof RegExp) return String(value)
  if (typeof value === 'string') return value.includes("'") ? JSON.stringify(value) : `'${value}'`
  if (Array.isArray(value)) return `[${value.map((each) => written(each)).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const entries = Object.entries(value).map(([key, each]) => `${/^[\w$]+$/.test(key) ? key : `'${key}'`}: ${written(each, `${indent}  `)}`)
  const line = `{ ${entries.join(', ')} }`
  return entries.length < 4 && line.length < 100
    ? entries.length === 0
      ? '{}'
      : line
    : `{\n${entries.map((entry) => `${indent}  ${entry},\n`).join('')}${indent}}`
}
