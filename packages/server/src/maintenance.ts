// Work on a store while no service runs on it. Holds the store's lock for as long as it takes, so that a service cannot
// start in the middle. Beside app.ts the only file that names an adapter; what a person types is in commands/.

import { existsSync } from 'node:fs'
import type { Config } from './config.ts'
import { SIGNING_KEY_SECRET } from './oauth/signing-key.ts'
import { createSecretBox, generateSecretKey, SecretBoxError } from './secret-box.ts'
import { adoptNextKey, KeyFileProblem, keyPath, openWithKeyFile, writeNextKey } from './secret-key-file.ts'
import { isLocked, StoreProblem } from './store/sqlite/database.ts'
import { inspectSqlite } from './store/sqlite/inspect.ts'
import { createSqliteStore, type SqliteStore } from './store/sqlite/store.ts'
import { type StoreInspection, StoreUnavailable } from './store/store.ts'

export type { StoreInspection } from './store/store.ts'

/** What a person can mend. */
export class MaintenanceProblem extends Error {
  override name = 'MaintenanceProblem'
}

export interface RotateOptions {
  store: Config['store']
  /** SWITCHYARD_SECRET_KEY as it was until now. Null: the key is in the file beside the store. */
  oldKey: string | null
  /** Null: a new one is made, which is possible only where it is kept in the file. */
  newKey: string | null
  /** Takes away the key that access tokens are signed with, too: no token from before is good any more, nor one that is forged with it. */
  endTokens?: boolean
  /** For tests: called after each step, at any of which the process may end. */
  onStep?: (step: RotateStep) => void
}

export type RotateStep = 'opened' | 'key written' | 'resealed' | 'key adopted'

export interface Rotated {
  /** How many secrets were encrypted anew. */
  secrets: number
  /** Where the new key is; null where it is to be given in SWITCHYARD_SECRET_KEY from now on. */
  keyFile: string | null
}

/** No token is known here: whoever can read the file and its key may do this. */
const ROTATION = { actor: { id: 'maintenance', name: 'maintenance' }, action: 'secret-key.rotate', subject: null, before: null }

/** Encrypts the stored secrets with another key. Wherever it is interrupted, the next start finds a key that opens them. */
export async function rotateSecretKey({ store, oldKey, newKey, endTokens = false, onStep = () => {} }: RotateOptions): Promise<Rotated> {
  if (store.kind !== 'sqlite') throw new MaintenanceProblem('The key of a PostgreSQL store cannot be changed in this version yet.')
  const { path } = store
  if (!existsSync(path)) throw new MaintenanceProblem(`There is no store at ${path}.`)
  if (newKey === '') throw new MaintenanceProblem('The new key must not be empty.')
  if (oldKey !== null && newKey === null) {
    throw new MaintenanceProblem(
      'The key is given in SWITCHYARD_SECRET_KEY, so the new one has to be given too: keep it where the service is started from, and call this again.',
    )
  }
  const inFile = oldKey === null
  const key = newKey ?? generateSecretKey()
  // What is read from a file has no blanks at its ends: sealed with them, nothing would open again.
  if (inFile && key !== key.trim()) throw new MaintenanceProblem('The new key must not begin or end with a blank.')
  return inWords(async () => {
    let current = oldKey
    const open = (found: string): Promise<SqliteStore> => openStore(path, (current = found))
    const opened = await (inFile ? openWithKeyFile(path, open) : open(oldKey))
    try {
      onStep('opened')
      if (key === current) throw new MaintenanceProblem('The new key is the old one.')
      if (inFile) {
        writeNextKey(path, key)
        onStep('key written')
      }
      const audit = (after: object | null) => ({ ...ROTATION, after: { ...after, endTokens } })
      const secrets = await opened.secrets.reseal(createSecretBox(key), audit, endTokens ? [SIGNING_KEY_SECRET] : [])
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

/** A look at a file that is only read: a backup, or the store of a service that does not run. Undefined: not over by then. */
export function inspectStoreFile(path: string, deadlineMs: number): Promise<StoreInspection | undefined> {
  if (!existsSync(path)) throw new MaintenanceProblem(`There is no file ${path}.`)
  return inspectSqlite(path, deadlineMs)
}

/** Whether a service runs on the store of this path, on this machine. */
export function isStoreInUse(path: string): boolean {
  return existsSync(`${path}.lock`) && isLocked(path)
}

function openStore(path: string, key: string): Promise<SqliteStore> {
  return createSqliteStore({ path, secretBox: createSecretBox(key), retentionDays: 7 })
}

async function inWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreUnavailable) {
      throw new MaintenanceProblem(`The store cannot be written: ${error.message}.`, { cause: error })
    }
    if (error instanceof SecretBoxError || error instanceof KeyFileProblem || error instanceof StoreProblem) {
      throw new MaintenanceProblem(error.message, { cause: error })
    }
    throw error
  }
}
