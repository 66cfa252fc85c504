// Writes the delete messages of a request in the request's transaction, thousands of them with a few statements. The node that received the
// request holds them at first, because none may be sent before all nodes know of the request: otherwise a node could still send a message
// of the user afterwards. If that node dies, they are released like everything it held.

import { type DeleteMessage, deleteMessage, NO_KEYS } from '../../deletions/delete-messages.ts'
import type { Ask } from '../session/database.ts'
import { Columns, plainColumns, statement } from '../session/row-parameters.ts'
import { writeText } from '../session/text-columns.ts'
import type { RowIds } from '../tables/ids.ts'
import { addDelta, LEDGER } from '../tables/ledger-deltas.ts'

const MESSAGES_AT_ONCE = 2_000

interface DeleteMessages {
  deletion: string
  /** The sources, each with its users and its enabled destinations; sources and destinations as row ids (`num`). */
  sources: readonly { source: string; userIds: readonly string[]; destinations: readonly string[] }[]
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
    shipments: plainColumns({ origin: 'bigint', destination: 'bigint', user_id: 'text', bytes: 'integer', parts: 'text' }),
    deletion: 'value',
    source: 'value',
    holder: 'value',
  },
  text: ({ shipments, deletion, source, holder }) => `
    WITH sent AS (SELECT * FROM ${shipments.as('u')}), targets AS (
      INSERT INTO deletion_targets (deletion, user_id, source, destination, origin)
      SELECT ${deletion}::bigint, user_id, ${source}::bigint, destination, origin FROM sent
    )
    INSERT INTO shipments (holder, id, destination, count, bytes, parts) SELECT ${holder}, origin, destination, 1, bytes, parts FROM sent`,
})

/** Returns the row ids of the shipments that it created. */
export async function oweDeleteMessages(ask: Ask, ids: RowIds, { deletion, sources, atMs, holder }: DeleteMessages): Promise<string[]> {
  const origins: string[] = []
  const owed = new Map<string, number>()
  for (const { source, userIds, destinations } of sources) {
    if (destinations.length === 0) continue
    const perStatement = Math.max(1, Math.floor(MESSAGES_AT_ONCE / destinations.length))
    for (let at = 0; at < userIds.length; at += perStatement) {
      const messages = userIds.slice(at, at + perStatement).map((userId) => deleteMessage(() => ids.next(), userId, destinations, atMs))
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
