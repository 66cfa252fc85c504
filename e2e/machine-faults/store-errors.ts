// Preloaded into the service (--import): in the thread that writes the SQLite file, statements fail with disk I/O errors, as long as a
// file says so. The query of its URL names the file. The file has a JSON object:
//
//   { "share": 0.2, "kinds": ["before", "rollback", "commit"] }
//
// before    the statement is not run, and the transaction stays open: a page could not be read
// rollback  the transaction is rolled back, as SQLite does after some errors
// commit    COMMIT takes effect but reports an error, and from then on everything fails until the process ends. This is what happens if the
//           write-ahead log could not be synced: the transaction was reported as failed, but is there after the next start
//
// The counts of the errors so far, by kind, are written to the file with `.caused` at its end.

import { readFileSync } from 'node:fs'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { threadName } from 'node:worker_threads'
import { replaceFile } from './replace-file.ts'

export type ErrorKind = 'before' | 'rollback' | 'commit'

export interface StoreErrors {
  /** Of the statements. */
  share: number
  kinds: readonly ErrorKind[]
}

const SQLITE_IOERR = 10
const file = new URL(import.meta.url).searchParams.get('file')
if (threadName === 'switchyard-writer' && file !== null) failStatements(file)

function failStatements(path: string): void {
  const caused: Record<ErrorKind, number> = { before: 0, rollback: 0, commit: 0 }
  let isDead = false
  let state = process.pid
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) / 2 ** 24
  }
  const exec = Reflect.get(DatabaseSync.prototype, 'exec')
  let database: DatabaseSync | undefined
  const use = (used: DatabaseSync): void => {
    database = used
  }

  /** The error of this statement, if it is to fail. */
  const errorKind = (sql: string): ErrorKind | undefined => {
    if (isDead) return 'before'
    const { share, kinds } = JSON.parse(readFileSync(path, 'utf8')) as StoreErrors
    if (random() >= share) return undefined
    const kind = kinds[Math.floor(random() * kinds.length)]
    // ROLLBACK never fails, and only COMMIT can take effect and report an error.
    return sql === 'ROLLBACK' || (kind === 'commit' && sql !== 'COMMIT') ? undefined : kind
  }
  const fail = (kind: ErrorKind): never => {
    caused[kind]++
    replaceFile(`${path}.caused`, JSON.stringify(caused))
    throw Object.assign(new Error('disk I/O error (injected)'), {
      code: 'ERR_SQLITE_ERROR',
      errcode: SQLITE_IOERR,
      errstr: 'disk I/O error',
    })
  }
  const failing = (sql: string, run: () => unknown): unknown => {
    const kind = errorKind(sql)
    if (kind === undefined) return run()
    if (kind === 'commit') {
      run()
      isDead = true
    }
    if (kind === 'rollback' && database?.isTransaction) exec.call(database, 'ROLLBACK')
    return fail(kind)
  }

  DatabaseSync.prototype.exec = function (sql) {
    use(this)
    return failing(sql, () => exec.call(this, sql)) as undefined
  }
  for (const method of ['run', 'get', 'all'] as const) {
    const original = StatementSync.prototype[method] as (...values: unknown[]) => unknown
    StatementSync.prototype[method] = function (this: StatementSync, ...values: unknown[]) {
      return failing(method, () => original.apply(this, values))
    } as never
  }
}
