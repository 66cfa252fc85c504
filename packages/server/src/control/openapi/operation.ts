// What the description of the API knows of one thing that can be asked: data, whoever serves it. document.ts writes it as
// OpenAPI. Routes of the control API become these in control-operations.ts; the others are declared beside that.

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
  /** What stands for the value in an example. */
  example?: string
}

export interface Answer {
  status: number
  description: string
  /** Absent: without a body. */
  type?: string
  schema?: JsonSchema
  example?: unknown
  /** Of server-sent events: the form of the data of each. */
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
  /** The path that this one is another name of. */
  aliasOf?: string
  security: Security
  role?: Role
  parameters: readonly Parameter[]
  body?: { type: string; required: boolean; schema: JsonSchema; example?: unknown }
  answers: readonly Answer[]
  /** In the one shape of every error; what an operation refuses in a shape of its own is among the answers. */
  errors: readonly (ApiErrorCode | RefusalCode)[]
}
