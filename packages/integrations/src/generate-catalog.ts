// Writes the catalogue from Segment's definitions. Loads each definition by itself: one that fails is left out with a warning.
//
//   node packages/integrations/src/generate-catalog.ts

import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import type { CatalogAction, CatalogAuth, CatalogEntry, CatalogIntegration, CatalogPreset, FieldSchema, ObjectSchema } from './catalog.ts'
import { CATALOG_FOLDER, currentStamp, INDEX_FILE, STAMP_FILE } from './catalog-files.ts'
import { correctedFields, correctedMapping } from './corrected-mappings.ts'
import {
  type ActionDefinition,
  type Definition,
  definitionsFolder,
  loadDefinition,
  type Preset,
  ROOT_TRANSFORM_FIELD,
  registeredDefinitions,
  SYNC_MODE_FIELD,
} from './definitions.ts'
import { FEATURES_SETTING, featuresSchema } from './feature-flags.ts'
import { type OAuthInputs, oauthSchema, objectSchema, settingsSchema, withDynamic } from './field-schema.ts'
import { hostSettings } from './host-settings.ts'
import { isAvailable, knownProblem, neededBeside } from './known-problems.ts'
import { keywordsOf, popularityOf, purposeOf } from './purposes.ts'
import { titleOf } from './titles.ts'

/** A slug is the name of a file, and "index" is taken. */
const SLUG = /^(?!index$)[a-z0-9][a-z0-9-]{0,99}$/

/** Three default subscriptions that Segment's parser accepts and reads as something else, and what they mean. */
const CORRECTED = new Map([
  ['type = "track", event = "Transaction Created"', 'type = "track" and event = "Transaction Created"'],
  ['type = "track" and event == "Cart Updated"', 'type = "track" and event = "Cart Updated"'],
  ['type = "track" and event == "Order Completed"', 'type = "track" and event = "Order Completed"'],
])

/** Why a hook has fields: without their values, most actions that have one fail. */
const HOOK_NOTE =
  'Segment creates these values in the tool when a mapping is saved; Switchyard does not. Create them in the tool, and enter them under Outputs.'

export interface Generated {
  integrations: CatalogIntegration[]
  /** One sentence for each definition that was left out. */
  warnings: string[]
}

export function generateCatalog(folder = definitionsFolder()): Generated {
  const integrations: CatalogIntegration[] = []
  const warnings: string[] = []
  for (const { segmentId, directory } of registeredDefinitions(folder)) {
    try {
      const definition = loadDefinition(directory, folder)
      if (!SLUG.test(definition.slug))
        throw new Error(`its slug ${JSON.stringify(definition.slug)} does not consist of lower-case letters, digits and "-"`)
      if (integrations.some(({ slug }) => slug === definition.slug)) throw new Error(`its slug "${definition.slug}" is used by another one`)
      // Through JSON once, so that nothing that JSON cannot hold fails later, or is different when it is read.
      const json = JSON.stringify(integrationOf(definition, directory, segmentId))
      integrations.push(JSON.parse(json, withoutTodo) as CatalogIntegration)
    } catch (error) {
      const reason = error instanceof Error ? (error.message.split('\n')[0] as string) : String(error)
      warnings.push(`The integration in "${directory}" is left out of the catalogue because it cannot be loaded: ${reason}`)
    }
  }
  return { integrations: integrations.sort((one, other) => one.title.localeCompare(other.title, 'en')), warnings }
}

/** Some descriptions end with a note of their authors to themselves. */
function withoutTodo(key: string, value: unknown): unknown {
  return key === 'description' && typeof value === 'string' ? value.replace(/\s*\bTODO\b.*/s, '') : value
}

/** Writes each file beside its place and renames it, so several processes may do this at the same time while others read. */
export function writeCatalog(integrations: readonly CatalogIntegration[], stamp: string, folder: URL = CATALOG_FOLDER): void {
  mkdirSync(folder, { recursive: true })
  const write = (name: string, text: string): void => {
    const draft = new URL(`${name}.${process.pid}`, folder)
    writeFileSync(draft, text)
    renameSync(draft, new URL(name, folder))
  }
  for (const integration of integrations) write(`${integration.slug}.json`, JSON.stringify(integration))
  write(INDEX_FILE, JSON.stringify(integrations.map(entryOf)))
  write(STAMP_FILE, stamp)
}

const ENTRY_FIELDS = [
  ...([
    'slug',
    'name',
    'title',
    'description',
    'category',
    'keywords',
    'popularity',
    'auth',
    'actionCount',
    'presetCount',
    'batch',
  ] as const),
  ...(['available', 'problem', 'needs', 'requiredSettingCount'] as const),
]

function entryOf(integration: CatalogIntegration): CatalogEntry {
  return Object.fromEntries(ENTRY_FIELDS.map((name) => [name, integration[name]])) as unknown as CatalogEntry
}

function integrationOf(definition: Definition, directory: string, segmentId: string): CatalogIntegration {
  const { scheme = 'none' } = definition.authentication ?? {}
  // `oauth-managed`: Segment's app has one OAuth app for all of its users. Here, it takes an app of the user, as `oauth2`.
  const auth: CatalogAuth = scheme === 'oauth-managed' ? 'oauth2' : scheme
  const actions = Object.entries(definition.actions).map(([slug, action]) =>
    actionOf(slug, { ...action, fields: correctedFields(definition.slug, action.fields) }),
  )
  // Some presets are for plug-ins of Segment's browser library, which are not in this package.
  const presets = (definition.presets ?? [])
    .filter((preset) => Object.hasOwn(definition.actions, preset.partnerAction))
    .map((preset) => presetOf(preset, definition))
  const settings = settingsOf(definition)
  const purpose = purposeOf(definition.slug)
  const category = purpose?.category ?? 'other'
  return {
    slug: definition.slug,
    name: definition.name,
    title: titleOf(definition.slug, definition.name),
    description: purpose?.about ?? definition.description ?? listedActions(actions),
    category,
    keywords: keywordsOf(category),
    popularity: popularityOf(definition.slug),
    auth,
    actionCount: actions.length,
    presetCount: presets.length,
    batch: actions.some(({ batch }) => batch),
    available: isAvailable(definition.slug),
    problem: knownProblem(definition.slug),
    needs: neededBeside(definition.slug),
    requiredSettingCount: settings.required.length,
    segmentId,
    directory,
    settings,
    actions,
    presets,
    deletes: definition.onDelete !== undefined,
  }
}

/** Replaces the description, which most definitions do not have. */
function listedActions(actions: readonly CatalogAction[]): string {
  const names = actions.map(({ name }) => name)
  return names.length > 5 ? `Actions: ${names.slice(0, 4).join(', ')} and ${names.length - 4} more.` : `Actions: ${names.join(', ')}.`
}

function settingsOf({ slug, authentication }: Definition): ObjectSchema {
  const { settings: ours = {}, required = [], replaced = {}, env = {}, tokenUrlSetting } = hostSettings(slug)
  const schema = settingsSchema(authentication?.fields ?? {})
  const isOAuth = authentication?.scheme === 'oauth2' || authentication?.scheme === 'oauth-managed'
  const read = isOAuth ? oauthInputs(authentication?.refreshAccessToken, Object.values(env)) : null
  // The server of the user may also issue tokens for the client's credentials alone (`oauthServer`).
  const inputs: OAuthInputs | null = read !== null && tokenUrlSetting !== undefined ? { ...read, refreshToken: 'optional' } : read
  const features = featuresSchema(slug)
  const isNeeded = isOAuth && (inputs === null || inputs.client || inputs.refreshToken !== false)
  return {
    ...schema,
    properties: {
      ...withRole(schema.properties, replaced),
      ...ours,
      ...(isOAuth && { oauth: oauthSchema(inputs) }),
      ...(features !== null && { [FEATURES_SETTING]: features }),
    },
    required: [...schema.required.filter((name) => !Object.hasOwn(replaced, name)), ...required, ...(isNeeded ? ['oauth'] : [])],
  }
}

/** A role is the only thing that our own settings replace so far. */
function withRole(properties: ObjectSchema['properties'], replaced: Readonly<Record<string, string>>): ObjectSchema['properties'] {
  const described = Object.entries(properties).map(([name, field]) =>
    Object.hasOwn(replaced, name)
      ? [name, { ...field, description: `${field.description} Optional: without a role, the access key is used as it is.` }]
      : [name, field],
  )
  return Object.fromEntries(described) as ObjectSchema['properties']
}

/**
 * What the code that requests an access token reads, which shows in its text: many read keys in the settings instead, and some read the client from
 * environment variables, which get it from the settings in `fromEnv`. Null if there is no such code.
 */
function oauthInputs(refresh: ((...parameters: never[]) => unknown) | undefined, fromEnv: readonly string[]): OAuthInputs | null {
  if (refresh === undefined) return null
  const text = refresh.toString()
  const parameters = text.slice(0, text.indexOf('=>'))
  // Without texts, but with what is inserted in them.
  const body = text
    .slice(text.indexOf('=>'))
    .replaceAll(/'[^']*'/g, '')
    .replaceAll(/`[^`]*`/g, (template) => (template.match(/\$\{[^}]*\}/g) ?? []).join(' '))
  if (!/\bauth\b/.test(parameters) && !/\.auth\./.test(body)) return { client: false, refreshToken: false }
  // Handed to another function as a whole.
  const isUnknown = /\bauth\b(?!\??\.)/.test(body)
  const client = isUnknown || fromEnv.includes('oauth.clientId') || /(?<!\?\? )\bauth\.clientId\b/.test(body)
  return { client, refreshToken: isUnknown || /\brefreshToken\b/.test(body) }
}

function actionOf(slug: string, action: ActionDefinition): CatalogAction {
  const { title, description, defaultSubscription = null, fields, dynamicFields = {} } = action
  const schema = withDynamic(objectSchema(fields), fields, dynamicFields)
  return {
    slug,
    name: title,
    description,
    defaultSubscription: defaultSubscription && (CORRECTED.get(defaultSubscription) ?? defaultSubscription),
    batch: action.performBatch !== undefined,
    syncMode: syncModeOf(action),
    fields: { ...schema, properties: { ...schema.properties, ...internalFields(action) } },
  }
}

function syncModeOf({ syncMode }: ActionDefinition): FieldSchema | null {
  if (syncMode === undefined) return null
  const { label, description, default: usual, choices } = syncMode
  const oneOf = choices.map(({ value, label: title }) => ({ const: value, title }))
  return { title: label, description, type: 'string', default: usual, oneOf }
}

/** Values that a mapping may have beside the fields: the library reads them from there under these names. */
function internalFields({ syncMode, hooks }: ActionDefinition): Record<string, FieldSchema> {
  const fields: Record<string, FieldSchema> = {
    [ROOT_TRANSFORM_FIELD]: {
      title: 'Transform first',
      description: 'A @transform without fields: the fields read what its `apply` results in, in place of the message.',
      type: 'object',
      'x-hidden': true,
    },
  }
  if (syncMode !== undefined) {
    fields[SYNC_MODE_FIELD] = {
      title: syncMode.label,
      description: 'Mappings that are exported from Segment contain the sync mode. It is saved as `syncMode` of the subscription.',
      type: 'string',
      'x-hidden': true,
    }
    fields['__segment_internal_matching_key'] = {
      title: 'Matching key',
      description: 'The field by which records are found, if the sync mode updates or deletes them.',
      type: 'string',
      'x-hidden': true,
    }
  }
  for (const [name, hook] of Object.entries(hooks ?? {})) {
    fields[name] = {
      title: hook.label,
      description: name === 'onMappingSave' ? `${hook.description} ${HOOK_NOTE}` : hook.description,
      type: 'object',
      properties: {
        inputs: { title: 'Inputs', ...objectSchema(hook.inputFields ?? {}), required: [] },
        outputs: { title: 'Outputs', ...objectSchema(hook.outputTypes ?? {}), required: [] },
      },
      // Segment runs a hook when a mapping is saved. Here, outputs can only be given. Those of the other hook are for reverse ETL.
      ...(name !== 'onMappingSave' && { 'x-hidden': true }),
    }
  }
  return fields
}

function presetOf(preset: Preset, { slug, actions }: Definition): CatalogPreset {
  const { fields } = actions[preset.partnerAction] as ActionDefinition
  return {
    name: preset.name,
    action: preset.partnerAction,
    subscribe: preset.type === 'automatic' ? preset.subscribe : `type = "${preset.eventSlug.endsWith('_identify') ? 'identify' : 'track'}"`,
    mapping: correctedMapping(slug, fields, preset.mapping ?? {}),
    type: preset.type,
  }
}

if (import.meta.main) {
  const { integrations, warnings } = generateCatalog()
  for (const warning of warnings) console.warn(warning)
  writeCatalog(integrations, currentStamp())
  console.log(`Wrote the catalogue of ${integrations.length} integrations.`)
}
