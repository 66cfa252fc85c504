// A look at a SQLite file as a whole: its integrity as SQLite sees it, and the ledger beside its recount, both of one
// snapshot, so that they must agree whatever is being written. Made in a process of its own, because it reads every row: it
// must hold up neither a commit nor another question, and a thread in the middle of a statement cannot be ended at its deadline
// or when the service stops. Nothing is written.

import { fork } from 'node:child_process'
import { statSync } from 'node:fs'
import { inspectRows } from '../../history/books.ts'
import type { StoreInspection } from '../../store.ts'
import { readLedger, recount } from '../rows/book-rows.ts'
import { Rows } from '../rows/rows.ts'
import { openReader } from '../schema/database.ts'
import { msOfRowId } from '../schema/row-ids.ts'

const MAX_PROBLEMS = 20

export async function inspectFile(path: string): Promise<StoreInspection> {
  const database = openReader(path)
  const rows = new Rows(database)
  try {
    database.exec('BEGIN')
    return await inspectRows({
      problems: () =>
        rows
          .all<{ quick_check: string }>(`PRAGMA quick_check(${MAX_PROBLEMS})`)
          .map((row) => row.quick_check)
          .filter((text) => text !== 'ok'),
      ledger: () => readLedger(rows),
      recount: () => recount(rows),
      oldestMessageAtMs: () =>
        rows.all<{ seq: number }>('SELECT seq FROM segments ORDER BY seq LIMIT 1').map(({ seq }) => msOfRowId(seq))[0] ?? null,
      textsWithSecrets: () =>
        rows
          .all<{ text: string }>('SELECT doc AS text FROM destinations WHERE deleted = 0 UNION ALL SELECT value FROM settings')
          .map(({ text }) => text),
      storedBytes: () => bytesOf(path) + bytesOf(`${path}-wal`),
    })
  } finally {
    database.close()
  }
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

export type InspectionReply = { ok: true; inspection: StoreInspection } | { ok: false; message: string }

/** Undefined when it is not over by the deadline. Rejects when the file cannot be read at all. */
export async function inspectSqlite(path: string, deadlineMs: number): Promise<StoreInspection | undefined> {
  const inspector = fork(new URL('./inspector-process.ts', import.meta.url), [path], {
    execArgv: [],
    // Nothing of ours is its business: the secret key may be in our environment.
    env: kept(['NODE_COMPILE_CACHE', 'PATH', 'SystemRoot', 'TMPDIR']),
    stdio: 'ignore',
    serialization: 'advanced',
  })
  const end = (): void => void inspector.kill('SIGKILL')
  process.once('exit', end)
  let timer: NodeJS.Timeout | undefined
  try {
    const told = await new Promise<InspectionReply | undefined>((resolve, reject) => {
      timer = setTimeout(resolve, deadlineMs, undefined)
      inspector.once('message', (message) => resolve(message as InspectionReply))
      inspector.once('error', reject)
      inspector.once('exit', (code, signal) => reject(new Error(`the inspecting process ended: ${signal ?? code}`)))
    })
    if (told === undefined) return undefined
    if (!told.ok) throw new Error(told.message)
    return told.inspection
  } finally {
    clearTimeout(timer)
    process.off('exit', end)
    end()
  }
}

function kept(names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])))
}
