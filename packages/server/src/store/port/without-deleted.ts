// Leaves data of deleted users out of a settlement: dead letters about their messages, what integrations keep of them, and the text of attempts whose requests contained one of
// their messages. A settlement may be built before this process knows of a deletion and be written after it, so the stores use this when they
// write one. The purge uses the same functions for attempts that were stored before: see ../deletions/purged-attempts.ts.

import type { RequestRecord, RowId } from '../../model/messages.ts'
import type { AttemptRecord, DeadLetters, IsDeleted, Settlement } from './delivery.ts'

/** Whether it writes anything that may contain data of a user. */
export function hasUserData({ records, letters = [], state = [] }: Settlement): boolean {
  return letters.length > 0 || state.some(({ owner }) => owner !== null) || records.some(({ requests }) => requests.some(hasText))
}

/** Text that may quote a message: an error, a response, the output of a transformation, and the URL that an integration made from the message. */
export function hasText({ url, error, responseStart, logs, step }: RequestRecord): boolean {
  return error !== null || responseStart !== null || logs !== null || (step !== undefined && url !== originOf(url))
}

/** The times, the status, the reason and the number of messages stay. */
export function withoutText(request: RequestRecord): RequestRecord {
  const url = request.step === undefined ? request.url : originOf(request.url)
  return { ...request, url, error: null, responseStart: null, logs: null }
}

/** Identifies a request that contained messages of several records; undefined for any other request. */
export function sharedRequest({ gathered, startedAtMs }: RequestRecord): string | undefined {
  return gathered === undefined ? undefined : `${gathered.lead} ${startedAtMs}`
}

/** Returns the same settlement if it has nothing of deleted users. */
export function withoutDeleted(settlement: Settlement, isDeleted: IsDeleted): Settlement {
  if (!hasUserData(settlement)) return settlement
  const { letters, noteLetters } = lettersWithout(settlement, isDeleted)
  const records = recordsWithout(settlement, isDeleted)
  const state = settlement.state?.filter(({ owner }) => owner === null || !isDeleted(owner.sourceId, owner.segment, owner.message))
  if (letters === settlement.letters && records === settlement.records && state?.length === settlement.state?.length) return settlement
  return { ...settlement, letters, state, records: records.map(noteLetters) }
}

function lettersWithout({ records, letters }: Settlement, isDeleted: IsDeleted) {
  const segments = new Map<string, RowId>()
  for (const { segment, deadLetter } of records)
    for (const index of deadLetter?.indexes ?? []) segments.set(`${deadLetter?.prefix}${index}`, segment)
  const dropped = new Set<string>()
  const left = letters?.map((some): DeadLetters => {
    // The segment of the original message counts: the dead letter has no row id yet.
    const items = some.items.filter((item) => {
      const segment = segments.get(item.messageId)
      if (segment === undefined || !isDeleted(some.sourceId, segment, item)) return true
      dropped.add(item.messageId)
      return false
    })
    return { ...some, items }
  })
  const noteLetters = (record: AttemptRecord): AttemptRecord => {
    const { deadLetter } = record
    const indexes = deadLetter?.indexes.filter((index) => !dropped.has(`${deadLetter.prefix}${index}`)) ?? []
    // The note about letters that are withheld from a destination stays, even if no other letter of the record is left.
    const isNoted = deadLetter !== undefined && (indexes.length > 0 || deadLetter.withheld !== undefined)
    return { ...record, deadLetter: isNoted ? { ...deadLetter, indexes } : undefined }
  }
  return { letters: dropped.size === 0 ? letters : left?.filter(({ items }) => items.length > 0), noteLetters }
}

function recordsWithout({ records, bodyOf }: Settlement, isDeleted: IsDeleted): readonly AttemptRecord[] {
  const touched = new Set<RequestRecord>()
  const shared = new Set<string>()
  for (const { segment, requests } of records) {
    const indexes = new Set(requests.filter(hasText).flatMap((request) => request.indexes))
    const body = indexes.size === 0 ? undefined : bodyOf?.(segment)
    if (body === undefined) continue
    const { items } = body.contentOf(indexes)
    const isGone = (index: number): boolean => isDeleted(body.about.sourceId, segment, items[index] ?? {})
    for (const request of requests) {
      if (!hasText(request) || !request.indexes.some(isGone)) continue
      touched.add(request)
      const key = sharedRequest(request)
      if (key !== undefined) shared.add(key)
    }
  }
  if (touched.size === 0) return records
  const isTouched = (request: RequestRecord): boolean => touched.has(request) || shared.has(sharedRequest(request) ?? '')
  return records.map((record) => ({
    ...record,
    requests: record.requests.map((request) => (isTouched(request) ? withoutText(request) : request)),
  }))
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : ''
}
