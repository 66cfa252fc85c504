// Maintenance of a store while no service uses it. Each operation holds the lock of the store, so that a service cannot start in
// the meantime. Only this file and open-store.ts refer to the store adapters. The command line is in commands/.

import { existsSync } from 'node:fs'
import type { Config } from '../config.ts'
import { createSecretBox, generateSecretKey, SecretBoxError } from '../secrets/secret-box.ts'
import { adoptNextKey, KeyFileProblem, keyPath, keysBeside, openWithKeyFile, writeNextKey } from '../secrets/secret-key-file.ts'
import { AddressProblem, describeAddress, parsePostgresAddress } from '../store/postgres/session/address.ts'
import { isLocked, StoreProblem } from '../store/sqlite/schema/database.ts'
import { createSqliteStore, type SqliteStore } from '../store/sqlite/store.ts'
import { inspectSqlite } from '../store/sqlite/threads/inspect.ts'
import {
  type NodeSummary,
  type ServerFacts,
  STORED_SECRETS,
  type Store,
  type StoredSecret,
  type StoreInspection,
  StoreUnavailable,
} from '../store/store.ts'
import type { MigrationOptions, MigrationResult } from '../store-migration/migrate-store.ts'

export type { StoreInspection } from '../store/store.ts'
export type { MigrationResult } from '../store-migration/migrate-store.ts'

/** A problem that a person can fix. */
export class MaintenanceProblem extends Error {
  override name = 'MaintenanceProblem'
}

export interface RotateOptions {
  store: Config['store']
  /** The current SWITCHYARD_SECRET_KEY; null if the key is in the file beside the store. */
  oldKey: string | null
  /** Null to generate a key, which is only possible if the key is in the file. */
  newKey: string | null
  /** Also removes every stored secret that grants access, so that existing sessions and access tokens, even forged ones, become invalid. */
  endTokens?: boolean
  /** For tests: called after each step. The process may be killed after any of them. */
  onStep?: (step: RotateStep) => void
}

export type RotateStep = 'opened' | 'key written' | 'resealed' | 'key adopted'

export interface Rotated {
  /** The number of secrets that were re-encrypted. */
  secrets: number
  /** The file that contains the new key; null if the key has to be set in SWITCHYARD_SECRET_KEY from now on. */
  keyFile: string | null
}

/** The actor is not identified by a token: anyone who can read the store and its key may do this. */
const ROTATION = { actor: { id: 'maintenance', name: 'maintenance' }, action: 'secret-key.rotate', subject: null, before: null }

/** Re-encrypts the stored secrets with another key. Wherever it is interrupted, the next start finds a key that decrypts them. */
export async function rotateSecretKey(options: RotateOptions): Promise<Rotated> {
  const { store, oldKey, newKey, endTokens = false, onStep = () => {} } = options
  if (newKey === '') throw new MaintenanceProblem('The new key must not be empty.')
  if (store.kind === 'postgres') return reportProblems(() => rotateOnServer(store.url, options))
  const { path } = store
  if (!existsSync(path)) throw new MaintenanceProblem(`There is no store at ${path}. Check the path.`)
  if (oldKey !== null && newKey === null) {
    throw new MaintenanceProblem(
      'The current key is in SWITCHYARD_SECRET_KEY, so the new key is required too. Save it where the service gets its settings from, and run this again with it.',
    )
  }
  const inFile = oldKey === null
  const key = newKey ?? generateSecretKey()
  // A key that is read from the file is trimmed, so a key with white space at its ends could not decrypt anything later.
  if (inFile && key !== key.trim()) throw new MaintenanceProblem('The new key must not begin or end with white space.')
  return reportProblems(async () => {
    let current = oldKey
    const open = (found: string): Promise<SqliteStore> => openStore(path, (current = found))
    const opened = await (inFile ? openWithKeyFile(path, open) : open(oldKey))
    try {
      onStep('opened')
      if (key === current) throw new MaintenanceProblem('The new key is the same as the current one. Choose a different key.')
      if (inFile) {
        writeNextKey(path, key)
        onStep('key written')
      }
      const secrets = await reseal(opened, key, endTokens)
      onStep('resealed')
      if (inFile) {
        adoptNextKey(path)
        onStep('key adopted')
      }
      return { secrets, keyFile: inFile ? keyPath(path) : null }
    } finally {
      await opened.close()
    }
  })
}

/** No node may be running: a node that still has the old key in its environment could not decrypt anything any more. */
async function rotateOnServer(url: string, { oldKey, newKey, endTokens = false, onStep = () => {} }: RotateOptions): Promise<Rotated> {
  if (oldKey === null)
    throw new MaintenanceProblem('SWITCHYARD_SECRET_KEY is required for a PostgreSQL store: set it to the key that the nodes use.')
  if (newKey === null)
    throw new MaintenanceProblem('The new key is required. Save it where the nodes get their settings from, and run this again with it.')
  if (newKey === oldKey) throw new MaintenanceProblem('The new key is the same as the current one. Choose a different key.')
  const { createPostgresStore } = await import('../store/postgres/store.ts')
  const opened = await createPostgresStore({ url, secretBox: createSecretBox(oldKey), retentionDays: 7, nodeName: 'rotate-key' })
  try {
    onStep('opened')
    const others = opened.membership.others()
    if (others.length > 0) {
      throw new MaintenanceProblem(
        `Nodes are running on this store: ${others.map(({ name }) => name).join(', ')}. Stop all of them first. A node that was killed counts as running for another ten seconds.`,
      )
    }
    const secrets = await reseal(opened, newKey, endTokens)
    onStep('resealed')
    return { secrets, keyFile: null }
  } finally {
    await opened.close()
  }
}

function reseal({ secrets }: Pick<Store, 'secrets'>, key: string, endTokens: boolean): Promise<number> {
  const audit = (after: object | null) => ({ ...ROTATION, after: { ...after, endTokens } })
  const names = Object.keys(STORED_SECRETS) as StoredSecret[]
  return secrets.rotateKey(createSecretBox(key), audit, endTokens ? names.filter((name) => STORED_SECRETS[name].grantsAccess) : [])
}

export interface MigrateOptions extends Pick<MigrationOptions, 'path' | 'url' | 'keepUsable' | 'dryRun' | 'onProgress' | 'signal'> {
  /** SWITCHYARD_SECRET_KEY: the key of the nodes, and possibly of the file as well. Null if it is not set. */
  secretKey: string | null
  /** SWITCHYARD_NEW_SECRET_KEY: the key of the nodes, if it differs from that of the file. */
  newKey: string | null
}

/** Migrates a SQLite installation to PostgreSQL. If interrupted, running it again resumes. See store-migration. */
export async function migrateStore({ secretKey, newKey, ...options }: MigrateOptions): Promise<MigrationResult> {
  const key = newKey ?? secretKey
  if (key === null) {
    throw new MaintenanceProblem(
      'With PostgreSQL, SWITCHYARD_SECRET_KEY is required: the key that encrypts stored secrets, the same on every node. Generate one with `switchyard rotate-key --generate`, save it, set the variable, and run this again.',
    )
  }
  return reportProblems(async () => {
    const migration = await import('../store-migration/migrate-store.ts')
    const oldKeys = [...(secretKey === null ? [] : [secretKey]), ...keysBeside(options.path)]
    return migration.migrateStore({ ...options, oldKeys, newKey: key })
  })
}

/** Removes the migration mark, so that a service can start on the file again. Returns false if there was no mark. */
export async function undoMigration(path: string): Promise<boolean> {
  return reportProblems(async () => (await import('../store-migration/migrate-store.ts')).undoMigration(path))
}

/** Returns the address without credentials. */
export function placeOfServer(url: string): string {
  return describeAddress(parsePostgresAddress(url))
}

/** Inspects a server directly, for when no service responds. It only reads and registers no node. `nodes` is null if there is no schema yet. */
export async function inspectServer(url: string): Promise<{ facts: ServerFacts; nodes: Pick<NodeSummary, 'name' | 'version'>[] | null }> {
  const [{ Database }, { serverFacts }] = await Promise.all([
    import('../store/postgres/session/database.ts'),
    import('../store/postgres/session/server-facts.ts'),
  ])
  const database = new Database({ address: parsePostgresAddress(url), connections: 1 })
  try {
    const facts = await serverFacts(database)
    const { rows } = await database.query<{ there: boolean }>("SELECT to_regclass('switchyard.nodes') IS NOT NULL AS there")
    if (!rows[0]?.there) return { facts, nodes: null }
    const nodes = await database.query<{ name: string; version: string }>(
      'SELECT name, version FROM nodes WHERE expires_at > now() ORDER BY num',
    )
    return { facts, nodes: nodes.rows }
  } finally {
    database.close()
  }
}

/** Inspects a backup, or the store of a service that is not running, without writing to it. Returns undefined if the deadline passes first. */
export function inspectStoreFile(path: string, deadlineMs: number): Promise<StoreInspection | undefined> {
  if (!existsSync(path)) throw new MaintenanceProblem(`The file ${path} does not exist.`)
  return inspectSqlite(path, deadlineMs)
}

/** Whether a service on this machine is using the store at this path. */
export function isStoreInUse(path: string): boolean {
  return existsSync(`${path}.lock`) && isLocked(path)
}

function openStore(path: string, key: string): Promise<SqliteStore> {
  return createSqliteStore({ path, secretBox: createSecretBox(key), retentionDays: 7 })
}

/** Compared by name, so that commands other than migrate-store need not load the modules that throw them, such as PostgreSQL's driver. */
const MIGRATION_PROBLEMS = new Set(['MigrationProblem', 'MigrationTargetProblem', 'SchemaProblem'])

async function reportProblems<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreUnavailable) {
      throw new MaintenanceProblem(`The store is not writable: ${error.message}.`, { cause: error })
    }
    if (
      [SecretBoxError, KeyFileProblem, StoreProblem, AddressProblem].some((known) => error instanceof known) ||
      MIGRATION_PROBLEMS.has((error as Error).name)
    ) {
      throw new MaintenanceProblem((error as Error).message, { cause: error })
    }
    // An error of the server, such as a missing privilege or a full disk.
    if ((error as { severity?: string }).severity !== undefined)
      throw new MaintenanceProblem(`PostgreSQL returned an error: ${(error as Error).message}.`, { cause: error })
    throw error
  }
}
