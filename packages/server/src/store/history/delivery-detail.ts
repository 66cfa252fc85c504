// Reads one delivery in detail: its message, every request that was made for it, and the other messages of its last request.

import { type AttemptDoc, requestsOf } from '../encoding/attempt-doc.ts'
import { groupBy } from '../encoding/group-by.ts'
import { isTrue } from '../encoding/sql.ts'
import type { DeliveryDetail, GatheredPart, Part, RequestRecord, RowId } from '../store.ts'
import { lastReasonOf } from './deliveries.ts'
import { type ResolvedDelivery, resolveDeliveryIds } from './delivery-ids.ts'
import type { DeliveryRows, ReplayLinks } from './delivery-rows.ts'
import { messageFields, withOnly } from './message-content.ts'
import { readSegment, readSegments, segmentsOf } from './segment-rows.ts'
import { waitsOf } from './waiting-for.ts'

/** The maximum size of the segments that are read for the contents of a batch. A batch may contain one message from each of a thousand large calls. */
const GATHERED_BYTES = 32 * 1024 * 1024

/** With `sourceIds`, only a delivery of a message of these sources. */
export async function readDelivery<Id extends RowId>(
  rows: DeliveryRows<Id>,
  id: string,
  sourceIds?: readonly string[],
): Promise<DeliveryDetail | undefined> {
  const [delivery] = await resolveDeliveryIds(rows, [id])
  if (!delivery || (await segmentsOf(rows, [delivery.segment], sourceIds)).length === 0) return undefined
  const { origin, index, destination, replay } = delivery
  const attempts = (await rows.attemptsAt(origin)).map(({ at, attempt, doc }) => ({ at, attempt, doc: JSON.parse(doc) as AttemptDoc }))
  const history = attempts.flatMap(({ attempt, doc }) =>
    requestsOf(doc)
      .filter(({ indexes }) => indexes.includes(index))
      .map((request) => Object.assign(request, { attempt })),
  )
  const last = history.at(-1)
  const segment = await readSegment(rows, delivery.segment, [index, ...(last?.indexes ?? [])])
  if (!segment) return undefined
  const { content } = segment
  const [final] = attempts.flatMap(({ at, doc }) =>
    doc.f.filter(([, , indexes]) => indexes.includes(index)).map(([state, reason]) => ({ state, reason, atMs: at, note: doc.d })),
  )
  const [deadLetterTo = '', prefix, letters, withheld] = final?.note ?? []
  const idOf = await rows.destinationIds([destination])
  const waiting = final === undefined && last === undefined && !replay ? [{ ...delivery, attempts: 0 }] : []
  const [waitingFor = null] = await waitsOf(rows, waiting, () => content)
  const retry = final === undefined ? await retryOf(rows, delivery) : undefined
  const [{ replayedAtMs, resumed, ...links }] = (await rows.replayLinks([delivery])) as [ReplayLinks]
  return {
    id: `${origin}-${index}`,
    destinationId: idOf(destination),
    sourceId: segment.sourceId,
    ...messageFields(content, index),
    segment: delivery.segment,
    index,
    state: final?.state ?? 'pending',
    reason: final?.reason ?? null,
    lastReason: final ? null : lastReasonOf(history),
    waitingFor,
    attempts: last?.attempt ?? 0,
    replay,
    // 0: somebody wants it to be attempted at once.
    atMs: final ? final.atMs : retry?.dueAtMs || null,
    firstAttemptAtMs: retry?.firstAttemptAtMs ?? null,
    content: content.items[index] == null ? null : withOnly(content, last?.indexes ?? [index]),
    history,
    orderPlace: replayedAtMs === null ? 'accepted' : isTrue(resumed) ? 'resumed' : 'outside',
    deadLetter: letters?.includes(index) ? { destinationId: deadLetterTo, messageId: `${prefix}${index}` } : null,
    withheldFrom: withheld?.includes(index) ? deadLetterTo : null,
    owedAtMs: replayedAtMs ?? segment.receivedAtMs,
    gathered: last?.gathered === undefined ? null : await gatheredIn(rows, delivery, last, last.gathered),
    ...links,
  }
}

/** The shipment of a delivery that waits for a retry. Undefined if it was never attempted, or was not found within the maximum number of rows. */
async function retryOf<Id extends RowId>(rows: DeliveryRows<Id>, { destination, origin, index }: ResolvedDelivery<Id>) {
  const retries = await rows.retriesOf(destination, origin)
  return retries.find(({ parts }) => parts.some(([from, , indexes]) => from === origin && (indexes === 0 || indexes.includes(index))))
}

async function gatheredIn<Id extends RowId>(
  rows: DeliveryRows<Id>,
  delivery: ResolvedDelivery<Id>,
  request: RequestRecord,
  { lead, parts: own }: NonNullable<RequestRecord['gathered']>,
): Promise<GatheredPart[] | null> {
  const parts = own ?? (await ledParts(rows, lead as Id, request, delivery))
  if (parts === null) return null
  const gathered = parts.map(({ origin, segment, indexes }): GatheredPart => ({ origin, segment, indexes, content: null }))
  const bySegment = groupBy(gathered, ({ segment }) => segment as Id)
  let bytesRead = 0
  const wantedIn = ({ seq }: { seq: Id }) => bySegment.get(seq)?.flatMap(({ indexes }) => indexes)
  for await (const { seq, content, bytes } of readSegments(rows, [...bySegment.keys()], wantedIn)) {
    for (const part of bySegment.get(seq) ?? []) part.content = withOnly(content, part.indexes)
    bytesRead += bytes
    if (bytesRead > GATHERED_BYTES) break
  }
  return gathered
}

/** The contents of a request are stored with the record of its first part. */
async function ledParts<Id extends RowId>(
  rows: DeliveryRows<Id>,
  lead: Id,
  { url, startedAtMs }: RequestRecord,
  { origin, index }: ResolvedDelivery<Id>,
): Promise<readonly Part[] | null> {
  for (const { doc } of await rows.attemptsAt(lead)) {
    for (const request of requestsOf(JSON.parse(doc) as AttemptDoc)) {
      const parts = request.url === url && request.startedAtMs === startedAtMs ? request.gathered?.parts : undefined
      if (parts?.some((part) => part.origin === origin && part.indexes.includes(index))) return parts
    }
  }
  return null
}
