// Stored secrets of an integration are sent only to the servers that they were given for, as those of a webhook. A definition builds its URLs from its
// settings in code that cannot be inspected, so names and values decide: a setting whose name or format is that of an address, also a secret one, any
// other setting with a value that could lead out of the part of a URL that it is inserted in, and fields of mappings that are URLs. Settings with a fixed list of choices
// lead only to servers of the tool.

import { isDeepStrictEqual } from 'node:util'
import type { CatalogIntegration, FieldSchema } from '@switchyard/integrations/catalog'
import type { JsonObject } from '@switchyard/protocol'
import type { IntegrationDestination, Subscription } from '../../model/configuration.ts'
import type { MoveContext } from '../port/kind.ts'
import { secretNames } from './secrets.ts'
import type { GivenIntegration } from './settings.ts'

const ADDRESS =
  /ur[li]|endpoint|host|domain|server|broker|port$|address|region|data_?cent|deployment|instance|cluster|bucket|accesspoint|stack$|^pod$|gateway|proxy|environment|overrides/i
/** Letters, digits, hyphens and underscores stay inside one label of a host and one segment of a path. */
const PLAIN = /^[\w-]*$/
/** Most addresses have one of these, and few tokens do. */
const URL_PARTS = /[/\\?#@:]|\.[a-z]/i

/** Found by searching the catalogue for actions that send to a URL of their mapping. */
const SENDS_TO_MAPPED_URL = /webhook|slack|qualtrics/

export function movedSecrets(
  given: GivenIntegration,
  settings: Partial<IntegrationDestination>,
  before: IntegrationDestination,
  { definition }: MoveContext,
): string[] {
  const after = { ...before, ...settings }
  if (!hasOtherAddress(before, after, definition) && !hasOtherUrl(before, after)) return []
  const kept = secretNames(after).filter((name) => !isGiven(given.settings?.[name], after.settings[name]))
  return kept.map((name) => `settings.${name}`)
}

function hasOtherAddress(before: IntegrationDestination, after: IntegrationDestination, definition: CatalogIntegration | null): boolean {
  const secrets = new Set(secretNames(after))
  return Object.entries(after.settings).some(([name, value]) => {
    if (before.settings[name] === value) return false
    const field = definition?.settings.properties[name]
    if (hasChoices(field)) return false
    if (typeof value === 'number') return ADDRESS.test(name)
    if (typeof value !== 'string') return false
    if (field?.format === 'uri' || field?.format === 'hostname') return true
    // Some tools have a URL that is a secret itself. Other secrets may have any characters, and `server_token` is no address.
    if (secrets.has(name)) return value.includes('://') || (ADDRESS.test(name) && URL_PARTS.test(value))
    return ADDRESS.test(name) || !PLAIN.test(value)
  })
}

function hasChoices(field: FieldSchema | undefined): boolean {
  return field !== undefined && field.oneOf !== undefined
}

/** Whether a mapping gets a URL of a server that no mapping had before. */
function hasOtherUrl(before: IntegrationDestination, after: IntegrationDestination): boolean {
  const known = before.subscriptions.flatMap((subscription) => addressesIn(before, subscription))
  const wanted = after.subscriptions.flatMap((subscription) => addressesIn(after, subscription))
  return wanted.some((address) => !known.some((old) => isDeepStrictEqual(old, address)))
}

/** The URLs in the mappings of integrations whose actions send to them: their origins, or the directive with which a message decides. */
function addressesIn({ integration }: IntegrationDestination, { mapping }: Subscription): unknown[] {
  if (!SENDS_TO_MAPPED_URL.test(integration.slug)) return []
  return Object.entries(mapping).flatMap(([name, value]) => {
    if (!/url$/i.test(name) || value === null || value === '') return []
    return [typeof value === 'string' && URL.canParse(value) ? new URL(value).origin : value]
  })
}

/** An object, such as `oauth`, is merged by key: it must contain every part that is stored. */
function isGiven(given: unknown, stored: unknown): boolean {
  if (given == null) return false
  if (typeof stored !== 'object' || stored === null || typeof given !== 'object') return true
  return Object.keys(stored).every((name) => isGiven((given as JsonObject)[name], (stored as JsonObject)[name]))
}
