// The settings of an integration are encrypted as a whole, because only its definition says which of them are secrets.

import type { JsonObject } from '@switchyard/protocol'
import { CLASSIC, type Destination } from '../../store/port/model.ts'
import type { Sealing, StoredDestination } from '../kind.ts'

export function toStored(destination: Destination): StoredDestination {
  const { urls: _, headers: __, settings, ...rest } = destination
  return { ...rest, sealedUrls: [], sealedHeaders: {}, sealedSettings: JSON.stringify(settings) }
}

export function fromStored(stored: StoredDestination): Destination {
  const { sealedUrls: _, sealedHeaders: __, sealedSettings = '{}', ...rest } = stored
  return { ...CLASSIC, ...rest, urls: [], headers: {}, settings: JSON.parse(sealedSettings) as JsonObject }
}

export function withSecrets(stored: StoredDestination, change: Sealing): StoredDestination {
  const { id, sealedSettings } = stored
  return sealedSettings === undefined ? stored : { ...stored, sealedSettings: change(sealedSettings, `${id}.settings`) }
}

export function withoutSecrets(stored: StoredDestination): StoredDestination {
  const { sealedSettings: _, settings: __, urls: ___, headers: ____, ...rest } = stored as Partial<Destination> & StoredDestination
  return { ...(rest as StoredDestination), sealedUrls: [], sealedHeaders: {}, subscriptions: [] }
}

/** The names of settings whose values differ. `show` reveals only some of them. */
export function changedSecrets(before: Destination, after: Destination): string[] {
  const names = new Set([...Object.keys(before.settings), ...Object.keys(after.settings)])
  const differs = (name: string): boolean => JSON.stringify(before.settings[name]) !== JSON.stringify(after.settings[name])
  return [...names].filter(differs).map((name) => `settings.${name}`)
}
