// Routes for configuration as a file: validate a whole configuration, export it, and return the schema of the file. Validation uses the schemas
// of the routes that create single resources, so both accept the same values. Nothing is changed. Secrets in the request are compared with
// the stored ones, and the response says only whether they differ.

import {
  configurationOf,
  configurationText,
  type FieldSchema,
  type Installed,
  KINDS,
  type Kind,
  same,
  sameNames,
} from '../api/configuration-export.ts'
import { queryBoolean } from '../api/query-values.ts'
import {
  anyObject,
  array,
  type Infer,
  integer,
  type JsonSchema,
  nullable,
  object,
  oneOf,
  type Schema,
  string,
  withDefault,
} from '../api/schema.ts'
import { KINDS as DESTINATION_KINDS, KIND_SETTINGS } from '../destinations/kinds.ts'
import { retryOf } from '../destinations/settings/retry-settings.ts'
import { ApiError } from '../errors.ts'
import { checkRules } from '../plans/check-rules.ts'
import type { Destination, Store } from '../store/store.ts'
import { oauthAppView } from './administration/oauth-apps.ts'
import { codeProblem } from './destinations/code-check.ts'
import { assertFits, type NewDestinationInput } from './destinations/destination-settings.ts'
import { assertInstalled, destinationView } from './destinations/destinations.ts'
import { definitionToUse } from './destinations/integration-definition.ts'
import { checkedSettings } from './destinations/patched-settings.ts'
import { type NEW_PLAN, planView } from './plans/plans.ts'
import { type ControlParts, type Route, route } from './routes/route.ts'
import { sourceView } from './sources/sources.ts'

const PATHS: Record<Kind, string> = { sources: '/sources', destinations: '/destinations', oauthApps: '/oauth-apps', plans: '/plans' }

const MAX_ENTRIES = 10_000
const ENTRIES = withDefault(
  array(
    object({
      id: withDefault(
        nullable(string({ max: 100, description: 'The id of the resource that the entry changes; null if the entry is a new resource.' })),
        null,
      ),
      settings: anyObject({ description: 'The same fields as in the request that creates the resource, without `sourceIds`.' }),
    }),
    { max: MAX_ENTRIES },
  ),
  [],
)
const CHECK = object({ sources: ENTRIES, destinations: ENTRIES, oauthApps: ENTRIES, plans: ENTRIES })

const WHERE_FIELDS = { kind: oneOf(KINDS), index: integer({ description: 'The index of the entry in the list of the request.' }) }
const CHECK_ANSWER = object({
  problems: array(object({ ...WHERE_FIELDS, field: nullable(string()), code: string(), message: string() })),
  changedSecrets: array(object({ ...WHERE_FIELDS, fields: array(string()) })),
})

const FILE_QUERY = object({ writeKeys: withDefault(queryBoolean({ description: 'Whether the file contains write keys.' }), true) })
const FILE_ANSWER = object({
  yaml: string({ description: 'The content of the file, with references instead of secrets.' }),
  variables: array(string(), { description: 'The environment variables that must be set when the file is applied elsewhere.' }),
})

/** Returns the routes, plus the routes for the configuration as a whole. */
/** The schema of a new entry; undefined if this version does not have the kind. */
type SchemaOf = (kind: Kind) => Schema<unknown> | undefined

export function withConfiguration(routes: readonly Route[], parts: ControlParts): Route[] {
  const { store } = parts
  const schemaOf: SchemaOf = (kind) => routes.find(({ method, path }) => method === 'POST' && path === PATHS[kind])?.body

  return [
    ...routes,
    route('POST', '/configuration/check', {
      summary: 'Validate a configuration',
      access: { role: 'admin', sources: 'all' },
      description: 'Checks whether these settings would be accepted, and which secrets differ from the stored ones. Nothing is changed.',
      body: CHECK,
      answer: CHECK_ANSWER,
      async handle({ body }) {
        const { destinations } = store.configuration()
        const entries = KINDS.flatMap((kind) => body[kind].map((entry, index) => ({ kind, index, ...entry })))
        const problems = await Promise.all(
          entries.map(({ kind, id, settings }) => problemOf(parts, schemaOf(kind), { kind, id, settings })),
        )
        return {
          problems: entries.flatMap(({ kind, index }, at) => {
            const problem = problems[at] ?? null
            return problem === null ? [] : [{ kind, index, field: problem.field ?? null, code: problem.code, message: problem.message }]
          }),
          changedSecrets: entries.flatMap(({ kind, index, id, settings }, at) => {
            const isValid = kind === 'destinations' && problems[at] === null
            const fields = isValid ? changedSecrets(schemaOf('destinations'), destinations.get(id ?? ''), settings) : []
            return fields.length === 0 ? [] : [{ kind, index, fields }]
          }),
        }
      },
    }),
    route('GET', '/configuration', {
      summary: 'Export the configuration',
      access: { role: 'admin', sources: 'all' },
      description: 'Returns the same YAML file as `switchyard export`, without secrets.',
      // Viewers do not see header values, and a file without them would remove them where it is applied.
      query: FILE_QUERY,
      answer: FILE_ANSWER,
      errors: ['same_names'],
      async handle({ query }) {
        const { file, variables } = configurationOf(installed(store, schemaOf), { withKeys: query.writeKeys })
        const problem = sameNames(file)
        if (problem !== null) throw new ApiError('same_names', { message: problem })
        return { yaml: await configurationText(file), variables }
      },
    }),
    route('GET', '/configuration/schema', {
      summary: 'Retrieve the JSON Schema of the configuration file',
      access: { role: 'viewer', sources: 'none' },
      description: 'Describes the file that `switchyard export` writes and `switchyard apply` reads.',
      answer: anyObject(),
      handle: () => fileSchema(schemaOf),
    }),
  ]
}

async function problemOf(
  { store, checkUrl = () => null, checkCode, catalog, warehouseInstaller }: ControlParts,
  schema: Schema<unknown> | undefined,
  { kind, id, settings }: { kind: Kind; id: string | null; settings: Record<string, unknown> },
): Promise<ApiError | null> {
  const { destinations, plans } = store.configuration()
  const before = destinations.get(id ?? '')
  if (schema === undefined)
    return new ApiError('unknown_field', { field: kind, message: `This version does not support ${kind}. Remove them from the request.` })
  try {
    const parsed = schema.parse(settings, '')
    if (kind === 'plans') await checkRules((parsed as Infer<typeof NEW_PLAN>).rules, plans.get(id ?? '')?.rules)
    if (kind !== 'destinations') return null
    const given = parsed as NewDestinationInput
    if (before !== undefined) assertFits(before.type, given)
    retryOf(given)
    if (before === undefined) assertInstalled({ warehouseInstaller }, given.type)
    const definition = await definitionToUse(catalog, given)
    const checked = checkedSettings(given.type, given, before, { checkUrl, definition })
    return await codeProblem(checkCode, given.type, checked, before)
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

/** The settings must be valid. */
function changedSecrets(
  schema: Schema<unknown> | undefined,
  destination: Destination | undefined,
  settings: Record<string, unknown>,
): string[] {
  const parsed = schema?.parse(settings, '') as NewDestinationInput
  const kind = DESTINATION_KINDS[parsed.type]
  const given: Readonly<Record<string, unknown>> = { ...kind.completed(parsed, destination, null) }
  const stored: Readonly<Record<string, unknown>> = { ...destination }
  return kind.secretSettings.filter(
    (field) => Object.hasOwn(settings, field) && !same(given[field], stored[field] ?? (field === 'signingSecrets' ? [] : null)),
  )
}

/** The same data as `switchyard export` reads from the lists of the API. */
function installed(store: Store, schemaOf: SchemaOf): Installed {
  const { sources, destinations, oauthApps, plans } = store.configuration()
  const lists = fileSchema(schemaOf)['properties'] as Record<string, FieldSchema | undefined>
  const fields = (kind: Kind): Record<string, FieldSchema> => lists[kind]?.items?.properties ?? {}
  return {
    schema: { sources: fields('sources'), destinations: fields('destinations'), oauthApps: fields('oauthApps'), plans: fields('plans') },
    kinds: KIND_SETTINGS,
    entries: {
      sources: [...sources.values()].map(sourceView),
      destinations: [...destinations.values()].map(destinationView),
      oauthApps: [...oauthApps.values()].map(oauthAppView),
      plans: [...plans.values()].map(planView),
    },
  }
}

const REFERENCE: JsonSchema = {
  pattern: '^\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}$',
  description: 'A reference to an environment variable, such as ${NAME}; never the secret itself.',
}
const SOURCE_NAMES: JsonSchema = { type: 'array', items: { type: 'string' }, uniqueItems: true, description: 'The names of the sources.' }

const DEAD_LETTER: JsonSchema = {
  type: ['string', 'null'],
  description: 'The name of the dead-letter destination, which gets the messages whose delivery fails or expires.',
}

/** The schema of a field, with references instead of its secrets. */
function withReferences(schema: JsonSchema): JsonSchema {
  const {
    type,
    writeOnly,
    properties,
    oneOf: variants,
    additionalProperties: others,
  } = schema as { type?: unknown; properties?: Record<string, JsonSchema>; oneOf?: JsonSchema[] } & JsonSchema
  if (writeOnly === true)
    return type === 'array' ? { type, items: { type: 'string', ...REFERENCE }, maxItems: schema['maxItems'] } : { type, ...REFERENCE }
  return {
    ...schema,
    ...(properties && { properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, withReferences(field)])) }),
    ...(variants && { oneOf: variants.map(withReferences) }),
    ...(typeof others === 'object' && { additionalProperties: withReferences(others as JsonSchema) }),
  }
}

/** The JSON Schema of the file, with names of sources instead of ids, and references instead of secrets. */
function fileSchema(schemaOf: SchemaOf): Record<string, unknown> {
  const lists = KINDS.flatMap((kind) => {
    const schema = schemaOf(kind)?.toJsonSchema()
    if (schema === undefined) return []
    const properties: Record<string, unknown> = {}
    for (const [name, field] of Object.entries(schema['properties'] as Record<string, JsonSchema>)) {
      if (name === 'sourceIds') properties['sources'] = SOURCE_NAMES
      else properties[name] = name === 'deadLetter' ? { ...DEAD_LETTER, default: field['default'] } : withReferences(field)
    }
    const required = ((schema['required'] as string[] | undefined) ?? []).filter((name) => Object.hasOwn(properties, name))
    return [[kind, { type: 'array', items: { type: 'object', properties, required, additionalProperties: false } }] as const]
  })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Configuration of a Switchyard installation',
    type: 'object',
    properties: { version: { const: 1 }, ...Object.fromEntries(lists) },
    required: ['version'],
    additionalProperties: false,
  }
}
