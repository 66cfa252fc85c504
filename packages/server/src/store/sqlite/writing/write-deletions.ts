// Deletion requests, inside the group's transaction: one delete message per user for each source that has destinations, and
// the purge, which reads the keys of segments in steps and rewrites only bodies with a message of a user. A purged
// message leaves its place empty, so that the indexes of the others stay the same. Its pending deliveries are cancelled when they are next claimed.
// Each adapter has its own purge (for PostgreSQL see ../../postgres/rows/purging.ts). Both use purged-content.ts for the content of a
// segment; a row port for the rest would be longer than the code it saves.

import { deleteKeys, deleteMessage, NO_KEYS } from '../../deletions/delete-messages.ts'
import type { DeletionDraft } from '../../deletions/deletions.ts'
import { type PurgedSegment, purgeAttempts } from '../../deletions/purged-attempts.ts'
import { isSampleOf, withoutUsers } from '../../deletions/purged-content.ts'
import { sourceSeed, userHash } from '../../encoding/fingerprint.ts'
import { candidates } from '../../encoding/segment-keys.ts'
import { withoutViolations } from '../../encoding/violations-column.ts'
import { forgetHeads } from '../../ordering/change-key.ts'
import { attemptTextRows } from '../rows/deletion-rows.ts'
import { overwriting } from '../schema/database.ts'
import { orderChanges } from './order-changes.ts'
import { dropPurged } from './quarantine-rows.ts'
import { segmentToTrim } from './retention.ts'
import type { WriterContext } from './writer-context.ts'

const SEGMENTS_PER_STEP = 500

/** The delete messages are held until delivery, which may have messages of the users in memory, knows of the deletion. */
export function createDeletion(
  { database, ids, sources, destinations, owing, claims, seed }: WriterContext,
  { id, userIds, sourceIds, suppress, atMs, targets }: DeletionDraft,
) {
  // Messages that were accepted before this are purged. Later ones are dropped only by suppression.
  const end = ids.next()
  const nums = targets.map(({ sourceId }) => sources.num(sourceId) as number)
  const { lastInsertRowid } = database
    .prepare('INSERT INTO deletions (id, created_at, suppress, user_ids, sources, every_source, purge_end) VALUES (?, ?, ?, ?, ?, ?, ?)')
    .run(id, atMs, suppress ? 1 : 0, JSON.stringify(userIds), JSON.stringify(nums), sourceIds === null ? 1 : 0, end)
  const num = Number(lastInsertRowid)
  const insertSegment = database.prepare(
    'INSERT INTO segments (seq, source, received_at, browser, count, routes, keys, body) VALUES (?, ?, ?, 0, 1, ?, ?, ?)',
  )
  const insertTarget = database.prepare(
    'INSERT INTO deletion_targets (deletion, user_id, source, destination, origin) VALUES (?, ?, ?, ?, ?)',
  )
  const held: { id: number; claim: number; destinationId: string }[] = []
  for (const [at, target] of targets.entries()) {
    const { destinationIds, userIds: told } = target
    if (destinationIds.length === 0) continue
    const keyOf = deleteKeys(target, seed)
    const source = nums[at] as number
    const destinationNums = destinationIds.map((destinationId) => destinations.num(destinationId) as number)
    for (const userId of told) {
      const { segment, routes, body, shipments } = deleteMessage(
        () => ids.next(),
        userId,
        destinationNums,
        atMs,
        (destination, message) => keyOf(destinationIds[destinationNums.indexOf(destination)] as string, message),
      )
      insertSegment.run(segment, source, atMs, routes, NO_KEYS, body)
      for (const [nth, { origin, destination, parts, part }] of shipments.entries()) {
        owing.insert(destination, origin, 1, parts, part !== null)
        insertTarget.run(num, userId, source, destination, origin)
        held.push({ id: origin, claim: claims.claim(origin), destinationId: destinationIds[nth] as string })
      }
    }
  }
  return { num, end, held }
}

interface Purge {
  end: number
  /** By source: the users, and the hashes of the users in the keys of messages. */
  users: Map<number, { ids: Set<string>; hashes: Set<number> }>
}

export class Purges {
  readonly #context: WriterContext
  readonly #purges = new Map<number, Purge>()

  constructor(context: WriterContext) {
    this.#context = context
  }

  /**
   * The first step of a request with suppression moves the end of its purge to now. By then, new messages of the users
   * are dropped, so every message that was being written when the request was made has been stored.
   */
  async step(deletion: number, atMs: number): Promise<{ over: boolean; end: number }> {
    const { rows, ids } = this.#context
    const [row] = rows.all<{ cursor: number; suppress: number }>('SELECT purge_cursor AS cursor, suppress FROM deletions WHERE num = ?', [
      deletion,
    ])
    if (row === undefined) return { over: true, end: 0 }
    if (row.cursor === 0 && row.suppress === 1) {
      rows.run('UPDATE deletions SET purge_end = ? WHERE num = ?', [ids.next(), deletion])
      this.#purges.delete(deletion)
    }
    const purge = this.#purge(deletion)
    const segments = rows.all<{ seq: number; source: number; keys: Uint8Array }>(
      `SELECT seq, source, keys FROM segments WHERE seq > ? AND seq < ? ORDER BY seq LIMIT ${SEGMENTS_PER_STEP}`,
      [row.cursor, purge.end],
    )
    const purged: PurgedSegment<number>[] = []
    for (const { seq, source, keys } of segments) {
      const users = purge.users.get(source)
      const possible = users ? candidates(keys, users.hashes) : []
      if (users && possible.length > 0) purged.push(...this.#purgeSegment(seq, possible, users.ids))
    }
    await purgeAttempts(attemptTextRows(this.#context.rows), purged)
    await forgetHeads(orderChanges(this.#context), purged, atMs)
    const count = purged.reduce((sum, { indexes }) => sum + indexes.length, 0)
    const over = segments.length < SEGMENTS_PER_STEP
    const cursor = over ? purge.end : (segments.at(-1)?.seq ?? purge.end)
    rows.run('UPDATE deletions SET purge_cursor = ?, purged = purged + ? WHERE num = ?', [cursor, count, deletion])
    if (over) {
      this.#purgeSamples(purge)
      this.#purges.delete(deletion)
    }
    return { over, end: purge.end }
  }

  #purgeSegment(seq: number, possible: readonly number[], userIds: ReadonlySet<string>): PurgedSegment<number>[] {
    const { database, rows } = this.#context
    const row = segmentToTrim(rows, seq)
    const left = withoutUsers(row, possible, userIds)
    if (left === undefined) return []
    overwriting(database, () => {
      database.prepare('UPDATE segments SET keys = ?, body = ? WHERE seq = ?').run(left.keys, left.body, seq)
      if (row.violations !== null)
        database.prepare('UPDATE segments SET violations = ? WHERE seq = ?').run(withoutViolations(row.violations, left.indexes), seq)
      if (left.isEmpty) database.prepare('UPDATE segments SET ip = NULL, trace = NULL WHERE seq = ?').run(seq)
    })
    dropPurged(this.#context, seq, left.indexes)
    return [{ segment: seq, routes: row.routes, indexes: left.indexes }]
  }

  /** The store keeps the last rejected message for each source and code. */
  #purgeSamples({ users }: Purge): void {
    const { rows, database } = this.#context
    const samples = rows.all<{ source: number; code: string; sample: string }>('SELECT source, code, last_sample AS sample FROM rejections')
    const theirs = samples.filter(({ source, sample }) => isSampleOf(sample, users.get(source)?.ids ?? []))
    if (theirs.length === 0) return
    overwriting(database, () => {
      for (const { source, code } of theirs)
        rows.run("UPDATE rejections SET last_sample = '' WHERE source = ? AND code = ?", [source, code])
    })
  }

  rolledBack(): void {
    this.#purges.clear()
  }

  #purge(deletion: number): Purge {
    let purge = this.#purges.get(deletion)
    if (purge === undefined) {
      const { database, sources, seed } = this.#context
      const row = database.prepare('SELECT user_ids, sources, every_source, purge_end FROM deletions WHERE num = ?').get(deletion) as {
        user_ids: string
        sources: string
        every_source: number
        purge_end: number
      }
      const userIds = JSON.parse(row.user_ids) as string[]
      purge = { end: row.purge_end, users: new Map() }
      // Messages of a deleted source are kept until the end of the retention time.
      const deleted = row.every_source === 1 ? database.prepare('SELECT num FROM sources WHERE deleted = 1').all() : []
      for (const source of [...(JSON.parse(row.sources) as number[]), ...deleted.map(({ num }) => num as number)]) {
        const own = sourceSeed(sources.id(source), seed)
        purge.users.set(source, { ids: new Set(userIds), hashes: new Set(userIds.map((userId) => userHash(userId, own))) })
      }
      this.#purges.set(deletion, purge)
    }
    return purge
  }
}
