// Translates each row of a SQLite file to its PostgreSQL form: row ids are converted and become strings in JSON, text is escaped where
// PostgreSQL cannot store it, and secrets are encrypted with the nodes' key. A row gets the same ids each time, so that an interrupted
// migration can be resumed. Only settings that concern the file alone are left out.

import { SECRET_PREFIX } from '../store/configuration/configuration-rows.ts'
import { versionContext } from '../store/configuration/destination-versions.ts'
import { encryptedDestinationDoc, redactAttempt, redactAudit } from '../store/configuration/unencrypted-credentials.ts'
import { type AttemptDoc, writeOwedUrls } from '../store/encoding/attempt-doc.ts'
import type { Seed } from '../store/encoding/fingerprint.ts'
import { SCHEDULE_SETTING, SCHEDULE_WALL_SETTING } from '../store/encoding/schedule-mark.ts'
import { isKey, KEY_WORDS } from '../store/encoding/segment-keys.ts'
import { keyBytes, SEED_SETTING } from '../store/postgres/messages/message-keys.ts'
import { TAIL } from '../store/postgres/rows/purging.ts'
import { movedNum, movedRowId, rowIdAt } from '../store/postgres/schema/ids.ts'
import type { MessageKey } from '../store/postgres/schema/migration-target.ts'
import type { PostgresRow } from '../store/postgres/schema/migration-target-columns.ts'
import { dayOf } from '../store/postgres/schema/partitions.ts'
import { writeText } from '../store/postgres/session/text-columns.ts'
import { KEY_AGE_SETTING } from '../store/sqlite/keys/key-age.ts'
import { PLAIN_CREDENTIALS } from '../store/sqlite/schema/encrypt-credentials.ts'
import { MIGRATION_MARK_SETTING } from '../store/sqlite/schema/migration-mark.ts'
import type { SqliteRow, SqliteTable } from '../store/sqlite/schema/migration-source.ts'
import { msOfRowId } from '../store/sqlite/schema/row-ids.ts'
import type { SecretReencryption } from './reencrypt-secrets.ts'

export interface Translation {
  secrets: Pick<SecretReencryption, 'encrypt' | 'reencrypt'>
  bodyBytes: (segment: number) => number
  /** Every deletion and replay job, ordered by num. */
  deletions: readonly { num: number; created_at: number }[]
  replayJobs: readonly { num: number; created_at: number }[]
}

/** Returns undefined for a row that is not migrated. */
export type Translate = (row: SqliteRow) => PostgresRow | undefined

/**
 * Settings that only SQLite has: the last id that it assigned, the age of its keys, the mark of this migration, and whether credentials
 * still have to be encrypted, which the migration does.
 */
const SQLITE_ONLY = new Set(['last_id', KEY_AGE_SETTING, MIGRATION_MARK_SETTING, PLAIN_CREDENTIALS])
const SEED = 'dedup_seed'
/** Numbers from here on are row ids; smaller ones are counts or indexes. */
const FIRST_ROW_ID = 1e15
const LARGEST_INTEGER = 2 ** 31 - 1

export function createTranslation({ secrets, bodyBytes, deletions, replayJobs }: Translation): Record<SqliteTable, Translate> {
  const deletionNum = timedNums(deletions)
  const jobNum = timedNums(replayJobs)

  return {
    settings: ({ name, value }) => {
      const [key, text] = [name as string, value as string]
      if (SQLITE_ONLY.has(key)) return undefined
      if (key === SEED) return { name: SEED_SETTING, value: seedText(JSON.parse(text) as Seed) }
      // PostgreSQL compares it as an integer.
      if (key === SCHEDULE_SETTING || key === SCHEDULE_WALL_SETTING) return { name: key, value: String(Math.floor(Number(text))) }
      return { name: writeText(key), value: key.startsWith(SECRET_PREFIX) ? secrets.reencrypt(text, key) : writeText(text) }
    },
    sources: (row) => ({ ...row, num: num(row['num']), deleted: row['deleted'] === 1 }),
    destinations: (row) => {
      const deleted = row['deleted'] === 1
      return { ...row, num: num(row['num']), deleted, doc: encryptedDestinationDoc(row['doc'] as string, deleted, secrets) }
    },
    destination_versions: (row) => {
      const context = versionContext(row['destination'] as string, row['version'] as number)
      return { ...row, actor_name: text(row['actor_name']), content: secrets.reencrypt(row['content'] as string, context) }
    },
    oauth_apps: (row) => ({ ...row, num: num(row['num']) }),
    plans: (row) => ({ ...row, num: num(row['num']), deleted: row['deleted'] === 1 }),
    documents: (row) => row,
    tokens: (row) => ({ ...row, num: num(row['num']), name: text(row['name']) }),
    suppressions: (row) => ({ ...row, source: num(row['source']), user_id: text(row['user_id']), version: 1 }),
    oauth_assertions: (row) => ({ ...row, app: text(row['app']), jti: text(row['jti']) }),
    segments: (row) => ({
      ...row,
      seq: rowId(row['seq']),
      source: num(row['source']),
      browser: row['browser'] === 1,
      absent: row['absent'] === null ? null : `{${(JSON.parse(row['absent'] as string) as number[]).join(',')}}`,
      routes: routes(row['routes'] as string),
    }),
    quarantine: (row) => ({
      ...row,
      segment: rowId(row['segment']),
      source: num(row['source']),
      plan: text(row['plan']),
      rule: text(row['rule']),
    }),
    shipments: (row) => {
      const parts = JSON.parse(row['parts'] as string) as StoredPart[]
      const bytes = parts.reduce((sum, [, segment]) => sum + bodyBytes(segment), 0)
      return {
        ...row,
        id: rowId(row['id']),
        destination: num(row['destination']),
        bytes: Math.min(bytes, LARGEST_INTEGER),
        unit: row['unit'] === 1,
        replay: row['replay'] === 1,
        urls: row['urls'] === null ? null : writeOwedUrls(JSON.parse(row['urls'] as string) as string[]),
        parts: JSON.stringify(parts.map(part)),
      }
    },
    attempts: (row) => ({ ...withRowIds(row), id: rowId(row['id']), doc: attemptDoc(row['doc'] as string) }),
    failures: (row) => ({ ...withRowIds(row), id: rowId(row['id']), reason: text(row['reason']) }),
    replays: (row) => ({
      ...row,
      origin: rowId(row['origin']),
      destination: num(row['destination']),
      segment: rowId(row['segment']),
      replay_of: deliveryId(row['replay_of'] as string),
      job: row['job'] === null ? null : jobNum(row['job'] as number),
    }),
    repeats: (row) => ({ ...row, segment: rowId(row['segment']) }),
    ledger: (row) => ({ ...row, destination: num(row['destination']) }),
    ledger_archive: (row) => ({ ...row, destination: num(row['destination']) }),
    source_counts: (row) => ({ ...row, source: num(row['source']) }),
    rejections: (row) => ({ ...row, source: num(row['source']), last_sample: text(row['last_sample']) }),
    deletions: (row) => ({
      ...row,
      num: deletionNum(row['num'] as number),
      suppress: row['suppress'] === 1,
      every_source: row['every_source'] === 1,
      sources: JSON.stringify((JSON.parse(row['sources'] as string) as number[]).map(num)),
      ...purge(row),
      pseudonyms: row['pseudonyms'] === 1,
    }),
    deletion_targets: (row) => ({
      ...row,
      deletion: deletionNum(row['deletion'] as number),
      user_id: text(row['user_id']),
      source: num(row['source']),
      destination: num(row['destination']),
      origin: rowId(row['origin']),
    }),
    replay_jobs: (row) => ({ ...row, num: jobNum(row['num'] as number), doc: jobDoc(row['doc'] as string), bound: rowId(row['bound']) }),
    replay_parts: (row) => ({
      ...row,
      job: jobNum(row['job'] as number),
      destination: num(row['destination']),
      // A row id, or an index into the deliveries that the job lists.
      next: rowId(row['next']),
      over: row['over'] === 1,
    }),
    audit: (row) => ({
      ...row,
      id: rowId(row['id']),
      actor_name: text(row['actor_name']),
      subject: text(auditSubject(row['subject'])),
      ...auditDocs(row),
    }),
    stats: (row) => ({ ...row, subject: text(row['subject']) }),
  }
}

/** The keys of a segment's messages: they identify duplicates, and find a message by its messageId. */
export function messageKeys(row: SqliteRow): MessageKey[] {
  const words = new Uint32Array(new Uint8Array(row['keys'] as Uint8Array).buffer)
  const day = dayOf(msOfRowId(row['seq'] as number))
  const segment = rowId(row['seq'])
  const keys: MessageKey[] = []
  for (let at = 0; at < words.length; at += KEY_WORDS) if (isKey(words, at)) keys.push({ day, key: keyBytes(words, at), segment })
  return keys
}

// ── Ids ──

function num(value: unknown): string {
  return movedNum(value as number)
}

function rowId(value: unknown): string {
  const number = value as number
  return number < FIRST_ROW_ID ? String(number) : movedRowId(number)
}

/** SQLite numbers these from 1; PostgreSQL derives their ids from the creation time. Their order is kept even if the clock went back. */
function timedNums(rows: Translation['deletions']): (number: number) => string {
  const nums = new Map<number, string>()
  let last = 0n
  for (const row of rows) {
    const ofTime = BigInt(rowIdAt(row.created_at))
    last = ofTime > last ? ofTime : last + 1n
    nums.set(row.num, String(last))
  }
  // A row may still refer to a deleted one, and that id must not belong to another.
  return (number) => nums.get(number) ?? movedNum(number)
}

function withRowIds(row: SqliteRow): PostgresRow {
  return {
    ...row,
    origin: rowId(row['origin']),
    destination: num(row['destination']),
    segment: rowId(row['segment']),
    replay: row['replay'] === 1,
  }
}

function deliveryId(id: string): string {
  const at = id.indexOf('-')
  return at === -1 ? id : `${rowId(Number(id.slice(0, at)))}${id.slice(at)}`
}

/** The audit log is searched by a delivery's id, so a subject that is one is converted. `before` and `after` keep the ids they had. */
function auditSubject(value: unknown): unknown {
  return typeof value === 'string' && /^[1-9]\d{15}-\d{1,4}$/.test(value) ? deliveryId(value) : value
}

// ── Columns with structured values ──

type StoredPart = [origin: number, segment: number, indexes: readonly number[] | 0]

function part([origin, segment, indexes]: readonly [unknown, unknown, unknown]): [string, string, unknown] {
  return [rowId(origin), rowId(segment), indexes]
}

function routes(column: string): string {
  const { s, k, ...rest } = JSON.parse(column) as { s: [number, number, unknown, number][]; k?: [number, string, unknown][] }
  return JSON.stringify({
    s: s.map(([destination, origin, indexes, count]) => [num(destination), rowId(origin), indexes, count]),
    ...(k && { k: k.map(([destination, reason, indexes]) => [num(destination), reason, indexes]) }),
    ...rest,
  })
}

function attemptDoc(stored: string): string {
  const column = stored.includes('?') ? (redactAttempt(stored) ?? stored) : stored
  // Nearly all attempts carry the messages of a single segment and refer to no other row.
  if (!column.includes('"g":')) return column
  const doc = JSON.parse(column) as AttemptDoc
  if (doc.g === undefined) return column
  const g = doc.g.map(([places, lead, parts]) => (parts === undefined ? [places, rowId(lead)] : [places, rowId(lead), parts.map(part)]))
  return JSON.stringify({ ...doc, g })
}

function jobDoc(column: string): string {
  const doc = JSON.parse(column) as { selection: { deliveryIds?: string[] } }
  const { deliveryIds } = doc.selection
  return deliveryIds === undefined
    ? column
    : JSON.stringify({ ...doc, selection: { ...doc.selection, deliveryIds: deliveryIds.map(deliveryId) } })
}

/** In PostgreSQL, a purge with suppression continues for a while past its end: see purging.ts. */
function purge(row: SqliteRow): PostgresRow {
  const end = BigInt(rowId(row['purge_end'])) + (row['suppress'] === 1 ? TAIL : 0n)
  const isOver = (row['purge_cursor'] as number) >= (row['purge_end'] as number)
  return { purge_end: String(end), purge_cursor: isOver ? String(end) : rowId(row['purge_cursor']) }
}

function auditDocs(row: SqliteRow): PostgresRow {
  if (!(row['action'] as string).startsWith('destination.')) return {}
  const hidden = (column: string): string | null =>
    row[column] === null ? null : (redactAudit(row[column] as string) ?? (row[column] as string))
  return { before: hidden('before'), after: hidden('after') }
}

function text(value: unknown): string | null {
  return value === null ? null : writeText(value as string)
}

/** The format that message-keys.ts reads. */
function seedText(seed: Seed): string {
  const bytes = Buffer.alloc(16)
  for (const [at, word] of seed.entries()) bytes.writeUInt32BE(word, at * 4)
  return bytes.toString('hex')
}
