// Translates each row of a SQLite file to its PostgreSQL form: row ids are converted and become strings in JSON, text is escaped where
// PostgreSQL cannot store it, and secrets are encrypted with the nodes' key. A row gets the same ids each time, so that an interrupted
// migration can be resumed. Only settings that concern the file alone are left out.

import { SECRET_PREFIX } from '../store/configuration/configuration-rows.ts'
import { versionContext } from '../store/configuration/destination-versions.ts'
import { encryptedDestinationDoc, redactAttempt, redactAudit } from '../store/configuration/unencrypted-credentials.ts'
import { type AttemptDoc, writeProgress } from '../store/encoding/attempt-doc.ts'
import type { Seed } from '../store/encoding/fingerprint.ts'
import { SCHEDULE_SETTING, SCHEDULE_WALL_SETTING } from '../store/encoding/schedule-mark.ts'
import { isKey, KEY_WORDS } from '../store/encoding/segment-keys.ts'
import type { StoredPart } from '../store/encoding/stored-parts.ts'
import { TAIL } from '../store/postgres/rows/purging.ts'
import type { MessageKey, PostgresRow } from '../store/postgres/schema/migration-target.ts'
import { dayOf } from '../store/postgres/schema/partitions.ts'
import { writeText } from '../store/postgres/session/text-columns.ts'
import { movedNum, movedRowId, rowIdAt } from '../store/postgres/tables/ids.ts'
import { keyBytes, SEED_SETTING } from '../store/postgres/tables/message-keys.ts'
import { KEY_AGE_SETTING } from '../store/sqlite/keys/key-age.ts'
import { PLAIN_CREDENTIALS } from '../store/sqlite/migration/encrypt-credentials.ts'
import type { SqliteRow, SqliteTable } from '../store/sqlite/migration/migration-source.ts'
import { MIGRATION_MARK_SETTING } from '../store/sqlite/schema/migration-mark.ts'
import { msOfRowId } from '../store/sqlite/schema/row-ids.ts'
import { orderedColumns } from './ordered-shipments.ts'
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

/** How the values of some columns are converted. The other columns stay as they are. */
type Conversions = Readonly<Record<string, (value: never) => unknown>>

export function createTranslation({ secrets, bodyBytes, deletions, replayJobs }: Translation): Record<SqliteTable, Translate> {
  const deletionNum = timedNums(deletions)
  const jobNum = timedNums(replayJobs)
  const delivery = { origin: rowId, destination: num, segment: rowId }

  return {
    settings: ({ name, value }) => setting(name as string, value as string, secrets),
    sources: converted({ num, deleted: flag }),
    destinations: converted({ num, deleted: flag }, ({ doc, deleted }) => ({
      doc: encryptedDestinationDoc(doc as string, deleted === 1, secrets),
    })),
    destination_versions: converted({ actor_name: text }, ({ destination, version, content }) => ({
      content: secrets.reencrypt(content as string, versionContext(destination as string, version as number)),
    })),
    oauth_apps: converted({ num }),
    plans: converted({ num, deleted: flag }),
    documents: converted({}),
    tokens: converted({ num, name: text }),
    suppressions: converted({ source: num, user_id: text }, () => ({ version: 1 })),
    oauth_assertions: converted({ app: text, jti: text }),
    segments: converted({ seq: rowId, source: num, browser: flag, absent, routes }),
    quarantine: converted({ segment: rowId, source: num, plan: text, rule: text }),
    // `piece`: see splitByPartition.
    shipments: converted({ destination: num, unit: flag, replay: flag }, (row) => {
      const parts = JSON.parse(row['parts'] as string) as StoredPart<number>[]
      const bytes = parts.reduce((sum, [, segment]) => sum + bodyBytes(segment), 0)
      return {
        id: movedRowId(row['id'] as number, (row['piece'] as number | undefined) ?? 0),
        ...orderedColumns(
          row,
          parts.flatMap(([, , , keys = []]) => keys),
        ),
        bytes: Math.min(bytes, LARGEST_INTEGER),
        urls: row['urls'] === null ? null : writeProgress(JSON.parse(row['urls'] as string) as string[]),
        parts: JSON.stringify(parts.map(part)),
      }
    }),
    attempts: converted({ id: rowId, ...delivery, replay: flag, doc: attemptDoc }),
    failures: converted({ id: rowId, ...delivery, replay: flag, reason: text }),
    order_keys: converted({ destination: num, segment: optionalRowId, origin: optionalRowId, skip: flag }),
    replays: converted({ ...delivery, replay_of: deliveryId, resumed: flag, job: (job: number | null) => job && jobNum(job) }),
    repeats: converted({ segment: rowId }),
    ledger: converted({ destination: num }),
    ledger_archive: converted({ destination: num }),
    source_counts: converted({ source: num }),
    rejections: converted({ source: num, last_sample: text }),
    deletions: converted({ num: deletionNum, suppress: flag, every_source: flag, sources: nums, pseudonyms: flag }, purge),
    deletion_targets: converted({ deletion: deletionNum, user_id: text, source: num, destination: num, origin: rowId }),
    replay_jobs: converted({ num: jobNum, doc: jobDoc, bound: rowId }),
    // `next`: a row id, or an index into the deliveries that the job lists.
    replay_parts: converted({ job: jobNum, destination: num, next: rowId, over: flag }),
    audit: converted({ id: rowId, actor_name: text, subject: (subject: unknown) => text(auditSubject(subject)) }, auditDocs),
    stats: converted({ subject: text }),
  }
}

/** `more`: columns whose values depend on several columns of the row. */
function converted(columns: Conversions, more: (row: SqliteRow) => PostgresRow = () => ({})): Translate {
  return (row) => {
    const after: PostgresRow = { ...row }
    for (const [name, convert] of Object.entries(columns)) after[name] = convert(row[name] as never)
    return Object.assign(after, more(row))
  }
}

function setting(name: string, value: string, secrets: Translation['secrets']): PostgresRow | undefined {
  if (SQLITE_ONLY.has(name)) return undefined
  if (name === SEED) return { name: SEED_SETTING, value: seedText(JSON.parse(value) as Seed) }
  // PostgreSQL compares it as an integer.
  if (name === SCHEDULE_SETTING || name === SCHEDULE_WALL_SETTING) return { name, value: String(Math.floor(Number(value))) }
  return { name: writeText(name), value: name.startsWith(SECRET_PREFIX) ? secrets.reencrypt(value, name) : writeText(value) }
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

function optionalRowId(value: unknown): string | null {
  return value === null ? null : rowId(value)
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

function deliveryId(id: string): string {
  const at = id.indexOf('-')
  return at === -1 ? id : `${rowId(Number(id.slice(0, at)))}${id.slice(at)}`
}

/** The audit log is searched by a delivery's id, so a subject that is one is converted. `before` and `after` keep the ids they had. */
function auditSubject(value: unknown): unknown {
  return typeof value === 'string' && /^[1-9]\d{15}-\d{1,4}$/.test(value) ? deliveryId(value) : value
}

// ── Columns with structured values ──

function part([origin, segment, indexes, keys]: StoredPart<number>): StoredPart<string> {
  return keys === undefined ? [rowId(origin), rowId(segment), indexes] : [rowId(origin), rowId(segment), indexes, keys]
}

function absent(column: string | null): string | null {
  return column === null ? null : `{${(JSON.parse(column) as number[]).join(',')}}`
}

function nums(column: string): string {
  return JSON.stringify((JSON.parse(column) as number[]).map(num))
}

function flag(value: unknown): boolean {
  return value === 1
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
  const g = doc.g.map(([places, lead, parts]) =>
    parts === undefined ? [places, rowId(lead)] : [places, rowId(lead), (parts as StoredPart<number>[]).map(part)],
  )
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
