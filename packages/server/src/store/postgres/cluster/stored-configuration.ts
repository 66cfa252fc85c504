// Reads the configuration from the tables: all of it, or what was written since a known version. Unchanged sources,
// destinations and so on keep their objects, because other modules compare by identity. Secrets are encrypted in the tables and in plain text in memory. For
// writing see configuration-change.ts.

import { isDeepStrictEqual } from 'node:util'
import { type SecretBox, SecretBoxError } from '../../../secrets/secret-box.ts'
import { EMPTY_CONFIGURATION, SELECT_TOKENS, type TokenRow, tokenOf } from '../../configuration/resource-rows.ts'
import { decryptDestination, type StoredDestination } from '../../configuration/stored-destination.ts'
import type { Configuration, ControlToken, Destination, OAuthApp, Source, StoredPlan } from '../../store.ts'
import type { Ask } from '../session/database.ts'
import { readText } from '../session/text-columns.ts'
import type { IdMap } from '../tables/id-map.ts'

/** The single row with the version of the configuration. */
export interface Mark {
  version: number
  unsuppressed: number
  secretKey: string | null
}

export interface State {
  version: number
  configuration: Configuration
  /** The first secret that could not be decrypted. The destination that has it keeps its previous settings. */
  unopened: SecretBoxError | null
}

/** The state before anything was read. */
export const UNREAD: State = {
  version: -1,
  configuration: EMPTY_CONFIGURATION,
  unopened: null,
}

const MARK = 'SELECT version, unsuppressed, secret_key AS "secretKey" FROM configuration'

export async function readMark(ask: Ask): Promise<Mark> {
  const { rows } = await ask<Mark>({ name: 'configuration', text: MARK })
  return rows[0] as Mark
}

/** Locks the row, so that no other change can be made before this transaction ends. */
export async function lockMark(ask: Ask): Promise<Mark> {
  const { rows } = await ask<Mark>(`${MARK} FOR UPDATE`)
  return rows[0] as Mark
}

export interface Reading {
  idMap: IdMap
  secretBox: SecretBox
  /** Whether to read everything again, whatever the versions say. */
  whole?: boolean
}

/** Applies everything written since `before` to it. The mark must be from the same snapshot, or locked. */
export async function readState(ask: Ask, { version, unsuppressed }: Mark, before: State, reading: Reading): Promise<State> {
  // A lower version means that the database was replaced, for example by a backup.
  const since = reading.whole || version < before.version ? -1 : before.version
  const { configuration } = before
  let unopened = since < 0 ? null : before.unopened
  const sources = await readThings<Source>(ask, 'sources', since, configuration.sources, reading.idMap, (doc) => JSON.parse(doc) as Source)
  const destinations = await readThings<Destination>(ask, 'destinations', since, configuration.destinations, reading.idMap, (doc, old) => {
    try {
      return decryptDestination(JSON.parse(doc) as StoredDestination, reading.secretBox)
    } catch (error) {
      if (!(error instanceof SecretBoxError)) throw error
      unopened ??= error
      return old
    }
  })
  const next: Configuration = {
    sources,
    destinations,
    suppressions: await readSuppressions(ask, unsuppressed > since ? -1 : since, configuration.suppressions),
    oauthApps: await readApps(ask, configuration.oauthApps),
    tokens: await readTokens(ask, configuration.tokens),
    plans: await readThings<StoredPlan>(ask, 'plans', since, configuration.plans, reading.idMap, (doc) => JSON.parse(doc) as StoredPlan),
  }
  const isSame = (Object.keys(next) as (keyof Configuration)[]).every((part) => next[part] === configuration[part])
  return { version, configuration: isSame ? configuration : next, unopened }
}

// ── Reading ──

async function readThings<T>(
  ask: Ask,
  table: 'sources' | 'destinations' | 'plans',
  since: number,
  before: ReadonlyMap<string, T>,
  idMap: IdMap,
  parse: (doc: string, old: T | undefined) => T | undefined,
): Promise<ReadonlyMap<string, T>> {
  const { rows } = await ask<{ num: string; id: string; deleted: boolean; doc: string }>(
    `SELECT num, id, deleted, doc FROM ${table} WHERE version > $1 ORDER BY num`,
    [since],
  )
  const resources = new Map(since < 0 ? [] : before)
  for (const { num, id, deleted, doc } of rows) {
    // If the transaction is rolled back, the entry does no harm: no row ever refers to that row id.
    if (table !== 'plans') idMap.add(table, id, num)
    const resource = deleted ? undefined : parse(doc, before.get(id))
    if (resource === undefined) resources.delete(id)
    else resources.set(id, resource)
  }
  return keepingThose(before, resources)
}

async function readApps(ask: Ask, before: ReadonlyMap<string, OAuthApp>): Promise<ReadonlyMap<string, OAuthApp>> {
  const { rows } = await ask<{ id: string; doc: string }>('SELECT id, doc FROM oauth_apps ORDER BY num')
  return keepingThose(before, new Map(rows.map(({ id, doc }) => [id, JSON.parse(doc) as OAuthApp])))
}

async function readTokens(ask: Ask, before: ReadonlyMap<string, ControlToken>): Promise<ReadonlyMap<string, ControlToken>> {
  const { rows } = await ask<TokenRow>(SELECT_TOKENS)
  return keepingThose(before, new Map(rows.map((row) => [row.id, tokenOf({ ...row, name: readText(row.name) })])))
}

type Suppressions = Configuration['suppressions']

async function readSuppressions(ask: Ask, since: number, before: Suppressions): Promise<Suppressions> {
  const { rows } = await ask<{ sourceId: string; userId: string }>(
    'SELECT s.id AS "sourceId", p.user_id AS "userId" FROM suppressions p JOIN sources s ON s.num = p.source WHERE p.version > $1',
    [since],
  )
  const all = new Map<string, ReadonlySet<string>>(since < 0 ? [] : before)
  const added = new Map<string, Set<string>>()
  for (const { sourceId, userId } of rows) {
    const users = added.get(sourceId) ?? new Set(all.get(sourceId))
    added.set(sourceId, users.add(readText(userId)))
  }
  for (const [sourceId, users] of added) all.set(sourceId, users)
  return keepingThose(before, all)
}

/** Keeps the objects of what has not changed, and the map itself if nothing has. */
function keepingThose<T>(before: ReadonlyMap<string, T>, next: Map<string, T>): ReadonlyMap<string, T> {
  let isSame = next.size === before.size
  for (const [id, resource] of next) {
    const old = before.get(id)
    if (isDeepStrictEqual(resource, old)) next.set(id, old as T)
    else isSame = false
  }
  return isSame ? before : next
}
