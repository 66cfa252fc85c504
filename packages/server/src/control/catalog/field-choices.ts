// Routes that ask the tool of an integration which values a field can have: lists, channels, types of objects. For forms, and for people who write a mapping.
// Nothing is stored. Not for viewers, because the tool is asked with the credentials of the destination.

import type { CatalogIntegration } from '@switchyard/integrations/catalog'
import {
  anyObject,
  array,
  type Infer,
  invalidField,
  nullable,
  object,
  optional,
  type Schema,
  string,
  withDefault,
} from '../../api/schema.ts'
import type { FieldChoices } from '../../delivery/delivery.ts'
import { ApiError } from '../../errors.ts'
import { CLASSIC, type Destination } from '../../store/store.ts'
import { NEW_DESTINATION } from '../destinations/destination-settings.ts'
import { definitionToUse, installedDefinition } from '../destinations/integration-definition.ts'
import { checkedSettings } from '../destinations/patched-settings.ts'
import { found } from '../routes/resource-routes.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const LOOKUP_FIELDS = {
  action: string({ min: 1, max: 200, description: 'The slug of the action.' }),
  field: string({
    min: 1,
    max: 300,
    description:
      'A field that the catalogue marks with `x-dynamic`: `list_id`, `object_details.object_type`, or `associations[0].object_type` for an element of a list. With `x-dynamic: keys`, the choices are names of properties of the object.',
  }),
  mapping: withDefault(
    anyObject({
      description: 'The mapping so far. The choices may depend on constants in it, such as the type of object whose properties are wanted.',
    }),
    {},
  ),
  syncMode: optional(string({ max: 100, description: 'The sync mode of the subscription.' })),
  page: optional(string({ min: 1, max: 1_000, description: 'The `nextPage` of the previous answer.' })),
}
const STORED_LOOKUP = object(LOOKUP_FIELDS)
const UNSAVED_LOOKUP = object({
  settings: withDefault(anyObject({ description: 'All settings, as for a new destination. They are not stored.' }), {}),
  ...LOOKUP_FIELDS,
})

/** A constant of a mapping. */
const VALUE: Schema<string | number | boolean> = {
  parse: (value) => value as string,
  toJsonSchema: () => ({ type: ['string', 'number', 'boolean'], description: 'The value for the mapping.' }),
}
const ANSWER = object(
  {
    choices: array(object({ value: VALUE, label: string(), description: optional(string()) }), {
      description: 'At most 1,000. Choices that contain a secret of the destination are left out.',
    }),
    nextPage: nullable(string({ description: 'The `page` for more choices; null if there are no more.' })),
    error: nullable(
      object(
        {
          code: string({
            description:
              'A code as in the reasons of attempts, such as `http_401`, `timeout`, `integration_failed` or `invalid_authentication`.',
          }),
          message: string({ description: 'What the tool or the integration said, without secrets.' }),
        },
        { description: 'Why the tool gave no choices; null if it answered. You can still enter a value by hand.' },
      ),
    ),
  },
  { title: 'FieldChoices' },
)
const DESCRIPTION =
  'Asks the tool of the integration, with one or more requests, as a delivery would: through the address check, and for at most 10 seconds. Nothing is sent to the tool except the question, and nothing is stored.'

type Lookup = Infer<typeof STORED_LOOKUP>

export function fieldChoicesRoutes({ store, delivery, catalog, checkUrl = () => null }: ControlParts): Route[] {
  async function choices(destination: Destination, definition: CatalogIntegration, body: Lookup, isStored: boolean): Promise<FieldChoices> {
    const { action, field, mapping, syncMode, page } = body
    checkDynamic(definition, action, field)
    try {
      return await delivery.choices(destination, { action, field, mapping, syncMode, page, isStored })
    } catch (error) {
      if ((error as Error).name !== 'TooManyPreviews') throw error
      throw new ApiError('too_many_previews', {
        message: 'Too many lookups are running: at most 4 at the same time. Try again in a few seconds.',
      })
    }
  }

  return [
    route('POST', '/destinations/:id/choices', {
      summary: 'List the values that a field of an integration can have',
      access: { role: 'editor', sources: 'limited', subject: 'destination', whole: true },
      description: DESCRIPTION,
      body: STORED_LOOKUP,
      answer: ANSWER,
      errors: ['destination_not_found', 'too_many_previews'],
      async handle({ params, body }) {
        const destination = found({ notFound: 'destination_not_found' }, store.configuration().destinations.get(params['id'] ?? ''))
        const definition = await installedDefinition(catalog, destination)
        if (definition === null)
          throw invalidField('action', 'cannot be used: the destination is not an integration, or its integration is not installed')
        return await choices(destination, definition, body, true)
      },
    }),
    route('POST', '/catalog/:slug/choices', {
      summary: 'List the values that a field can have, before the destination is created',
      access: { role: 'editor', sources: 'none' },
      description: `${DESCRIPTION} If the integration uses OAuth, the settings must contain an access token: none is requested, because the tool may replace the refresh token, which is not stored here.`,
      body: UNSAVED_LOOKUP,
      answer: ANSWER,
      errors: ['integration_not_found', 'too_many_previews'],
      async handle({ params, body }) {
        const integration = params['slug'] ?? ''
        const installed = (await catalog?.()) ?? null
        if ((await installed?.readIntegration(integration)) == null) throw new ApiError('integration_not_found')
        const given = NEW_DESTINATION.parse(
          { type: 'integration', integration, name: 'Lookup', settings: body.settings, subscriptions: [] },
          '',
        )
        const definition = (await definitionToUse(catalog, given)) as CatalogIntegration
        const settings = checkedSettings(given.type, given, undefined, { checkUrl, definition })
        return await choices({ ...CLASSIC, ...settings, id: '', createdAtMs: 0 } as Destination, definition, body, false)
      },
    }),
  ]
}

/** A property of a field, or of an element of a list. */
const FIELD = /^([\w-]+)(?:(?:\[\d{1,4}\])?\.([\w-]+))?$/

/** Throws if the tool cannot be asked for the values of the field. */
function checkDynamic({ actions }: CatalogIntegration, slug: string, path: string): void {
  const action = actions.find((each) => each.slug === slug)
  if (action === undefined) throw invalidField('action', 'is not an action of this integration; GET /api/catalog/{slug} lists its actions')
  const [, name = '', inner] = FIELD.exec(path) ?? []
  const field = Object.hasOwn(action.fields.properties, name) ? action.fields.properties[name] : undefined
  const { [inner ?? '']: property } = field?.properties ?? field?.items?.properties ?? {}
  const isDynamic = (inner === undefined ? field : property)?.['x-dynamic'] !== undefined
  if (!isDynamic) throw invalidField('field', 'is not a dynamic field; the catalogue marks dynamic fields with x-dynamic')
}
