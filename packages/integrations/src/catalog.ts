// The catalogue as data: what each integration is, what it needs, and what it can do. It is generated from the definitions (generate-catalog.ts), so
// reading it loads none of their code.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { JsonObject } from '@switchyard/protocol'
import { CATALOG_FOLDER, currentStamp, INDEX_FILE, STAMP_FILE } from './catalog-files.ts'

/** Generating takes about three seconds; a definition that never finishes loading must not block the caller forever. */
const GENERATE_TIMEOUT_MS = 120_000

/** How an integration authenticates itself. */
export type CatalogAuth = 'none' | 'custom' | 'basic' | 'oauth2'

/** What an integration is for. */
export type CatalogCategory =
  | 'analytics'
  | 'messaging'
  | 'crm'
  | 'advertising'
  | 'audiences'
  | 'support'
  | 'experiments'
  | 'personalization'
  | 'loyalty'
  | 'billing'
  | 'storage'
  | 'data-quality'
  | 'developer'
  | 'other'

export interface CatalogEntry {
  /** The definition's own. */
  slug: string
  /** The definition's name, by which the `integrations` object of a message may refer to it. */
  name: string
  /** The name that people see. */
  title: string
  /** One sentence. */
  description: string
  category: CatalogCategory
  /** Other words for what it is for, in lower case. */
  keywords: readonly string[]
  /** 1 for what a list shows first; null for most. */
  popularity: number | null
  auth: CatalogAuth
  actionCount: number
  presetCount: number
  /** Whether at least one action takes several messages at once. */
  batch: boolean
  /** False if no destination can be created, because the tool would get nothing and messages would count as delivered. */
  available: boolean
  /** Why it does not work outside of Segment, in a sentence; null if no problem is known. */
  problem: string | null
  /** What it needs beside its settings and ordinary messages, in a sentence: audiences. Null if nothing. */
  needs: string | null
  requiredSettingCount: number
}

export interface CatalogIntegration extends CatalogEntry {
  /** Segment's id of the destination, as in exports of workspaces. */
  segmentId: string
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
  /** How records of the tool are changed: the choices and the default; null if the action has no such modes. */
  syncMode: FieldSchema | null
  fields: ObjectSchema
}

/** A subscription that the definition suggests. */
export interface CatalogPreset {
  name: string
  action: string
  subscribe: string
  mapping: JsonObject
  /** `specificEvent`: for events that Segment creates itself (audiences, journeys, warehouses), so `subscribe` has only their type; not used unless it is asked for. */
  type: 'automatic' | 'specificEvent'
}

/** JSON Schema (draft 7) of an object, with the order of the properties as the definition has it. */
export interface ObjectSchema {
  type: 'object'
  properties: Readonly<Record<string, FieldSchema>>
  required: readonly string[]
  additionalProperties: boolean
  /** The requirements that depend on other fields, as `if` and `then`; `x-required-if` says the same for forms. */
  allOf?: readonly JsonObject[]
}

export interface FieldSchema {
  title: string
  description?: string
  type?: string | readonly string[]
  /** In addition to the formats of JSON Schema: `password`, `text` (several lines), and `date-like` (any date that day.js can read). */
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  /** In a mapping: usually a directive such as `{ "@path": "$.userId" }`. */
  default?: unknown
  /** Choices, each with its title. */
  oneOf?: readonly { const: string | number | boolean | null; title: string }[]
  /** Of an array; an item has no title of its own. */
  items?: Partial<FieldSchema>
  properties?: Readonly<Record<string, FieldSchema>>
  required?: readonly string[]
  additionalProperties?: boolean
  allOf?: readonly JsonObject[]
  /** A secret: it can be set but is never shown. */
  writeOnly?: boolean
  /** The field is needed, or makes sense, only if these conditions on other fields hold. */
  'x-required-if'?: Conditions
  'x-shown-if'?: Conditions
  /** Segment fills this one in itself, so forms hide it. */
  'x-hidden'?: boolean
  /** The tool can be asked which values the field can have, or which names the properties of the object can have. */
  'x-dynamic'?: 'values' | 'keys'
}

/** As the definition writes them. */
export interface Conditions {
  /** Default: all. */
  match?: 'any' | 'all'
  conditions: readonly Condition[]
}

export interface Condition {
  /** `syncMode`: the sync mode of the subscription. */
  type?: 'field' | 'syncMode'
  /** `parent.child` for a field of an object. */
  fieldKey?: string
  operator: 'is' | 'is_not'
  /** A list: one of these. Missing: the field has no value. */
  value?: unknown
}

let entries: Promise<readonly CatalogEntry[]> | null = null
const integrations = new Map<string, Promise<CatalogIntegration>>()

/** Returns what every integration is, sorted by title. */
export function readCatalog(): Promise<readonly CatalogEntry[]> {
  entries ??= readEntries().catch((error: unknown) => {
    entries = null
    throw error
  })
  return entries
}

/** Returns everything about one integration; null if the catalogue does not have it. */
export async function readIntegration(slug: string): Promise<CatalogIntegration | null> {
  // Only a slug of the catalogue becomes part of a path.
  if (!(await readCatalog()).some((entry) => entry.slug === slug)) return null
  let integration = integrations.get(slug)
  if (integration === undefined) {
    integration = readJson<CatalogIntegration>(`${slug}.json`).catch((error: unknown) => {
      integrations.delete(slug)
      throw error
    })
    integrations.set(slug, integration)
  }
  return await integration
}

/**
 * In a clone, generates the catalogue if it is missing or outdated. The published package contains it. A process of its own does so, without the
 * caller's environment variables, because the definitions' code is loaded there. A caller that may not start processes uses the catalogue that is there.
 */
export async function ensureCatalog(): Promise<void> {
  // `process.permission` exists only if Node.js was started with --permission.
  const { permission } = process as Partial<Pick<NodeJS.Process, 'permission'>>
  if (!import.meta.url.endsWith('.ts') || permission?.has('child') === false) return
  const stamp = await readFile(new URL(STAMP_FILE, CATALOG_FOLDER), 'utf8').catch(() => null)
  if (stamp === currentStamp()) return
  const generator = fileURLToPath(new URL('generate-catalog.ts', import.meta.url))
  const { stderr } = await promisify(execFile)(process.execPath, [generator], { env: {}, timeout: GENERATE_TIMEOUT_MS })
  if (stderr !== '') process.stderr.write(stderr)
}

async function readEntries(): Promise<readonly CatalogEntry[]> {
  await ensureCatalog()
  return await readJson<readonly CatalogEntry[]>(INDEX_FILE)
}

async function readJson<T>(file: string): Promise<T> {
  return JSON.parse(await readFile(new URL(file, CATALOG_FOLDER), 'utf8')) as T
}
