// Inspects a whole SQLite file: SQLite's integrity check, and the ledger and its recount from one snapshot, so that they must agree whatever is
// being written meanwhile. Runs in a separate process, because it reads every row: it must not delay commits or other reads, and a
// thread cannot be stopped in the middle of a statement when the deadline has passed or the service stops. Writes nothing.

import { fork } from 'node:child_process'
import { statSync } from 'node:fs'
import { inspectedRows } from '../../history/book-rows.ts'
import { inspectRows } from '../../history/books.ts'
import type { StoreInspection } from '../../store.ts'
import { countedRows } from '../rows/book-rows.ts'
import { openReader } from '../schema/database.ts'
import { Rows } from '../schema/rows.ts'

const MAX_PROBLEMS = 20

export async function inspectFile(path: string): Promise<StoreInspection> {
  const database = openReader(path)
  const rows = new Rows(database)
  try {
    database.exec('BEGIN')
    return await inspectRows(
      inspectedRows(rows, {
        ...countedRows(rows),
        problems: () =>
          rows
            .all<{ quick_check: string }>(`PRAGMA quick_check(${MAX_PROBLEMS})`)
            .map((row) => row.quick_check)
            .filter((text) => text !== 'ok'),
        hasTable: (name) => rows.all('SELECT 1 FROM sqlite_schema WHERE name = ?', [name]).length > 0,
        storedBytes: () => bytesOf(path) + bytesOf(`${path}-wal`),
      }),
    )
  } finally {
    database.close()
  }
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

export type InspectionReply = { ok: true; inspection: StoreInspection } | { ok: false; message: string }

/** Returns undefined if the inspection is not complete by the deadline. Rejects if the file cannot be read. */
export async function inspectSqlite(path: string, deadlineMs: number): Promise<StoreInspection | undefined> {
  const inspector = fork(new URL('./inspector-process.ts', import.meta.url), [path], {
    execArgv: [],
    // Only the variables that it needs: our environment may contain the secret key.
    env: pickEnvironment(['NODE_COMPILE_CACHE', 'PATH', 'SystemRoot', 'TMPDIR']),
    stdio: 'ignore',
    serialization: 'advanced',
  })
  const end = (): void => void inspector.kill('SIGKILL')
  process.once('exit', end)
  let timer: NodeJS.Timeout | undefined
  try {
    const reply = await new Promise<InspectionReply | undefined>((resolve, reject) => {
      timer = setTimeout(resolve, deadlineMs, undefined)
      inspector.once('message', (message) => resolve(message as InspectionReply))
      inspector.once('error', reject)
      inspector.once('exit', (code, signal) =>
        reject(new Error(`the process that inspects the store ended unexpectedly: ${signal ?? code}`)),
      )
    })
    if (reply === undefined) return undefined
    if (!reply.ok) throw new Error(reply.message)
    return reply.inspection
  } finally {
    clearTimeout(timer)
    process.off('exit', end)
    end()
  }
}

function pickEnvironment(names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])))
}
