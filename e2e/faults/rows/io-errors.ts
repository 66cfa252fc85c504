// The disk of the store fails: statements of the thread that writes the SQLite file report I/O errors, also while a transaction commits.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { replaceFile } from '../../machine-faults/replace-file.ts'
import type { ErrorKind, StoreErrors } from '../../machine-faults/store-errors.ts'
import { eventually } from '../../system/signals.ts'
import type { Fault, RoundOptions, RoundResult } from '../rounds/fault.ts'
import { injectedRound } from '../rounds/round.ts'

const ioError: Fault = {
  key: 'io-error',
  title: 'The disk reports I/O errors',
  how: 'SQL statements of the thread that writes the SQLite file fail with disk I/O errors, for up to 2 s: 2 %, 20 % or all of them, with the transaction left open or rolled back. In a quarter of the cases a commit takes effect but reports an error, everything fails after it, and the node is killed and started again; in a fifth of the other cases the node is killed too.',
  note: 'A file that is loaded into the node throws the errors in place of SQLite; no real device fails. Data that the disk changes or loses without an error is not covered, and neither are I/O errors of PostgreSQL.',
  stores: ['sqlite'],
  perRound: 25,
  round: ioErrorRound,
}

async function ioErrorRound(options: RoundOptions): Promise<RoundResult> {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-errors-'))
  const control = join(folder, 'errors')
  const fail = (errors: StoreErrors): void => replaceFile(control, JSON.stringify(errors))
  const recover = (): void => fail({ share: 0, kinds: [] })
  const caused = (): Record<ErrorKind, number> | undefined =>
    existsSync(`${control}.caused`) ? (JSON.parse(readFileSync(`${control}.caused`, 'utf8')) as Record<ErrorKind, number>) : undefined
  recover()
  const preload = `${pathToFileURL(join(import.meta.dirname, '..', '..', 'machine-faults', 'store-errors.ts')).href}?file=${encodeURIComponent(control)}`
  try {
    return await injectedRound(
      {
        system: () => ({ service: () => ({ execArgv: ['--import', preload] }) }),
        async cause(system, random) {
          const isCommit = random.chance(0.25)
          rmSync(`${control}.caused`, { force: true })
          fail(
            isCommit
              ? { share: 1, kinds: ['commit'] }
              : { share: random.pick([0.02, 0.2, 1]), kinds: random.pick([['before'], ['rollback'], ['before', 'rollback']] as const) },
          )
          const isCaused = (counts = caused()): boolean => counts !== undefined && (!isCommit || counts.commit > 0)
          try {
            await eventually(async () => isCaused(), Boolean, { what: 'a statement failed' })
            await sleep(random.int(0, 2_000))
            if (isCommit || random.chance(0.2)) await system.node(1).kill()
          } finally {
            recover()
          }
          if (!system.node(1).isUp) await system.node(1).start()
        },
      },
      options,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export const IO_ERRORS: readonly Fault[] = [ioError]
