// The mapping from claims of an identity provider to roles and sources (SWITCHYARD_OIDC_ROLES): parsed at the start, applied at each login and
// re-check. Claims are hostile input: they may be missing, of any type, and very long. Pure functions.

import { createRequire } from 'node:module'
import type * as yaml from 'yaml'
import { ROLES, type Role, type Source, type SourceScope, SYSTEM_SOURCE } from '../../model/configuration.ts'
import type { Parsed } from '../parse-values.ts'

export interface RoleRule {
  /** A name, or a path such as `realm_access.roles`. */
  claim: string
  value: string
  role: Role
  /** Ids or names. */
  sources: SourceScope
}

export type Claims = Readonly<Record<string, unknown>>

/** What the rules give a person. */
export interface Granted {
  role: Role
  sources: SourceScope
}

const MAX_RULES = 500
const MAX_TEXT = 500
const FIELDS = new Set(['claim', 'value', 'role', 'sources'])
const FORM = 'a list in YAML or JSON, such as [{ "claim": "groups", "value": "data-eng", "role": "editor", "sources": ["shop"] }]'

const load = createRequire(import.meta.url)

export function parseRoleMapping(text: string): Parsed<readonly RoleRule[]> {
  const given = parseText(text)
  if (!Array.isArray(given) || given.length === 0 || given.length > MAX_RULES) return { expected: `${FORM} with 1 to ${MAX_RULES} entries` }
  const rules: RoleRule[] = []
  for (const [index, entry] of (given as unknown[]).entries()) {
    const problem = problemOf(entry)
    if (problem !== null) return { problem: `entry ${index + 1} ${problem}. The setting must be ${FORM}.` }
    const { claim, value, role, sources } = entry as RoleRule
    rules.push({ claim, value, role, sources })
  }
  return { value: rules }
}

/** YAML is loaded only for text that is not JSON. */
function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    try {
      const { parse } = load('yaml') as typeof yaml
      return parse(text, { maxAliasCount: 0 })
    } catch {
      return undefined
    }
  }
}

/** The end of a sentence that starts with the entry. It quotes no values. */
function problemOf(entry: unknown): string | null {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return 'is not an object'
  const unknown = Object.keys(entry).find((name) => !FIELDS.has(name))
  if (unknown !== undefined) return `has the unknown field ${JSON.stringify(unknown.slice(0, 50))}`
  const { claim, value, role, sources } = entry as Partial<Record<keyof RoleRule, unknown>>
  if (!isText(claim)) return 'needs a claim, such as groups or realm_access.roles'
  if (!isText(value)) return 'needs a value as text'
  if (!ROLES.some((known) => known === role)) return `needs a role: ${ROLES.join(', ')}`
  if (sources === 'all') return null
  if (role === 'admin') return 'has the role admin, so its sources must be "all"'
  if (!Array.isArray(sources) || sources.length === 0 || !sources.every(isText))
    return 'needs sources: "all", or a list of names or ids of sources'
  return null
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TEXT
}

/** The value of a claim. A name that contains dots is tried as it is first, because some providers use addresses as names. */
export function claimOf(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, part)) return undefined
    value = (value as Claims)[part]
  }
  return value
}

function matches({ claim, value }: RoleRule, claims: readonly Claims[]): boolean {
  const from = claims.find((each) => claimOf(each, claim) !== undefined)
  if (from === undefined) return false
  // Somebody may enter any address that was not verified.
  if (claim === 'email' && from['email_verified'] !== true) return false
  const given = claimOf(from, claim)
  return typeof given === 'string' ? given === value : Array.isArray(given) && given.includes(value)
}

/** The first rule that matches. `claims` are those of the ID token and of the userinfo endpoint, in this order. */
export function matchingRule(rules: readonly RoleRule[], claims: readonly Claims[]): RoleRule | null {
  return rules.find((rule) => matches(rule, claims)) ?? null
}

/** What a rule gives now. A name that no source has, or several, gives nothing; `onUnknown` is called with it. */
export function grantOf(
  { role, sources }: RoleRule,
  known: ReadonlyMap<string, Pick<Source, 'id' | 'name'>>,
  onUnknown: (name: string, problem: 'unknown' | 'ambiguous') => void,
): Granted {
  if (sources === 'all') return { role, sources }
  const ids = sources.flatMap((wanted) => {
    if (wanted === SYSTEM_SOURCE) {
      onUnknown(wanted, 'unknown')
      return []
    }
    if (known.has(wanted)) return [wanted]
    const named = [...known.values()].filter(({ name, id }) => name === wanted && id !== SYSTEM_SOURCE)
    if (named.length === 1) return named.map(({ id }) => id)
    onUnknown(wanted, named.length === 0 ? 'unknown' : 'ambiguous')
    return []
  })
  return { role, sources: [...new Set(ids)].sort() }
}

/** The roles are listed from the lowest to the highest. */
const rank = (role: Role): number => ROLES.indexOf(role)

/** The lesser of both roles, and the sources that both have. */
export function lesserOf(one: Granted, other: Granted): Granted {
  const role = rank(one.role) <= rank(other.role) ? one.role : other.role
  if (one.sources === 'all') return { role, sources: other.sources }
  if (other.sources === 'all') return { role, sources: one.sources }
  const both = new Set(other.sources)
  return { role, sources: one.sources.filter((id) => both.has(id)) }
}

/** Whether `wanted` is at most `own`. */
export function isWithin(wanted: Granted, own: Granted): boolean {
  if (rank(wanted.role) > rank(own.role)) return false
  if (own.sources === 'all') return true
  const { sources } = own
  return wanted.sources !== 'all' && wanted.sources.every((id) => sources.includes(id))
}
