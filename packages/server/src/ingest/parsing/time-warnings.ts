// Warns about times of accepted messages that the service cannot use as they are: ones that are not valid, which it replaces, and ones far in the
// future. The message is accepted all the same, because it is worth more with the time of receipt than lost. For a message with usual times this
// costs about a tenth of a microsecond.

import type { JsonObject } from '@switchyard/protocol'
import { WARNINGS, type WarningCode } from '../../api/message-warnings.ts'
import { readTime } from '../../outbound/outbound-message-times.ts'

export interface MessageWarning {
  /** The index of the message in the batch; null if the field belongs to the whole batch. */
  index: number | null
  messageId: string | null
  code: WarningCode
  field: string
  message: string
}

export interface Warnings {
  /** The first ones. */
  list: readonly MessageWarning[]
  /** All of them, by code. */
  counts: ReadonlyMap<WarningCode, number>
}

const MOST_LISTED = 10
const FUTURE_MS = 24 * 3_600_000

/** Collects the warnings of one request. `nowMs` is when the request was received, `sentAt` the field of the batch as it was sent. */
export class TimeWarnings {
  readonly #nowMs: number
  readonly #sentAtMs: number | undefined
  #list: MessageWarning[] | null = null
  #counts: Map<WarningCode, number> | null = null

  constructor(nowMs: number, sentAt: unknown) {
    this.#nowMs = nowMs
    this.#sentAtMs = readTime(sentAt)
    if (sentAt != null && this.#sentAtMs === undefined) this.#add('sent_at_invalid', 'sentAt', null, null)
  }

  get result(): Warnings | null {
    return this.#list === null || this.#counts === null ? null : { list: this.#list, counts: this.#counts }
  }

  check(item: JsonObject, index: number): void {
    const { timestamp, originalTimestamp, sentAt } = item
    if (timestamp == null && originalTimestamp == null && sentAt == null) return
    const sentAtMs = readTime(sentAt)
    if (sentAt != null && sentAtMs === undefined) this.#add('sent_at_invalid', 'sentAt', item, index)
    const timestampMs = readTime(timestamp)
    if (timestamp != null && timestampMs === undefined) this.#add('timestamp_invalid', 'timestamp', item, index)
    const originalMs = readTime(originalTimestamp)
    if (originalTimestamp != null && originalMs === undefined) this.#add('timestamp_invalid', 'originalTimestamp', item, index)
    const happenedMs = originalMs ?? timestampMs
    // A sender whose clock is ahead has set both times with it, and the difference counts.
    if (happenedMs !== undefined && happenedMs - (sentAtMs ?? this.#sentAtMs ?? this.#nowMs) > FUTURE_MS)
      this.#add('timestamp_in_future', originalMs === undefined ? 'timestamp' : 'originalTimestamp', item, index)
  }

  #add(code: WarningCode, field: string, item: JsonObject | null, index: number | null): void {
    this.#list ??= []
    this.#counts ??= new Map()
    this.#counts.set(code, (this.#counts.get(code) ?? 0) + 1)
    if (this.#list.length >= MOST_LISTED) return
    const messageId: unknown = item?.['messageId']
    this.#list.push({
      index,
      messageId: typeof messageId === 'string' ? messageId : null,
      code,
      field,
      message: `${field} ${WARNINGS[code]}`,
    })
  }
}
