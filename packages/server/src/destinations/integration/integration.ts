// An integration runs, for each message, the actions whose subscriptions match. They run in host processes, with the code of the package
// @switchyard/integrations.

import type { CatalogIntegration } from '@switchyard/integrations/catalog'
import type { JsonObject } from '@switchyard/protocol'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import { hiddenMapping, hiddenSettings } from '../../secrets/hidden-values.ts'
import type { Destination, IntegrationRef } from '../../store/port/model.ts'
import type { DestinationKind } from '../kind.ts'
import { verdictsOf } from '../webhook/verdict.ts'
import { settingsProblem, shownNames } from './check-settings.ts'
import { movedSecrets } from './moved-secrets.ts'
import { changedSecrets, fromStored, secretNames, toStored, withoutSecrets, withSecrets } from './secrets.ts'
import { INTEGRATION_SETTINGS, SHOWN_INTEGRATION_SETTINGS } from './settings.ts'
import { idProblem, presetSubscriptions, subscriptionsProblem, withIds } from './subscriptions.ts'

/** The values of a webhook's settings in a destination that is not a webhook. */
const NO_WEBHOOK = { urls: [], headers: {}, sharedSecret: null, signingSecrets: [] } as const

export const INTEGRATION = {
  type: 'integration',

  settings: INTEGRATION_SETTINGS,
  shownSettings: SHOWN_INTEGRATION_SETTINGS,
  completed(given, before, definition) {
    const { integration: _, settings, subscriptions: list, secrets: __, ...rest } = given
    const isNew = before === undefined
    const subscriptions = list ?? (isNew && definition !== null ? presetSubscriptions(definition) : undefined)
    const isChanged = settings !== undefined || subscriptions !== undefined
    return {
      ...rest,
      ...(isNew ? NO_WEBHOOK : {}),
      ...(isChanged && definition !== null ? { integration: refOf(definition) } : {}),
      ...(settings === undefined ? {} : { settings: merged(before?.settings ?? {}, settings) }),
      ...(subscriptions === undefined ? {} : { subscriptions: withIds(subscriptions, before?.subscriptions ?? [], definition) }),
    }
  },
  givenProblem(given, before) {
    if (before?.integration && given.integration !== undefined && given.integration !== before.integration.slug)
      return { field: 'integration', problem: 'cannot be changed; create another destination' }
    const placeholder = Object.entries(given.settings ?? {}).find(([, value]) => value === HIDDEN)
    if (placeholder !== undefined)
      return { field: `settings.${placeholder[0]}`, problem: 'is the placeholder "(hidden)"; send the real value' }
    return idProblem(given.subscriptions ?? [], before?.subscriptions ?? [])
  },
  problem({ settings, subscriptions }, { definition }) {
    if (settings === undefined && subscriptions === undefined) return null
    if (definition === null)
      return {
        field: settings === undefined ? 'subscriptions' : 'settings',
        problem: 'cannot be checked, because the integrations package is not installed; run `switchyard catalog install`',
      }
    return (
      (settings === undefined ? null : settingsProblem(settings, definition)) ??
      (subscriptions === undefined ? null : subscriptionsProblem(subscriptions, definition))
    )
  },
  movedSecrets,
  show: (destination: Destination) => show(destination),
  showHidden(destination: Destination) {
    const { settings, subscriptions, ...rest } = show(destination)
    return {
      ...rest,
      settings: hiddenSettings(settings),
      subscriptions: subscriptions.map((shown) => Object.assign(shown, { mapping: hiddenMapping(shown.mapping) })),
    }
  },

  secretSettings: ['settings'],
  changedSecrets,
  secretHeaders: () => new Set(),
  toStored,
  fromStored,
  withSecrets,
  withoutSecrets,

  targets: ({ integration }: Destination) => [targetOf(integration?.slug ?? '')],
  steps: ({ subscriptions }: Destination) => subscriptions,
  shaper: () => null,
  request: () => {
    throw new Error('an integration builds its own requests')
  },
  verdicts: ({ retry }: Destination) => verdictsOf(retry),
} as const satisfies DestinationKind

/** Stands for the URLs of the integration, which are not known before it runs. */
export function targetOf(slug: string): string {
  return `integration:${slug}`
}

function refOf(definition: CatalogIntegration): IntegrationRef {
  const { slug, name, deletes } = definition
  return { slug, name, deletes, shownSettings: shownNames(definition) }
}

/** A setting with the value null is removed. So are parts of `oauth`, the only setting that is an object. */
function merged(before: Readonly<JsonObject>, given: Readonly<JsonObject>): JsonObject {
  const fields = new Map(Object.entries(before))
  for (const [name, value] of Object.entries(given)) {
    const old = fields.get(name)
    if (value === null) fields.delete(name)
    else fields.set(name, isObject(value) && (isObject(old) || old === undefined) ? merged(old ?? {}, value) : value)
  }
  return Object.fromEntries(fields)
}

function show(destination: Destination) {
  const { integration, settings, subscriptions } = destination
  const secrets = secretNames(destination)
  return {
    integration: integration?.slug ?? '',
    integrationName: integration?.name ?? '',
    settings: Object.fromEntries(Object.entries(settings).filter(([name]) => !secrets.includes(name))),
    secretSettings: secrets,
    subscriptions: subscriptions.map(({ id, name, action, subscribe, mapping, enabled }) => ({
      id,
      name,
      action,
      subscribe,
      mapping,
      enabled,
    })),
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
