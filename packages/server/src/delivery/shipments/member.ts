// One message of a unit, and the stored messages that it belongs to. A message is usually not parsed here: its sender builds the JSON that
// is sent. Only listeners to attempts, and deletion requests, read fields of a message; its segment is then parsed once more.

import type { JsonObject } from '@switchyard/protocol'
import type { OrderKey } from '../../model/order/order-key.ts'
import { outboundBytes } from '../../outbound/merged-size.ts'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import type { SegmentBody } from '../../store/port/stored-messages.ts'
import type { RowId, Shipment, TraceContext } from '../../store/store.ts'
import type { Sendable } from '../link/work.ts'

/** The messages of one part of a shipment, from which a sender builds requests. */
export class PartContent implements Sendable {
  /** The shipment that the messages were accepted with. Together with the index it is the delivery id. */
  readonly origin: RowId
  readonly body: SegmentBody
  /** The messages to be sent. More may be added before a sender gets them. */
  indexes: readonly number[]
  loaded: Sendable['loaded'] = null

  constructor(origin: RowId, body: SegmentBody, indexes: readonly number[]) {
    this.origin = origin
    this.body = body
    this.indexes = indexes
  }

  item(index: number): JsonObject {
    return this.body.content.items[index] ?? {}
  }

  /** The message as sent; null if it cannot be serialized, which would be a bug. */
  json(index: number): string | null {
    try {
      return JSON.stringify(outboundMessage(this.body.content, index))
    } catch {
      return null
    }
  }

  /** The bytes of that; null if it cannot be serialized. */
  bytes(index: number): number | null {
    try {
      return outboundBytes(this.body.content, index)
    } catch {
      return null
    }
  }
}

/** Each piece is parsed by its sender, with all messages of the segment, so a piece should not be too small. */
const MIN_PIECE = 8

/** One content, or several that take turns: a lane starts messages in order, and all senders are to have work at the same time. */
export function contentsOf(origin: RowId, body: SegmentBody, indexes: readonly number[], senders: number): PartContent[] {
  const pieces = senders === 1 ? 1 : Math.max(1, Math.min(senders, Math.floor(indexes.length / MIN_PIECE)))
  if (pieces === 1) return [new PartContent(origin, body, indexes)]
  return Array.from(
    { length: pieces },
    (_, piece) =>
      new PartContent(
        origin,
        body,
        indexes.filter((_index, at) => at % pieces === piece),
      ),
  )
}

export class Member {
  readonly shipment: Shipment
  /** The index, in the task's records, of the part that the message belongs to. */
  readonly part: number
  readonly content: PartContent
  readonly index: number

  constructor(shipment: Shipment, part: number, content: PartContent, index: number) {
    this.shipment = shipment
    this.part = part
    this.content = content
    this.index = index
  }

  get trace(): TraceContext | null {
    return this.content.body.about.trace
  }

  get sourceId(): string {
    return this.content.body.about.sourceId
  }

  /** When it was accepted, in wall time. */
  get receivedAtMs(): number {
    return this.content.body.about.receivedAtMs
  }

  get messageId(): string | null {
    return textOrNull(this.content.item(this.index)['messageId'])
  }

  get type(): string | null {
    return textOrNull(this.content.item(this.index)['type'])
  }

  get json(): string | null {
    return this.content.json(this.index)
  }

  get bytes(): number | null {
    return this.content.bytes(this.index)
  }

  /** The fields that identify the user of the message. */
  get owner(): JsonObject {
    const { type, userId, previousId } = this.content.item(this.index)
    return { type, userId, previousId }
  }
}

/** A message that is delivered in order. */
export class OrderedMember extends Member {
  readonly key: OrderKey
  /** The task that has it. */
  readonly task: { leave(member: OrderedMember): void }

  constructor(shipment: Shipment, part: number, content: PartContent, index: number, key: OrderKey, task: OrderedMember['task']) {
    super(shipment, part, content, index)
    this.key = key
    this.task = task
  }
}

/** What decides which messages of a key may start. A task informs it of what became of them. */
export interface KeyOrder {
  /** Their keys go on. */
  delivered(members: readonly OrderedMember[]): void
  /** They will be attempted again, or have ended without being delivered. Their keys wait until that is recorded: see returned(). */
  stopped(members: readonly OrderedMember[]): void
  /** They did not fit into their request, and are next again. */
  withdrawn(members: readonly OrderedMember[]): void
  /** They go back to the store, with everything of their keys that is behind them. Calls `leave` of the tasks. */
  leave(members: Iterable<OrderedMember>): void
  /** The outcome of a message of each of these keys is recorded, or a message that was left is back in the store. */
  returned(keys: readonly OrderKey[]): void
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
