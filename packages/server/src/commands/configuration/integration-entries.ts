// The settings and subscriptions of an integration in a configuration file. The service merges settings by key, so a setting that is left out of
// the file is removed, and a secret whose environment variable is not set is kept.

import type { JsonObject } from '@switchyard/protocol'
import { isObject, OAUTH_SECRETS } from '../../api/configuration-export.ts'
import { type Environment, onlyReference, resolve, valueOf } from '../../api/environment-references.ts'
import { withRootTransform } from '../../destinations/integration/root-transform.ts'
import { hiddenMapping } from '../../secrets/hidden-values.ts'
import type { Say } from './secret-references.ts'

interface Settings {
  /** What is sent to the service. */
  wanted: Record<string, unknown>
  /** The settings that are not secret: as stored, and as they will be. */
  before: unknown
  after: unknown
}

export function integrationSettings(given: Record<string, unknown>, stored: JsonObject | undefined, env: Environment, say: Say): Settings {
  const before = isObject(stored?.['settings']) ? stored['settings'] : {}
  const secrets = new Set((stored?.['secretSettings'] ?? []) as string[])
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(given, name))
  const wanted: Record<string, unknown> = Object.fromEntries(removed.map((name) => [name, null]))
  const after: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(given)) {
    const place = `settings.${name}`
    if (name === 'oauth' && isObject(value)) {
      wanted[name] = oauthOf(value, env, say)
      continue
    }
    if (secrets.has(name) && onlyReference(value) === undefined) {
      say.problem(`${place} must be a reference such as \${NAME}. The file must not contain secrets.`)
      continue
    }
    const kept = typeof before[name] === 'string' ? [before[name]] : []
    const result = typeof value === 'string' ? resolve(value, env, kept) : { ok: true as const, text: value }
    if (result.ok) {
      wanted[name] = result.text
      if (!secrets.has(name)) after[name] = result.text
    } else if (secrets.has(name))
      say.remark(`${place} stays unchanged, because the environment variable ${result.missing.join(', ')} is not set.`)
    else
      say.problem(
        `${place}: the environment variable ${result.missing.join(', ')} is not set, and there is no stored value to keep. Set the variable.`,
      )
  }
  return { wanted, before, after }
}

/** The service keeps what is left out, or reports what is missing. */
function oauthOf(given: Record<string, unknown>, env: Environment, { problem }: Say): Record<string, unknown> {
  const found = Object.entries(given).flatMap(([name, value]) => {
    const variable = onlyReference(value)
    if (variable === undefined && OAUTH_SECRETS.some((secret) => secret === name && secret !== 'clientId'))
      problem(`settings.oauth.${name} must be a reference such as \${NAME}. The file must not contain secrets.`)
    const secret = variable === undefined ? value : valueOf(variable, env)
    return secret === undefined ? [] : [[name, secret]]
  })
  return Object.fromEntries(found) as Record<string, unknown>
}

type ResolveText = (given: unknown, place: string, kept: readonly string[]) => unknown

/** With the values of environment variables in place of references. A variable that is not set keeps the stored text at the same place. */
export function resolvedTexts(value: unknown, kept: unknown, place: string, text: ResolveText): unknown {
  if (typeof value === 'string') return text(value, place, typeof kept === 'string' ? [kept] : [])
  const inner = (key: string | number): unknown =>
    typeof kept === 'object' && kept !== null && Object.hasOwn(kept, key) ? (kept as Record<string | number, unknown>)[key] : undefined
  if (Array.isArray(value)) return value.map((item, at) => resolvedTexts(item, inner(at), `${place}[${at}]`, text))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolvedTexts(item, inner(key), `${place}.${key}`, text)]))
}

export function resolvedSubscriptions(given: readonly unknown[], stored: JsonObject | undefined, text: ResolveText): unknown[] {
  const before = Array.isArray(stored?.['subscriptions']) ? (stored['subscriptions'] as JsonObject[]) : []
  return given.map((entry, at) => {
    const same = isObject(entry) ? before.find(({ name }) => name === entry['name']) : undefined
    const subscription = resolvedTexts(entry, same, `subscriptions[${at}]`, text)
    return isObject(subscription) ? { enabled: true, ...asSaved(subscription, same) } : subscription
  })
}

export function withoutIds(subscriptions: unknown): unknown {
  if (!Array.isArray(subscriptions)) return subscriptions
  return (subscriptions as JsonObject[]).map((subscription) => {
    const { id: _, ...rest } = subscription
    if (rest['syncMode'] == null) delete rest['syncMode']
    return rest
  })
}

/** As the service saves it: mappings that are exported from Segment contain the mode, and a subscription without one keeps that which it has. */
function asSaved(given: Record<string, unknown>, stored: JsonObject | undefined): Record<string, unknown> {
  const isMapped = isObject(given['mapping'])
  const { __segment_internal_sync_mode: mapped, ...mapping } = isMapped ? withRootTransform(given['mapping'] as JsonObject) : {}
  const kept = stored?.['action'] === given['action'] ? stored?.['syncMode'] : undefined
  const syncMode = given['syncMode'] ?? mapped ?? kept
  return { ...given, ...(isMapped && { mapping }), ...(syncMode == null ? {} : { syncMode }) }
}

export function hiddenSubscriptions(subscriptions: readonly unknown[]): unknown[] {
  return subscriptions.map((entry) => {
    if (!isObject(entry) || !isObject(entry['mapping'])) return entry
    const { mapping, ...rest } = entry
    return { ...rest, mapping: hiddenMapping(mapping) }
  })
}
