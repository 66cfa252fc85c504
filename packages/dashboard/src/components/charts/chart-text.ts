// What a chart shows, and its times, values and colours as text. Pure.

import { duration } from '../../text/format.ts'
import type { Marker, MarkerKind } from './markers.ts'

export interface ChartSeries {
  label: string
  /** A colour of the theme, such as `teal.6`. */
  color: string
  /** One for each bar; null where nothing was measured. */
  values: readonly (number | null)[]
  /** Drawn as a line above bars or a heat map. */
  isLine?: boolean
}

export interface HeatRow {
  /** The upper end of the row. */
  upTo: number
  counts: readonly number[]
}

export interface TimeChartProps {
  title: string
  /** What is counted, such as `deliveries per minute`. */
  unit: string
  slots: readonly { at: string; until: string }[]
  series: readonly ChartSeries[]
  heat?: readonly HeatRow[]
  format: (value: number) => string
  /** Whether values between whole numbers make no sense. */
  isWhole?: boolean
  /** The end of the scale, if it is known: 1 for shares. */
  maximum?: number
  markers?: readonly Marker[]
  isTable?: boolean
  empty: string
}

export const HEIGHT = 190
export const MARKER_COLORS: Readonly<Record<MarkerKind, string>> = { change: 'indigo.5', incident: 'pink.7', start: 'gray.6' }
/** In the order of the legend, which is the same in every chart. */
export const MARKER_WORDS: Readonly<Record<MarkerKind, string>> = {
  start: 'Node started',
  change: 'Configuration changed',
  incident: 'Incident',
}

/** Whether nothing happened. A share of 0 is a result: with a given maximum, only what was not measured is nothing. */
export function hasNothing({ series, maximum }: Pick<TimeChartProps, 'series' | 'maximum'>): boolean {
  return series.every(({ values }) => values.every((value) => value === null || (value === 0 && maximum === undefined)))
}

export function colorOf(color: string): string {
  return `var(--mantine-color-${color.replace('.', '-')})`
}

export function valueText(value: number | null, format: (value: number) => string): string {
  return value === null ? '–' : format(value)
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })
const dayAndHour = new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: '2-digit', minute: '2-digit', hour12: false })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hour12: false,
})

export function tickText(at: string, spanMs: number): string {
  return (spanMs <= 86_400_000 ? clock : spanMs <= 8 * 86_400_000 ? dayAndHour : day).format(new Date(at))
}

export function slotText({ at, until }: { at: string; until: string }): string {
  return dayAndClock.formatRange(new Date(at), new Date(until))
}

/** How long the bars are: `per min`, `per 30 min`. Not by the first or last one, which may be shorter. */
export function perText(slots: readonly { at: string; until: string }[]): string {
  const slot = slots[Math.floor(slots.length / 2)]
  return slot === undefined ? '' : `per ${duration(Date.parse(slot.until) - Date.parse(slot.at)).replace(/^1 /, '')}`
}
