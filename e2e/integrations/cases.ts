// What is sent to each integration to see that the service makes the requests of the library: settings made from its schema, its presets as
// subscriptions (or, where it has none, its actions with their default mappings), and for each of them an event that it matches.

import {
  type CatalogAction,
  type CatalogIntegration,
  type CatalogPreset,
  readCatalog,
  readIntegration,
} from '@switchyard/integrations/catalog'
import type { JsonObject } from '@switchyard/protocol'
import { featuresOf } from '../../packages/integrations/src/feature-flags.ts'
import { sampleSettings, suggestedMapping, typedMapping } from '../../packages/integrations/src/fixtures/sample-settings.ts'
import { definitionSettings, environmentOf } from '../../packages/integrations/src/host-settings.ts'
import { fillInSubscriptions } from './form/fill-in-form.ts'
import { matchingEvent } from './matching-event.ts'
import { SPECIAL_CASES, type SpecialCase } from './special-cases.ts'

export interface IntegrationCase {
  slug: string
  name: string
  /** The folder of its definition in the library. */
  directory: string
  auth: CatalogIntegration['auth']
  /** What its subscriptions come from. */
  from: 'presets' | 'actions'
  settings: JsonObject
  /** The body that creates the destination: the dashboard's form with its defaults, and what a user types. */
  created: Readonly<Record<string, unknown>>
  /** What the library gets when it is called directly: what Segment's machines would give it instead of settings of ours. */
  direct: DirectValues
  subscriptions: readonly CaseSubscription[]
  /** One for each subscription that an event can match, with the position of that subscription. */
  events: readonly { position: number; event: JsonObject }[]
  /** The actions that take several events at once. */
  batchActions: readonly string[]
}

export interface DirectValues {
  settings: JsonObject
  env: Readonly<Record<string, string>>
  features: Readonly<Record<string, boolean>>
}

export interface CaseSubscription {
  name: string
  action: string
  subscribe: string
  /** For the library: the preset, or the defaults of the action, and what a user types. */
  mapping: JsonObject
  /** What a user types. */
  typed: JsonObject
  preset: CatalogPreset | null
}

/**
 * Integrations that cannot be compared with the library, because they need Segment's machines or several messages, or do not use HTTP. By slug: the
 * test that checks them instead.
 */
export const OWN_TESTS: Readonly<Record<string, string>> = {
  'actions-aws-kinesis': 'own-aws-keys.test.ts',
  'actions-kafka': 'other-protocols.test.ts',
  'actions-liveramp-audiences': 'host-settings.test.ts',
  'actions-s3': 'own-aws-keys.test.ts',
  'actions-s3-csv': 'own-aws-keys.test.ts',
  'actions-sftp': 'other-protocols.test.ts',
  'actions-the-trade-desk-crm': 'host-settings.test.ts',
}

const OAUTH = {
  clientId: 'sample-client-id',
  clientSecret: 'sample-client-secret',
  refreshToken: 'sample-refresh-token',
  accessToken: 'sample-access-token',
}

/** Of every integration in the catalogue that is available and can be compared. */
export async function integrationCases(): Promise<IntegrationCase[]> {
  const entries = (await readCatalog()).filter(({ slug, available }) => available && !Object.hasOwn(OWN_TESTS, slug))
  return await Promise.all(entries.map(async ({ slug }) => caseOf((await readIntegration(slug)) as CatalogIntegration)))
}

function caseOf(integration: CatalogIntegration): IntegrationCase {
  const { slug, name, directory, auth, actions, presets } = integration
  const special: Partial<SpecialCase> = SPECIAL_CASES[slug] ?? {}
  const subscription = (from: { name: string; subscribe: string }, slugOfAction: string, preset?: CatalogPreset): CaseSubscription => {
    const action = actions.find((candidate) => candidate.slug === slugOfAction) as CatalogAction
    const own = Object.entries(special.mapping ?? {}).filter(([field]) => field in action.fields.properties)
    const typed = { ...typedMapping(action, preset), ...Object.fromEntries(own) }
    return {
      name: preset === undefined ? from.name : `${from.name}, ${slugOfAction}`,
      action: slugOfAction,
      subscribe: from.subscribe,
      mapping: { ...suggestedMapping(action, preset), ...typed },
      typed,
      preset: preset ?? null,
    }
  }
  const subscriptions: CaseSubscription[] =
    presets.length > 0
      ? presets.map((preset) => subscription(preset, preset.action, preset))
      : inOrder(actions, special.first).map((action) =>
          subscription(
            {
              name: action.name,
              subscribe: special.subscribes?.[action.slug] ?? special.subscribe ?? action.defaultSubscription ?? 'type = "track"',
            },
            action.slug,
          ),
        )
  const events = subscriptions.flatMap(({ subscribe, mapping, action }, position) => {
    const event = matchingEvent(
      subscribe,
      mapping,
      actions.find((candidate) => candidate.slug === action),
      { fields: special.event ?? {}, without: special.without?.[action] ?? [] },
    )
    if (event === null) return []
    // Fixed and in the past: the time of an event is compared too. The service takes it as it is, because there is no sentAt.
    return [{ position, event: { ...event, messageId: `${slug}-${position}`, timestamp: '2026-11-01T10:20:30.000Z' } }]
  })
  const given = { ...sampleSettings(integration), ...(auth.startsWith('oauth') && { oauth: OAUTH }), ...special.settings }
  const created = fillInSubscriptions(
    integration,
    given,
    subscriptions.map(({ typed, ...rest }) => ({ ...rest, mapping: typed })),
  )
  const settings = created['settings'] as JsonObject
  const ofForm = created['subscriptions'] as readonly CaseSubscription[]
  const ordered = subscriptions.map((each, at) => Object.assign({}, each, { mapping: inOrderOf(ofForm[at]?.mapping ?? {}, each.mapping) }))
  const batchActions = actions.filter(({ batch }) => batch).map((action) => action.slug)
  const { oauth } = settings as { oauth?: JsonObject }
  const direct = {
    settings: { ...definitionSettings(slug, settings), ...(oauth !== undefined && { oauth }) },
    env: environmentOf(slug, settings),
    features: featuresOf(slug, settings),
  }
  const from = presets.length > 0 ? 'presets' : 'actions'
  return { slug, name, directory, auth, from, settings, created, direct, subscriptions: ordered, events, batchActions }
}

/** With the keys in the order of the form: bodies are compared as text, and some have the keys in the order of the mapping. */
function inOrderOf(form: JsonObject, mapping: JsonObject): JsonObject {
  return Object.fromEntries(
    [...new Set([...Object.keys(form), ...Object.keys(mapping)])].flatMap((key) => (key in mapping ? [[key, mapping[key]]] : [])),
  )
}

function inOrder(actions: readonly CatalogAction[], first: readonly string[] = []): CatalogAction[] {
  const rank = ({ slug }: CatalogAction): number => (first.includes(slug) ? 0 : 1)
  return [...actions].sort((one, other) => rank(one) - rank(other))
}

/** The same with the subscriptions alone whose actions take several events at once; none if there is no such action. */
export function batchCase(integration: IntegrationCase): IntegrationCase[] {
  const { subscriptions, events, batchActions } = integration
  const kept = subscriptions.filter(({ action }) => batchActions.includes(action))
  const keptEvents = events.flatMap(({ position, event }) => {
    const at = kept.indexOf(subscriptions[position] as CaseSubscription)
    return at === -1 ? [] : [{ position: at, event }]
  })
  const ofForm = integration.created['subscriptions'] as readonly { action: string }[]
  const created = { ...integration.created, subscriptions: ofForm.filter(({ action }) => batchActions.includes(action)) }
  return keptEvents.length === 0 ? [] : [{ ...integration, created, subscriptions: kept, events: keptEvents }]
}
