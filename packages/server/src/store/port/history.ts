// Lists and details for operators: messages, deliveries, causes of failures, and the audit log.

import type { AuditEntry, AuditFilter, NewAuditEntry } from './audit.ts'
import type { FilterRule, FinalStateName, Part, RequestRecord, RowId, SegmentContent, SkipReason } from './model.ts'
import type { Page, PageRequest, TimeRange } from './pages.ts'

export interface MessageFilter extends TimeRange {
  sourceId?: string | undefined
  type?: string | undefined
  event?: string | undefined
  userId?: string | undefined
  messageId?: string | undefined
}

export interface StoredMessage {
  /** `segment-index`. */
  id: string
  segment: RowId
  index: number
  content: SegmentContent
  /** Where it was owed and where not and why, as planned when it was accepted. */
  deliveries: { id: string; destinationId: string }[]
  skips: { destinationId: string | null; reason: SkipReason; rule?: FilterRule }[]
}

export interface MessageTrail extends StoredMessage {
  /** How often its messageId came again within a day and was dropped as a duplicate. */
  repeats: { count: number; lastAtMs: number } | null
}

export type DeliveryState = 'pending' | FinalStateName

export interface DeliveryFilter extends TimeRange {
  destinationId?: string | undefined
  state?: DeliveryState | undefined
  reason?: string | undefined
  /** Of a message of this user: by userId, anonymousId or previousId. */
  userId?: string | undefined
  /** Of a message with this event. */
  event?: string | undefined
}

/** What the message of a delivery says of itself; all null when it is no longer stored. */
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
}

/** Deliveries that came to the same end for the same reason. */
export interface FailureCause {
  destinationId: string
  state: Exclude<FinalStateName, 'delivered'>
  reason: string | null
  count: number
  firstAtMs: number
  lastAtMs: number
  /** The newest of them. */
  deliveryId: string
  /** Whether older ones of the same destination and state were not looked at. */
  isPartial: boolean
}

export interface FailureCauses {
  /** The one with the newest failure first. */
  causes: FailureCause[]
  /** How many failures were looked at. */
  looked: number
}

export interface DeliveryRow extends MessageFields {
  /** `origin-index`. */
  id: string
  destinationId: string
  segment: RowId
  index: number
  state: DeliveryState
  reason: string | null
  /** Attempts made. */
  attempts: number
  replay: boolean
  /** When it came to its state; of a pending one, when it is due (null: at once). */
  atMs: number | null
  /** Of a replay: the delivery that it repeats, and the job that it belongs to if one made it. */
  replayOf: string | null
  replayJobId: string | null
  /** The newest delivery of the message to the same destination, if that is a later one. */
  replayedBy: string | null
}

export interface DeliveryDetail extends DeliveryRow {
  /** With the message, and those of its segment that were in the same last request; null when it was purged. */
  content: SegmentContent | null
  history: (RequestRecord & { attempt: number })[]
  /** When it came to be owed. */
  owedAtMs: number
  /** Where the last request carried messages of several calls: all of them, in order, as far as they are still stored. */
  gathered: readonly GatheredPart[] | null
}

export interface GatheredPart extends Part {
  /** With the messages that the request carried; null when they are no longer stored, or all together too large. */
  content: SegmentContent | null
}

export interface HistoryStore {
  messages(filter: MessageFilter, page: PageRequest): Promise<Page<StoredMessage>>
  /** By `segment-index`, or by messageId: the newest one that has it. */
  message(id: string): Promise<StoredMessage | undefined>
  /** Every message of this id or messageId, newest first and no more than 20; also one whose content was purged, whose item is null. */
  trails(id: string): Promise<MessageTrail[]>
  deliveries(filter: DeliveryFilter, page: PageRequest): Promise<Page<DeliveryRow>>
  delivery(id: string): Promise<DeliveryDetail | undefined>
  /** Failed, expired and cancelled deliveries, grouped by cause. Looks at 100,000 at most: the newest of each destination and state. */
  failureCauses(filter: CauseFilter): Promise<FailureCauses>
  /** What was changed, by whom, newest first. Kept for 400 days, or as long as messages if they are kept longer. */
  audit(filter: AuditFilter, page: PageRequest): Promise<Page<AuditEntry>>
  /** Writes down what was done that changes nothing here: a login, a test. */
  noteAudit(entry: NewAuditEntry): Promise<void>
}
