// The settings of an integration are encrypted as a whole, because only its definition says which of them are secrets. So are its subscriptions,
// because a mapping may contain a credential, such as the URL of a Slack channel.

import type { JsonObject } from '@switchyard/protocol'
import { hiddenMapping } from '../../secrets/hidden-values.ts'
import { CLASSIC, type Destination, type Subscription } from '../../store/port/model.ts'
import type { Sealing, StoredDestination } from '../kind.ts'

export function toStored(destination: Destination): StoredDestination {
  const { urls: _, headers: __, secrets: ___, settings, subscriptions, ...rest } = destination
  return {
    ...rest,
    sealedUrls: [],
    sealedHeaders: {},
    sealedSettings: JSON.stringify(settings),
    sealedSubscriptions: JSON.stringify(subscriptions),
  }
}

export function fromStored(stored: StoredDestination): Destination {
  const { sealedUrls: _, sealedHeaders: __, sealedSettings = '{}', sealedSubscriptions = '[]', ...rest } = stored
  const settings = JSON.parse(sealedSettings) as JsonObject
  return { ...CLASSIC, ...rest, urls: [], headers: {}, settings, subscriptions: JSON.parse(sealedSubscriptions) as Subscription[] }
}

export function withSecrets(stored: StoredDestination, change: Sealing): StoredDestination {
  const { id, sealedSettings, sealedSubscriptions } = stored
  return {
    ...stored,
    ...(sealedSettings === undefined ? {} : { sealedSettings: change(sealedSettings, `${id}.settings`) }),
    ...(sealedSubscriptions === undefined ? {} : { sealedSubscriptions: change(sealedSubscriptions, `${id}.subscriptions`) }),
  }
}

export function withoutSecrets(stored: StoredDestination): StoredDestination {
  const {
    sealedSettings: _,
    sealedSubscriptions: __,
    settings: ___,
    subscriptions: ____,
    urls: _____,
    headers: ______,
    ...rest
  } = stored as Partial<Destination> & StoredDestination
  return { ...(rest as StoredDestination), sealedUrls: [], sealedHeaders: {} }
}

/** The settings that `show` does not reveal, by name. */
export function secretNames({ integration, settings }: Destination): string[] {
  const shown = new Set(integration?.shownSettings ?? [])
  return Object.keys(settings).filter((name) => !shown.has(name))
}

/** The names of secrets that differ, and of mappings that differ only in what is hidden. */
export function changedSecrets(before: Destination, after: Destination): string[] {
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
