// Computes the times of a message from what the caller sent and when it was received. Times are written as ISO 8601 in UTC with
// milliseconds, and clients nearly always send this form. It is parsed and formatted by hand here: all times of a message take
// about 0.4 µs, while a single parseTime takes 0.55 µs and a single toISOString 0.73 µs. The protocol package parses all other forms.

import { isoTime, type JsonObject, parseTime } from '@switchyard/protocol'
import type { SegmentContent } from '../model/messages.ts'

export interface MessageTimes {
  timestampMs: number
  timestamp: string
  /** Undefined if the caller sent no valid time. */
  originalTimestamp: string | undefined
  sentAt: string | undefined
  receivedAt: string
}

const DAY_MS = 86_400_000
const YEAR_0 = -62_167_219_200_000
const YEAR_9999_END = 253_402_300_799_999

/** The `sentAt` of a batch applies to every message that has none of its own. */
export function messageTimes(content: SegmentContent, item: JsonObject): MessageTimes {
  const { receivedAtMs } = content
  let sentAtGiven: unknown = item['sentAt']
  let sentAtMs = readTime(sentAtGiven)
  if (sentAtMs === undefined) {
    sentAtGiven = content.sentAt
    sentAtMs = readTime(sentAtGiven)
  }
  let originalGiven: unknown = item['originalTimestamp']
  let originalMs = readTime(originalGiven)
  if (originalMs === undefined) {
    originalGiven = item['timestamp']
    originalMs = readTime(originalGiven)
  }
  const timestampMs = happenedAtMs(item, originalMs, sentAtMs, receivedAtMs)
  return {
    timestampMs,
    timestamp: timestampMs === receivedAtMs ? isoTime(receivedAtMs) : writeTime(timestampMs),
    originalTimestamp: originalMs === undefined ? undefined : written(originalGiven, originalMs),
    sentAt: sentAtMs === undefined ? undefined : written(sentAtGiven, sentAtMs),
    receivedAt: isoTime(receivedAtMs),
  }
}

/** Returns when the message happened according to the service's clock. The caller's clock is corrected with its `sentAt`. */
export function messageTimestampMs(content: SegmentContent, item: JsonObject): number {
  const originalMs = readTime(item['originalTimestamp']) ?? readTime(item['timestamp'])
  return happenedAtMs(item, originalMs, readTime(item['sentAt']) ?? readTime(content.sentAt), content.receivedAtMs)
}

function happenedAtMs(item: JsonObject, originalMs: number | undefined, sentAtMs: number | undefined, receivedAtMs: number): number {
  if (originalMs === undefined) return receivedAtMs
  // A timestamp without sentAt comes from an import and is not corrected.
  if (sentAtMs === undefined) return item['originalTimestamp'] == null ? originalMs : (readTime(item['timestamp']) ?? originalMs)
  const corrected = receivedAtMs - (sentAtMs - originalMs)
  // Extreme times can add up to a year outside 0 to 9999, which has no ISO 8601 form of this length.
  return corrected >= YEAR_0 && corrected <= YEAR_9999_END ? corrected : originalMs
}

/** Returns the given text if it is already in canonical form, which saves formatting it again. */
function written(given: unknown, ms: number): string {
  return typeof given === 'string' && canonicalMs(given) === ms ? given : writeTime(ms)
}

/** The same times as parseTime accepts, faster for the usual form. */
export function readTime(value: unknown): number | undefined {
  if (value == null) return undefined
  const ms = typeof value === 'string' ? canonicalMs(value) : -1
  return ms === -1 ? parseTime(value) : ms
}

// Caches of the last parsed and the last formatted day, because consecutive messages usually share it.
let readDay = -1
let readDayMs = 0
let writtenDayMs = Number.NaN
let writtenDay = ''

/** Parses a text of exactly the form `2026-11-14T09:00:00.000Z`, from 1970 on. Returns -1 for every other text. */
function canonicalMs(text: string): number {
  if (text.length !== 24) return -1
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45 || text.charCodeAt(10) !== 84) return -1
  if (text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58 || text.charCodeAt(19) !== 46 || text.charCodeAt(23) !== 90) return -1
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const month = twoDigits(text, 5)
  const day = twoDigits(text, 8)
  const hour = twoDigits(text, 11)
  const minute = twoDigits(text, 14)
  const second = twoDigits(text, 17)
  const milli = twoDigits(text, 20) * 10 + digit(text, 22)
  // A character that is not a digit made its number far too large.
  if (year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 || milli > 999) return -1
  const wanted = year * 10_000 + month * 100 + day
  if (wanted !== readDay) {
    // Date.UTC turns 30 February into 2 March, and years before 100 into 19xx.
    const dayMs = year < 1970 || month === 0 || day === 0 ? -1 : Date.UTC(year, month - 1, day)
    if (dayMs < 0 || new Date(dayMs).getUTCDate() !== day) return -1
    readDay = wanted
    readDayMs = dayMs
  }
  return readDayMs + hour * 3_600_000 + minute * 60_000 + second * 1_000 + milli
}

function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - 48
  return value >= 0 && value <= 9 ? value : 1_000_000
}

function twoDigits(text: string, at: number): number {
  return digit(text, at) * 10 + digit(text, at + 1)
}

const MINUTES = Array.from({ length: 1_440 }, (_, minute) => `${padded(Math.floor(minute / 60), 2)}:${padded(minute % 60, 2)}:`)
const SECONDS = Array.from({ length: 60 }, (_, second) => `${padded(second, 2)}.`)
const MILLIS = Array.from({ length: 1_000 }, (_, milli) => `${padded(milli, 3)}Z`)

function writeTime(ms: number): string {
  const dayMs = Math.floor(ms / DAY_MS) * DAY_MS
  if (dayMs !== writtenDayMs) {
    writtenDay = new Date(dayMs).toISOString().slice(0, 11)
    writtenDayMs = dayMs
  }
  const rest = ms - dayMs
  const minute = Math.floor(rest / 60_000)
  const milli = rest - minute * 60_000
  const second = Math.floor(milli / 1_000)
  return `${writtenDay}${MINUTES[minute]}${SECONDS[second]}${MILLIS[milli - second * 1_000]}`
}

function padded(value: number, width: number): string {
  return String(value).padStart(width, '0')
}
