// The subscriptions of an integration while they are edited: which action runs, when, and with what. Pure.

import type { ContentForm } from '../../destination/content/use-content.ts'
import type { Action, Definition, Preset } from './definition.ts'
import type { Integration } from './integration-draft.ts'
import { defaultMapping, type MappingDraft, mappingDraftOf, mappingOf, mappingProblems } from './mapping-draft.ts'

export interface SubscriptionDraft {
  /** Distinguishes subscriptions of the form, also new ones. */
  key: string
  /** Null for a new one. */
  id: string | null
  name: string
  action: string
  subscribe: string
  enabled: boolean
  mapping: MappingDraft
  /** Null if the action has no sync modes. */
  syncMode: string | null
}

export interface Subscription {
  id?: string
  name: string
  action: string
  subscribe: string
  enabled: boolean
  mapping: Record<string, unknown>
  syncMode?: string | null
}

const NO_FIELDS = { properties: {}, required: [] }

export function actionOf({ actions }: Pick<Definition, 'actions'>, slug: string): Action | undefined {
  return actions.find((action) => action.slug === slug)
}

const fieldsOf = (definition: Definition | null, action: string) => (definition && actionOf(definition, action)?.fields) ?? NO_FIELDS

export function subscriptionDraftOf(definition: Definition | null, saved: Subscription & { id: string }): SubscriptionDraft {
  const { id, name, action, subscribe, enabled, mapping, syncMode = null } = saved
  const draft = mappingDraftOf(mapping, fieldsOf(definition, action).properties)
  return { key: id, id, name, action, subscribe, enabled, mapping: draft, syncMode }
}

export function defaultMode(action: Action | undefined): string | null {
  const mode = action?.syncMode?.default
  return typeof mode === 'string' ? mode : null
}

/** The name, or the name with the first number that no other subscription has. */
export function unusedName(name: string, drafts: readonly Pick<SubscriptionDraft, 'name'>[]): string {
  const taken = new Set(drafts.map((draft) => draft.name))
  let number = 1
  while (taken.has(number === 1 ? name : `${name} ${number}`)) number++
  return number === 1 ? name : `${name} ${number}`
}

export function presetDraft(definition: Definition, { name, action, subscribe, mapping }: Preset, key: string): SubscriptionDraft {
  const { properties } = fieldsOf(definition, action)
  const syncMode = defaultMode(actionOf(definition, action))
  return { key, id: null, name, action, subscribe, enabled: true, mapping: mappingDraftOf(mapping, properties), syncMode }
}

/** A subscription for an action, as its definition suggests it. */
export function actionDraft(action: Action, key: string): SubscriptionDraft {
  const { slug, name, defaultSubscription, fields } = action
  return {
    key,
    id: null,
    name,
    action: slug,
    subscribe: defaultSubscription ?? 'type = "track"',
    enabled: true,
    mapping: defaultMapping(fields),
    syncMode: defaultMode(action),
  }
}

/** What the API gets. The draft must have no problems. */
export function subscriptionOf({ id, name, action, subscribe, enabled, mapping, syncMode }: SubscriptionDraft): Subscription {
  return { ...(id === null ? {} : { id }), name, action, subscribe: subscribe.trim(), enabled, mapping: mappingOf(mapping), syncMode }
}

/** By field of the API, such as `subscriptions[0].mapping.user_id`. */
export function subscriptionProblems(definition: Definition | null, drafts: readonly SubscriptionDraft[]): Map<string, string> {
  const problems = new Map<string, string>()
  for (const [at, draft] of drafts.entries()) {
    const note = (field: string, problem: string): void => void problems.set(`subscriptions[${at}].${field}`, problem)
    if (draft.name.trim() === '') note('name', 'Enter a name.')
    else if (drafts.some((other, before) => before < at && other.name === draft.name)) note('name', 'Another subscription has this name.')
    if (draft.subscribe.trim() === '') note('subscribe', 'Choose when it runs.')
    const fields = fieldsOf(definition, draft.action)
    // A subscription that is off may be incomplete: it does not run.
    const needed = draft.enabled ? fields : { ...fields, required: [] }
    for (const [field, problem] of mappingProblems(draft.mapping, needed)) note(field, problem)
  }
  return problems
}

export interface IntegrationContentDraft {
  subscriptions: readonly SubscriptionDraft[]
}

/** What an integration sends, while it is edited. The actions of its definition say which objects in a mapping have fields. */
export function integrationContent(definition: Definition | null): ContentForm<Integration, IntegrationContentDraft> {
  return {
    draftOf: ({ subscriptions }) => ({ subscriptions: subscriptions.map((saved) => subscriptionDraftOf(definition, saved)) }),
    problemsOf: ({ subscriptions }) => subscriptionProblems(definition, subscriptions),
    changesOf(saved, draft) {
      const subscriptions = draft.subscriptions.map(subscriptionOf)
      const isSame = JSON.stringify(saved.subscriptions.map(ordered)) === JSON.stringify(subscriptions.map(ordered))
      return isSame ? null : { subscriptions }
    },
    fieldOf: (field) => (field.startsWith('subscriptions[') ? field : null),
  }
}

/** With its fields in a fixed order, to compare it. */
function ordered({ id, name, action, subscribe, enabled, mapping, syncMode = null }: Subscription) {
  return [id, name, action, subscribe.trim(), enabled, mapping, syncMode]
}
