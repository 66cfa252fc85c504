// One delivery with all that happened to it: its message, every request that was made for it, and what those carried beside it.

import { type AttemptDoc, requestsOf } from '../../encoding/attempt-doc.ts'
import { namesOf, only } from '../../history/content.ts'
import { ROWS_PER_PAGE } from '../../history/paging.ts'
import type { DeliveryDetail, GatheredPart, Part, RequestRecord } from '../../store.ts'
import { holders } from '../messages/held.ts'
import { resolveOrigin, stateOf } from '../messages/origins.ts'
import { rowAndIndex, SKEW } from '../schema/ids.ts'
import type { Names } from '../schema/names.ts'
import type { Ask } from '../session/database.ts'
import { type Replays, replaysOf } from './delivery-replays.ts'
import { contentOf, owedIndexes, type StoredPart } from './rows.ts'
import { readSegment, readSegments } from './segments.ts'

/** Segments that one answer may read for what a batch carried: a batch may take one message of each of a thousand large calls. */
const GATHERED_BYTES = 32 * 1024 * 1024

export async function deliveryDetail(ask: Ask, names: Names, id: string): Promise<DeliveryDetail | undefined> {
  const named = rowAndIndex(id)
  const origin = named && (await resolveOrigin(ask, named.row))
  if (!named || !origin) return undefined
  const { row: name, index } = named
  const { destination, segment, replay } = origin
  const row = await readSegment(ask, segment)
  if (!row || !owedIndexes(origin.indexes, row.count, row.absent).includes(index)) return undefined
  const content = contentOf(row)
  const { attempts, final } = await stateOf(ask, name, index)
  const { rows } = await ask<{ attempt: number; doc: string }>(
    `SELECT attempt, doc FROM attempts WHERE origin = $1 AND id > $1::bigint - ${SKEW} ORDER BY attempt, id`,
    [name],
  )
  const history = rows.flatMap(({ attempt, doc }) =>
    requestsOf(JSON.parse(doc) as AttemptDoc)
      .filter(({ indexes }) => indexes.includes(index))
      .map((request) => Object.assign(request, { attempt })),
  )
  const idOf = await names.idsOf({ query: ask }, 'destinations', [destination])
  const [replays] = await replaysOf(ask, [{ origin: name, index, segment, destination }])
  return {
    id: `${name}-${index}`,
    destinationId: idOf(destination),
    ...namesOf(content, index),
    segment,
    index,
    state: final?.state ?? 'pending',
    reason: final?.reason ?? null,
    attempts,
    replay,
    atMs: final ? final.atMs : await dueAtMs(ask, destination, name, index),
    content: content.items[index] == null ? null : only(content, history.at(-1)?.indexes ?? [index]),
    history,
    owedAtMs: (replay ? await replayedAtMs(ask, name, index) : undefined) ?? row.received_at,
    gathered: await gatheredOf(ask, name, index, history.at(-1)),
    ...(replays as Replays),
  }
}

async function replayedAtMs(ask: Ask, origin: string, index: number): Promise<number | undefined> {
  const { rows } = await ask<{ at: number }>('SELECT at FROM replays WHERE origin = $1 AND idx = $2', [origin, index])
  return rows[0]?.at
}

/** When a pending delivery is tried next; null: at once, or not found among as many rows as may be looked at. */
async function dueAtMs(ask: Ask, destination: string, origin: string, index: number): Promise<number | null> {
  const some = (holder: string): string =>
    `(SELECT due, parts FROM (SELECT due, id, parts FROM shipments WHERE ${holder} AND attempt > 0 AND destination = $1
      ORDER BY due, id LIMIT ${ROWS_PER_PAGE}) s WHERE strpos(s.parts, $2) > 0)`
  const { rows } = await ask<{ due: number; parts: string }>(`${some('holder = 0')} UNION ALL ${some('holder = ANY($3::bigint[])')}`, [
    destination,
    origin,
    await holders(ask),
  ])
  const isIn = ([from, , indexes]: StoredPart): boolean => from === origin && (indexes === 0 || indexes.includes(index))
  return rows.find(({ parts }) => (JSON.parse(parts) as StoredPart[]).some(isIn))?.due ?? null
}

async function gatheredOf(ask: Ask, origin: string, index: number, last: RequestRecord | undefined): Promise<GatheredPart[] | null> {
  if (last?.gathered === undefined) return null
  const parts = last.gathered.parts ?? (await ledParts(ask, String(last.gathered.lead), last, origin, index))
  if (parts === null) return null
  const gathered = parts.map(({ origin: of, segment, indexes }): GatheredPart => ({ origin: of, segment, indexes, content: null }))
  const bySegment = new Map<string, GatheredPart[]>()
  for (const part of gathered) {
    const known = bySegment.get(String(part.segment))
    if (known === undefined) bySegment.set(String(part.segment), [part])
    else known.push(part)
  }
  let bytes = 0
  for await (const row of readSegments(ask, [...bySegment.keys()])) {
    const content = contentOf(row)
    for (const part of bySegment.get(row.seq) ?? []) part.content = only(content, part.indexes)
    bytes += row.body.length
    if (bytes > GATHERED_BYTES) break
  }
  return gathered
}

/** What a request carried stands with the first of those it carried. */
async function ledParts(
  ask: Ask,
  lead: string,
  { url, startedAtMs }: RequestRecord,
  origin: string,
  index: number,
): Promise<readonly Part[] | null> {
  const { rows } = await ask<{ doc: string }>(`SELECT doc FROM attempts WHERE origin = $1 AND id > $1::bigint - ${SKEW} ORDER BY id DESC`, [
    lead,
  ])
  for (const { doc } of rows) {
    for (const request of requestsOf(JSON.parse(doc) as AttemptDoc)) {
      const parts = request.url === url && request.startedAtMs === startedAtMs ? request.gathered?.parts : undefined
      if (parts?.some((part) => part.origin === origin && part.indexes.includes(index))) return parts
    }
  }
  return null
}
