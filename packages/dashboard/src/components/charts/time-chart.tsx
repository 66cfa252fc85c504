// A chart over time as SVG: stacked bars, lines, or a heat map, with markers of what happened, and a table of the same numbers. Dragging over
// it, or Shift with the arrow keys and then Enter, zooms all charts of the dashboard to that part. Small enough that pages need no library.

import { Group, Paper, Text, UnstyledButton } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { Note, SmallNote, Strong } from '../styled.tsx'
import { colorOf, HEIGHT, hasNothing, MARKER_COLORS, MARKER_WORDS, type TimeChartProps } from './chart-text.ts'
import css from './charts.module.css'
import type { MarkerKind } from './markers.ts'
import { NumbersTable } from './numbers-table.tsx'
import { Plot } from './plot.tsx'

const MARKER_KINDS = Object.keys(MARKER_WORDS) as MarkerKind[]

export function TimeChart(props: TimeChartProps) {
  const { title, unit, series, slots, format, empty, isTable = false, heat, markers = [] } = props
  const [isOwnTable, setOwnTable] = useState(false)
  const isQuiet = hasNothing(props)
  const kinds = MARKER_KINDS.filter((kind) => markers.some((marker) => marker.kind === kind))
  const asTable = isTable || isOwnTable
  return (
    <Paper withBorder p="sm" component="figure" m={0} miw={0}>
      <Group justify="space-between" wrap="nowrap" align="flex-start" mb={6}>
        <Strong component="figcaption">
          {title} <SmallNote span>{unit}</SmallNote>
        </Strong>
        {!isTable && (
          <UnstyledButton onClick={() => setOwnTable(!isOwnTable)} aria-pressed={isOwnTable} aria-label={`${title} as a table`}>
            <Text span size="xs" c="dimmed" td="underline">
              {isOwnTable ? 'Chart' : 'Table'}
            </Text>
          </UnstyledButton>
        )}
      </Group>
      {asTable ? (
        <NumbersTable slots={slots} series={series} format={format} label={`${title}, ${unit}`} />
      ) : isQuiet ? (
        <Group h={HEIGHT} justify="center">
          <Note>{empty}</Note>
        </Group>
      ) : (
        <Plot {...props} />
      )}
      {!asTable && (
        <Group gap="sm" mt={4} style={{ rowGap: 0 }}>
          {series.map(({ label, color }) => (
            <Key key={label} color={color}>
              {label}
            </Key>
          ))}
          {heat !== undefined && !isQuiet && <SmallNote>Darker: more attempts</SmallNote>}
          {!isQuiet &&
            kinds.map((kind) => (
              <Key key={kind} color={MARKER_COLORS[kind]}>
                {MARKER_WORDS[kind]}
              </Key>
            ))}
        </Group>
      )}
    </Paper>
  )
}

function Key({ color, children }: { color: string; children: ReactNode }) {
  return (
    <Group gap={5} wrap="nowrap">
      <span className={css['swatch']} style={{ background: colorOf(color) }} />
      <SmallNote>{children}</SmallNote>
    </Group>
  )
}
