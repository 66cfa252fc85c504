// The period of a search in the URL: relative to the current time (`period=1h`), or two times in the viewer's time zone. Pure.

import { isoTime } from '../../url/local-time.ts'

export const PERIODS = [
  { value: '15m', label: 'Last 15 minutes', ms: 15 * 60_000 },
  { value: '1h', label: 'Last hour', ms: 3_600_000 },
  { value: '6h', label: 'Last 6 hours', ms: 6 * 3_600_000 },
  { value: '24h', label: 'Last 24 hours', ms: 86_400_000 },
  { value: '7d', label: 'Last 7 days', ms: 7 * 86_400_000 },
  { value: '30d', label: 'Last 30 days', ms: 30 * 86_400_000 },
] as const

export interface Period {
  from?: string
  to?: string
}

export function periodOf(params: URLSearchParams, nowMs: number): Period {
  const relative = PERIODS.find(({ value }) => value === params.get('period'))
  if (relative !== undefined) return { from: new Date(nowMs - relative.ms).toISOString() }
  const from = isoTime(params.get('from'))
  const to = isoTime(params.get('to'))
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
}

/** The value of the select. */
export function periodChoice(params: URLSearchParams): string {
  const relative = PERIODS.find(({ value }) => value === params.get('period'))
  if (relative !== undefined) return relative.value
  return params.has('from') || params.has('to') || params.get('period') === 'between' ? 'between' : 'any'
}
