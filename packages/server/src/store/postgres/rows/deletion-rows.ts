// The rows of deletion requests and suppressions in the database. Ids of users are escaped by session/text-columns.ts in columns, but not in the
// JSON of a request.

import { type DeleteMessage, deleteMessage, NO_KEYS } from '../../deletions/delete-messages.ts'
import {
  type DeletionRows,
  type SuppressionRow,
  deletionRows as sharedRows,
  type TargetProgress,
  type TargetRow,
} from '../../deletions/deletion-rows.ts'
import type { Ask } from '../session/database.ts'
import { Columns, plainColumns, statement } from '../session/row-parameters.ts'
import { readText, writeText } from '../session/text-columns.ts'
import type { IdMap } from '../tables/id-map.ts'
import { type RowIds, SKEW } from '../tables/ids.ts'
import { addDelta, LEDGER } from '../tables/ledger-deltas.ts'
import { sqlOf } from '../tables/sql.ts'

/** All attempts were made after the request ($1), so older partitions are not read. */
const TARGETS = `
  SELECT t.user_id AS "userId", t.source, t.destination, t.origin, t.final, coalesce(max(a.attempt), 0) AS attempts,
         coalesce(sum(a.delivered), 0) AS delivered, coalesce(sum(a.failed + a.expired + a.cancelled), 0) AS failed
  FROM deletion_targets t LEFT JOIN attempts a ON a.origin = t.origin AND a.id > $1::bigint - ${SKEW}
  WHERE t.deletion = $1`
/** Groups by the key of deletion_targets, on which the other columns depend. */
const EACH = 'GROUP BY t.deletion, t.user_digest, t.source, t.destination'

/** Compares digests, because the key contains the digest and not the user id. */
const OF_USERS = 't.user_digest = ANY(ARRAY(SELECT digest_of(u) FROM unnest($2::text[]) AS u))'

/**
 * The expression in the index of suppressions. Users whose ids have the same first 200 characters are ordered by their
 * digests.
 */
const PREFIX = 'left(p.user_id, 200)'

const TARGET = plainColumns({ user_id: 'text', source: 'bigint', destination: 'bigint', origin: 'bigint', final: 'text' })
const INSERT_AGAIN = statement({
  parameters: { deletion: 'value', targets: TARGET },
  text: ({ deletion, targets }) =>
    `INSERT INTO deletion_targets (deletion, ${targets.names}) SELECT ${deletion}::bigint, * FROM ${targets.unnest}`,
})

export function deletionRows(ask: Ask, idMap: IdMap): DeletionRows<string> {
  return sharedRows(sqlOf(ask), {
    sourceIds: async (sources) => sources.map(await idMap.idsOf(ask, 'sources', sources)),
    async progress(deletion) {
      const { rows } = await ask<TargetProgress & { source: string; count: number }>(
        `SELECT source, final, least(attempts, 1) AS attempts, least(delivered, 1) AS delivered, least(failed, 1) AS failed, count(*) AS count
         FROM (${TARGETS} ${EACH}) e GROUP BY 1, 2, 3, 4, 5`,
        [deletion],
      )
      return rows
    },
    async targets(deletion, userIds) {
      const { rows } = await ask<TargetRow<string>>(
        `SELECT e.*, d.id AS "destinationId" FROM (${TARGETS} AND ${OF_USERS} ${EACH}) e JOIN destinations d ON d.num = e.destination
         ORDER BY e.destination`,
        [deletion, userIds.map(writeText)],
      )
      return rows.map((row) => Object.assign(row, { userId: readText(row.userId) }))
    },
    async suppressions({ userId, sourceId, sourceIds }, source, user, limit) {
      const conditions = [`(p.source, ${PREFIX}, p.user_digest) >= ($2::bigint, left($3::text, 200), digest_of($3))`]
      const values: (string | number | readonly string[])[] = [limit, source, writeText(user)]
      if (sourceId !== undefined) conditions.push(`s.id = $${values.push(writeText(sourceId))}`)
      if (sourceIds !== undefined) conditions.push(`s.id = ANY ($${values.push(sourceIds.map(writeText))}::text[])`)
      // One user is looked up source by source: there is no index by user, and there are few sources. OFFSET 0 keeps the planner from changing that.
      const from =
        userId === undefined
          ? 'sources s JOIN suppressions p ON p.source = s.num'
          : `sources s CROSS JOIN LATERAL (
               SELECT * FROM suppressions WHERE source = s.num AND user_digest = digest_of($${values.push(writeText(userId))}) OFFSET 0) p`
      const { rows } = await ask<SuppressionRow<string>>(
        `SELECT p.source, s.id AS "sourceId", p.user_id AS "userId", p.since FROM ${from}
         WHERE ${conditions.join(' AND ')} ORDER BY p.source, ${PREFIX}, p.user_digest LIMIT $1`,
        values,
      )
      return rows.map((row) => Object.assign(row, { userId: readText(row.userId) }))
    },
    /** The old row versions stay in the server's files until it vacuums them, as with every update or delete. */
    async replaceUserIds(deletion, userIds, pseudonyms) {
      await ask('UPDATE deletions SET user_ids = $2, pseudonyms = true WHERE num = $1', [deletion, JSON.stringify(pseudonyms)])
      // Deletes the rows and inserts them again, because the pseudonym of one user may equal the id of another, and an UPDATE could violate the primary key.
      const { rows } = await ask<{ user_id: string; source: string; destination: string; origin: string; final: string | null }>(
        'DELETE FROM deletion_targets WHERE deletion = $1 RETURNING user_id, source, destination, origin, final',
        [deletion],
      )
      const renamed = new Map(userIds.map((userId, at) => [userId, pseudonyms[at] as string]))
      const targets = rows.map((row) => Object.assign(row, { user_id: renamed.get(readText(row.user_id)) ?? row.user_id }))
      await ask(INSERT_AGAIN, INSERT_AGAIN.values({ deletion, targets }))
    },
  })
}

const MESSAGES_AT_ONCE = 2_000

interface DeleteMessages {
  deletion: string
  /** The sources, each with its users and its enabled destinations; sources and destinations as row ids (`num`). */
  sources: readonly {
    source: string
    userIds: readonly string[]
    destinations: readonly string[]
    keyOf: Parameters<typeof deleteMessage<string>>[4]
  }[]
  atMs: number
  holder: string
}

const SEGMENTS = statement({
  parameters: {
    messages: new Columns<DeleteMessage<string>>({
      seq: ['bigint', ({ segment }) => segment],
      routes: ['text', ({ routes }) => routes],
      body: ['bytea', ({ body }) => body],
    }),
    source: 'value',
    atMs: 'value',
    keys: 'value',
  },
  text: ({ messages, source, atMs, keys }) => `
    INSERT INTO segments (${messages.names}, source, received_at, count, browser, keys)
    SELECT u.*, ${source}::bigint, ${atMs}::bigint, 1, false, ${keys}::bytea FROM ${messages.as('u')}`,
})

const SHIPMENTS = statement({
  parameters: {
    shipments: plainColumns({ origin: 'bigint', destination: 'bigint', user_id: 'text', bytes: 'integer', parts: 'text', part: 'bigint' }),
    deletion: 'value',
    source: 'value',
    holder: 'value',
  },
  text: ({ shipments, deletion, source, holder }) => `
    WITH sent AS (SELECT * FROM ${shipments.as('u')}), targets AS (
      INSERT INTO deletion_targets (deletion, user_id, source, destination, origin)
      SELECT ${deletion}::bigint, user_id, ${source}::bigint, destination, origin FROM sent
    )
    INSERT INTO shipments (holder, id, destination, count, bytes, parts, partition, attempt, ord)
    SELECT ${holder}, origin, destination, 1, bytes, parts, part, CASE WHEN part IS NULL THEN 0 ELSE -1 END,
      CASE WHEN part IS NULL THEN NULL ELSE nextval('order_places') END FROM sent`,
})

/**
 * Writes the delete messages of a request in its transaction, thousands of them with a few statements. The node that received the request holds
 * them at first, because none may be sent before all nodes know of the request: otherwise a node could still send a message of the user
 * afterwards. If that node dies, they are released like everything it held. Returns the row ids of the shipments that it created.
 */
export async function oweDeleteMessages(ask: Ask, ids: RowIds, { deletion, sources, atMs, holder }: DeleteMessages): Promise<string[]> {
  const origins: string[] = []
  const owed = new Map<string, number>()
  for (const { source, userIds, destinations, keyOf } of sources) {
    if (destinations.length === 0) continue
    const perStatement = Math.max(1, Math.floor(MESSAGES_AT_ONCE / destinations.length))
    for (let at = 0; at < userIds.length; at += perStatement) {
      const messages = userIds
        .slice(at, at + perStatement)
        .map((userId) => deleteMessage(() => ids.next(), userId, destinations, atMs, keyOf))
      await ask(SEGMENTS, SEGMENTS.values({ messages, source, atMs, keys: Buffer.from(NO_KEYS) }))
      const shipments = messages.flatMap(({ userId, body, shipments: own }) =>
        own.map((shipment) => ({ ...shipment, user_id: writeText(userId), bytes: body.length })),
      )
      await ask(SHIPMENTS, SHIPMENTS.values({ shipments, deletion, source, holder }))
      origins.push(...shipments.map(({ origin }) => origin))
    }
    for (const destination of destinations) owed.set(destination, (owed.get(destination) ?? 0) + userIds.length)
  }
  for (const [destination, count] of owed) await addDelta(ask, ids.next(), LEDGER, destination, [count, 0, count, 0, 0, 0])
  return origins
}
