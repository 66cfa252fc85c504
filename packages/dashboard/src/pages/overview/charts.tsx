// Incoming messages and outgoing deliveries over time, as bar charts or as a table. A chunk of its own, because the chart library is large.

import { ParamSegments } from '../../components/inputs.tsx'
import '@mantine/charts/styles.css'
import { BarChart, ChartTooltip } from '@mantine/charts'
import { Group, Paper, ScrollArea, SimpleGrid, Stack, Table } from '@mantine/core'
import { useEffect, useState } from 'react'
import { Note, SectionTitle, SmallNote, Strong } from '../../components/styled.tsx'
import { count, exactCount } from '../../text/format.ts'
import { type Bar, barsOf, type Period, type Point, STEP_MS, type Step, type Totals, totalsOf } from './periods.ts'

interface Series {
  name: keyof Totals
  label: string
  color: string
}

const INCOMING: readonly Series[] = [
  { name: 'accepted', label: 'Accepted', color: 'blue.6' },
  { name: 'duplicates', label: 'Duplicates', color: 'gray.5' },
  { name: 'rejected', label: 'Rejected', color: 'grape.6' },
]
const OUTGOING: readonly Series[] = [
  { name: 'delivered', label: 'Delivered', color: 'teal.6' },
  { name: 'retried', label: 'Retried', color: 'yellow.6' },
  { name: 'failed', label: 'Failed', color: 'red.6' },
  { name: 'expired', label: 'Expired', color: 'orange.7' },
]
/** In a chart with its own scale: one failure in a hundred would not be visible beside the deliveries. */
const UNSUCCESSFUL = OUTGOING.filter(({ name }) => name !== 'delivered')

/** Small enough for four names on one line. */
const LEGEND_STYLES = {
  legend: { justifyContent: 'center' },
  legendItem: { paddingInline: 6 },
  legendItemName: { fontSize: 'var(--mantine-font-size-xs)' },
}

interface ChartsProps {
  points: Point[]
  step: Step
  period: Period
  isOld: boolean
  isTable: boolean
}

export default function Charts({ points, step, period, isOld, isTable }: ChartsProps) {
  const bars = barsOf(points, STEP_MS[step], period.barOf)
  const totals = totalsOf(points)
  const drawn = useOneByOne(3)
  return (
    <Stack component="section" gap="xs" aria-labelledby="over-time" aria-busy={isOld} style={{ opacity: isOld ? 0.5 : 1 }}>
      <Group justify="space-between">
        <SectionTitle id="over-time">Traffic</SectionTitle>
        <ParamSegments
          param="as"
          fallback="chart"
          options={[
            { value: 'chart', label: 'Charts' },
            { value: 'table', label: 'Table' },
          ]}
          size="xs"
          aria-label="Show as"
        />
      </Group>
      {isTable ? (
        <Numbers bars={bars} period={period} />
      ) : (
        <SimpleGrid cols={{ base: 1, md: 2, lg: 3 }} spacing="sm">
          <Chart title="Incoming" unit="messages" series={INCOMING} bars={bars} totals={totals} period={period} isDrawn={drawn > 0} />
          <Chart title="Outgoing" unit="deliveries" series={OUTGOING} bars={bars} totals={totals} period={period} isDrawn={drawn > 1} />
          <Chart
            title="Unsuccessful"
            unit="attempts"
            series={UNSUCCESSFUL}
            bars={bars}
            totals={totals}
            period={period}
            isDrawn={drawn > 2}
          />
        </SimpleGrid>
      )}
    </Stack>
  )
}

/** Returns how many of the charts to draw. Increases one at a time, because drawing a chart is slow and a click must not wait for three. */
function useOneByOne(all: number): number {
  const [drawn, setDrawn] = useState(0)
  useEffect(() => {
    if (drawn === all) return undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    // Waits until the browser has painted the charts so far.
    const frame = requestAnimationFrame(() => (timer = setTimeout(() => setDrawn(drawn + 1))))
    return () => {
      cancelAnimationFrame(frame)
      clearTimeout(timer)
    }
  }, [drawn, all])
  return drawn
}

interface ChartProps {
  title: string
  unit: string
  series: readonly Series[]
  bars: Bar[]
  totals: Totals
  period: Period
  isDrawn: boolean
}

function Chart({ title, unit, series, bars, totals, period, isDrawn }: ChartProps) {
  const sums = series.map(({ name, label }) => `${label.toLowerCase()} ${exactCount(totals[name])}`).join(', ')
  const isQuiet = series.every(({ name }) => totals[name] === 0)
  return (
    <Paper
      withBorder
      p="sm"
      component="figure"
      m={0}
      miw={0}
      aria-label={`${title}, ${unit} in the last ${period.words}: ${sums}. Choose Table above for the same numbers as a table.`}
    >
      <Strong component="figcaption" mb="xs">
        {title}{' '}
        <SmallNote span>
          {unit} per {BAR_WORDS[period.id]}
        </SmallNote>
      </Strong>
      {isQuiet ? (
        <Stack h={240} align="center" justify="center">
          <Note>
            No {unit} in the last {period.words}
          </Note>
        </Stack>
      ) : !isDrawn ? (
        <Stack h={240} aria-busy="true" />
      ) : (
        <BarChart
          h={240}
          type="stacked"
          data={bars}
          dataKey="at"
          series={series.map(({ name, label, color }) => ({ name, label, color }))}
          withLegend
          legendProps={{ verticalAlign: 'bottom', itemSorter: null }}
          styles={LEGEND_STYLES}
          valueFormatter={count}
          gridAxis="x"
          tickLine="none"
          xAxisProps={{ tickFormatter: (at: string) => tick(at, period), minTickGap: 24 }}
          yAxisProps={{ allowDecimals: false, width: 44, interval: 0, tickFormatter: (value: number) => short.format(value) }}
          barChartProps={{ margin: { top: 10 } }}
          barProps={{ isAnimationActive: false }}
          tooltipAnimationDuration={0}
          tooltipProps={{
            content: ({ label, payload }) => (
              <ChartTooltip
                label={spanText(bars.find(({ at }) => at === label))}
                payload={[...(payload ?? [])]}
                series={[...series]}
                valueFormatter={exactCount}
              />
            ),
          }}
        />
      )}
    </Paper>
  )
}

const BAR_WORDS: Readonly<Record<Period['id'], string>> = { '1h': 'minute', '24h': '30 minutes', '7d': '6 hours', '30d': 'day' }

const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hour12: false,
})

function tick(at: string, { id }: Period): string {
  return (id === '1h' || id === '24h' ? clock : day).format(new Date(at))
}

function spanText(bar: Bar | undefined): string {
  return bar === undefined ? '' : dayAndClock.formatRange(new Date(bar.at), new Date(bar.until))
}

/** Newest first. */
function Numbers({ bars, period }: { bars: Bar[]; period: Period }) {
  const series = [...INCOMING, ...OUTGOING]
  return (
    <Paper withBorder>
      <ScrollArea.Autosize
        mah={420}
        type="auto"
        viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': `Counts for the last ${period.words}, newest first` }}
      >
        <Table stickyHeader striped captionSide="top" miw={640} style={{ fontVariantNumeric: 'tabular-nums' }}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Time</Table.Th>
              {series.map(({ name, label }) => (
                <Table.Th key={name} scope="col" ta="right">
                  {label}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {[...bars]
              .sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
              .map((bar) => (
                <Table.Tr key={bar.at}>
                  <Table.Th scope="row" fw={400} style={{ whiteSpace: 'nowrap' }}>
                    {spanText(bar)}
                  </Table.Th>
                  {series.map(({ name }) => (
                    <Table.Td key={name} ta="right" {...(bar[name] === 0 ? { c: 'dimmed' } : {})}>
                      {exactCount(bar[name])}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
          </Table.Tbody>
        </Table>
      </ScrollArea.Autosize>
    </Paper>
  )
}
