// Prints the timeline of a message and its attempts as text: at once, or entry by entry while the message is being delivered. The
// sentences come from the service.

import type { JsonObject } from '@switchyard/protocol'
import { cell, showFacts, time } from '../line/listing.ts'
import type { Output, Style } from '../line/output.ts'
import { formatDuration } from '../line/times.ts'

const STYLES: Readonly<Record<string, Style>> = {
  received: 'cyan',
  delivered: 'green',
  failed: 'red',
  expired: 'red',
  cancelled: 'yellow',
  skipped: 'yellow',
  duplicate: 'yellow',
  deleted: 'yellow',
  waiting: 'yellow',
}

export function showTimeline(out: Output, message: JsonObject): void {
  showMessageFacts(out, message)
  createTimelineFeed(out, (line) => out.line(line)).show(message)
  showOthers(out, message)
}

export function showMessageFacts(out: Output, message: JsonObject): void {
  const { id, messageId, type, event, userId, anonymousId, sourceId, sourceName, receivedAt, timestamp, traceId, duplicates } = message
  showFacts(out, [
    ['message', messageId ?? id],
    ['type', event === null ? type : `${cell(type)} ${cell(event)}`],
    ['user', userId ?? anonymousId],
    ['source', typeof sourceName === 'string' ? `${sourceName} (${cell(sourceId)})` : sourceId],
    ['received', time(receivedAt)],
    ['timestamp', timestamp === receivedAt || timestamp === null ? undefined : time(timestamp)],
    ['trace', traceId === null ? undefined : traceId],
    ['duplicates', (duplicates as JsonObject | null)?.['count']],
  ])
  out.line('')
}

/** Older messages with the same messageId. */
export function showOthers(out: Output, message: JsonObject): void {
  for (const other of (message['others'] ?? []) as JsonObject[]) {
    out.line('')
    out.line(
      `Another message with the same messageId, received at ${time(other['receivedAt'])} from ${cell(other['sourceName'] ?? other['sourceId'])}:`,
    )
    createTimelineFeed(out, (line) => out.line(line)).show(other)
  }
}

interface TimelineEntry {
  at: string | null
  what: string
  sentence: string
  deliveryId: string | null
  reason: string | null
  attemptNumber: number | null
}

/** Writes each entry of a timeline once, however often the message is read. */
export function createTimelineFeed(out: Output, write: (line: string) => void): { show(message: JsonObject): void } {
  const written = new Set<string>()
  return {
    // `story` is the API's name of the timeline.
    show({ story, deliveries }) {
      const expiries = new Map(((deliveries ?? []) as JsonObject[]).map(({ id, expiresAt }) => [id, expiresAt ?? null]))
      for (const { at, what, sentence, deliveryId, reason, attemptNumber } of (story ?? []) as unknown as TimelineEntry[]) {
        // The due time of an attempt is estimated again at each reading, so it does not make a new entry.
        const key = what === 'waiting' ? `${deliveryId} ${attemptNumber} ${reason}` : `${at} ${deliveryId} ${sentence}`
        if (written.has(key)) continue
        written.add(key)
        const style = STYLES[what]
        const word = what.padEnd(9)
        const expiresAt = what === 'waiting' ? (expiries.get(deliveryId) ?? null) : null
        const expiry = expiresAt === null ? '' : ` It expires at ${time(expiresAt)} if no attempt succeeds by then.`
        // An entry without a time describes the current state.
        write(`${(at === null ? '' : time(at)).padEnd(24)}  ${style === undefined ? word : out.paint(style, word)}  ${sentence}${expiry}`)
      }
    },
  }
}

/** Prints one attempt: the URL, the result, how long it took, and the start of the response. */
export function showAttempt(out: Output, attempt: JsonObject): void {
  const { url, address, startedAt, status, reason, error, timings, responseStart } = attempt
  const { totalMs } = timings as { totalMs: number }
  const number = attempt['attempt'] === undefined ? '' : `#${cell(attempt['attempt'])} `
  const result = reason === null ? out.paint('green', cell(status)) : out.paint('red', cell(reason))
  out.line(
    `${number}${time(startedAt)}  POST ${cell(url)}${address === null ? '' : ` (${cell(address)})`}: ${result} after ${formatDuration(totalMs)}`,
  )
  if (typeof error === 'string') out.line(`   ${error}`)
  if (typeof responseStart === 'string' && responseStart !== '') out.line(`   response: ${responseStart.replaceAll(/\s+/g, ' ')}`)
}
