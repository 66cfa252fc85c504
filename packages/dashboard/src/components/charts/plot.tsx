// The plot of a chart: its grid, bars, lines, heat map and markers, and what is under the pointer or chosen with the keyboard.

import { Text, VisuallyHidden } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { type KeyboardEvent, type PointerEvent, useState } from 'react'
import {
  type ChartSeries,
  colorOf,
  HEIGHT,
  type HeatRow,
  MARKER_COLORS,
  slotText,
  type TimeChartProps,
  tickText,
  valueText,
} from './chart-text.ts'
import css from './charts.module.css'
import type { Marker } from './markers.ts'
import { zoomTo } from './period-choice.tsx'
import { labelled, linePath, niceMaximum, placeOf, round, ticksOf } from './scale.ts'

const LEFT = 46
const TOP = 10
const BOTTOM = 20
const LABEL_WIDTH = 78
/** A label is left out if it has less space than this to the end of the plot. */
const LAST_LABEL_WIDTH = 62

export function Plot(props: TimeChartProps) {
  const { ref, width } = useElementSize<HTMLDivElement>()
  return (
    <div ref={ref} style={{ height: HEIGHT }}>
      {width > 0 && <Drawn {...props} width={width} />}
    </div>
  )
}

interface Choice {
  first: number
  last: number
  isDragging: boolean
}

/** The bar under the pointer, and the part that is being chosen, by dragging or with the keyboard. */
function useChoice(slots: TimeChartProps['slots'], plotWidth: number) {
  const [choice, setChoice] = useState<Choice | null>(null)
  const slotAt = (event: PointerEvent): number =>
    placeOf(event.clientX - event.currentTarget.getBoundingClientRect().left - LEFT, plotWidth, slots.length)
  const zoom = ({ first, last }: Choice): void => {
    const [from, to] = [slots[Math.min(first, last)], slots[Math.max(first, last)]]
    if (from !== undefined && to !== undefined) zoomTo(Date.parse(from.at), Date.parse(to.until))
    setChoice(null)
  }
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') return setChoice(null)
    if (event.key === 'Enter' && choice !== null) return zoom(choice)
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (by === 0) return
    event.preventDefault()
    const last = Math.max(0, Math.min(slots.length - 1, (choice?.last ?? slots.length) + by))
    setChoice({ first: event.shiftKey && choice !== null ? choice.first : last, last, isDragging: false })
  }
  const handlers = {
    onKeyDown: onKey,
    onBlur: () => setChoice(null),
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0 || event.pointerType === 'touch') return
      event.currentTarget.setPointerCapture(event.pointerId)
      setChoice({ first: slotAt(event), last: slotAt(event), isDragging: true })
    },
    onPointerMove: (event: PointerEvent) => {
      const at = slotAt(event)
      setChoice((before) => (before?.isDragging ? { ...before, last: at } : { first: at, last: at, isDragging: false }))
    },
    onPointerUp: () => {
      if (choice?.isDragging && choice.first !== choice.last) zoom(choice)
      else setChoice((before) => before && { ...before, isDragging: false })
    },
    onPointerLeave: () => setChoice((before) => (before?.isDragging ? before : null)),
  }
  return { choice, handlers }
}

function Drawn(props: TimeChartProps & { width: number }) {
  const { title, unit, slots, series, heat, format, isWhole = true, maximum: given, markers = [], width } = props
  const plotWidth = Math.max(1, width - LEFT)
  const plotHeight = HEIGHT - TOP - BOTTOM
  const barWidth = plotWidth / Math.max(1, slots.length)
  const bars = heat === undefined ? series.filter(({ isLine }) => !isLine) : []
  const lines = series.filter(({ isLine }) => isLine)
  const sums = slots.map((_, at) => bars.reduce((sum, { values }) => sum + (values[at] ?? 0), 0))
  const top = given ?? niceMaximum(Math.max(0, ...sums, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0))))
  const isLog = heat !== undefined
  const floor = isLog ? Math.min(...heat.map(({ upTo }) => upTo / 2)) : 0
  const ceiling = isLog ? Math.max(...heat.map(({ upTo }) => upTo)) : top
  const yOf = (value: number): number => {
    const share = isLog ? Math.log(Math.max(floor, Math.min(value, ceiling)) / floor) / Math.log(ceiling / floor) : value / (top || 1)
    return TOP + plotHeight * (1 - share)
  }
  const xOf = (at: number): number => LEFT + (at + 0.5) * barWidth
  const ticks = isLog ? logTicks(floor, ceiling) : ticksOf(top, isWhole)
  const { choice, handlers } = useChoice(slots, plotWidth)
  const shown = choice === null ? null : choice.last
  const spanMs =
    slots.length === 0 ? 0 : Date.parse((slots.at(-1) as { until: string }).until) - Date.parse((slots[0] as { at: string }).at)
  return (
    <div
      className={css['plot']}
      role="slider"
      tabIndex={0}
      aria-label={`${title}, ${unit}. Arrow keys read the values; Shift and arrow keys choose a part, and Enter shows it.`}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, slots.length - 1)}
      aria-valuenow={shown ?? 0}
      aria-valuetext={shown === null ? `${slots.length} values` : textOf(slots, series, shown, format)}
      {...handlers}
    >
      <svg width={width} height={HEIGHT} aria-hidden="true">
        {ticks.map((tick) => (
          <g key={tick}>
            <line className={css['grid']} x1={LEFT} x2={width} y1={yOf(tick)} y2={yOf(tick)} />
            <text className={css['tick']} x={LEFT - 6} y={yOf(tick) + 4} textAnchor="end">
              {format(tick)}
            </text>
          </g>
        ))}
        {labelled(slots.length, plotWidth, LABEL_WIDTH)
          .filter((at) => (slots.length - at) * barWidth >= LAST_LABEL_WIDTH)
          .map((at) => (
            <text key={at} className={css['tick']} x={LEFT + at * barWidth} y={HEIGHT - 4}>
              {tickText((slots[at] as { at: string }).at, spanMs)}
            </text>
          ))}
        {heat !== undefined && <Heat heat={heat} xOf={(at) => LEFT + at * barWidth} yOf={yOf} barWidth={barWidth} />}
        <Stacks bars={bars} yOf={yOf} barWidth={barWidth} />
        {lines.map(({ label, color, values }) => (
          <path key={label} className={css['line']} d={linePath(values, xOf, yOf, barWidth)} stroke={colorOf(color)} />
        ))}
        {markers.map((marker) => (
          <MarkerLine key={`${marker.kind} ${marker.atMs} ${marker.text}`} marker={marker} slots={slots} barWidth={barWidth} />
        ))}
        {choice !== null && (
          <rect
            className={choice.first === choice.last ? css['cursor'] : css['chosen']}
            x={LEFT + Math.min(choice.first, choice.last) * barWidth}
            y={TOP}
            width={(Math.abs(choice.last - choice.first) + 1) * barWidth}
            height={plotHeight}
          />
        )}
      </svg>
      {shown !== null && slots[shown] !== undefined && <Values {...props} at={shown} x={xOf(shown)} markers={markers} />}
      <VisuallyHidden aria-live="polite">{shown === null ? '' : textOf(slots, series, shown, format)}</VisuallyHidden>
    </div>
  )
}

/** A bar for each slot, with its series above one another. */
function Stacks({ bars, yOf, barWidth }: { bars: readonly ChartSeries[]; yOf: (value: number) => number; barWidth: number }) {
  const gap = barWidth > 6 ? 2 : barWidth > 3 ? 1 : 0
  const below: number[] = []
  return bars.map(({ label, color, values }) => {
    let path = ''
    for (const [at, value] of values.entries()) {
      const from = below[at] ?? 0
      const upTo = from + (value ?? 0)
      below[at] = upTo
      if (value === null || value === 0) continue
      const [y, bottom] = [yOf(upTo), yOf(from)]
      // At least a pixel: one failure among a million deliveries is visible.
      const height = Math.max(1, bottom - y)
      path += `M${round(LEFT + at * barWidth + gap / 2)},${round(bottom)}v${-round(height)}h${round(barWidth - gap)}v${round(height)}z`
    }
    return <path key={label} d={path} fill={colorOf(color)} />
  })
}

function Heat({
  heat,
  xOf,
  yOf,
  barWidth,
}: {
  heat: readonly HeatRow[]
  xOf: (at: number) => number
  yOf: (value: number) => number
  barWidth: number
}) {
  const most = Math.max(1, ...heat.flatMap(({ counts }) => counts))
  return heat.map(({ upTo, counts }) => (
    <g key={upTo} fill="var(--mantine-color-blue-6)">
      {counts.map((count, at) =>
        count === 0 ? null : (
          <rect
            key={at}
            x={round(xOf(at))}
            y={round(yOf(upTo))}
            width={round(barWidth)}
            height={round(yOf(upTo / 2) - yOf(upTo))}
            fillOpacity={round(0.15 + 0.6 * Math.sqrt(count / most))}
          />
        ),
      )}
    </g>
  ))
}

function MarkerLine({ marker, slots, barWidth }: { marker: Marker; slots: TimeChartProps['slots']; barWidth: number }) {
  const at = slotOf(marker, slots)
  if (at === -1) return null
  const slot = slots[at] as { at: string; until: string }
  const share = (marker.atMs - Date.parse(slot.at)) / (Date.parse(slot.until) - Date.parse(slot.at))
  const x = LEFT + (at + share) * barWidth
  const color = colorOf(MARKER_COLORS[marker.kind])
  return (
    <g>
      <line className={css['marker']} x1={x} x2={x} y1={TOP} y2={HEIGHT - BOTTOM} stroke={color} />
      <path d={`M${round(x - 4)},${TOP - 6}h8l-4,6z`} fill={color} />
    </g>
  )
}

function slotOf({ atMs }: Marker, slots: TimeChartProps['slots']): number {
  return slots.findIndex(({ at, until }) => atMs >= Date.parse(at) && atMs < Date.parse(until))
}

function Values({ slots, series, format, markers = [], at, x }: TimeChartProps & { at: number; x: number }) {
  const slot = slots[at] as { at: string; until: string }
  const near = markers.filter((marker) => slotOf(marker, slots) === at).slice(0, 4)
  return (
    <div className={css['values']} style={at > slots.length / 2 ? { right: `calc(100% - ${round(x - 10)}px)` } : { left: x + 10 }}>
      <Text size="xs" fw={600}>
        {slotText(slot)}
      </Text>
      {series.map(({ label, color, values }) => (
        <div key={label} className={css['row']}>
          <span className={css['swatch']} style={{ background: colorOf(color) }} />
          <span>{label}</span>
          <span>{valueText(values[at] ?? null, format)}</span>
        </div>
      ))}
      {near.map(({ kind, text }) => (
        <div key={text} className={css['row']}>
          <span className={css['swatch']} style={{ background: colorOf(MARKER_COLORS[kind]) }} />
          <span style={{ overflowWrap: 'anywhere' }}>{text}</span>
          <span />
        </div>
      ))}
    </div>
  )
}

function textOf(slots: TimeChartProps['slots'], series: readonly ChartSeries[], at: number, format: (value: number) => string): string {
  const slot = slots[at]
  if (slot === undefined) return ''
  return `${slotText(slot)}: ${series.map(({ label, values }) => `${label} ${valueText(values[at] ?? null, format)}`).join(', ')}`
}

function logTicks(floor: number, ceiling: number): number[] {
  const ticks: number[] = []
  for (let tick = ceiling; tick >= floor; tick /= 4) ticks.push(tick)
  return ticks
}
