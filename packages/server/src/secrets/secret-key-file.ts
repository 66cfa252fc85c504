// The key that encrypts secrets, where none is configured: a file beside the store, readable by its owner alone. Every
// change of the file is made while the store is open, and so locked: no two processes make a key each, and no key is kept
// that does not open what is stored. The file comes to be whole or not at all. To change the key, the next one is written
// beside it first, then the secrets are sealed with it in one transaction, then it takes the file's place; whoever opens
// the store after a crash in between finds which of the two opens it. What a key is good for is the secret box's.

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

/** What a person who starts the service can mend. */
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
 * Opens a store with the key beside it, or with a new one, which is kept then. Ends a change of the key that was
 * interrupted. `open` rejects with SecretBoxError where the key is not the store's.
 */
export async function openWithKeyFile<T extends { close(): Promise<void> }>(
  storePath: string,
  open: (key: string) => Promise<T>,
): Promise<T> {
  const path = keyPath(storePath)
  const next = nextKeyPath(storePath)
  const found = inWords(path, () => readIfThere(path))
  if (found === '') throw new KeyFileProblem(`${path} is empty. Restore the key that was in it.`)
  const key = found ?? generateSecretKey()
  try {
    const opened = await open(key)
    return await closedIfFailing(opened, () => {
      if (found === undefined) writeFirst(storePath, key)
      // Of a change that was interrupted before the secrets were sealed with it, or of a first key that was not kept.
      rmSync(next, { force: true })
    })
  } catch (error) {
    if (!(error instanceof SecretBoxError)) throw error
    const nextKey = inWords(next, () => readIfThere(next))
    if (error.reason === 'wrong_key' && nextKey !== undefined && nextKey !== '') {
      const opened = await open(nextKey).catch((other: unknown) => {
        throw other instanceof SecretBoxError ? error : other
      })
      return closedIfFailing(opened, () => adoptNextKey(storePath))
    }
    // The key was changed between the reading of it and the opening.
    const now = inWords(path, () => readIfThere(path))
    if (now !== found) return openWithKeyFile(storePath, open)
    if (found !== undefined) throw error
    throw new KeyFileProblem(
      `${path} is missing, and secrets in ${storePath} are encrypted with the key that was in it. Restore the file, or set SWITCHYARD_SECRET_KEY to the key.`,
      { cause: error },
    )
  }

  async function closedIfFailing(opened: T, change: () => void): Promise<T> {
    try {
      inWords(path, change)
      return opened
    } catch (error) {
      await opened.close()
      throw error
    }
  }
}

/** The keys that may open the store of this path, of which there are two when a change of the key was interrupted. */
export function keysBeside(storePath: string): string[] {
  return [keyPath(storePath), nextKeyPath(storePath)].flatMap((path) => inWords(path, () => readIfThere(path)) || [])
}

/** Durable when it returns. For whoever has the store open, and seals its secrets with the key then. */
export function writeNextKey(storePath: string, key: string): void {
  const [path, next] = [keyPath(storePath), nextKeyPath(storePath)]
  inWords(next, () => {
    // Whoever keeps the key elsewhere would put the old one back, and lose the new one.
    if (lstatSync(path).isSymbolicLink()) {
      throw new KeyFileProblem(
        `${path} is a symbolic link. Replace it with a file that contains the key, or set SWITCHYARD_SECRET_KEY to the key.`,
      )
    }
    writeDurably(next, key)
    giveToOwnerOf(path, next)
  })
}

/** The next key is the key, from now on and after a crash. */
export function adoptNextKey(storePath: string): void {
  inWords(keyPath(storePath), () => {
    renameSync(nextKeyPath(storePath), keyPath(storePath))
    syncFolder(keyPath(storePath))
  })
}

/** A full disk or a crash leaves a draft at most. An existing file is never written over: it may open somebody's secrets. */
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
  // Not written over but made anew: the file that is there may be readable by others.
  rmSync(path, { force: true })
  writeFileSync(path, `${key}\n`, { mode: 0o600, flag: 'wx', flush: true })
  syncFolder(path)
}

/** Root may change the key of a service that runs as somebody else, who has to read it afterwards. */
function giveToOwnerOf(path: string, made: string): void {
  const [{ uid, gid }, { uid: ownUid }] = [lstatSync(path), lstatSync(made)]
  if (uid !== ownUid) chownSync(made, uid, gid)
}

/** That a file is in its folder is in the folder, which has to reach the disk too. */
function syncFolder(path: string): void {
  let folder: number
  try {
    folder = openSync(dirname(path), 'r')
  } catch {
    // Some systems do not open folders; they write them by themselves.
    return
  }
  try {
    fsyncSync(folder)
  } catch {
    // As above.
  } finally {
    closeSync(folder)
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/** What the file system has against it is for whoever starts the service. */
function inWords<T>(path: string, use: () => T): T {
  try {
    return use()
  } catch (error) {
    if (error instanceof KeyFileProblem) throw error
    throw new KeyFileProblem(`Cannot use ${path}: ${(error as Error).message}.`, { cause: error })
  }
}
