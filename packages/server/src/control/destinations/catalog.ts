// Routes for the catalogue of integrations. It comes from a package that may not be installed; the list is then empty, with a hint how to install the package.

import type { CatalogEntry } from '@switchyard/integrations/catalog'
import { anyObject, array, boolean, integer, nullable, object, oneOf, optional, string } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { INSTALL_HINT, slugsMeant } from './integration-definition.ts'

const AUTHS = ['none', 'custom', 'basic', 'oauth2'] as const

const CATEGORIES = [
  ...(['analytics', 'messaging', 'crm', 'advertising', 'audiences', 'support', 'experiments'] as const),
  ...(['personalization', 'loyalty', 'billing', 'storage', 'data-quality', 'developer', 'other'] as const),
] as const

const ENTRY_FIELDS = {
  slug: string({ description: 'Identifies the integration: the value of `integration` in a destination.' }),
  name: string({ description: 'The `integrations` object of a message may refer to the integration by this name.' }),
  title: string({ description: 'The name of the tool, as the dashboard shows it.' }),
  description: string({ description: 'What it is for, in one sentence.' }),
  category: oneOf(CATEGORIES, { description: 'What the tool is mainly used for.' }),
  keywords: array(string(), { description: 'Other words for its category. `query` searches them, too.' }),
  popularity: nullable(integer({ description: '1 for the integration that the dashboard lists first; null for most.' })),
  auth: oneOf(AUTHS, { description: 'How the integration authenticates. `oauth2` takes an OAuth app of your own.' }),
  actionCount: integer(),
  presetCount: integer({ description: 'The number of subscriptions that the definition suggests.' }),
  batch: boolean({ description: 'Whether at least one action can send several messages in one request.' }),
  available: boolean({
    description:
      'Whether a destination can use the integration. False if its tool would get nothing, although messages would count as delivered.',
  }),
  problem: nullable(
    string({
      description:
        'Why the integration does not work outside of Segment, for example because it needs a key that only Segment has; null if no problem is known. If `available` is true, a destination can be created nevertheless.',
    }),
  ),
  needs: nullable(
    string({
      description:
        'What the integration needs beside its settings and ordinary messages, such as messages that say who is in an audience; null if nothing.',
    }),
  ),
  requiredSettingCount: integer({ description: 'The number of settings that every destination of the integration needs.' }),
}
const ENTRY = object(ENTRY_FIELDS, { title: 'CatalogEntry', description: 'An integration of the catalogue.' })

const SCHEMA = anyObject({
  description:
    'JSON Schema of an object, with titles, defaults and choices. A secret has `writeOnly`. `x-required-if` and `x-shown-if` contain conditions on other fields. The values (or keys) of a field with `x-dynamic` come from the tool: `POST /api/destinations/{id}/choices` lists them.',
})
const INTEGRATION = object(
  {
    ...ENTRY_FIELDS,
    deletes: boolean({ description: 'Whether the integration can delete a user. If so, it receives deletion requests.' }),
    settings: SCHEMA,
    actions: array(
      object({
        slug: string({ description: 'Identifies the action in a subscription.' }),
        name: string(),
        description: string(),
        defaultSubscription: nullable(
          string({ description: 'The expression for the messages that the action usually runs for; null if the definition has none.' }),
        ),
        batch: boolean({ description: 'Whether it can send several messages in one request.' }),
        syncMode: nullable(
          anyObject({
            description: 'JSON Schema of `syncMode` of a subscription, with choices and default; null if the action has no sync modes.',
          }),
        ),
        fields: SCHEMA,
      }),
    ),
    presets: array(
      object({
        name: string(),
        action: string(),
        subscribe: string(),
        mapping: anyObject(),
        type: oneOf(['automatic', 'specificEvent'], {
          description: 'A new destination gets the automatic presets, unless the request has its own `subscriptions`.',
        }),
      }),
      { description: 'Subscriptions that the definition suggests.' },
    ),
  },
  { title: 'CatalogIntegration' },
)

export function catalogRoutes({ catalog: open }: ControlParts): Route[] {
  return [
    route('GET', '/catalog', {
      compressed: true,
      summary: 'List the integrations of the catalogue',
      access: { role: 'viewer', sources: 'none' },
      description: 'Sorted by title. With `query`, integrations whose title or name matches come first.',
      query: listQuery({
        query: optional(
          string({
            max: 200,
            description: 'Words that must all be in the title, the name, the slug, the description, the category or its keywords.',
          }),
        ),
        category: optional(oneOf(CATEGORIES, { description: 'What the tool is mainly used for.' })),
        auth: optional(oneOf(AUTHS, { description: 'How the integration authenticates.' })),
      }),
      answer: object({
        data: array(ENTRY),
        next: nullable(string({ description: 'The `cursor` for the next page; null on the last page.' })),
        hint: optional(string({ description: 'How to install the integrations package. Only present if it is not installed.' })),
      }),
      async handle({ query }) {
        const { limit, cursor } = pageRequest('catalog', query)
        const catalog = (await open?.()) ?? null
        if (catalog === null)
          return { data: [], next: null, hint: `The integrations package is not installed: ${INSTALL_HINT} on the server.` }
        const found = matching(await catalog.readCatalog(), query.query ?? '').filter(
          ({ auth, category }) => auth === (query.auth ?? auth) && category === (query.category ?? category),
        )
        const start = cursor === null ? 0 : found.findIndex(({ slug }) => slug === cursor) + 1
        const data = found.slice(start, start + limit)
        const next = start + limit < found.length ? (data.at(-1)?.slug ?? null) : null
        return pageAnswer('catalog', { data, next })
      },
    }),
    route('GET', '/catalog/:slug', {
      summary: 'Retrieve an integration of the catalogue',
      access: { role: 'viewer', sources: 'none' },
      description: 'Returns the settings and the fields of each action as JSON Schema, and the presets.',
      answer: INTEGRATION,
      errors: ['integration_not_found'],
      async handle({ params }) {
        const catalog = (await open?.()) ?? null
        const slug = params['slug'] ?? ''
        const found = (await catalog?.readIntegration(slug)) ?? null
        if (found === null) {
          const meant = catalog === null ? '' : await slugsMeant(catalog, slug)
          const message = meant === '' ? undefined : `The catalogue has no integration with this slug. Did you mean ${meant}?`
          throw new ApiError('integration_not_found', { message })
        }
        return found
      },
    }),
  ]
}

/** The entries that contain all words, those with the words in their title or name first. */
function matching(entries: readonly CatalogEntry[], query: string): CatalogEntry[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const has = (text: string): boolean => words.every((word) => text.toLowerCase().includes(word))
  const found = entries.filter(({ name, title, slug, description, category, keywords }) =>
    has(`${title} ${name} ${slug} ${description} ${category} ${keywords.join(' ')}`),
  )
  const isNamed = ({ name, title }: CatalogEntry): boolean => has(`${title} ${name}`)
  return [...found.filter(isNamed), ...found.filter((entry) => !isNamed(entry))]
}
