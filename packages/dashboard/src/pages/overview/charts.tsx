// Incoming messages and outgoing deliveries over time, what waits, and the way of messages as a funnel. A chunk of its own: charts follow when
// findings and numbers are shown.

import { SimpleGrid, Stack } from '@mantine/core'
import { perText, type TimeChartProps } from '../../components/charts/chart-text.ts'
import { useMarkers } from '../../components/charts/markers.ts'
import { type Period, type Point, STEP_MS, type Step, slotsOf, span, totalsOf, whichPeriod } from '../../components/charts/periods.ts'
import { TimeChart } from '../../components/charts/time-chart.tsx'
import { ParamSegments } from '../../components/inputs.tsx'
import { Heading } from '../../components/page.tsx'
import { count } from '../../text/format.ts'
import { Funnel } from './funnel.tsx'

interface ChartsProps {
  points: Point[]
  /** The pending deliveries of all destinations; undefined if the period does not end now. */
  pendingNow: number | undefined
  step: Step
  period: Period
  nowMs: number
  isOld: boolean
  isTable: boolean
}

export default function Charts({ points, pendingNow, step, period, nowMs, isOld, isTable }: ChartsProps) {
  const slots = slotsOf(points, STEP_MS[step], period.barOf)
  const totals = slots.map(({ rows }) => totalsOf(rows))
  const markers = useMarkers(span(period, nowMs))
  const values = (name: keyof (typeof totals)[number]) => totals.map((total) => total[name])
  const per = perText(slots)
  const common = {
    slots,
    markers,
    isTable,
    format: count,
    empty: `Nothing in the ${whichPeriod(period)}`,
  } satisfies Partial<TimeChartProps>
  const unsuccessful = [
    { label: 'Retried', color: 'yellow.6', values: values('retried') },
    { label: 'Failed', color: 'red.6', values: values('failed') },
    { label: 'Expired', color: 'orange.7', values: values('expired') },
  ]
  return (
    <Stack component="section" gap="xs" aria-label="Traffic" aria-busy={isOld} style={{ opacity: isOld ? 0.5 : 1 }}>
      <Heading
        title="Traffic"
        order={2}
        size="h4"
        actions={<ParamSegments param="as" fallback="chart" options={VIEWS} size="xs" aria-label="Show as" />}
      />
      <Funnel points={points} pendingNow={pendingNow} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
        <TimeChart
          {...common}
          title="Incoming"
          unit={`messages ${per}`}
          series={[
            { label: 'Accepted', color: 'blue.6', values: values('accepted') },
            { label: 'Duplicates', color: 'gray.5', values: values('duplicates') },
            { label: 'Rejected', color: 'grape.6', values: values('rejected') },
          ]}
        />
        <TimeChart
          {...common}
          title="Outgoing"
          unit={`deliveries ${per}`}
          series={[{ label: 'Delivered', color: 'teal.6', values: values('delivered') }, ...unsuccessful]}
        />
        {/* With a scale of its own: one failure in a hundred would not be visible beside the deliveries. */}
        <TimeChart {...common} title="Unsuccessful" unit={`attempts ${per}`} series={unsuccessful} />
        <TimeChart
          {...common}
          title="Backlog"
          unit="most pending deliveries"
          series={[
            { label: 'Pending', color: 'blue.6', values: slots.map(({ rows }) => Math.max(0, ...rows.map(({ pending = 0 }) => pending))) },
          ]}
        />
      </SimpleGrid>
    </Stack>
  )
}

const VIEWS = [
  { value: 'chart', label: 'Charts' },
  { value: 'table', label: 'Tables' },
]
