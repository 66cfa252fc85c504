// The settings of an integration are encrypted as a whole, because only its definition says which of them are secrets. So are its subscriptions,
// because a mapping may contain a credential, such as the URL of a Slack channel.

import type { JsonObject } from '@switchyard/protocol'
import { CLASSIC, type IntegrationDestination, type Subscription } from '../../model/configuration.ts'
import { hiddenMapping } from '../../secrets/hidden-values.ts'
import type { Sealing } from '../port/kind.ts'

/** Nodes of earlier versions need the settings of a webhook in every destination. */
const NO_WEBHOOK = {
  sealedUrls: [],
  sealedHeaders: {},
  sharedSecret: null,
  signingSecrets: [],
  request: null,
  transformation: null,
  auth: null,
  tls: null,
} as const

export type StoredIntegration = Omit<IntegrationDestination, 'settings' | 'subscriptions'> & {
  /** As JSON. */
  sealedSettings?: string
  /** As JSON. */
  sealedSubscriptions?: string
} & Partial<typeof NO_WEBHOOK>

export function toStored(destination: IntegrationDestination): StoredIntegration {
  const { settings, subscriptions, ...rest } = destination
  return { ...rest, ...NO_WEBHOOK, sealedSettings: JSON.stringify(settings), sealedSubscriptions: JSON.stringify(subscriptions) }
}

export function fromStored(stored: StoredIntegration): IntegrationDestination {
  const { sealedSettings = '{}', sealedSubscriptions = '[]', ...rest } = stored
  for (const name of Object.keys(NO_WEBHOOK)) delete rest[name as keyof typeof NO_WEBHOOK]
  const settings = JSON.parse(sealedSettings) as JsonObject
  return { ...CLASSIC, ...rest, settings, subscriptions: JSON.parse(sealedSubscriptions) as Subscription[] }
}

export function withSecrets(stored: StoredIntegration, change: Sealing): StoredIntegration {
  const { id, sealedSettings, sealedSubscriptions } = stored
  return {
    ...stored,
    ...(sealedSettings === undefined ? {} : { sealedSettings: change(sealedSettings, `${id}.settings`) }),
    ...(sealedSubscriptions === undefined ? {} : { sealedSubscriptions: change(sealedSubscriptions, `${id}.subscriptions`) }),
  }
}

export function withoutSecrets(stored: StoredIntegration): StoredIntegration {
  const {
    sealedSettings: _,
    sealedSubscriptions: __,
    settings: ___,
    subscriptions: ____,
    ...rest
  } = stored as Partial<IntegrationDestination> & StoredIntegration
  return { ...rest, ...NO_WEBHOOK }
}

/** The settings that `show` does not reveal, by name. */
export function secretNames({ integration, settings }: IntegrationDestination): string[] {
  const shown = new Set(integration.shownSettings ?? [])
  return Object.keys(settings).filter((name) => !shown.has(name))
}

/** The names of secrets that differ, and of mappings that differ only in what is hidden. */
export function changedSecrets(before: IntegrationDestination, after: IntegrationDestination): string[] {
  const names = new Set([...secretNames(before), ...secretNames(after)])
  const settings = [...names].filter((name) => !isSame(before.settings[name], after.settings[name])).map((name) => `settings.${name}`)
  const mappings = after.subscriptions.flatMap(({ id, mapping }, at) => {
    const old = before.subscriptions.find((subscription) => subscription.id === id)?.mapping
    const isHidden = old !== undefined && !isSame(old, mapping) && isSame(hiddenMapping(old), hiddenMapping(mapping))
    return isHidden ? [`subscriptions[${at}].mapping`] : []
  })
  return [...settings, ...mappings]
}

function isSame(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right)
}
