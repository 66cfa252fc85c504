// A unit is the messages of one request: one message, or a batch. Pure.

import { sharedTrace } from '../../outbound/trace-context.ts'
import type { BatchSettings, RowId, TraceContext } from '../../store/store.ts'
import type { Member } from './member.ts'

export interface Unit {
  members: Member[]
  /** Whether it is sent as an array, and retried as the same batch. */
  isBatch: boolean
  /** In schedule time. */
  startedAtMs: number
  /** How many of its requests are in the records already. */
  recorded: number
  /** Whether messages that came after it were started earlier. */
  isLate: boolean
}

export function unitOf(members: Member[], isBatch: boolean): Unit {
  return { members, isBatch, startedAtMs: 0, recorded: 0, isLate: false }
}

export function traceOf({ members }: Unit): TraceContext | null {
  // Most units have a single message.
  return members.length === 1 ? (members[0] as Member).trace : sharedTrace(members.map(({ trace }) => trace))
}

/** The id of a batch is that of its first delivery. */
export function deliveryIdOf(members: readonly Member[]): string {
  const { content, index } = members[0] as Member
  return `${String(content.origin)}-${index}`
}

/** Splits messages into batches within the destination's limits. A message that exceeds the byte limit is sent alone. */
export function splitIntoBatches(members: readonly Member[], { size, bytes }: BatchSettings): Unit[] {
  const units: Unit[] = []
  let current: Member[] = []
  let currentBytes = 0
  const close = (): void => {
    if (current.length > 0) units.push(unitOf(current, true))
    current = []
    currentBytes = 0
  }
  for (const member of members) {
    const { bytes: sentBytes } = member
    // A delete message is never sent with others, nor is one that cannot be serialized.
    const isAlone = sentBytes === null || member.type === 'delete'
    const memberBytes = (sentBytes ?? 0) + 1
    if (isAlone || current.length === size || currentBytes + memberBytes >= bytes) close()
    current.push(member)
    currentBytes += memberBytes
    if (isAlone) close()
  }
  close()
  return units
}

export function byPart(members: readonly Member[]): [part: number, indexes: number[]][] {
  // Most units have a single message.
  if (members.length === 1) {
    const { part, index } = members[0] as Member
    return [[part, [index]]]
  }
  const parts = new Map<number, number[]>()
  for (const { part, index } of members) {
    const indexes = parts.get(part)
    if (indexes) indexes.push(index)
    else parts.set(part, [index])
  }
  return [...parts]
}

export function byShipment(members: readonly Member[]): Map<RowId, Member[]> {
  const shipments = new Map<RowId, Member[]>()
  for (const member of members) {
    const own = shipments.get(member.shipment.id)
    if (own) own.push(member)
    else shipments.set(member.shipment.id, [member])
  }
  return shipments
}
