// Operations as one OpenAPI 3.1 document. A schema that has a title is written once, under components, and referred to by
// that name wherever it is used. Knows nothing of what is described: names, sentences and codes are given.

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
  /** Which of the schemes, any one of them, opens a kind of operation. */
  security: Readonly<Record<Security, readonly string[]>>
  operations: readonly Operation[]
}

const ERROR: JsonSchema = {
  title: 'Error',
  type: 'object',
  description: 'The shape of all errors.',
  properties: {
    success: { type: 'boolean', const: false },
    error: { type: 'string', description: 'The same as `code`. Public clients read one or the other.' },
    code: { type: 'string', description: 'Stable, for programs.' },
    message: { type: 'string', description: 'A sentence, for people.' },
    field: { type: 'string', description: 'The field or parameter that is wrong, such as `urls[0]`; only if the error is about one.' },
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
    if (path[operation.method] !== undefined) throw new Error(`${operation.method} ${operation.path} is described twice`)
    path[operation.method] = withNames(operationObject(operation, described, responses), schemas)
  }
  // Before the schemas are sorted: it may name some.
  const namedResponses = withNames(sorted(responses), schemas)
  const used = new Set(described.operations.map(({ tag }) => tag))
  return {
    openapi: '3.1.0',
    info: { title, version, summary, description, license: { name: 'Apache 2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/', description: 'The service that gave out this document.' }],
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

/** An answer with one code is the same wherever it is given, and stands once. */
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

/** What is wrong with a single message is told with 400, as the code is of the protocol's own table. */
export function statusOf(code: string): number {
  return Object.hasOwn(API_ERRORS, code) ? API_ERRORS[code as keyof typeof API_ERRORS][0] : 400
}

export function sentenceOf(code: string): string {
  if (Object.hasOwn(API_ERRORS, code)) return API_ERRORS[code as keyof typeof API_ERRORS][1]
  if (Object.hasOwn(REFUSALS, code)) return REFUSALS[code as keyof typeof REFUSALS]
  throw new Error(`The code ${code} is in no table`)
}

// ── Names ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Keywords whose value is data, in which a title would be just a word. */
const DATA = new Set(['default', 'example', 'examples', 'enum', 'const'])

/** A copy in which every schema with a title is a reference; the schemas themselves go into the map. */
function withNames<T>(node: T, schemas: Map<string, JsonSchema>): T {
  if (Array.isArray(node)) return node.map((entry: unknown) => withNames(entry, schemas)) as T
  if (typeof node !== 'object' || node === null) return node
  const { title, default: fallback, ...rest } = node as Record<string, unknown>
  if (typeof title !== 'string' || !('type' in rest || 'oneOf' in rest)) return copied(node as Record<string, unknown>, schemas) as T
  const nullable = Array.isArray(rest['type']) && rest['type'].includes('null')
  const whole = nullable ? { ...rest, type: (rest['type'] as string[])[0] } : rest
  const schema = { title, ...copied(whole, schemas) }
  const other = schemas.get(title)
  if (other !== undefined && JSON.stringify(other) !== JSON.stringify(schema)) throw new Error(`Two schemas have the name ${title}`)
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
