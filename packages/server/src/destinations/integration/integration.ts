// An integration runs, for each message, the actions whose subscriptions match. They run in host processes, with the code of the package
// @switchyard/integrations.

import type { CatalogIntegration } from '@switchyard/integrations/catalog'
import { isObject, type JsonObject } from '@switchyard/protocol'
import { nullable } from '../../api/schema.ts'
import type { IntegrationDestination, IntegrationRef } from '../../model/configuration.ts'
import type { SegmentContent } from '../../model/messages.ts'
import { segmentEvent } from '../../outbound/segment-event.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import { hiddenMapping, hiddenSettings } from '../../secrets/hidden-values.ts'
import type { DestinationKind } from '../port/kind.ts'
import { verdictsOf } from '../webhook/verdict.ts'
import { settingsProblem, shownNames } from './check-settings.ts'
import { INTEGRATION_FACTS } from './facts.ts'
import { matchingSubscriptions, subscriptionsJudge } from './matching.ts'
import { misfit } from './misfit.ts'
import { movedSecrets } from './moved-secrets.ts'
import { publishedNames } from './published-names.ts'
import { changedSecrets, fromStored, type StoredIntegration, secretNames, toStored, withoutSecrets, withSecrets } from './secrets.ts'
import {
  type GivenIntegration,
  INTEGRATION_SETTINGS,
  MAX_INTEGRATION_TIMEOUT_MS,
  SHOWN_INTEGRATION_SETTINGS,
  SHOWN_SUBSCRIPTIONS,
} from './settings.ts'
import { idProblem, presetSubscriptions, subscriptionsProblem, withIds } from './subscriptions.ts'
import { integrationWarnings } from './warnings.ts'

const ONLY_TARGET = [0] as const

const NO_BATCH: SegmentContent = {
  sourceId: '',
  receivedAtMs: 0,
  ip: null,
  browser: false,
  sentAt: null,
  context: null,
  integrations: null,
  trace: null,
  items: [],
}

export const INTEGRATION: DestinationKind<IntegrationDestination, GivenIntegration, StoredIntegration> = {
  type: 'integration',
  noun: { one: 'an integration', many: 'integrations' },

  settings: INTEGRATION_SETTINGS,
  shownSettings: SHOWN_INTEGRATION_SETTINGS,
  maxTimeoutMs: MAX_INTEGRATION_TIMEOUT_MS,
  slug: ({ integration = null }) => (typeof integration === 'string' ? integration : (integration?.slug ?? null)),
  completed(given, before, definition) {
    const { integration: _, settings, subscriptions: list, ...rest } = given
    const isNew = before === undefined
    const subscriptions = list ?? (isNew && definition !== null ? presetSubscriptions(definition) : undefined)
    const isChanged = settings !== undefined || subscriptions !== undefined
    return {
      ...rest,
      ...(isChanged && definition !== null
        ? { integration: refOf(definition, subscriptions !== undefined || before?.integration.fieldsChecked === true) }
        : {}),
      ...(settings === undefined ? {} : { settings: merged(before?.settings ?? {}, settings) }),
      ...(subscriptions === undefined ? {} : { subscriptions: withIds(subscriptions, before?.subscriptions ?? [], definition) }),
    }
  },
  givenProblem(given, before) {
    if (before !== undefined && given.integration !== undefined && given.integration !== before.integration.slug)
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
  show,
  showHidden(destination) {
    const { settings, subscriptions, ...rest } = show(destination)
    return {
      ...rest,
      settings: hiddenSettings(settings),
      subscriptions: subscriptions.map((shown) => Object.assign(shown, { mapping: hiddenMapping(shown.mapping) })),
    }
  },
  content: { first: { subscriptions: [] }, shown: { subscriptions: nullable(SHOWN_SUBSCRIPTIONS) } },
  origins: () => [],
  sameReceiver: (one, other) => (one.integration.slug === other.integration.slug ? 'the same integration' : null),
  setupProblem: ({ settings }, definition) => settingsProblem(settings, definition),
  misfit,
  warnings: integrationWarnings,
  isInactive: ({ subscriptions }) => !subscriptions.some(({ enabled }) => enabled),
  acceptsDeadLetters: false,

  secretSettings: ['settings'],
  changedSecrets,
  secretHeaders: () => new Set(),
  hidden: (destination) => destination,
  mappings: ({ subscriptions }) => subscriptions.map(({ mapping }) => mapping),
  toStored,
  fromStored,
  withSecrets,
  withoutSecrets,
  upgraded: (stored, { reencrypt }) => withSecrets(stored, reencrypt),

  filter: subscriptionsJudge,
  deletesUsers: ({ integration }) => integration.deletes === true,
  sharedNames: ({ integration }) => [integration.name, ...publishedNames(integration.slug)],

  place: 'host',
  message: segmentEvent,
  targets: ({ integration }) => [targetOf(integration.slug)],
  transformation: () => null,
  targetsLeft: () => ONLY_TARGET,
  stepsDone: (progress) => progress,
  // If the integration did not run, the subscriptions that have succeeded are still the same.
  progressAfter: (before) => before,
  keepsBatches: false,
  carrier: null,
  steps: ({ subscriptions }) => subscriptions,
  // The event contains the context of its batch.
  shaper({ subscriptions }) {
    return (event) => ({ text: JSON.stringify(event), path: '', headers: [], steps: matchingSubscriptions(subscriptions, event, NO_BATCH) })
  },
  requests: null,
  // An integration may make several requests for a subscription, and continue after a failed one. So the last request of each subscription decides.
  hasPassed(attempts) {
    const last = new Map(attempts.map(({ step, reason }) => [step?.subscription, reason]))
    return last.size > 0 && [...last.values()].every((reason) => reason === null)
  },
  verdicts: ({ retry }) => verdictsOf(retry),

  facts: INTEGRATION_FACTS,
}

/** Stands for the URLs of the integration, which are not known before it runs. */
export function targetOf(slug: string): string {
  return `integration:${slug}`
}

function refOf(definition: CatalogIntegration, fieldsChecked: boolean): IntegrationRef {
  const { slug, name, title, deletes } = definition
  return { slug, name, title, deletes, shownSettings: shownNames(definition), fieldsChecked }
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

function show(destination: IntegrationDestination) {
  const { integration, settings, subscriptions } = destination
  const secrets = secretNames(destination)
  return {
    integration: integration.slug,
    integrationName: integration.name,
    integrationTitle: integration.title ?? withoutActions(integration.name),
    integrationAliases: [...publishedNames(integration.slug)],
    settings: Object.fromEntries(Object.entries(settings).filter(([name]) => !secrets.includes(name))),
    secretSettings: secrets,
    subscriptions: subscriptions.map(({ id, name, action, subscribe, mapping, syncMode = null, enabled }) => ({
      id,
      name,
      action,
      subscribe,
      mapping,
      syncMode,
      enabled,
    })),
  }
}

/** For a destination that an earlier version saved. The catalogue's titles are better (titles.ts of the integrations package). */
function withoutActions(name: string): string {
  return name.replace(/^Actions /, '').replace(/ \(Actions\)$/, '')
}
