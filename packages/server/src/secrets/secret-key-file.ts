// The file with the key that encrypts secrets, used if none is configured. It is beside the store and readable only by its owner.
// The file is only changed while the store is open, and therefore locked: two processes never create different keys, and no key is
// kept that does not decrypt the stored secrets. The file is written atomically. To rotate the key, the next key is first written
// to a second file, then the secrets are encrypted with it in one transaction, and then the second file replaces the first. After
// a crash in between, the next start finds out which of the two keys decrypts the store. Encryption itself is in secret-box.ts.

import {
  chownSync,
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { generateSecretKey, SecretBoxError } from './secret-box.ts'

/** A problem that the person who starts the service can fix. */
export class KeyFileProblem extends Error {
  override name = 'KeyFileProblem'
}

export function keyPath(storePath: string): string {
  return `${storePath}.key`
}

function nextKeyPath(storePath: string): string {
  return `${keyPath(storePath)}.new`
}

/**
 * Opens a store with the key in the file beside it. If there is no file, it generates a key and writes the file. Completes an
 * interrupted rotation of the key. `open` must reject with SecretBoxError if the key is not the key of the store.
 */
export async function openWithKeyFile<T extends { close(): Promise<unknown> }>(
  storePath: string,
  open: (key: string) => Promise<T>,
): Promise<T> {
  const path = keyPath(storePath)
  const next = nextKeyPath(storePath)
  const found = reportProblems(path, () => readIfExists(path))
  if (found === '') throw new KeyFileProblem(`${path} is empty. Restore the key that was in it.`)
  const key = found ?? generateSecretKey()
  try {
    const opened = await open(key)
    return await closeOnFailure(opened, () => {
      if (found === undefined) writeFirst(storePath, key)
      // Left over from a rotation that was interrupted before the secrets were encrypted with it, or from writing the first key.
      rmSync(next, { force: true })
    })
  } catch (error) {
    if (!(error instanceof SecretBoxError)) throw error
    const nextKey = reportProblems(next, () => readIfExists(next))
    if (error.reason === 'wrong_key' && nextKey !== undefined && nextKey !== '') {
      const opened = await open(nextKey).catch((other: unknown) => {
        throw other instanceof SecretBoxError ? error : other
      })
      return closeOnFailure(opened, () => adoptNextKey(storePath))
    }
    // The key was rotated after the file was read and before the store was opened.
    const now = reportProblems(path, () => readIfExists(path))
    if (now !== found) return openWithKeyFile(storePath, open)
    if (found !== undefined) throw error
    throw new KeyFileProblem(
      `${path} is missing, and secrets in ${storePath} are encrypted with the key that was in it. Restore the file, or set SWITCHYARD_SECRET_KEY to the key.`,
      { cause: error },
    )
  }

  async function closeOnFailure(opened: T, change: () => void): Promise<T> {
    try {
      reportProblems(path, change)
      return opened
    } catch (error) {
      await opened.close()
      throw error
    }
  }
}

/** Returns the keys that may decrypt the store at this path. There are two if a rotation was interrupted. */
export function keysBeside(storePath: string): string[] {
  return [keyPath(storePath), nextKeyPath(storePath)].flatMap((path) => reportProblems(path, () => readIfExists(path)) || [])
}

/** Writes the next key durably. Call it with the store open, before encrypting the secrets with that key. */
export function writeNextKey(storePath: string, key: string): void {
  const [path, next] = [keyPath(storePath), nextKeyPath(storePath)]
  reportProblems(next, () => {
    // The file that the link points to is managed elsewhere: it would later restore the old key, and the new key would be lost.
    if (lstatSync(path).isSymbolicLink()) {
      throw new KeyFileProblem(
        `${path} is a symbolic link. Replace it with a file that contains the key, or set SWITCHYARD_SECRET_KEY to the key.`,
      )
    }
    writeDurably(next, key)
    copyOwner(path, next)
  })
}

/** Makes the next key the current one, durably. */
export function adoptNextKey(storePath: string): void {
  reportProblems(keyPath(storePath), () => {
    renameSync(nextKeyPath(storePath), keyPath(storePath))
    syncFolder(keyPath(storePath))
  })
}

/** A full disk or a crash leaves at most a draft. An existing file is never overwritten, because its key may be needed to decrypt secrets. */
function writeFirst(storePath: string, key: string): void {
  const [path, draft] = [keyPath(storePath), nextKeyPath(storePath)]
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  try {
    writeDurably(draft, key)
    linkSync(draft, path)
    syncFolder(path)
  } finally {
    rmSync(draft, { force: true })
  }
}

function writeDurably(path: string, key: string): void {
  // Deleted first instead of overwritten: an existing file may be readable by others.
  rmSync(path, { force: true })
  writeFileSync(path, `${key}\n`, { mode: 0o600, flag: 'wx', flush: true })
  syncFolder(path)
}

/** If root rotates the key of a service that runs as another user, that user must be able to read the new file. */
function copyOwner(path: string, created: string): void {
  const [{ uid, gid }, { uid: ownUid }] = [lstatSync(path), lstatSync(created)]
  if (uid !== ownUid) chownSync(created, uid, gid)
}

/** Syncs the folder of a file to disk: the entry of a new or renamed file is only durable after that. */
function syncFolder(path: string): void {
  let folder: number
  try {
    folder = openSync(dirname(path), 'r')
  } catch {
    // Some systems cannot open folders; they sync them by themselves.
    return
  }
  try {
    fsyncSync(folder)
  } catch {
    // Some systems cannot sync folders either.
  } finally {
    closeSync(folder)
  }
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/** Converts errors of the file system to KeyFileProblem. */
function reportProblems<T>(path: string, use: () => T): T {
  try {
    return use()
  } catch (error) {
    if (error instanceof KeyFileProblem) throw error
    throw new KeyFileProblem(`Cannot use ${path}: ${(error as Error).message}.`, { cause: error })
  }
}
