// The key that encrypts secrets, where none is configured: a file beside the store, readable by its owner alone. A new key
// is kept only when the store has been opened with it: then the store's lock is held, so that no two processes make one
// each, and no stored secret was encrypted with another. The file comes to be whole or not at all. What a key is good for
// is the secret box's.

import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { generateSecretKey } from './secret-box.ts'

export interface SecretKeyFile {
  path: string
  key: string
  /** Whether there was no file: the key is new, and has to be kept. */
  isNew: boolean
  /** Writes a new key. Throws, as the file system does, where it cannot. */
  keep: () => void
}

/** Throws, as the file system does, when there is a file that cannot be read. */
export function openSecretKeyFile(storePath: string): SecretKeyFile {
  const path = `${storePath}.key`
  const found = readIfThere(path)
  const key = found ?? generateSecretKey()
  return { path, key, isNew: found === undefined, keep: () => (found === undefined ? writeWhole(path, `${key}\n`) : undefined) }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/** A full disk or a crash leaves a draft at most. An existing file is never written over: it may open somebody's secrets. */
function writeWhole(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true })
    linkSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}
