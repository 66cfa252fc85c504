// Parses the times, durations and counts in flags: `2h` (ago), `2026-11-14T09:00:00Z`, `90s`, `1.5h`.

import { isoTime, parseTime } from '@switchyard/protocol'
import { UsageProblem } from '../service/problem.ts'

/** The largest first. */
const UNITS_MS: Record<string, number> = { w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }

export function durationMs(text: string): number | undefined {
  const [, amount, unit] = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d|w)$/.exec(text.trim()) ?? []
  return amount === undefined || unit === undefined ? undefined : Math.round(Number(amount) * (UNITS_MS[unit] as number))
}

/** 14_400_000 → 4h: in the largest unit that gives a whole number. */
export function durationText(ms: number): string {
  const [unit, size] = Object.entries(UNITS_MS).find(([, each]) => each <= ms && ms % each === 0) ?? ['s', 1_000]
  return `${ms / size}${unit}`
}

/** Parses the value of a flag to milliseconds. `flag` is its name without dashes. */
export function parseDuration(flag: string, text: string): number {
  const ms = durationMs(text)
  if (ms === undefined) throw new UsageProblem(`--${flag} must be a duration such as 500ms, 30s, 5m, 2h or 7d.`)
  return ms
}

/** Parses the value of a flag to an ISO time. A duration means that long ago. */
export function parseTimeFlag(flag: string, text: string, nowMs = Date.now()): string {
  const agoMs = durationMs(text)
  const ms = agoMs === undefined ? (text === 'now' ? nowMs : parseTime(text)) : nowMs - agoMs
  if (ms === undefined || Number.isNaN(ms))
    throw new UsageProblem(`--${flag} must be a time such as 2h (two hours ago) or 2026-11-14T09:00:00Z.`)
  return isoTime(ms)
}

/** The same for a time in the future: a duration is counted from now. */
export function parseFutureTime(flag: string, text: string, nowMs = Date.now()): string {
  const aheadMs = durationMs(text)
  const ms = aheadMs === undefined ? parseTime(text) : nowMs + aheadMs
  if (ms === undefined || Number.isNaN(ms))
    throw new UsageProblem(`--${flag} must be a time such as 30d (30 days from now) or 2027-01-31T00:00:00Z.`)
  return isoTime(ms)
}

export function parseCount(flag: string, text: string, minimum = 1): number {
  const value = Number(text)
  if (!/^\d{1,15}$/.test(text) || value < minimum) throw new UsageProblem(`--${flag} must be a whole number of at least ${minimum}.`)
  return value
}

/** 1234 → 1.2 s. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`
  if (ms < 120_000) return `${Math.round(ms / 100) / 10} s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`
  return `${Math.round(ms / 360_000) / 10} h`
}
