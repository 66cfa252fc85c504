// Lists and details for operators: messages, deliveries, causes of failures, and the audit log.

import type { FilterRule, FinalStateName, Part, RequestRecord, RowId, SegmentContent, SkipReason } from '../../model/messages.ts'
import type { AuditEntry, AuditFilter, NewAuditEntry } from './audit.ts'
import type { Page, PageRequest, TimeRange } from './pages.ts'

export interface MessageFilter extends TimeRange {
  sourceId?: string | undefined
  /** Only of these sources, in addition to the other conditions. Undefined: all sources. */
  sourceIds?: readonly string[] | undefined
  type?: string | undefined
  event?: string | undefined
  userId?: string | undefined
  messageId?: string | undefined
  /** A part of an id of the user or the message, of the event or of another name, in upper or lower case. */
  search?: string | undefined
  /** Only messages that have this property. See message-lists/message-search.ts. */
  property?: PropertyFilter | undefined
}

export interface PropertyFilter {
  /** The names on the way to the property. */
  path: readonly string[]
  /** Undefined: any value. */
  value?: string | undefined
}

/** `state` is null if the page has too many attempts to read them all. */
export interface PlannedDelivery {
  id: string
  destinationId: string
  state?: DeliveryState | null
  reason?: string | null
}

export interface StoredMessage {
  /** `segment-index`. */
  id: string
  segment: RowId
  index: number
  content: SegmentContent
  /** The deliveries that were planned when the message was accepted, in lists with their states, and the destinations that it was not sent to, with the reason. */
  deliveries: PlannedDelivery[]
  skips: { destinationId: string | null; reason: SkipReason; rule?: FilterRule }[]
  /** Only if a tracking plan put the message in quarantine. `atMs`: when it left the quarantine. */
  quarantine?: { state: 'held' | 'released' | 'deleted' | 'expired'; atMs: number | null }
}

export interface MessageTrail extends StoredMessage {
  /** How often its messageId was sent again within a day and dropped as a duplicate. Null if it was never sent again. */
  repeats: { count: number; lastAtMs: number } | null
}

export type DeliveryState = 'pending' | FinalStateName

export interface DeliveryFilter extends TimeRange {
  destinationId?: string | undefined
  state?: DeliveryState | undefined
  reason?: string | undefined
  /** Only messages with this userId, anonymousId or previousId. */
  userId?: string | undefined
  /** Only messages with this event. */
  event?: string | undefined
  /** Only of these sources, in addition to the other conditions. Undefined: all sources. */
  sourceIds?: readonly string[] | undefined
}

/** Fields of a delivery's message. All are null if the message is no longer stored. */
export interface MessageFields {
  messageId: string | null
  type: string | null
  event: string | null
  userId: string | null
  anonymousId: string | null
}

export interface CauseFilter extends TimeRange {
  destinationId?: string | undefined
  state?: Exclude<FinalStateName, 'delivered'> | undefined
  /** Only of these sources, in addition to the other conditions. Undefined: all sources. */
  sourceIds?: readonly string[] | undefined
}

/** Deliveries to one destination that ended in the same state for the same reason. */
export interface FailureCause {
  destinationId: string
  state: Exclude<FinalStateName, 'delivered'>
  reason: string | null
  count: number
  firstAtMs: number
  lastAtMs: number
  /** The newest of these deliveries. */
  deliveryId: string
  /** Whether there are older deliveries of the same destination and state that were not counted. */
  isPartial: boolean
}

export interface FailureCauses {
  /** Ordered by the time of the newest failure, newest first. */
  causes: FailureCause[]
  /** The number of failures that were counted. */
  counted: number
}

/** The message for which a delivery waits, because its key waits or is held. */
export interface WaitingFor {
  /** The head of the key. Null if it was purged. */
  messageId: string | null
  /** The source of that message; null if it is not stored any more. */
  sourceId: string | null
  /** The text of the key. Null if the waiting message was purged. */
  key: string | null
  isHeld: boolean
}

export interface DeliveryRow extends MessageFields {
  /** `origin-index`. */
  id: string
  destinationId: string
  segment: RowId
  index: number
  state: DeliveryState
  reason: string | null
  /** If the delivery is pending: why its last attempt failed. Null if there was none, or if a page has too many to read them all. */
  lastReason: string | null
  /** Only of a pending delivery that waits for another message with the same key. */
  waitingFor: WaitingFor | null
  /** The number of attempts made. */
  attempts: number
  replay: boolean
  /** When the delivery ended. If it is pending, when the next attempt is due; null if that is at once. */
  atMs: number | null
  /** If the delivery is pending: when its first attempt was made, in schedule time. The retry window began then. Null if there was none. */
  firstAttemptAtMs: number | null
  /** If this is a replay: the delivery that it repeats, and the replay job that created it, if any. */
  replayOf: string | null
  replayJobId: string | null
  /** The newest delivery of the message to the same destination, if that is a later one than this. */
  replayedBy: string | null
}

export interface DeliveryDetail extends DeliveryRow {
  /** The source of the message. */
  sourceId: string
  /** The message, and the other messages of its segment that its last request contained. Null if the message was purged. */
  content: SegmentContent | null
  history: (RequestRecord & { attempt: number })[]
  /** Its place if the destination is ordered: that of its acceptance, the head of its key, or none, if it is a replay or its message was in quarantine. */
  orderPlace: 'accepted' | 'resumed' | 'outside'
  /** When the delivery was created. */
  owedAtMs: number
  /** If the delivery failed or expired and the message became a dead letter: its messageId, and the destination that it is owed to. */
  deadLetter: { destinationId: string; messageId: string } | null
  /** The dead-letter destination that did not get the message, because the message is an alert about it. */
  withheldFrom: string | null
  /** If the last request contained messages from several calls: all of them, in order, as far as they are still stored. */
  gathered: readonly GatheredPart[] | null
}

export interface GatheredPart extends Part {
  /** The messages that the request contained. Null if they are no longer stored, or if all together are too large. */
  content: SegmentContent | null
}

export interface HistoryStore {
  messages(filter: MessageFilter, page: PageRequest): Promise<Page<StoredMessage>>
  /** `id` is `segment-index`, or a messageId; then the newest message with it is returned. With `sourceIds`, only of these sources. */
  message(id: string, sourceIds?: readonly string[]): Promise<StoredMessage | undefined>
  /** All messages with this id or messageId, newest first, at most 20. Includes messages whose content was purged; their item is null. */
  trails(id: string, sourceIds?: readonly string[]): Promise<MessageTrail[]>
  deliveries(filter: DeliveryFilter, page: PageRequest): Promise<Page<DeliveryRow>>
  /** With `sourceIds`, only if its message is of these sources. */
  delivery(id: string, sourceIds?: readonly string[]): Promise<DeliveryDetail | undefined>
  /** Failed, expired and cancelled deliveries, grouped by cause. Counts at most 100,000: the newest of each destination and state. */
  failureCauses(filter: CauseFilter): Promise<FailureCauses>
  /** The audit log, newest first. Entries are kept for 400 days, or as long as messages if those are kept longer. */
  audit(filter: AuditFilter, page: PageRequest): Promise<Page<AuditEntry>>
  /** Writes an audit entry for an action that changes nothing in the store, such as a login or a test. */
  noteAudit(entry: NewAuditEntry): Promise<void>
}
