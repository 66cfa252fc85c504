// Secrets in a configuration file. The file contains only references to environment variables. If the variable of a reference is not set,
// the stored secret stays.

import type { JsonObject } from '@switchyard/protocol'
import { isObject, NESTED_SECRETS } from '../../api/configuration-export.ts'
import { type Environment, onlyReference, valueOf } from '../../api/environment-references.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'

export type Secret = { value: unknown } | { unset: string[] } | { problem: string }

export function secretOf(field: string, given: unknown, env: Environment): Secret {
  if (given === undefined) return { value: undefined }
  const problem = `${field} must be ${field === 'sharedSecret' ? 'a reference' : 'a list of references'} such as \${NAME}. The file must not contain secrets.`
  if (field === 'sharedSecret') {
    if (given === null) return { value: null }
    const name = onlyReference(given)
    if (name === undefined) return { problem }
    const value = valueOf(name, env)
    return value === undefined ? { unset: [name] } : { value }
  }
  if (!Array.isArray(given)) return { problem }
  const references = given.map(onlyReference)
  if (references.includes(undefined)) return { problem }
  const unset = (references as string[]).filter((name) => valueOf(name, env) === undefined)
  if (unset.length > 0 && unset.length < references.length)
    return { problem: `${field}: set either all of the environment variables or none. Not set: ${unset.join(', ')}.` }
  return unset.length > 0 ? { unset } : { value: (references as string[]).map((name) => valueOf(name, env)) }
}

export function hasSecret(stored: JsonObject, field: string): boolean {
  return field === 'sharedSecret' ? stored['hasSharedSecret'] === true : Number(stored['signingSecretCount'] ?? 0) > 0
}

export interface Say {
  problem: (sentence: string) => void
  remark: (sentence: string) => void
}

/** The value of a reference; undefined if it has none, which has been said. */
function referencedSecret(place: string, reference: unknown, isStored: boolean, env: Environment, say: Say): string | undefined {
  const variable = onlyReference(reference)
  if (variable === undefined) {
    say.problem(`${place} must be a reference such as \${NAME}. The file must not contain secrets.`)
    return undefined
  }
  const secret = valueOf(variable, env)
  if (secret !== undefined) return secret
  if (isStored) say.remark(`${place} stays unchanged, because the environment variable ${variable} is not set.`)
  else say.problem(`${place}: the environment variable ${variable} is not set, and there is no stored secret to keep. Set the variable.`)
  return undefined
}

/**
 * Resolves the secrets inside of `auth` and `tls`. A secret that is left out, or whose variable is not set, is left out of the request too: the
 * service keeps the stored one, or says why it cannot.
 */
export function withNestedSecrets(field: string, value: unknown, stored: JsonObject | undefined, env: Environment, say: Say): unknown {
  if (!isObject(value)) return value
  const settings = { ...value }
  const before = isObject(stored?.[field]) ? stored[field] : {}
  for (const [name, stores] of Object.entries(NESTED_SECRETS[field] ?? {})) {
    if (settings[name] == null) continue
    const secret = referencedSecret(`${field}.${name}`, settings[name], before[stores] === true, env, say)
    if (secret === undefined) delete settings[name]
    else settings[name] = secret
  }
  return settings
}

/** The secrets of warehouses, except the password in the URL of a PostgreSQL warehouse, which the export hides in the URL. */
const PLACE_SECRETS = ['secretAccessKey', 'password'] as const

/** Resolves the secrets of the setting `warehouse`, as withNestedSecrets does. */
export function withPlaceSecrets(value: unknown, stored: JsonObject | undefined, env: Environment, say: Say): unknown {
  if (!isObject(value)) return value
  const place = { ...value }
  const known = (stored?.['secretSettings'] ?? []) as readonly unknown[]
  for (const name of PLACE_SECRETS) {
    if (place[name] == null) continue
    const secret = referencedSecret(`warehouse.${name}`, place[name], known.includes(name), env, say)
    if (secret === undefined) delete place[name]
    else place[name] = secret
  }
  return place
}

/** The setting `warehouse` as the export writes it: without its secret, and without values that are the default. */
function publicPlace(given: Record<string, unknown>): Record<string, unknown> {
  const place = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== false))
  for (const name of PLACE_SECRETS) delete place[name]
  const url = place['engine'] === 'postgres' && URL.canParse(String(place['url'])) ? new URL(String(place['url'])) : null
  if (url !== null && url.password !== '') {
    url.password = HIDDEN
    place['url'] = url.href
  }
  return place
}

/**
 * Resolves the references in `secrets`. Secrets that are stored and not in the file are removed. A secret whose variable is not set is left out of the
 * request, so the service keeps the stored one.
 */
export function resolvedSecrets(
  given: Record<string, unknown>,
  stored: JsonObject | undefined,
  env: Environment,
  say: Say,
): Record<string, string | null> {
  const before = isObject(stored?.['secrets']) ? Object.keys(stored['secrets']) : []
  const secrets: Record<string, string | null> = {}
  for (const name of before) if (!Object.hasOwn(given, name)) secrets[name] = null
  for (const [name, reference] of Object.entries(given)) {
    const secret = referencedSecret(`secrets.${name}`, reference, before.includes(name), env, say)
    if (secret !== undefined) secrets[name] = secret
  }
  return secrets
}

/** The settings without the secrets that were filled in, for showing and comparing them. */
export function publicSettings(field: string, value: unknown): unknown {
  if (field === 'warehouse' && isObject(value)) return publicPlace(value)
  const secrets = NESTED_SECRETS[field]
  if (secrets === undefined || !isObject(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([name]) => !Object.hasOwn(secrets, name)))
}
