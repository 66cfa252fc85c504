// A small tmpfs that can be filled to the last byte. The user must be allowed to mount one (root on Linux).

import { execFileSync } from 'node:child_process'
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk extends Disposable {
  folder: string
  /** Uses all free space. */
  fill(): void
  /** Frees the space that fill() uses. */
  free(): void
  /** Makes the file system larger. */
  grow(megabytes: number): void
}

/** Throws if this user may not mount a file system. */
export function mountSmallDisk(megabytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'switchyard-e2e', folder], { stdio: 'pipe' })
  } catch (error) {
    rmSync(folder, { recursive: true })
    throw error
  }
  // Readable for the user under which PostgreSQL runs.
  chmodSync(folder, 0o755)
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill() {
      const file = openSync(ballast, 'a')
      try {
        // Large pieces first, then smaller ones, to the last byte.
        for (const size of [1_048_576, 4_096, 1]) while (writePiece(file, size));
      } finally {
        closeSync(file)
      }
    },
    free: () => rmSync(ballast),
    grow: (larger) => void execFileSync('mount', ['-o', `remount,size=${larger}m`, folder], { stdio: 'pipe' }),
    [Symbol.dispose]() {
      execFileSync('umount', ['--lazy', folder], { stdio: 'pipe' })
      rmSync(folder, { recursive: true })
    },
  }
}

/** Why no small disk can be mounted here; undefined if it can. */
export function whyNoSmallDisk(): string | undefined {
  try {
    mountSmallDisk(1)[Symbol.dispose]()
    return undefined
  } catch (error) {
    return `it needs a user who may mount a tmpfs (root on Linux): ${(error as Error).message.trim()}`
  }
}

/** False if there was no space for it. */
function writePiece(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) === size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    return false
  }
}
