// Which columns of which tables come from elsewhere, by type, and how many rows are inserted in one statement.

import { arrayOf } from '../session/row-parameters.ts'

/** `int`: any integer, which may be null. `ints`: an array of them as PostgreSQL writes it. */
type ColumnType = 'int' | 'text' | 'bool' | 'bytes' | 'ints'

export type ArrivingRow = Record<string, unknown>

export const ARRIVING = {
  settings: { name: 'text', value: 'text' },
  sources: { num: 'int', id: 'text', deleted: 'bool', doc: 'text' },
  destinations: { num: 'int', id: 'text', deleted: 'bool', doc: 'text' },
  oauth_apps: { num: 'int', id: 'text', doc: 'text' },
  tokens: { num: 'int', id: 'text', name: 'text', role: 'text', hash: 'text', created_at: 'int', last_used_at: 'int' },
  suppressions: { source: 'int', user_id: 'text', since: 'int', version: 'int' },
  oauth_assertions: { app: 'text', jti: 'text', expires_at: 'int' },
  segments: {
    seq: 'int',
    source: 'int',
    received_at: 'int',
    count: 'int',
    browser: 'bool',
    absent: 'ints',
    ip: 'text',
    trace: 'text',
    routes: 'text',
    keys: 'bytes',
    body: 'bytes',
  },
  shipments: {
    id: 'int',
    destination: 'int',
    due: 'int',
    first_attempt: 'int',
    count: 'int',
    attempt: 'int',
    bytes: 'int',
    unit: 'bool',
    replay: 'bool',
    urls: 'text',
    parts: 'text',
  },
  attempts: {
    id: 'int',
    origin: 'int',
    destination: 'int',
    segment: 'int',
    at: 'int',
    attempt: 'int',
    delivered: 'int',
    failed: 'int',
    expired: 'int',
    cancelled: 'int',
    replay: 'bool',
    doc: 'text',
  },
  failures: {
    id: 'int',
    destination: 'int',
    origin: 'int',
    segment: 'int',
    at: 'int',
    idx: 'int',
    attempts: 'int',
    replay: 'bool',
    state: 'text',
    reason: 'text',
  },
  replays: {
    origin: 'int',
    idx: 'int',
    destination: 'int',
    segment: 'int',
    replay_of: 'text',
    at: 'int',
    job: 'int',
    state: 'text',
  },
  repeats: { segment: 'int', digest: 'int', count: 'int', last_at: 'int', fingerprints: 'bytes' },
  ledger: { destination: 'int', owed: 'int', delivered: 'int', pending: 'int', failed: 'int', expired: 'int', cancelled: 'int' },
  ledger_archive: { destination: 'int', owed: 'int', delivered: 'int', failed: 'int', expired: 'int', cancelled: 'int' },
  source_counts: { source: 'int', accepted: 'int', duplicates: 'int', rejected: 'int', suppressed: 'int' },
  rejections: { source: 'int', code: 'text', count: 'int', last_at: 'int', last_sample: 'text' },
  deletions: {
    num: 'int',
    id: 'text',
    created_at: 'int',
    suppress: 'bool',
    every_source: 'bool',
    user_ids: 'text',
    sources: 'text',
    purged: 'int',
    purge_cursor: 'int',
    purge_end: 'int',
    ended: 'text',
    pseudonyms: 'bool',
  },
  deletion_targets: { deletion: 'int', user_id: 'text', source: 'int', destination: 'int', origin: 'int', final: 'text' },
  replay_jobs: {
    num: 'int',
    id: 'text',
    created_at: 'int',
    finished_at: 'int',
    state: 'text',
    rate: 'int',
    doc: 'text',
    bound: 'int',
    total: 'int',
    position: 'int',
    replayed: 'int',
    skipped: 'text',
    delivered: 'int',
    failed: 'int',
    expired: 'int',
    cancelled: 'int',
  },
  replay_parts: {
    job: 'int',
    destination: 'int',
    state: 'int',
    next: 'int',
    place: 'int',
    over: 'bool',
    waiting: 'int',
    turn: 'int',
  },
  audit: { id: 'int', at: 'int', actor: 'text', actor_name: 'text', action: 'text', subject: 'text', before: 'text', after: 'text' },
  stats: { kind: 'text', subject: 'text', step: 'int', at: 'int', doc: 'text' },
} as const satisfies Record<string, Record<string, ColumnType>>

export type ArrivingTable = keyof typeof ARRIVING

const SQL_TYPES = { int: 'bigint', text: 'text', bool: 'boolean', bytes: 'bytea', ints: 'text' } as const satisfies Record<
  ColumnType,
  string
>

/** One statement for all rows. Throws for a row that lacks a column. */
export function insertion(table: ArrivingTable, rows: readonly ArrivingRow[]): { text: string; values: Buffer[] } {
  const columns = Object.entries(ARRIVING[table]) as [string, ColumnType][]
  const names = columns.map(([name]) => name)
  const taken = columns.map(([name, type]) => (type === 'ints' ? `r.${name}::integer[]` : `r.${name}`))
  const arrays = columns.map(([, type], at) => `$${at + 1}::${SQL_TYPES[type]}[]`)
  const values = columns.map(([name, type]) =>
    arrayOf(
      SQL_TYPES[type],
      rows.map((row) => {
        if (row[name] === undefined) throw new Error(`a row of ${table} has no ${name}`)
        return row[name]
      }),
    ),
  )
  return {
    text: `INSERT INTO ${table} (${names.join(', ')}) SELECT ${taken.join(', ')} FROM unnest(${arrays.join(', ')}) AS r (${names.join(', ')})`,
    values,
  }
}
