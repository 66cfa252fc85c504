// A wall clock of the service that can be set wrong while it runs: see clock-offset.ts, which it preloads.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { replaceFile } from './replace-file.ts'

export interface WallClock extends Disposable {
  /** Options of Node.js that give a process this clock. */
  execArgv: string[]
  /** Sets the clock wrong by this much, from now on. */
  jump(offsetMs: number): void
}

export function createWallClock(): WallClock {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-clock-'))
  const file = join(folder, 'offset')
  const clock: WallClock = {
    execArgv: ['--import', `${pathToFileURL(join(import.meta.dirname, 'clock-offset.ts')).href}?file=${encodeURIComponent(file)}`],
    jump(offsetMs) {
      replaceFile(file, String(offsetMs))
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  }
  clock.jump(0)
  return clock
}
