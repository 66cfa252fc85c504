// What a rule is: a pure function of what was observed over time, which says whether an incident about its subject should be opened or closed.
// A rule keeps nothing between two calls, so a node that starts or takes over notices what the node before it would have noticed.

import { isoTime } from '@switchyard/protocol'
import type { RuleId, Severity } from '../../api/alert-rule-ids.ts'
import { countOf, rejectedByCode, type StatCounts } from '../../store/port/stat-counts.ts'

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

export type SubjectKind = 'source' | 'destination' | 'node' | 'service'

/** What an incident is about. */
export interface Subject {
  kind: SubjectKind
  id: string
  name: string
}

export type Details = Readonly<Record<string, number | string | null>>

export interface RuleVerdict {
  /** `keep`: an open incident stays open, and a closed one stays closed, for example because there is too little to judge by. */
  verdict: 'open' | 'close' | 'keep'
  /** When the problem began. */
  sinceMs: number
  /** Facts for the message, under fixed names. */
  details: Details
  /** With `keep`: the problem has begun, but has not lasted long enough for an incident. It is listed, and no alert is sent about it yet. */
  isStarting?: boolean
}

/** What can be done about an incident with one call of the API. `states`: of the deliveries that are replayed. */
export interface IncidentAction {
  action: 'retry' | 'replay' | 'resume'
  destinationId: string
  states: readonly ('failed' | 'expired')[]
}

export interface NumberSetting {
  fallback: number
  min: number
  max: number
  /** For the reference. */
  description: string
}

export type Settings = Readonly<Record<string, NumberSetting>>
export type Values<S extends Settings = Settings> = Readonly<Record<keyof S, number>>

export interface Rule<Observed, S extends Settings = Settings> {
  id: RuleId
  /** The event of the message that is sent when an incident is opened. */
  event: string
  /** The event of the message that is sent when it is closed. Rules that give none have the same one. */
  closedEvent: string
  subject: SubjectKind
  severity: (details: Details) => Severity
  /** Whether alerts are sent if nobody has chosen otherwise. Incidents are listed in any case. */
  notifies: boolean
  /** While there is an incident of one of these rules about the same subject, there is none of this rule: it would say less about the same problem. */
  unless: readonly RuleId[]
  /** The number that is followed over time: its name in the details, and in words. */
  measure: { name: string; label: string } | null
  actions: (subjectId: string, details: Details) => readonly IncidentAction[]
  /** For the reference: what the rule notices. */
  description: string
  /** The rule as sentences, with the names of settings in braces: `Open when … for {openAfterMinutes} minutes.` */
  sentences: readonly string[]
  settings: S
  judge(observed: Observed, values: Values<S>): RuleVerdict
  /** Sentences for people. The name is that of the subject. */
  opened(name: string, details: Details): string
  closed(name: string, details: Details): string
  /** The path of the dashboard's page that shows the cause. */
  link(subjectId: string, details: Details): string
}

/** The parts of a rule that have a default. */
type Optional = 'closedEvent' | 'notifies' | 'unless' | 'measure' | 'actions'

export const KEEP: RuleVerdict = { verdict: 'keep', sinceMs: 0, details: {} }

/** Infers the names of the settings. */
export function rule<Observed, S extends Settings>(
  made: Omit<Rule<Observed, S>, Optional> & Partial<Pick<Rule<Observed>, Optional>>,
): Rule<Observed> {
  return { closedEvent: made.event, notifies: true, unless: [], measure: null, actions: () => [], ...made }
}

export const PENDING = { name: 'pending', label: 'pending deliveries' } as const

export function retryNow(destinationId: string): IncidentAction {
  return { action: 'retry', destinationId, states: [] }
}

export function numberSetting(fallback: number, min: number, max: number, description: string): NumberSetting {
  return { fallback, min, max, description }
}

export function minutesSetting(fallback: number, description: string, max = 1_440): NumberSetting {
  return numberSetting(fallback, 0, max, description)
}

// ── What is observed ────────────────────────────────────────────────────────────────────────────────────────────────

/** Counts by minute: the number of the minute since 1970, and its counts. Minutes without counts are missing. */
export type Minutes<Counts> = ReadonlyMap<number, Counts>

export interface SourceMinute {
  accepted: number
  rejected: number
  /** The most frequent error code of the rejected messages. */
  code: string | null
}

export interface DestinationMinute {
  delivered: number
  /** Attempts after which a delivery failed, expired or is retried. Messages of the source `system` are not counted. */
  failed: number
  /** Without messages of the source `system`. */
  expired: number
  /** Deliveries that failed permanently, without messages of the source `system`. */
  failedForGood: number
}

export function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS)
}

export function sourceMinute(counts: StatCounts): SourceMinute {
  const rejected = Object.entries(rejectedByCode(counts)).sort(([, a], [, b]) => b - a)
  return {
    // A duplicate is a sign of life too.
    accepted: countOf(counts, 'accepted') + countOf(counts, 'duplicates'),
    rejected: rejected.reduce((sum, [, count]) => sum + count, 0),
    code: rejected[0]?.[0] ?? null,
  }
}

export function destinationMinute(counts: StatCounts): DestinationMinute {
  const ended = countOf(counts, 'failed') + countOf(counts, 'expired') + countOf(counts, 'retried')
  const ownFailed = countOf(counts, 'systemFailed') - countOf(counts, 'systemExpired')
  return {
    delivered: countOf(counts, 'delivered'),
    failed: Math.max(0, ended - countOf(counts, 'systemFailed')),
    expired: Math.max(0, countOf(counts, 'expired') - countOf(counts, 'systemExpired')),
    // Retries of messages of `system` are counted with their failures, so this may be too low, and never too high.
    failedForGood: Math.max(0, countOf(counts, 'failed') - Math.max(0, ownFailed)),
  }
}

// ── Text ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** `12,000 messages`, `1 message`. */
export function many(count: unknown, noun: string, plural = `${noun}s`): string {
  return `${grouped(count)} ${Number(count) === 1 ? noun : plural}`
}

/** `12 deliveries are pending.` */
export function pendingText(pending: unknown): string {
  return `${many(pending, 'delivery is', 'deliveries are')} pending.`
}

/** What becomes of what failed: of attempts that are not repeated, nothing is pending. */
export function retriedText(pending: unknown, expiry: Details = {}): string {
  return Number(pending) === 0 ? 'No delivery is pending.' : `Failed attempts are retried; ${pendingText(pending)}${expiryText(expiry)}`
}

/** For the details of incidents about pending deliveries. */
export function expiryDetails(nowMs: number, nextExpiryAtMs: number | null): Details {
  if (nextExpiryAtMs === null) return { nextExpiryAt: null, expiresInMs: null }
  return { nextExpiryAt: isoTime(nextExpiryAtMs), expiresInMs: Math.max(0, nextExpiryAtMs - nowMs) }
}

/** ` The first one expires in 4 hours (2026-11-18 14:10 UTC).` Empty if nothing expires, or if that is not known. */
export function expiryText({ nextExpiryAt, expiresInMs }: Details): string {
  if (typeof nextExpiryAt !== 'string' || typeof expiresInMs !== 'number') return ''
  if (expiresInMs === 0) return ' The first one expires if its next attempt fails.'
  return ` The first one expires in ${span(expiresInMs)} (${nextExpiryAt.slice(0, 16).replace('T', ' ')} UTC).`
}

export function grouped(count: unknown): string {
  return Number(count).toLocaleString('en-US')
}

/** A duration in words: `4 minutes`, `3 hours`, `2 days`. */
export function span(ms: unknown): string {
  if (Number(ms) < MINUTE_MS) return 'less than a minute'
  const minutes = Math.round(Number(ms) / MINUTE_MS)
  if (minutes < 120) return many(minutes, 'minute')
  const hours = Math.round(minutes / 60)
  return hours < 48 ? many(hours, 'hour') : many(Math.round(hours / 24), 'day')
}
