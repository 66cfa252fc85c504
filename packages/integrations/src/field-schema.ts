// The fields of a definition as JSON Schema: what the library itself checks (fieldsToJsonSchema), and what a form needs in addition: titles of
// choices, secrets, conditions.

import type { JsonObject } from '@switchyard/protocol'
import type { Condition, Conditions, FieldSchema, ObjectSchema } from './catalog.ts'
import { type Field, type Fields, require } from './definitions.ts'

type Choice = NonNullable<FieldSchema['oneOf']>[number]

const { fieldsToJsonSchema } = require('@segment/actions-core/destination-kit') as {
  fieldsToJsonSchema: (fields: Fields) => { allOf?: JsonObject[] }
}

/** Words in the name or label of a setting that mark it as secret, whatever its type. Hiding too much costs less than showing a secret. */
const SECRET_WORD = /\b(?:key|token|secret|password|passphrase|credentials?|private|cert|certificate)\b/i
/** Whoever knows such a URL can send data to it. */
const SECRET_URL = /\b(?:webhook|integration|connector) ur[il]\b/i

export function objectSchema(fields: Fields, { additionalProperties = false } = {}): ObjectSchema {
  const { allOf } = fieldsToJsonSchema(fields)
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, fieldSchema(key, field)])),
    required: Object.keys(fields).filter((key) => fields[key]?.required === true),
    additionalProperties,
    ...(allOf !== undefined && { allOf }),
  }
}

/** As objectSchema, with every field that may hold a secret marked. */
export function settingsSchema(fields: Fields): ObjectSchema {
  const schema = objectSchema(fields)
  const properties = Object.entries(schema.properties).map(([key, property]) => [
    key,
    isSecretName(key, fields[key] as Field) ? { ...property, writeOnly: true } : property,
  ])
  return { ...schema, properties: Object.fromEntries(properties) as ObjectSchema['properties'] }
}

/** With the fields marked whose values the tool can be asked for: `handlers` are the functions that ask it. */
export function withDynamic(schema: ObjectSchema, fields: Fields, handlers: Readonly<Record<string, unknown>>): ObjectSchema {
  return { ...schema, properties: dynamicProperties(schema.properties, fields, handlers) }
}

function dynamicProperties(properties: ObjectSchema['properties'], fields: Fields, handlers: Readonly<Record<string, unknown>>) {
  const marked = Object.entries(properties).map(([name, property]): [string, FieldSchema] => {
    const handler = handlers[name]
    const field = fields[name]
    if (typeof handler === 'function') return [name, field?.dynamic === true ? { ...property, 'x-dynamic': 'values' } : property]
    if (typeof handler !== 'object' || handler === null || field === undefined) return [name, property]
    const own = field.dynamic === true && '__keys__' in handler ? { 'x-dynamic': 'keys' as const } : {}
    const within = <Part extends Partial<FieldSchema>>(part: Part): Part =>
      part.properties === undefined
        ? part
        : { ...part, properties: dynamicProperties(part.properties, field.properties ?? {}, { ...handler }) }
    return [name, { ...within(property), ...(property.items !== undefined && { items: within(property.items) }), ...own }]
  })
  return Object.fromEntries(marked)
}

/** What the code of an OAuth integration reads when it requests an access token. */
export interface OAuthInputs {
  client: boolean
  /** `optional`: without one, it requests tokens with the client's credentials alone. */
  refreshToken: boolean | 'optional'
}

/**
 * What an OAuth integration needs: an access token, or what its code needs to request one. `inputs` is null if it has no such code, so that it
 * needs a token that lasts.
 */
export function oauthSchema(inputs: OAuthInputs | null): FieldSchema {
  const isMissing: Condition = { fieldKey: 'accessToken', operator: 'is' }
  const isRenewed: Condition = { fieldKey: 'refreshToken', operator: 'is_not' }
  const { client = false, refreshToken = false } = inputs ?? {}
  const ofClient: Conditions = { match: 'any', conditions: refreshToken === false ? [isMissing] : [isMissing, isRenewed] }
  const text = (title: string, description: string, needed: Conditions | null | 'optional'): FieldSchema => ({
    title,
    description,
    type: 'string',
    // What its code does not read is accepted, because earlier versions asked for it.
    ...(needed === null && { 'x-hidden': true }),
    ...(typeof needed === 'object' && needed !== null && { 'x-required-if': needed }),
  })
  const secret = (...of: Parameters<typeof text>): FieldSchema => ({ ...text(...of), writeOnly: true })
  return {
    title: 'OAuth',
    description: 'An access token, or the credentials of your own OAuth app and the tokens that it got for your account.',
    type: 'object',
    properties: {
      clientId: text('Client ID', 'The client ID of your OAuth app.', client ? ofClient : null),
      clientSecret: secret('Client secret', 'The client secret of your OAuth app.', client ? ofClient : null),
      refreshToken:
        refreshToken === 'optional'
          ? secret(
              'Refresh token',
              'Access tokens are renewed with it, or without it with the client ID and the client secret alone.',
              'optional',
            )
          : secret('Refresh token', 'Access tokens are renewed with it.', refreshToken ? { conditions: [isMissing] } : null),
      accessToken: {
        title: 'Access token',
        description:
          inputs === null
            ? 'It is not renewed.'
            : client || refreshToken !== false
              ? 'Enough by itself if it does not expire, such as the token of a private app. If it is missing or expired, a new one is requested with the other values.'
              : 'If it is missing or expired, a new one is requested.',
        type: 'string',
        writeOnly: true,
      },
    },
    required: inputs === null ? ['accessToken'] : [],
    additionalProperties: false,
  }
}

function fieldSchema(key: string, field: Field): FieldSchema {
  const { label, description, properties, required, depends_on: shownIf } = field
  const value: Partial<FieldSchema> = {
    ...valueSchema(field),
    ...(properties !== undefined && field.type === 'object' && nestedSchema(properties, field.additionalProperties)),
  }
  return {
    title: label ?? key,
    ...(description !== undefined && { description }),
    ...(field.multiple === true ? { type: 'array', items: value } : value),
    ...(hasUsableDefault(field) && { default: field.default }),
    ...((field.type === 'password' || field.format === 'password') && { writeOnly: true }),
    ...(typeof required === 'object' && { 'x-required-if': required }),
    ...(shownIf !== undefined && { 'x-shown-if': shownIf }),
    ...(field.unsafe_hidden === true && { 'x-hidden': true }),
  }
}

/** The library does not check the requirements of properties if one of them is conditional; they are in the `allOf` of the whole instead. */
function nestedSchema(fields: Fields, additionalProperties = false): Partial<FieldSchema> {
  const { allOf, ...schema } = objectSchema(fields, { additionalProperties })
  const isConditional = Object.values(fields).some((field) => typeof field.required === 'object')
  if (isConditional) return { ...schema, required: [] }
  return { ...schema, ...(allOf !== undefined && { allOf }) }
}

function valueSchema({ type, format, minimum, maximum, choices, allowNull = false }: Field): Partial<FieldSchema> {
  const types = type === 'datetime' ? ['string', 'number'] : [type === 'text' || type === 'password' ? 'string' : type]
  if (allowNull) types.push('null')
  const ownFormat = type === 'datetime' ? 'date-like' : type === 'password' || type === 'text' ? type : format
  return {
    type: types.length === 1 ? (types[0] as string) : types,
    ...(ownFormat !== undefined && { format: ownFormat }),
    // The library ignores a limit of 0, too.
    ...(type === 'string' && minimum && { minLength: minimum }),
    ...(type === 'string' && maximum && { maxLength: maximum }),
    ...(type === 'number' && minimum && { minimum }),
    ...(type === 'number' && maximum && { maximum }),
    ...(choices !== undefined && { oneOf: choicesOf(choices, allowNull) }),
  }
}

/** Each value once: with `oneOf`, a value that is listed twice would match nothing. */
function choicesOf(choices: NonNullable<Field['choices']>, allowNull: boolean): Choice[] {
  const titles = new Map<Choice['const'], string>()
  for (const choice of choices) {
    const { value, label } = typeof choice === 'string' ? { value: choice, label: choice } : choice
    if (!titles.has(value)) titles.set(value, label)
  }
  if (allowNull) titles.set(null, 'None')
  return [...titles].map(([value, title]) => ({ const: value, title }))
}

/** One definition has a default that is not among its choices. */
function hasUsableDefault({ default: value, choices }: Field): boolean {
  if (value === undefined) return false
  if (choices === undefined || typeof value === 'object') return true
  return choices.some((choice) => (typeof choice === 'string' ? choice : choice.value) === value)
}

function isSecretName(key: string, { type, choices, label = '', description = '' }: Field): boolean {
  if (type !== 'string' || choices !== undefined) return false
  // apiKey, api_key and APIKey are two words each.
  const words = key.replaceAll(/([a-z\d])([A-Z])|([A-Z])(?=[A-Z][a-z])|_/g, '$1$3 $2')
  return SECRET_WORD.test(`${words} | ${label}`) || SECRET_URL.test(`${words} | ${label} | ${description}`)
}
