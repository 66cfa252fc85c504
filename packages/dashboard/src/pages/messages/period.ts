// The period of a search, as it stands in the address: one that moves with the present (`period=1h`), or two times of the viewer's zone. Pure.

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
  const moving = PERIODS.find(({ value }) => value === params.get('period'))
  if (moving !== undefined) return { from: new Date(nowMs - moving.ms).toISOString() }
  const from = validTime(params.get('from'))
  const to = validTime(params.get('to'))
  return { ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) }
}

/** What the select shows. */
export function periodChoice(params: URLSearchParams): string {
  const moving = PERIODS.find(({ value }) => value === params.get('period'))
  if (moving !== undefined) return moving.value
  return params.has('from') || params.has('to') || params.get('period') === 'between' ? 'between' : 'any'
}

function validTime(text: string | null): string | null {
  return text === null || Number.isNaN(Date.parse(text)) ? null : new Date(text).toISOString()
}

/** As an input of the kind datetime-local has it: without a zone, in the viewer's. */
export function localInput(iso: string | null): string {
  if (iso === null || Number.isNaN(Date.parse(iso))) return ''
  const at = new Date(iso)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${String(at.getFullYear()).padStart(4, '0')}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** The other way round; null for what is not a time yet. */
export function fromLocalInput(text: string): string | null {
  return validTime(text === '' ? null : text)
}
