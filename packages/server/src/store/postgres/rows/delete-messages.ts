// The delete messages of a request, owed inside the transaction that makes it: thousands go in a handful of statements. They are held by
// the node that received the request, because no delete message may be sent before all nodes know of it: a node could still send a message
// of the user afterwards. If that node dies they are released like everything it held.

import { deleteMessage, NO_KEYS } from '../../deletions/delete-messages.ts'
import { addDelta, LEDGER } from '../messages/owing.ts'
import type { RowIds } from '../schema/ids.ts'
import { byteas, int4s, int8s, texts } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'
import { writeText } from '../session/texts.ts'

const MESSAGES_AT_ONCE = 2_000

interface DeleteMessages {
  deletion: string
  userIds: readonly string[]
  /** With the enabled destinations that each has: all by `num`. */
  sources: readonly { source: string; destinations: readonly string[] }[]
  atMs: number
  holder: string
}

/** Returns the shipments that it created. */
export async function oweDeleteMessages(
  ask: Ask,
  ids: RowIds,
  { deletion, userIds, sources, atMs, holder }: DeleteMessages,
): Promise<string[]> {
  const origins: string[] = []
  const owed = new Map<string, number>()
  for (const { source, destinations } of sources) {
    if (destinations.length === 0) continue
    const perStatement = Math.max(1, Math.floor(MESSAGES_AT_ONCE / destinations.length))
    for (let at = 0; at < userIds.length; at += perStatement) {
      const messages = userIds.slice(at, at + perStatement).map((userId) => deleteMessage(() => ids.next(), userId, destinations, atMs))
      await ask(
        `INSERT INTO segments (seq, source, received_at, count, browser, routes, keys, body)
         SELECT u.seq, $4::bigint, $5::bigint, 1, false, u.routes, $6::bytea, u.body
         FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS u (seq, routes, body)`,
        [
          int8s(messages.map(({ segment }) => segment)),
          texts(messages.map(({ routes }) => routes)),
          byteas(messages.map(({ body }) => body)),
          source,
          atMs,
          Buffer.from(NO_KEYS),
        ],
      )
      const shipments = messages.flatMap(({ userId, body, shipments: own }) =>
        own.map((shipment) => ({ ...shipment, userId: writeText(userId), bytes: body.length })),
      )
      await ask(
        `WITH sent AS (
           SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::integer[], $5::text[])
             AS u (origin, destination, user_id, bytes, parts)
         ), targets AS (
           INSERT INTO deletion_targets (deletion, user_id, source, destination, origin)
           SELECT $6::bigint, user_id, $7::bigint, destination, origin FROM sent
         )
         INSERT INTO shipments (holder, id, destination, count, bytes, parts) SELECT $8, origin, destination, 1, bytes, parts FROM sent`,
        [
          int8s(shipments.map(({ origin }) => origin)),
          int8s(shipments.map(({ destination }) => destination)),
          texts(shipments.map(({ userId }) => userId)),
          int4s(shipments.map(({ bytes }) => bytes)),
          texts(shipments.map(({ parts }) => parts)),
          deletion,
          source,
          holder,
        ],
      )
      origins.push(...shipments.map(({ origin }) => origin))
    }
    for (const destination of destinations) owed.set(destination, (owed.get(destination) ?? 0) + userIds.length)
  }
  for (const [destination, count] of owed) await addDelta(ask, ids.next(), LEDGER, destination, [count, 0, count, 0, 0, 0])
  return origins
}
