// One delivery with all that happened to it: its message, every request that was made for it, and what those carried beside it.

import { type AttemptDoc, requestsOf } from '../encoding/attempt-doc.ts'
import type { DeliveryDetail, GatheredPart } from '../port/history.ts'
import type { Part, RequestRecord, RowId } from '../port/model.ts'
import { namesOf, only } from './content.ts'
import { linksOf } from './deliveries.ts'
import type { DeliveryRows, NamedDelivery, ReplayLinks } from './delivery-rows.ts'
import { grouped } from './grouped.ts'
import { originStateOf } from './origin-state.ts'
import { readSegment, readSegments } from './segment-rows.ts'

/** Segments that one answer may read for what a batch carried: a batch may take one message of each of a thousand large calls. */
const GATHERED_BYTES = 32 * 1024 * 1024

export async function readDelivery<Id extends RowId>(rows: DeliveryRows<Id>, id: string): Promise<DeliveryDetail | undefined> {
  const named = rows.named(id)
  const origin = named && (await rows.origin(named.row))
  if (!named || !origin?.indexes.includes(named.index)) return undefined
  const segment = await readSegment(rows, origin.segment)
  if (!segment) return undefined
  const delivery = { origin: named.row, index: named.index, segment: origin.segment, destination: origin.destination }
  const { index } = delivery
  const { content } = segment
  const made = await rows.attemptsAt(delivery.origin)
  const { attempts, final } = originStateOf(made, index)
  const history = made.flatMap(({ attempt, doc }) =>
    requestsOf(JSON.parse(doc) as AttemptDoc)
      .filter(({ indexes }) => indexes.includes(index))
      .map((request) => Object.assign(request, { attempt })),
  )
  const last = history.at(-1)
  const idOf = await rows.destinationIds([origin.destination])
  const [links] = (await rows.replayLinks([delivery])) as [ReplayLinks<Id>]
  return {
    id: `${delivery.origin}-${index}`,
    destinationId: idOf(origin.destination),
    ...namesOf(content, index),
    segment: origin.segment,
    index,
    state: final?.state ?? 'pending',
    reason: final?.reason ?? null,
    attempts,
    replay: origin.replay,
    atMs: final ? final.atMs : await dueAtMs(rows, delivery),
    content: content.items[index] == null ? null : only(content, last?.indexes ?? [index]),
    history,
    owedAtMs: links.replayedAtMs ?? segment.receivedAtMs,
    gathered: last?.gathered === undefined ? null : await gatheredIn(rows, delivery, last, last.gathered),
    ...linksOf(links, index),
  }
}

/** When a pending delivery is tried next; null: at once, or not found among as many rows as may be looked at. */
async function dueAtMs<Id extends RowId>(
  rows: DeliveryRows<Id>,
  { destination, origin, index }: NamedDelivery<Id>,
): Promise<number | null> {
  const retries = await rows.retriesOf(destination, origin)
  const retry = retries.find(({ parts }) =>
    parts.some(([from, , indexes]) => from === origin && (indexes === 0 || indexes.includes(index))),
  )
  return retry?.dueAtMs ?? null
}

async function gatheredIn<Id extends RowId>(
  rows: DeliveryRows<Id>,
  delivery: NamedDelivery<Id>,
  request: RequestRecord,
  { lead, parts: own }: NonNullable<RequestRecord['gathered']>,
): Promise<GatheredPart[] | null> {
  const parts = own ?? (await ledParts(rows, lead as Id, request, delivery))
  if (parts === null) return null
  const gathered = parts.map(({ origin, segment, indexes }): GatheredPart => ({ origin, segment, indexes, content: null }))
  const bySegment = grouped(gathered, ({ segment }) => segment as Id)
  let bytesRead = 0
  for await (const { seq, content, bytes } of readSegments(rows, [...bySegment.keys()])) {
    for (const part of bySegment.get(seq) ?? []) part.content = only(content, part.indexes)
    bytesRead += bytes
    if (bytesRead > GATHERED_BYTES) break
  }
  return gathered
}

/** What a request carried stands with the first of those it carried. */
async function ledParts<Id extends RowId>(
  rows: DeliveryRows<Id>,
  lead: Id,
  { url, startedAtMs }: RequestRecord,
  { origin, index }: NamedDelivery<Id>,
): Promise<readonly Part[] | null> {
  for (const { doc } of await rows.attemptsAt(lead)) {
    for (const request of requestsOf(JSON.parse(doc) as AttemptDoc)) {
      const parts = request.url === url && request.startedAtMs === startedAtMs ? request.gathered?.parts : undefined
      if (parts?.some((part) => part.origin === origin && part.indexes.includes(index))) return parts
    }
  }
  return null
}
