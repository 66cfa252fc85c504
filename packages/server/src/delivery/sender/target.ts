// What a sender knows of a destination, and of the messages that it was given for it.

import type { Destination, RowId, TraceContext } from '../../store/store.ts'
import type { Start } from '../link/protocol.ts'
import type { RequestSender } from './authorizing/authorized-client.ts'
import type { LoadedMessages } from './loaded-messages.ts'
import type { MemoryUser, SenderMemory } from './sender-memory.ts'
import type { Item } from './transforming/prepare-messages.ts'

/** A destination and its units. */
export interface Target extends MemoryUser {
  destination: Destination
  /** The HTTP client, with the authentication of the destination if it has any. */
  /** Whether its messages are transformed. */
  transforms: boolean
  http: RequestSender
  /** The number of units in flight. */
  inFlight: number
  limit: number
  /** Units that wait: first the late ones, then the others, each in the order in which they came. */
  waiting: { start: Start; sinceMs: number }[]
  /** Loads with messages whose transformation has not begun, in order. */
  untransformed: Map<Loaded, Transforming>
  /** The number of calls of its transformation that have not ended. */
  transforming: number
  /** Set by a temporary failure. The lane decides whether what waits is still to be sent. */
  isStopped: boolean
}

/** The messages of a load that are not transformed yet. */
export interface Transforming {
  pending: Set<number>
  /** Those of them whose transformation has not begun, in reverse order. */
  unbegun: number[]
  /** Called when all messages are transformed. */
  whenPrepared: (() => void)[]
  /** End transformations that are no longer needed. */
  cancels: Set<() => void>
}

export interface Loaded {
  target: Target
  origin: RowId
  receivedAtMs: number
  trace: TraceContext | null
  isUnreadable: boolean
  /** Builds the messages that are not prepared yet; null if there are none. */
  messages: LoadedMessages | null
  /** The prepared messages, by index. */
  items: Map<number, Item>
  /** Null without a transformation. */
  transform: Transforming | null
  /** Its part of the memory of its target. */
  heldBytes: number
  /** The number of messages that were neither started nor dropped. */
  left: number
}

export function addWaiting({ waiting }: Target, start: Start): void {
  const unit = { start, sinceMs: performance.now() }
  const at = start.isLate ? waiting.findIndex((each) => !each.start.isLate) : -1
  if (at === -1) waiting.push(unit)
  else waiting.splice(at, 0, unit)
}

export function hold(memory: SenderMemory, loaded: Loaded, bytes: number): void {
  loaded.heldBytes += bytes
  memory.hold(loaded.target, bytes)
}

export function bytesOf(item: Item | undefined): number {
  if (item === undefined || item instanceof Error) return 0
  if (typeof item === 'string') return item.length
  return ('text' in item ? item.text.length : 0) + (item.logs?.length ?? 0)
}
