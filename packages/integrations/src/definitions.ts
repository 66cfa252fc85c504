// Where Segment's definitions are, and how one of them is loaded. Each is a folder of its own; loading one takes a fraction of the time and memory
// of loading the package, which loads all of them.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { JsonObject } from '@switchyard/protocol'
import type { Conditions } from './catalog.ts'

// The definitions are CommonJS. With `import`, actions-core would be loaded a second time, as an ES module whose classes of errors are others.
export const require = createRequire(import.meta.url)

/** Where the library looks for the sync mode of a subscription: in its mapping. */
export const SYNC_MODE_FIELD = '__segment_internal_sync_mode'

/** Where the library looks for a @transform whose result all fields of a mapping read in place of the message. */
export const ROOT_TRANSFORM_FIELD = '__segment_internal_directive'

/** What the catalogue reads of a definition. The library's own types would bring those of browsers into the whole project. */
export interface Definition {
  slug: string
  name: string
  description?: string
  authentication?: {
    scheme: 'custom' | 'basic' | 'oauth2' | 'oauth-managed'
    fields?: Fields
    refreshAccessToken?: (...parameters: never[]) => unknown
  }
  actions: Readonly<Record<string, ActionDefinition>>
  presets?: readonly Preset[]
  onDelete?: unknown
}

export interface ActionDefinition {
  title: string
  description: string
  defaultSubscription?: string
  fields: Fields
  performBatch?: unknown
  /** Functions that ask the tool which values a field can have: by field, and for objects by property, or as `__keys__` for the names of properties. */
  dynamicFields?: Readonly<Record<string, unknown>>
  syncMode?: { label: string; description: string; default: string; choices: readonly { value: string; label: string }[] }
  hooks?: Readonly<Record<string, { label: string; description: string; inputFields?: Fields; outputTypes?: Fields }>>
}

export type Preset = { name: string; partnerAction: string; mapping?: JsonObject } & (
  | { type: 'automatic'; subscribe: string }
  | { type: 'specificEvent'; eventSlug: string }
)

export type Fields = Readonly<Record<string, Field>>

export interface Field {
  label?: string
  description?: string
  type: 'string' | 'text' | 'number' | 'integer' | 'datetime' | 'boolean' | 'password' | 'object'
  format?: string
  minimum?: number
  maximum?: number
  default?: unknown
  choices?: readonly (string | { value: string | number; label: string })[]
  multiple?: boolean
  allowNull?: boolean
  properties?: Fields
  additionalProperties?: boolean
  required?: boolean | Conditions
  depends_on?: Conditions
  unsafe_hidden?: boolean
  /** Whether the tool can be asked for its values. */
  dynamic?: boolean
}

export interface RegisteredDefinition {
  /** Segment's id of the destination, as in exports of workspaces. */
  segmentId: string
  directory: string
}

/** The folder that has one folder for each definition. */
export function definitionsFolder(): string {
  return join(dirname(require.resolve('@segment/action-destinations')), 'destinations')
}

/** The definitions that Segment offers: the package's index registers them by id, and leaves out two that Segment replaced. Loads none of them. */
export function registeredDefinitions(folder = definitionsFolder()): RegisteredDefinition[] {
  const index = readFileSync(join(folder, 'index.js'), 'utf8')
  return [...index.matchAll(/^register\('([0-9a-f]{24})', '\.\/([\w-]+)'\)/gm)].map(([, segmentId, directory]) => ({
    segmentId: segmentId as string,
    directory: directory as string,
  }))
}

/** Reads the default export of cheerio, which its versions since 1.0 do not have. The library accepts these versions, and npm installs them. */
const READS_DEFAULT_OF_CHEERIO = 'engage-messaging-sendgrid'

/** Throws what the definition throws, or an error if it is none. */
export function loadDefinition(directory: string, folder = definitionsFolder()): Definition {
  if (directory === READS_DEFAULT_OF_CHEERIO) {
    const cheerio = createRequire(join(folder, directory, 'index.js'))('cheerio') as { default?: object }
    cheerio.default ??= cheerio
  }
  const { default: definition } = require(join(folder, directory)) as { default?: Partial<Definition> }
  if (typeof definition?.slug !== 'string' || typeof definition.name !== 'string' || typeof definition.actions !== 'object')
    throw new Error('the module does not export a definition with slug, name and actions')
  return definition as Definition
}
