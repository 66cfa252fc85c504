// Charts of a destination's outcomes and attempt latency over time. In a file of its own because the chart library is large.

import { ParamSegments } from '../components/inputs.tsx'
import '@mantine/charts/styles.css'
import { BarChart, LineChart } from '@mantine/charts'
import { Group, Paper, SimpleGrid, Stack } from '@mantine/core'
import { type Answer, useApi } from '../api/queries.ts'
import { Loaded } from '../components/page.tsx'
import { SectionTitle, SmallNote, Strong } from '../components/styled.tsx'
import { count, duration } from '../text/format.ts'
import { useSearchState } from '../url/url-state.ts'

/** Each range has 60 steps, except for the week. */
const RANGES = {
  '1h': { label: '1 hour', step: '1m', steps: 60, stepMs: 60_000 },
  '5h': { label: '5 hours', step: '5m', steps: 60, stepMs: 300_000 },
  '7d': { label: '7 days', step: '1h', steps: 168, stepMs: 3_600_000 },
} as const
type Range = keyof typeof RANGES
const RANGE_OPTIONS = Object.entries(RANGES).map(([value, { label }]) => ({ value, label }))

type Point = Answer<'GET /api/stats'>['data'][number]

const OUTCOMES = [
  { name: 'delivered', color: 'teal.6' },
  { name: 'retried', color: 'yellow.6' },
  { name: 'failed', color: 'red.6' },
  { name: 'expired', color: 'orange.7' },
]
const LATENCIES = [
  { name: 'p50', color: 'teal.6' },
  { name: 'p95', color: 'blue.6' },
  { name: 'p99', color: 'grape.6' },
]

export default function DestinationChart({ id }: { id: string }) {
  const [params] = useSearchState()
  const asked = params.get('range') ?? ''
  const range: Range = asked in RANGES ? (asked as Range) : '1h'
  const { step, steps, stepMs } = RANGES[range]
  // Aligned to a step, so that the query stays the same until the next step.
  const from = range === '7d' ? new Date((Math.floor(Date.now() / stepMs) - steps + 1) * stepMs).toISOString() : undefined
  const stats = useApi('GET /api/stats', {
    query: { destinationId: id, step, ...(from === undefined ? {} : { from }) },
    everyMs: 10_000,
    keep: true,
  })
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <SectionTitle>Outcomes and latency</SectionTitle>
        <ParamSegments param="range" fallback="1h" options={RANGE_OPTIONS} isReplacing size="xs" aria-label="Period" />
      </Group>
      <Loaded query={stats} lines={5}>
        {({ data }) => (
          <SimpleGrid cols={{ base: 1, md: 2 }}>
            <Outcomes points={data} range={range} />
            <Latencies points={data} range={range} />
          </SimpleGrid>
        )}
      </Loaded>
    </Stack>
  )
}

function labelOf(at: string, range: Range): string {
  const date = new Date(at)
  return range === '7d'
    ? date.toLocaleString(undefined, { weekday: 'short', hour: '2-digit', minute: '2-digit', hour12: false })
    : date.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })
}

function Outcomes({ points, range }: { points: readonly Point[]; range: Range }) {
  const sum = (name: 'delivered' | 'retried' | 'failed' | 'expired'): number =>
    points.reduce((total, point) => total + (point[name] ?? 0), 0)
  const summary = `${count(sum('delivered'))} delivered · ${count(sum('retried'))} retried · ${count(sum('failed'))} failed · ${count(sum('expired'))} expired`
  return (
    <Paper withBorder p="sm" miw={0}>
      <Strong>Outcomes</Strong>
      <SmallNote mb="xs">{summary}</SmallNote>
      <div role="img" aria-label={`Outcomes over time: ${summary}`}>
        <BarChart
          h={190}
          data={points.map(({ at, delivered, retried, failed, expired }) => ({
            at: labelOf(at, range),
            delivered,
            retried,
            failed,
            expired,
          }))}
          dataKey="at"
          type="stacked"
          series={OUTCOMES}
          withLegend
          legendProps={{ itemSorter: null }}
          valueFormatter={count}
          tickLine="none"
          gridAxis="x"
          barChartProps={{ accessibilityLayer: false }}
        />
      </div>
    </Paper>
  )
}

function Latencies({ points, range }: { points: readonly Point[]; range: Range }) {
  const last = points.findLast(({ latencyMs }) => latencyMs != null)?.latencyMs
  const summary =
    last == null
      ? 'no attempts in this period'
      : `latest: p50 ${duration(last.p50)} · p95 ${duration(last.p95)} · p99 ${duration(last.p99)}`
  return (
    <Paper withBorder p="sm" miw={0}>
      <Strong>Attempt latency</Strong>
      <SmallNote mb="xs">{summary}</SmallNote>
      <div role="img" aria-label={`Latency over time: ${summary}`}>
        <LineChart
          h={190}
          data={points.map(({ at, latencyMs }) => ({
            at: labelOf(at, range),
            p50: latencyMs?.p50,
            p95: latencyMs?.p95,
            p99: latencyMs?.p99,
          }))}
          dataKey="at"
          series={LATENCIES}
          withLegend
          withDots={points.filter(({ latencyMs }) => latencyMs != null).length < 3}
          curveType="linear"
          valueFormatter={duration}
          tickLine="none"
          gridAxis="x"
          lineChartProps={{ accessibilityLayer: false }}
        />
      </div>
    </Paper>
  )
}
