// The wall clock of a whole process, faked by libfaketime. It can be set wrong while the process runs; the monotonic clock stays right.
// Unlike clock-offset.ts, it also works for programs in other languages, such as PostgreSQL.

import { chmodSync, existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { replaceFile } from './replace-file.ts'

/** Where distributions install it; the variant for programs with threads. */
const PLACES = [
  '/usr/lib/*/faketime/libfaketimeMT.so.1',
  '/usr/lib/faketime/libfaketimeMT.so.1',
  '/usr/local/lib/faketime/libfaketimeMT.so.1',
]

export interface FakeClock extends Disposable {
  /** Environment variables that give a process this clock. */
  env: Record<string, string>
  /** Sets the clock wrong by this much, from now on. */
  jump(offsetMs: number): void
}

export function whyNoLibfaketime(): string | undefined {
  return library() === undefined ? 'libfaketime is not installed' : undefined
}

function library(): string | undefined {
  return PLACES.flatMap((place) => globSync(place)).find((path) => existsSync(path))
}

export function createFakeClock(): FakeClock {
  const preload = library()
  if (preload === undefined) throw new Error('libfaketime is not installed.')
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-clock-'))
  // Readable for the user under which PostgreSQL runs.
  chmodSync(folder, 0o755)
  const file = join(folder, 'offset')
  const clock: FakeClock = {
    env: {
      LD_PRELOAD: preload,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    },
    jump(offsetMs) {
      replaceFile(file, `${offsetMs < 0 ? '' : '+'}${(offsetMs / 1_000).toFixed(3)}`)
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  }
  clock.jump(0)
  return clock
}
