// Messages, deliveries and the audit log for a caller that is limited to sources. The store filters its lists; this module adds the filter.

import { withoutText } from '../../store/port/without-deleted.ts'
import type { DeliveryDetail, DeliveryRow, HistoryStore, Page, PageRequest } from '../../store/store.ts'
import type { Scope } from './scope.ts'

/** For how long an empty page is read on. */
const READ_ON_MS = 2_000

/** Reads on while a page is empty although there are more rows: they belong to other sources, and the caller must not learn how many there are. */
async function notEmpty<T>(list: (page: PageRequest) => Promise<Page<T>>, first: PageRequest): Promise<Page<T>> {
  const endMs = performance.now() + READ_ON_MS
  let page = await list(first)
  while (page.data.length === 0 && page.next !== null && performance.now() < endMs) page = await list({ ...first, cursor: page.next })
  return page
}

export function limitedHistory(history: HistoryStore, scope: Scope): HistoryStore {
  const { sourceIds } = scope
  return {
    messages: (filter, first) => notEmpty((page) => history.messages({ ...filter, sourceIds }, page), first),
    message: (id) => history.message(id, sourceIds),
    trails: (id) => history.trails(id, sourceIds),
    deliveries: (filter, first) =>
      notEmpty(async (page) => {
        const { data, next } = await history.deliveries({ ...filter, sourceIds }, page)
        return { data: data.map((row) => Object.assign(row, { waitingFor: limitedWait(row, scope) })), next }
      }, first),
    async delivery(id) {
      const found = await history.delivery(id, sourceIds)
      return found !== undefined && scope.has(found.sourceId) ? limitedDelivery(found, scope) : undefined
    },
    failureCauses: (filter) => history.failureCauses({ ...filter, sourceIds }),
    audit: (filter, first) => notEmpty((page) => history.audit({ ...filter, sourceIds }, page), first),
    noteAudit: (entry) => history.noteAudit(entry),
  }
}

/**
 * A request to a shared destination may have contained messages of other sources, and the response of the receiver, the error, the
 * address of an integration's request and the output of the transformation may quote them. Only the parts of the last request are known, so of other requests with several parts nothing is shown.
 */
function limitedDelivery(detail: DeliveryDetail, scope: Scope): DeliveryDetail {
  const isOwn = detail.gathered?.every(({ content }) => content !== null && scope.has(content.sourceId)) ?? false
  const last = detail.history.at(-1)
  const history = detail.history.map((request) =>
    request.gathered === undefined || (isOwn && request === last) ? request : { ...request, ...withoutText(request) },
  )
  return { ...detail, waitingFor: limitedWait(detail, scope), history, gathered: isOwn ? detail.gathered : null }
}

/** The key is in the message of the caller, but the message that it waits for may be of another source. */
function limitedWait({ waitingFor }: DeliveryRow, scope: Scope): DeliveryRow['waitingFor'] {
  if (waitingFor === null || (waitingFor.sourceId !== null && scope.has(waitingFor.sourceId))) return waitingFor
  return { ...waitingFor, messageId: null, sourceId: null }
}
