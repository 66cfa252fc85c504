// Charts of a destination over time: throughput, success, backlog, the age of the oldest delivery, and the latency as a heat map.

import { Box, SimpleGrid, Stack } from '@mantine/core'
import { useApi } from '../api/queries.ts'
import { type HeatRow, perText, type TimeChartProps } from '../components/charts/chart-text.ts'
import { useMarkers } from '../components/charts/markers.ts'
import { PeriodChoice, usePeriod } from '../components/charts/period-choice.tsx'
import { type Period, type Point, type Slot, STEP_MS, slotsOf, span, totalsOf, whichPeriod } from '../components/charts/periods.ts'
import { TimeChart } from '../components/charts/time-chart.tsx'
import { Heading, Loaded } from '../components/page.tsx'
import { count, duration, share } from '../text/format.ts'

const LATENCIES = [
  { name: 'p50', color: 'teal.7' },
  { name: 'p95', color: 'orange.6' },
  { name: 'p99', color: 'red.6' },
] as const

export default function DestinationChart({ id, hasLatency }: { id: string; hasLatency: boolean }) {
  const period = usePeriod()
  const { before: _, ...within } = span(period, Date.now())
  const stats = useApi('GET /api/stats', {
    query: { destinationId: id, step: period.step, latency: 'histogram', ...within },
    everyMs: period.everyMs,
    keep: true,
  })
  const markers = useMarkers(within, { destinationId: id })
  return (
    <Stack gap="sm" component="section">
      <Heading title="Over time" order={2} size="h4" actions={<PeriodChoice />} />
      <Loaded query={stats} lines={8}>
        {({ data }) => (
          <Charts
            points={data}
            period={period}
            hasLatency={hasLatency}
            common={{ markers, empty: `Nothing in the ${whichPeriod(period)}` }}
          />
        )}
      </Loaded>
    </Stack>
  )
}

interface ChartsProps {
  points: readonly Point[]
  period: Period
  hasLatency: boolean
  common: Pick<TimeChartProps, 'markers' | 'empty'>
}

function Charts({ points, period, hasLatency, common }: ChartsProps) {
  const slots = slotsOf(points, STEP_MS[period.step], period.barOf)
  const totals = slots.map(({ rows }) => totalsOf(rows))
  const pick = (name: 'delivered' | 'retried' | 'failed' | 'expired') => totals.map((total) => total[name])
  const attempts = slots.map(({ rows }) => rows.reduce((sum, { attempts: own = 0 }) => sum + own, 0))
  const success = totals.map(({ delivered, retried, failed, expired }, at) =>
    (attempts[at] as number) + delivered === 0 ? null : delivered / Math.max(1, delivered + retried + failed + expired),
  )
  const per = perText(slots)
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
      <TimeChart
        {...common}
        title="Throughput"
        unit={`deliveries ${per}`}
        slots={slots}
        format={count}
        series={[
          { label: 'Delivered', color: 'teal.6', values: pick('delivered') },
          { label: 'Retried', color: 'yellow.6', values: pick('retried') },
          { label: 'Failed', color: 'red.6', values: pick('failed') },
          { label: 'Expired', color: 'orange.7', values: pick('expired') },
        ]}
      />
      <TimeChart
        {...common}
        title="Success"
        unit="share of outcomes that are deliveries"
        slots={slots}
        format={share}
        isWhole={false}
        maximum={1}
        series={[{ label: 'Success', color: 'teal.6', values: success, isLine: true }]}
      />
      <TimeChart
        {...common}
        title="Backlog"
        unit="most pending deliveries"
        slots={slots}
        format={count}
        series={[{ label: 'Pending', color: 'blue.6', values: slots.map(largest('pending')) }]}
      />
      <TimeChart
        {...common}
        title="Oldest delivery"
        unit="age of the oldest pending delivery"
        slots={slots}
        format={duration}
        isWhole={false}
        series={[{ label: 'Age', color: 'grape.6', values: slots.map(largest('oldestPendingMs')) }]}
      />
      {hasLatency && (
        <Box style={{ gridColumn: '1 / -1' }} miw={0}>
          <Latency slots={slots} common={common} />
        </Box>
      )}
    </SimpleGrid>
  )
}

function Latency({ slots, common }: { slots: readonly Slot<Point>[]; common: ChartsProps['common'] }) {
  const heat = heatOf(slots)
  return (
    <TimeChart
      {...common}
      title="Latency"
      unit="of attempts that were answered"
      slots={slots}
      heat={heat}
      format={duration}
      isWhole={false}
      empty="No attempt was answered in this period"
      series={LATENCIES.map(({ name, color }) => ({ label: name, color, isLine: true, values: slots.map(latencyAt(name)) }))}
    />
  )
}

const largest =
  (name: 'pending' | 'oldestPendingMs') =>
  ({ rows }: Slot<Point>): number =>
    Math.max(0, ...rows.map((row) => row[name] ?? 0))

/** Of the steps of a bar, the one with the most attempts: percentiles cannot be added up. */
const latencyAt =
  (name: 'p50' | 'p95' | 'p99') =>
  ({ rows }: Slot<Point>): number | null => {
    const measured = rows.filter(({ latencyMs }) => latencyMs != null).sort((a, b) => (b.attempts ?? 0) - (a.attempts ?? 0))
    return measured[0]?.latencyMs?.[name] ?? null
  }

function heatOf(slots: readonly Slot<Point>[]): HeatRow[] {
  const rows = new Map<number, number[]>()
  for (const [at, { rows: points }] of slots.entries())
    for (const { latencyHistogram = [] } of points)
      for (const { upToMs, count: own } of latencyHistogram) {
        const counts = rows.get(upToMs) ?? slots.map(() => 0)
        counts[at] = (counts[at] as number) + own
        rows.set(upToMs, counts)
      }
  return Array.from(rows, ([upTo, counts]) => ({ upTo, counts })).sort((a, b) => a.upTo - b.upTo)
}
