// The columns that a store migration writes, by table and type, and the statement that inserts many rows at once.

import { arrayOf } from '../session/row-parameters.ts'

/** `int`: any integer or null. `ints`: an array of integers in PostgreSQL's text form. */
type ColumnType = 'int' | 'text' | 'bool' | 'bytes' | 'ints'

export type PostgresRow = Record<string, unknown>

/** The column names of each table, by type. */
export const POSTGRES_COLUMNS = {
  settings: { text: 'name value' },
  sources: { int: 'num', text: 'id doc', bool: 'deleted' },
  destinations: { int: 'num', text: 'id doc', bool: 'deleted' },
  destination_versions: { int: 'version at', text: 'destination actor actor_name content' },
  oauth_apps: { int: 'num', text: 'id doc' },
  plans: { int: 'num', text: 'id doc', bool: 'deleted' },
  documents: { int: 'at', text: 'kind key doc' },
  tokens: { int: 'num created_at last_used_at', text: 'id name role hash' },
  suppressions: { int: 'source since version', text: 'user_id' },
  oauth_assertions: { text: 'app jti', int: 'expires_at' },
  segments: {
    int: 'seq source received_at count',
    bool: 'browser',
    ints: 'absent',
    text: 'ip trace violations routes',
    bytes: 'keys body',
  },
  quarantine: { int: 'segment idx source', text: 'plan rule' },
  shipments: { int: 'id destination due first_attempt count attempt bytes', bool: 'unit replay', text: 'urls parts' },
  attempts: { int: 'id origin destination segment at attempt delivered failed expired cancelled', bool: 'replay', text: 'doc' },
  failures: { int: 'id destination origin segment at idx attempts', bool: 'replay', text: 'state reason' },
  replays: { int: 'origin idx destination segment at job', text: 'replay_of state' },
  repeats: { int: 'segment digest count last_at', bytes: 'fingerprints' },
  ledger: { int: 'destination owed delivered pending failed expired cancelled' },
  ledger_archive: { int: 'destination owed delivered failed expired cancelled' },
  source_counts: { int: 'source accepted duplicates rejected suppressed quarantined released deleted' },
  rejections: { int: 'source count last_at', text: 'code last_sample' },
  deletions: {
    int: 'num created_at purged purge_cursor purge_end',
    text: 'id user_ids sources ended',
    bool: 'suppress every_source pseudonyms',
  },
  deletion_targets: { int: 'deletion source destination origin', text: 'user_id final' },
  replay_jobs: {
    int: 'num created_at finished_at rate bound total position replayed delivered failed expired cancelled',
    text: 'id state doc skipped',
  },
  replay_parts: { int: 'job destination state next place waiting turn', bool: 'over' },
  audit: { int: 'id at', text: 'actor actor_name action subject before after' },
  stats: { text: 'kind subject doc', int: 'step at' },
} as const satisfies Record<string, Partial<Record<ColumnType, string>>>

export type PostgresTable = keyof typeof POSTGRES_COLUMNS

const SQL_TYPES = { int: 'bigint', text: 'text', bool: 'boolean', bytes: 'bytea', ints: 'text' } as const satisfies Record<
  ColumnType,
  string
>

/** Builds one INSERT for all rows. Throws if a row lacks a column. */
export function insertStatement(table: PostgresTable, rows: readonly PostgresRow[]): { text: string; values: Buffer[] } {
  const byType = Object.entries(POSTGRES_COLUMNS[table]) as [ColumnType, string][]
  const columns = byType.flatMap(([type, names]) => names.split(' ').map((name) => [name, type] as const))
  const names = columns.map(([name]) => name)
  const selected = columns.map(([name, type]) => (type === 'ints' ? `r.${name}::integer[]` : `r.${name}`))
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
    text: `INSERT INTO ${table} (${names.join(', ')}) SELECT ${selected.join(', ')} FROM unnest(${arrays.join(', ')}) AS r (${names.join(', ')})`,
    values,
  }
}
