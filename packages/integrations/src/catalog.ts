// The catalogue as data: what each integration is, what it needs, and what it can do. It is generated from the definitions, so reading it loads none
// of their code.

import type { JsonObject } from '@switchyard/protocol'

/** How an integration authenticates itself. `oauth-managed` needs an app that only Segment has, so it is not available here. */
export type CatalogAuth = 'none' | 'custom' | 'basic' | 'oauth2' | 'oauth-managed'

export interface CatalogEntry {
  /** The definition's own. */
  slug: string
  name: string
  description: string
  auth: CatalogAuth
  actionCount: number
  presetCount: number
  /** Whether at least one action takes several messages at once. */
  batch: boolean
  available: boolean
}

export interface CatalogIntegration extends CatalogEntry {
  /** The folder of its code in the package. */
  directory: string
  settings: ObjectSchema
  actions: readonly CatalogAction[]
  presets: readonly CatalogPreset[]
  /** Whether it can delete a user in its tool. */
  deletes: boolean
}

export interface CatalogAction {
  /** The key by which subscriptions name it. */
  slug: string
  name: string
  description: string
  /** When it usually runs; null if the definition does not say. */
  defaultSubscription: string | null
  batch: boolean
  fields: ObjectSchema
}

/** A subscription that the definition suggests. */
export interface CatalogPreset {
  name: string
  action: string
  subscribe: string
  mapping: JsonObject
  /** `specificEvent`: for events that only some sources have; not used unless it is asked for. */
  type: 'automatic' | 'specificEvent'
}

/** JSON Schema (draft 7) of an object, with the order of the properties as the definition has it. */
export interface ObjectSchema {
  type: 'object'
  properties: Readonly<Record<string, FieldSchema>>
  required: readonly string[]
  additionalProperties: boolean
}

export interface FieldSchema {
  title: string
  description?: string
  type?: string | readonly string[]
  format?: string
  /** In a mapping: usually a directive such as `{ "@path": "$.userId" }`. */
  default?: unknown
  /** Choices, each with its title. */
  oneOf?: readonly { const: string | number | boolean; title: string }[]
  items?: FieldSchema | ObjectSchema
  properties?: Readonly<Record<string, FieldSchema>>
  required?: readonly string[]
  /** A secret: it can be set but is never shown. */
  writeOnly?: boolean
  /** The field is needed, or makes sense, only if these conditions on other fields hold, as the definition writes them. */
  'x-required-if'?: JsonObject
  'x-shown-if'?: JsonObject
  /** Segment fills this one in itself, so forms hide it. */
  'x-hidden'?: boolean
}
