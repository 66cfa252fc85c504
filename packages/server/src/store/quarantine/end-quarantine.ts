// Ends the quarantine of messages, in one transaction. Under the lock of a segment, the row of a message exists until its quarantine ends.
// So a message is released or deleted once, however many nodes try, and a crash leaves it either in quarantine or with its deliveries.

import { groupBy } from '../encoding/group-by.ts'
import { type QuarantineOutcome, withOutcome } from '../encoding/quarantine-routes.ts'
import type { Routes } from '../encoding/stored-parts.ts'
import { MESSAGES_PER_SHIPMENT } from '../replays/replay-budget.ts'
import type { OwedAgain } from '../replays/replay-rows.ts'
import type { ReleasedMessage, Routing, RowId } from '../store.ts'
import type { LockedSegment, Place, QuarantineChanges } from './quarantine-rows.ts'

export interface ReleaseReply {
  ids: string[]
  /** The destinations that got deliveries. */
  destinationIds: string[]
}

interface Taken<Id extends RowId> {
  segment: LockedSegment<Id>
  indexes: number[]
}

export async function releaseMessages<Id extends RowId>(
  rows: QuarantineChanges<Id>,
  messages: readonly ReleasedMessage[],
  atMs: number,
): Promise<ReleaseReply> {
  const routings = new Map(messages.map(({ id, routing }) => [id, routing]))
  // Nobody would get the messages of a deleted source, so they stay in quarantine.
  const taken = await takeMessages(rows, [...routings.keys()], ({ sourceDeleted }) => !sourceDeleted)
  const planned = new Set<string>()
  for (const { shipments, skips } of routings.values())
    for (const some of [shipments, skips]) for (const { destinationId } of some) if (destinationId !== null) planned.add(destinationId)
  const known = await rows.destinations([...planned])
  const destinations = new Map(known.map((each) => [each.id, each]))
  const shipments: OwedAgain<Id>[] = []
  const receivers = new Set<string>()
  for (const { segment, indexes } of taken) {
    const owed = new Map<Id, number[]>()
    const skips = new Map<string, [destination: Id, reason: string, indexes: number[]]>()
    const skip = (destinationId: string | null, reason: string, index: number): void => {
      const key = `${destinationId} ${reason}`
      const found = skips.get(key)
      if (found) found[2].push(index)
      else skips.set(key, [(destinationId === null ? undefined : destinations.get(destinationId)?.num) ?? (NONE as Id), reason, [index]])
    }
    for (const index of indexes) {
      const routing = routings.get(`${segment.seq}-${index}`) as Routing
      for (const { destinationId } of routing.shipments.filter((each) => isAbout(each, index))) {
        const destination = destinations.get(destinationId)
        if (destination === undefined || destination.deleted) {
          skip(destinationId, 'destination_deleted', index)
          continue
        }
        receivers.add(destinationId)
        owed.set(destination.num, [...(owed.get(destination.num) ?? []), index])
      }
      for (const { destinationId, reason, rule } of routing.skips.filter((each) => isAbout(each, index)))
        skip(destinationId, rule === undefined ? reason : `${reason} ${rule}`, index)
    }
    for (const [destination, all] of owed) {
      for (let at = 0; at < all.length; at += MESSAGES_PER_SHIPMENT) {
        const entries = all.slice(at, at + MESSAGES_PER_SHIPMENT).map((index) => ({ index, replayOf: null }))
        shipments.push({ destination, segment: segment.seq, bytes: segment.bytes, entries })
      }
    }
    await end(rows, segment, 'released', atMs, indexes, [...skips.values()])
  }
  if (shipments.length > 0) await rows.owe(shipments, atMs)
  return { ids: idsOf(taken), destinationIds: [...receivers] }
}

/** The messages are never sent. */
export async function deleteMessages<Id extends RowId>(
  rows: QuarantineChanges<Id>,
  ids: readonly string[],
  atMs: number,
  outcome: 'deleted' | 'expired',
): Promise<string[]> {
  const taken = await takeMessages(rows, ids)
  for (const { segment, indexes } of taken) await end(rows, segment, outcome, atMs, indexes)
  return idsOf(taken)
}

async function takeMessages<Id extends RowId>(
  rows: QuarantineChanges<Id>,
  ids: readonly string[],
  isWanted: (segment: LockedSegment<Id>) => boolean = () => true,
): Promise<Taken<Id>[]> {
  const places = [...new Set(ids)].flatMap((id): Place<Id>[] => {
    const parsed = rows.parseId(id)
    return parsed === undefined ? [] : [{ segment: parsed.row, index: parsed.index }]
  })
  if (places.length === 0) return []
  const locked = await rows.lock([...new Set(places.map(({ segment }) => segment))])
  const segments = new Map(locked.filter(isWanted).map((each) => [each.seq, each]))
  const taken = await rows.take(places.filter(({ segment }) => segments.has(segment)))
  return Array.from(
    groupBy(taken, ({ segment }) => segment),
    ([seq, of]) => ({
      segment: segments.get(seq) as Taken<Id>['segment'],
      indexes: of.map(({ index }) => index).sort((a, b) => a - b),
    }),
  )
}

async function end<Id extends RowId>(
  rows: Pick<QuarantineChanges<Id>, 'saveRoutes' | 'count'>,
  { seq, source, routes }: Taken<Id>['segment'],
  outcome: QuarantineOutcome,
  atMs: number,
  indexes: readonly number[],
  skips?: NonNullable<Routes<Id>['k']>,
): Promise<void> {
  await rows.saveRoutes(seq, withOutcome(routes, outcome, atMs, indexes, skips))
  await rows.count(source, outcome === 'released' ? 'released' : 'deleted', indexes.length)
}

function idsOf<Id extends RowId>(taken: readonly Taken<Id>[]): string[] {
  return taken.flatMap(({ segment, indexes }) => indexes.map((index) => `${segment.seq}-${index}`))
}

function isAbout({ indexes }: { indexes: readonly number[] | null }, index: number): boolean {
  return indexes === null || indexes.includes(index)
}

/** In the place of the destination's row id: see Routes. */
const NONE: RowId = 0
