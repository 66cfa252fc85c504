// An operation of the API as data, independent of the code that serves it. document.ts writes operations as OpenAPI. control-operations.ts
// converts the routes of the control API to operations; the others are declared in tracking-operations.ts and service-operations.ts.

import type { RefusalCode } from '@switchyard/protocol'
import type { JsonSchema } from '../../api/schema.ts'
import type { ApiErrorCode } from '../../errors.ts'
import type { Role } from '../../store/store.ts'

export type Security = 'control' | 'tracking' | 'none'

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description: string
  schema: JsonSchema
  /** A placeholder for the value in examples. */
  example?: string
}

export interface Answer {
  status: number
  description: string
  /** The media type. Absent if the response has no body. */
  type?: string
  schema?: JsonSchema
  example?: unknown
  /** For server-sent events: the schema of the data of each event. */
  event?: JsonSchema
}

export interface Operation {
  method: 'get' | 'post' | 'patch' | 'put' | 'delete'
  /** With parameters as `{name}`. */
  path: string
  id: string
  tag: string
  summary: string
  description?: string
  /** If this operation is an alias: the path of the original operation. */
  aliasOf?: string
  security: Security
  role?: Role
  parameters: readonly Parameter[]
  body?: { type: string; required: boolean; schema: JsonSchema; example?: unknown }
  answers: readonly Answer[]
  /** Errors in the common shape. Errors in another shape are among the answers. */
  errors: readonly (ApiErrorCode | RefusalCode)[]
}

/** An operation without parameters that needs no credentials. */
export function getOperation(path: string, id: string, tag: string, summary: string, answer: Omit<Answer, 'status'>): Operation {
  return { method: 'get', path, id, tag, summary, security: 'none', parameters: [], answers: [{ status: 200, ...answer }], errors: [] }
}

/** An object with these fields and possibly others. */
export function objectSchema(
  title: string | undefined,
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[],
): JsonSchema {
  return { ...(title === undefined ? {} : { title }), type: 'object', properties, ...(required.length > 0 ? { required } : {}) }
}
