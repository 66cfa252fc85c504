// The schemas of a destination: the settings that all have, and those of its kind (destinations/). No error message here may quote a value, because it
// may be a secret.

import { listed } from '../../api/listed.ts'
import {
  array,
  boolean,
  type Fields,
  type Infer,
  integer,
  invalidField,
  object,
  oneOf,
  optional,
  patchOf,
  type Schema,
  string,
  variants,
  withDefault,
} from '../../api/schema.ts'
import { KINDS } from '../../destinations/kinds.ts'
import type { DestinationKind } from '../../destinations/port/kind.ts'
import { COMMON_SETTINGS } from '../../destinations/settings/common-settings.ts'
import type { DestinationType } from '../../store/store.ts'
import { VERSION_FIELD } from './versions.ts'

const TIMEOUT = 'The timeout of one attempt, from connecting to the end of the response.'

const COMMON = COMMON_SETTINGS.create.fields

const TYPES = Object.keys(KINDS) as DestinationType[]
/** The type of a destination whose request gives none. */
const DEFAULT_TYPE = 'webhook'

function typeField(type: DestinationType): Schema<DestinationType> {
  return type === DEFAULT_TYPE ? withDefault(oneOf([type]), type) : oneOf([type])
}

export function newDestinationFields(type: DestinationType) {
  const { settings, maxTimeoutMs } = KINDS[type]
  const timeoutMs = withDefault(integer({ min: 100, max: maxTimeoutMs, description: TIMEOUT }), maxTimeoutMs)
  return { type: typeField(type), ...COMMON, ...settings, timeoutMs }
}

const SCHEMAS = new Map(TYPES.map((type) => [type, object(newDestinationFields(type))] as const))

function schemaOf(type: DestinationType): Schema<NewDestinationInput> {
  return SCHEMAS.get(type) as Schema<NewDestinationInput>
}

/** The settings that a destination of the kind must be given, in addition to its name. */
function required({ settings }: DestinationKind): string[] {
  return Object.entries(settings).flatMap(([name, schema]) => ('optional' in schema || 'fallback' in schema ? [] : [name]))
}

const names = (fields: readonly string[]): string => listed(fields.map((name) => `\`${name}\``))
const kinds = Object.values(KINDS)
const neededText = listed(
  kinds.map((kind) => `${kind.noun.one} needs ${names(required(kind))}`),
  ', and ',
)
const ownText = kinds.map(({ noun, settings }) => `${names(Object.keys(settings))} are for ${noun.many}`).join('; ')
const timeoutText = listed(kinds.map(({ noun, maxTimeoutMs }) => `${maxTimeoutMs} for ${noun.one}`))

/** The settings of kinds, without those that all have. Each is optional, because a destination of another kind does not have it. */
function ownFields(some: readonly DestinationKind[]): Fields {
  const fields = some.flatMap((kind) => {
    const needed = new Set(required(kind))
    return Object.entries(kind.settings).map(([name, schema]) => [name, needed.has(name) ? optional(schema) : schema] as const)
  })
  return Object.fromEntries(fields)
}

/** All settings of all kinds. In the JSON Schema, the descriptions say which kind needs a setting: a choice of several schemas is harder to read. */
const ALL_FIELDS = {
  type: withDefault(
    oneOf(TYPES, {
      description: `${neededText.charAt(0).toUpperCase()}${neededText.slice(1)}. Each refuses the settings of the other kinds: ${ownText}.`,
    }),
    DEFAULT_TYPE,
  ),
  ...COMMON,
  ...ownFields(kinds.filter(({ type }) => type !== DEFAULT_TYPE)),
  timeoutMs: withDefault(
    integer({
      min: 100,
      max: Math.max(...kinds.map(({ maxTimeoutMs }) => maxTimeoutMs)),
      description: `${TIMEOUT} The default and maximum are ${timeoutText}.`,
    }),
    KINDS[DEFAULT_TYPE].maxTimeoutMs,
  ),
  ...ownFields([KINDS[DEFAULT_TYPE]]),
}

export const NEW_DESTINATION: Schema<NewDestinationInput> = {
  parse(value, path) {
    if (typeof value !== 'object' || value === null) return schemaOf(DEFAULT_TYPE).parse(value, path)
    const type = 'type' in value && value.type !== undefined ? ALL_FIELDS.type.parse(value.type, 'type') : DEFAULT_TYPE
    refuseOtherKinds(type, value)
    return schemaOf(type).parse(value, path)
  },
  toJsonSchema: () => object(ALL_FIELDS).toJsonSchema(),
}

export const DESTINATION_PATCH = object({
  ...patchOf(ALL_FIELDS),
  ...COMMON_SETTINGS.patch.fields,
  version: optional(VERSION_FIELD),
})

const WARNINGS = optional(
  array(
    object({
      code: oneOf(['no_subscription', 'hook_outputs_missing', 'integration_problem']),
      field: string(),
      message: string({ description: 'A sentence that says what to do.' }),
    }),
    {
      description:
        'Only in the response to a request that created or changed the destination, if there are any: why it sends nothing, or will fail, although it was accepted.',
    },
  ),
)

const SHARED = optional(
  boolean({
    description:
      'True if the destination also serves sources that you have no access to. Then `sourceIds` contains only the sources that you have access to, and you cannot change the destination. Left out otherwise.',
  }),
)

export const DESTINATION = variants(
  'type',
  Object.fromEntries(
    kinds.map(({ type, shownSettings }) => [
      type,
      { ...COMMON_SETTINGS.viewFields, timeoutMs: integer({ description: TIMEOUT }), ...shownSettings, shared: SHARED, warnings: WARNINGS },
    ]),
  ),
  { title: 'Destination', description: 'A webhook or an integration that messages are sent to.' },
)

/** Throws if an update contains a setting of another kind, or changes the kind. */
export function assertFits(type: DestinationType, patch: DestinationPatch): void {
  if (patch.type !== undefined && patch.type !== type) throw invalidField('type', 'cannot be changed; create another destination')
  refuseOtherKinds(type, patch)
  if (patch.timeoutMs !== undefined) newDestinationFields(type).timeoutMs.parse(patch.timeoutMs, 'timeoutMs')
}

function refuseOtherKinds(type: DestinationType, given: object): void {
  for (const field of Object.keys(given)) {
    if (Object.hasOwn(KINDS[type].settings, field)) continue
    const other = kinds.find(({ settings }) => Object.hasOwn(settings, field))
    if (other !== undefined)
      throw invalidField(field, `is a setting of ${other.noun.many}, and this destination is ${KINDS[type].noun.one}`)
  }
}

/** The settings of its kind are not listed here: the kind reads them. */
export type NewDestinationInput = Infer<typeof COMMON_SETTINGS.create> & { type: DestinationType; timeoutMs: number }
export type DestinationPatch = Partial<Infer<typeof DESTINATION_PATCH>>
