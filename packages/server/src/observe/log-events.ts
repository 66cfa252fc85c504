// Writes events to the log, with the ids that connect related lines. Each field is listed explicitly, so that no secret is logged as
// part of an object; docs/reference/logs.md documents them. Successful operations are logged at debug. Anyone can send invalid
// requests at any rate, so rejections are logged at info once a minute for each source and code, and individually at debug.

import type { AttemptEvent } from '../delivery/events/events.ts'
import { longestAttemptMs } from '../destinations/kinds.ts'
import type { RejectedEvent } from '../ingest/events.ts'
import type { Log } from '../logging/log.ts'
import type { Watcher } from './events/events.ts'
import { redactUrl } from './redact-url.ts'

const REJECTED_EVERY_MS = 60_000

export function createEventLog(log: Log, wallMs: () => number): Watcher {
  const isDebug = log.isLevelEnabled('debug')
  const rejected = createRejectedLog(log, wallMs, isDebug)
  return {
    rejected,
    accepted({ sourceId, messages, duplicates, bytes }) {
      if (isDebug) log.debug({ sourceId, messages, duplicates, bytes }, 'messages were accepted')
    },
    attempted(event) {
      const { outcome } = event
      if (outcome.verdict === 'success') {
        if (isDebug) log.debug(fieldsOf(event), 'the attempt succeeded')
      } else if (outcome.reason === 'timeout')
        log.error(fieldsOf(event), `timeout: ${timeoutOf(event)}; will retry within the retry window`)
      else if (outcome.verdict === 'temporary') log.warn(fieldsOf(event), 'the attempt failed; will retry within the retry window')
      else log.warn(fieldsOf(event), 'the attempt failed permanently; this URL will not be retried')
    },
    breaker({ id }, state) {
      if (state === 'open') log.warn({ destinationId: id }, 'circuit breaker open: recent attempts failed; sending one probe at a time')
      else log.info({ destinationId: id }, 'circuit breaker closed: the destination accepts requests again')
    },
    trouble({ id }, err) {
      log.error({ destinationId: id, err }, 'the result of an attempt could not be recorded; the delivery stays pending')
    },
  }
}

/** An email has two deadlines, and the sentence says which one passed. */
function timeoutOf({ destination, outcome }: AttemptEvent): string {
  return longestAttemptMs(destination) === destination.timeoutMs || outcome.error === null
    ? `no response within ${destination.timeoutMs} ms`
    : outcome.error.replace(/\.$/, '')
}

function fieldsOf(event: AttemptEvent): object {
  const { destination, sourceId, deliveryId, messages, count, attempt, traceId, url, outcome } = event
  return {
    destinationId: destination.id,
    sourceId,
    deliveryId,
    messageId: messages[0]?.messageId ?? null,
    messages: count,
    attempt,
    ...(traceId === null ? {} : { traceId }),
    url: redactUrl(url),
    reason: outcome.reason,
    status: outcome.status,
    totalMs: Math.round(outcome.timings.totalMs),
  }
}

function createRejectedLog(log: Log, wallMs: () => number, isDebug: boolean): (event: RejectedEvent) => void {
  /** The number of messages rejected since the last line at info, by source and code. The number of such pairs is small. */
  const logged = new Map<string, { untilMs: number; messages: number }>()
  return ({ sourceId, code, messages }) => {
    if (isDebug) log.debug({ sourceId, code, messages }, 'messages were rejected')
    const key = `${sourceId ?? ''} ${code}`
    const last = logged.get(key)
    const nowMs = wallMs()
    if (last !== undefined && nowMs < last.untilMs && nowMs > last.untilMs - 2 * REJECTED_EVERY_MS) {
      last.messages += messages
      return
    }
    log.info({ sourceId, code, messages: messages + (last?.messages ?? 0) }, 'messages are being rejected')
    logged.set(key, { untilMs: nowMs + REJECTED_EVERY_MS, messages: 0 })
  }
}
