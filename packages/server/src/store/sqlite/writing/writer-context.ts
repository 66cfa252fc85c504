// The objects that all commands of the writing thread share: the connection, row ids, keys, claims and counts. Some of them keep state
// in memory, which follows the commit or rollback of the transaction.

import { randomBytes } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { Seed } from '../../encoding/fingerprint.ts'
import { Duplicates } from '../keys/duplicates.ts'
import { KEY_AGE_SETTING, KeyAge } from '../keys/key-age.ts'
import { openWriter } from '../schema/database.ts'
import { RowIds } from '../schema/row-ids.ts'
import { Rows } from '../schema/rows.ts'
import { readSetting } from '../schema/settings.ts'
import { Claims } from './claims.ts'
import { Ledger, SourceCounts } from './group-counts.ts'
import { OrderKeys } from './order-keys.ts'
import { OwedShipments } from './owed-shipments.ts'
import { Retention } from './retention.ts'
import { SettleWriter } from './write-settle.ts'

export interface WriterOptions {
  path: string
  /** The deduplication time: how long a messageId is remembered at least. */
  dedupMs: number
}

/** Called at the stages of a transaction. `write` is called right before the commit. */
export interface TransactionListener {
  write?(): void
  committed?(): void
  rolledBack?(): void
}

export type WriterContext = ReturnType<typeof openWriterContext>

export function openWriterContext({ path, dedupMs }: WriterOptions) {
  const rows = new Rows(openWriter(path))
  const { database, sources, destinations } = rows
  const seed = readSeed(database)
  const ids = new RowIds(newestId(database))
  const keyAge = new KeyAge(readSetting(database, KEY_AGE_SETTING), ids.last, dedupMs)
  const duplicates = new Duplicates(database, keyAge.oldUpTo + 1)
  const ledger = new Ledger(database)
  const owing = new OwedShipments(rows, ledger)
  const counts = new SourceCounts(database)
  const claims = new Claims()
  const orderKeys = new OrderKeys(rows)
  const settler = new SettleWriter({ rows, ids, ledger, owing, claims, duplicates, orderKeys })
  const retention = new Retention(rows, duplicates, ids)
  /** Every part whose state in memory must be undone at a rollback. */
  const transactionListeners: TransactionListener[] = [ledger, counts, duplicates, settler, claims, retention, sources, destinations]
  return {
    rows,
    database,
    seed,
    ids,
    sources,
    destinations,
    keyAge,
    duplicates,
    ledger,
    owing,
    counts,
    claims,
    orderKeys,
    settler,
    retention,
    transactionListeners,
  }
}

function readSeed(database: DatabaseSync): Seed {
  const stored = readSetting(database, 'dedup_seed')
  if (stored !== undefined) return JSON.parse(stored) as Seed
  const words = new Uint32Array(new Uint8Array(randomBytes(16)).buffer)
  const seed: Seed = [words[0] as number, words[1] as number, words[2] as number, words[3] as number]
  database.prepare("INSERT INTO settings (name, value) VALUES ('dedup_seed', ?)").run(JSON.stringify(seed))
  return seed
}

function newestId(database: DatabaseSync): number {
  const newest = (sql: string): number => (database.prepare(sql).get() as { newest: number | null }).newest ?? 0
  return Math.max(
    newest('SELECT max(seq) AS newest FROM segments'),
    newest('SELECT max(id) AS newest FROM attempts'),
    newest('SELECT max(id) AS newest FROM failures'),
    newest('SELECT max(origin) AS newest FROM replays'),
    newest('SELECT max(bound) AS newest FROM replay_jobs'),
    newest('SELECT max(id) AS newest FROM audit'),
    Number(readSetting(database, 'last_id') ?? 0),
  )
}
