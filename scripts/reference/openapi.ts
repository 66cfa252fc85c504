// The parts of an OpenAPI document that the reference reads, and how to look them up.

export interface OpenApi {
  info: { title: string; version: string; summary: string; description: string }
  tags: readonly { name: string; description: string }[]
  paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  components: Readonly<Record<'schemas' | 'responses' | 'securitySchemes', Readonly<Record<string, object>>>>
}

export interface SchemaNode {
  $ref?: string
  title?: string
  type?: string | readonly string[]
  format?: string
  description?: string
  const?: unknown
  enum?: readonly unknown[]
  default?: unknown
  properties?: Readonly<Record<string, SchemaNode>>
  required?: readonly string[]
  additionalProperties?: boolean | SchemaNode
  items?: SchemaNode
  oneOf?: readonly SchemaNode[]
  allOf?: readonly SchemaNode[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  writeOnly?: boolean
}

export interface Media {
  schema?: SchemaNode
  example?: unknown
  'x-event-data'?: SchemaNode
}

export interface ResponseNode {
  $ref?: string
  description: string
  content?: Readonly<Record<string, Media>>
}

export interface OperationNode {
  method: string
  path: string
  operationId: string
  tags: readonly string[]
  summary: string
  description?: string
  security: readonly Readonly<Record<string, unknown>>[]
  'x-role'?: string
  'x-alias-of'?: string
  parameters?: readonly { name: string; in: string; required: boolean; description: string; schema: SchemaNode; example?: string }[]
  requestBody?: { required: boolean; content: Readonly<Record<string, Media>> }
  responses: Readonly<Record<string, ResponseNode>>
}

export function operationsOf(document: OpenApi): OperationNode[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, node]) => Object.assign({ method, path }, node as Omit<OperationNode, 'method' | 'path'>)),
  )
}

/** The component that a `$ref` names, or the node itself. */
export function resolved<T extends { $ref?: string }>({ components }: OpenApi, node: T): T {
  const [, kind, name] = /^#\/components\/(schemas|responses)\/(.+)$/.exec(node.$ref ?? '') ?? []
  if (kind === undefined || name === undefined) return node
  return (components[kind as 'schemas' | 'responses'][name] as T | undefined) ?? node
}

/** The error codes of an operation, by status. */
export function errorsOf(document: OpenApi, { responses }: OperationNode): { status: string; codes: string[] }[] {
  return Object.entries(responses).flatMap(([status, node]) => {
    const schema = resolved(document, node).content?.['application/json']?.schema
    const codes = schema?.allOf?.flatMap(({ properties }) => properties?.['code']?.enum ?? []) ?? []
    return codes.length === 0 ? [] : [{ status, codes: codes.map(String) }]
  })
}

/** The responses that do not have the shape common to all errors. */
export function otherResponsesOf(document: OpenApi, operation: OperationNode): { status: string; response: ResponseNode }[] {
  const errors = new Set(errorsOf(document, operation).map(({ status }) => status))
  return Object.entries(operation.responses)
    .filter(([status]) => !errors.has(status))
    .map(([status, node]) => ({ status, response: resolved(document, node) }))
}

export function schemaName({ $ref = '' }: SchemaNode): string | undefined {
  return /^#\/components\/schemas\/(.+)$/.exec($ref)?.[1]
}
