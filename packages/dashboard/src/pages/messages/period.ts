// The period of a search in the URL: relative to the current time (`period=1h`), or two times in the viewer's time zone. Pure.

export const PERIODS = [
  { value: '15m', label: 'Last 15 minutes', ms: 15 * 60_000 },
  { value: '1h', label: 'Last hour', ms: 3_600_000 },
  { value: '24h', label: 'Last 24 hours', ms: 86_400_000 },
  { value: '7d', label: 'Last 7 days', ms: 7 * 86_400_000 },
] as const

export interface Period {
  from?: string
  to?: string
}

export function periodOf(params: URLSearchParams, nowMs: number): Period {
  const relative = PERIODS.find(({ value }) => value === params.get('period'))
  if (relative !== undefined) return { from: new Date(nowMs - relative.ms).toISOString() }
  const from = validTime(params.get('from'))
  const to = validTime(params.get('to'))
  return { ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) }
}

/** The value of the select. */
export function periodChoice(params: URLSearchParams): string {
  const relative = PERIODS.find(({ value }) => value === params.get('period'))
  if (relative !== undefined) return relative.value
  return params.has('from') || params.has('to') || params.get('period') === 'between' ? 'between' : 'any'
}

function validTime(text: string | null): string | null {
  return text === null || Number.isNaN(Date.parse(text)) ? null : new Date(text).toISOString()
}

/** The value of an input of type datetime-local: in the viewer's time zone, without naming it. */
export function localInput(iso: string | null): string {
  if (iso === null || Number.isNaN(Date.parse(iso))) return ''
  const at = new Date(iso)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${String(at.getFullYear()).padStart(4, '0')}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** The reverse of localInput; null if the text is not a complete time. */
export function fromLocalInput(text: string): string | null {
  return validTime(text === '' ? null : text)
}
