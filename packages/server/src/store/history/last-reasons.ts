// Why the last attempt of each listed pending delivery failed. Only ended deliveries have a reason in their row; for pending ones, the record of
// the attempt has it.

import type { RequestRecord, RowId } from '../../model/messages.ts'
import { type AttemptDoc, requestsOf } from '../encoding/attempt-doc.ts'
import type { DeliveryRows, FoundDelivery } from './delivery-rows.ts'
import { portions } from './paging.ts'

/** Docs that are in memory at once, in bytes. */
const BYTES_AT_ONCE = 1024 * 1024
/** The size of the docs that are read for one page. The deliveries whose docs come after this have no reason in the list. */
const BYTES_PER_PAGE = 16 * 1024 * 1024

/** By the id of the delivery. */
export async function lastReasons<Id extends RowId>(
  rows: DeliveryRows<Id>,
  found: readonly FoundDelivery<Id>[],
): Promise<ReadonlyMap<string, string>> {
  const reasons = new Map<string, string>()
  const attempted = found.filter(({ state, attempts }) => state === 'pending' && attempts > 0)
  if (attempted.length === 0) return reasons
  const wanted = new Set(attempted.map(({ origin, index }) => `${origin}-${index}`))
  const unique = new Map(attempted.map(({ origin, attempts }) => [`${origin} ${attempts}`, { origin, attempt: attempts }]))
  const attempts = await rows.numberedAttempts([...unique.values()])
  let bytesRead = 0
  for (const some of portions(attempts, ({ bytes }) => bytes, BYTES_AT_ONCE)) {
    const originOf = new Map(some.map(({ id, origin }) => [id, origin]))
    for (const { id, doc } of await rows.docs(some.map((attempt) => attempt.id))) {
      for (const { reason, indexes } of requestsOf(JSON.parse(doc) as AttemptDoc)) {
        if (reason === null) continue
        for (const index of indexes) {
          const delivery = `${originOf.get(id)}-${index}`
          if (wanted.has(delivery)) reasons.set(delivery, reason)
        }
      }
    }
    bytesRead += some.reduce((sum, { bytes }) => sum + bytes, 0)
    if (bytesRead > BYTES_PER_PAGE) break
  }
  return reasons
}

/** The same for one delivery with all its requests. An integration may have made successful requests after the one that failed. */
export function lastReasonOf(history: readonly (Pick<RequestRecord, 'reason'> & { attempt: number })[]): string | null {
  const last = history.at(-1)?.attempt
  return history.flatMap(({ attempt, reason }) => (attempt === last && reason !== null ? [reason] : [])).at(-1) ?? null
}
