// The messages of one request to an ordered destination may be in several shipments: one for each partition. If a task has several of them, their messages
// have one record, and a sender gets them as one piece, which it parses once.

import type { SegmentBody } from '../../store/port/stored-messages.ts'
import type { RowId, Shipment } from '../../store/store.ts'
import type { PartContent } from './member.ts'
import type { PartRecord } from './part-record.ts'

class SharedPart {
  /** The index of the record in the task. */
  readonly part: number
  readonly record: PartRecord
  /** What a sender gets. */
  readonly contents: PartContent[]

  constructor(part: number, record: PartRecord, contents: PartContent[]) {
    this.part = part
    this.record = record
    this.contents = contents
  }

  /** Adds the messages of another shipment. */
  add(indexes: readonly number[]): void {
    for (const content of this.contents) content.indexes = [...content.indexes, ...indexes].sort((a, b) => a - b)
  }
}

export class SharedParts {
  /** The latest part of each origin. */
  readonly #byOrigin = new Map<RowId, SharedPart>()

  set(part: number, record: PartRecord, contents: PartContent[]): void {
    this.#byOrigin.set(record.origin, new SharedPart(part, record, contents))
  }

  /** The part that the messages of a shipment can be added to. */
  find({ attempt, replay }: Shipment, origin: RowId, segment: RowId, body: SegmentBody | undefined): SharedPart | undefined {
    const shared = this.#byOrigin.get(origin)
    if (shared === undefined) return undefined
    const { record } = shared
    const isSame = record.segment === segment && record.body === body && record.shipment.attempt === attempt
    return isSame && record.shipment.replay === replay ? shared : undefined
  }
}
