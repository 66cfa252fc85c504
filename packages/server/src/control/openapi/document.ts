// Converts operations to an OpenAPI 3.1 document. A schema with a title is written once, under components, and referenced by this name
// wherever it is used. This file knows nothing about the API itself: names, sentences and codes are passed in.

import { REFUSALS } from '@switchyard/protocol'
import type { JsonSchema } from '../../api/schema.ts'
import { API_ERRORS } from '../../errors.ts'
import type { Answer, Operation, Security } from './operation.ts'

export interface OpenApiDocument {
  openapi: '3.1.0'
  info: { title: string; version: string; summary: string; description: string; license: { name: string; identifier: string } }
  servers: { url: string; description: string }[]
  tags: Tag[]
  paths: Record<string, Record<string, JsonSchema>>
  components: Record<'schemas' | 'responses' | 'securitySchemes', Record<string, JsonSchema>>
}

export interface Tag {
  name: string
  description: string
}

export interface Described {
  title: string
  version: string
  summary: string
  description: string
  tags: readonly Tag[]
  securitySchemes: Readonly<Record<string, JsonSchema>>
  /** The security schemes that each kind of operation accepts; one of them is enough. */
  security: Readonly<Record<Security, readonly string[]>>
  operations: readonly Operation[]
}

const ERROR: JsonSchema = {
  title: 'Error',
  type: 'object',
  description: 'The shape of all errors.',
  properties: {
    success: { type: 'boolean', const: false },
    error: { type: 'string', description: 'The same as `code`. Public client libraries read one or the other.' },
    code: { type: 'string', description: 'The error code. It is stable, so programs can rely on it.' },
    message: { type: 'string', description: 'A human-readable explanation of what is wrong and what to do. The text may change.' },
    field: {
      type: 'string',
      description: 'The field or parameter that the error is about, such as `urls[0]`. Left out if the error is not about a field.',
    },
    fields: { type: 'array', items: { type: 'string' }, description: 'All fields that the error is about, only with `secrets_needed`.' },
    destinationId: { type: 'string', description: 'The id of the existing destination, only with `destination_exists`.' },
    line: { type: ['integer', 'null'], description: 'The line of the query, from 1, only with errors of `POST /api/sql`.' },
    column: { type: ['integer', 'null'], description: 'The column of the query, from 1, only with errors of `POST /api/sql`.' },
    rejection: {
      type: 'object',
      description:
        'Only with `message_not_found`, if the message was rejected: the code, the source (null for an unknown write key), and when.',
      properties: { code: { type: 'string' }, sourceId: { type: ['string', 'null'] }, at: { type: 'string', format: 'date-time' } },
      required: ['code', 'sourceId', 'at'],
    },
  },
  required: ['success', 'error', 'code', 'message'],
}

export function openApiDocument(described: Described): OpenApiDocument {
  const { title, version, summary, description, securitySchemes } = described
  const schemas = new Map<string, JsonSchema>()
  const responses = new Map<string, JsonSchema>()
  const paths: OpenApiDocument['paths'] = {}
  for (const operation of described.operations) {
    const path = (paths[operation.path] ??= {})
    if (path[operation.method] !== undefined) throw new Error(`${operation.method} ${operation.path} has two descriptions`)
    path[operation.method] = withNames(operationObject(operation, described, responses), schemas)
  }
  // Must come before the schemas are sorted, because it can add some.
  const namedResponses = withNames(sorted(responses), schemas)
  const used = new Set(described.operations.map(({ tag }) => tag))
  return {
    openapi: '3.1.0',
    info: { title, version, summary, description, license: { name: 'Apache 2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/', description: 'The service that served this document.' }],
    tags: described.tags.filter(({ name }) => used.has(name)),
    paths,
    components: {
      schemas: sorted(schemas),
      responses: namedResponses,
      securitySchemes: { ...securitySchemes },
    },
  }
}

function sorted(map: ReadonlyMap<string, JsonSchema>): Record<string, JsonSchema> {
  return Object.fromEntries([...map].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function operationObject(operation: Operation, { security }: Described, shared: Map<string, JsonSchema>): JsonSchema {
  const { id, tag, summary, description, aliasOf, role, parameters, body } = operation
  const schemes = security[operation.security]
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(aliasOf === undefined ? {} : { 'x-alias-of': aliasOf }),
    security: schemes.map((scheme) => ({ [scheme]: [] })),
    ...(role === undefined ? {} : { 'x-role': role }),
    ...(parameters.length === 0 ? {} : { parameters: [...parameters] }),
    ...(body === undefined ? {} : { requestBody: { required: body.required, content: { [body.type]: media(body) } } }),
    responses: responsesOf(operation, shared),
  }
}

/** A response with a single error code is the same for all operations, so it is written once and referenced. */
function responsesOf({ answers, errors }: Operation, shared: Map<string, JsonSchema>): JsonSchema {
  const responses: Record<string, JsonSchema> = {}
  for (const answer of answers) responses[answer.status] = answerObject(answer)
  const codes = new Map<number, string[]>()
  for (const code of new Set(errors)) {
    const status = statusOf(code)
    codes.set(status, [...(codes.get(status) ?? []), code])
  }
  for (const [status, list] of [...codes].sort(([a], [b]) => a - b)) {
    const [code, ...others] = list
    if (code === undefined || others.length > 0) responses[status] = errorObject(list)
    else {
      shared.set(code, errorObject(list))
      responses[status] = { $ref: `#/components/responses/${code}` }
    }
  }
  return responses
}

function answerObject({ description, type, event, ...content }: Answer): JsonSchema {
  if (type === undefined) return { description }
  return { description, content: { [type]: { ...media(content), ...(event === undefined ? {} : { 'x-event-data': event }) } } }
}

function media({ schema, example }: { schema?: JsonSchema; example?: unknown }): JsonSchema {
  return { ...(schema === undefined ? {} : { schema }), ...(example === undefined ? {} : { example }) }
}

function errorObject(codes: readonly string[]): JsonSchema {
  const schema = { allOf: [ERROR, { type: 'object', properties: { code: { enum: codes } } }] }
  return { description: codes.map((code) => `\`${code}\`: ${sentenceOf(code)}`).join('\n\n'), content: { 'application/json': { schema } } }
}

/** Codes of single messages are in the table of the protocol package and have the status 400. */
export function statusOf(code: string): number {
  return Object.hasOwn(API_ERRORS, code) ? API_ERRORS[code as keyof typeof API_ERRORS][0] : 400
}

export function sentenceOf(code: string): string {
  if (Object.hasOwn(API_ERRORS, code)) return API_ERRORS[code as keyof typeof API_ERRORS][1]
  if (Object.hasOwn(REFUSALS, code)) return REFUSALS[code as keyof typeof REFUSALS]
  throw new Error(`Unknown error code: ${code}`)
}

// ── Names ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Keywords whose value is data. A field called `title` in it is not the title of a schema. */
const DATA = new Set(['default', 'example', 'examples', 'enum', 'const'])

/** Returns a copy in which every schema with a title is replaced by a reference, and adds these schemas to the map. */
function withNames<T>(node: T, schemas: Map<string, JsonSchema>): T {
  if (Array.isArray(node)) return node.map((entry: unknown) => withNames(entry, schemas)) as T
  if (typeof node !== 'object' || node === null) return node
  const { title, default: fallback, ...rest } = node as Record<string, unknown>
  if (typeof title !== 'string' || !('type' in rest || 'oneOf' in rest)) return copied(node as Record<string, unknown>, schemas) as T
  const nullable = Array.isArray(rest['type']) && rest['type'].includes('null')
  const whole = nullable ? { ...rest, type: (rest['type'] as string[])[0] } : rest
  const schema = { title, ...copied(whole, schemas) }
  const other = schemas.get(title)
  if (other !== undefined && JSON.stringify(other) !== JSON.stringify(schema))
    throw new Error(`Two different schemas have the title ${title}`)
  schemas.set(title, schema)
  const reference = { $ref: `#/components/schemas/${title}` }
  return {
    ...(nullable ? { oneOf: [reference, { type: 'null' }] } : reference),
    ...(fallback === undefined ? {} : { default: fallback }),
  } as T
}

function copied(node: Readonly<Record<string, unknown>>, schemas: Map<string, JsonSchema>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, DATA.has(key) ? value : withNames(value, schemas)]))
}
