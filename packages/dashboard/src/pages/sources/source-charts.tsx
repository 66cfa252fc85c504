// Charts of a source over time: what was accepted, what was rejected and why, and what was not sent on and why.

import { SimpleGrid } from '@mantine/core'
import { useApi } from '../../api/queries.ts'
import type { ChartSeries } from '../../components/charts/chart-text.ts'
import { useMarkers } from '../../components/charts/markers.ts'
import { usePeriod } from '../../components/charts/period-choice.tsx'
import { type Point, type Slot, STEP_MS, slotsOf, span } from '../../components/charts/periods.ts'
import { TimeChart } from '../../components/charts/time-chart.tsx'
import { Loaded } from '../../components/page.tsx'
import { count } from '../../text/format.ts'

const COLORS = ['grape.6', 'red.6', 'orange.6', 'yellow.6', 'cyan.6', 'gray.6']
const REASONS: Readonly<Record<string, string>> = {
  filtered: 'Filtered',
  integrations_disabled: 'Excluded by the message or by consent',
  no_consent: 'No consent',
  historical: 'Historical',
  destination_disabled: 'Destination disabled',
  no_destination: 'No destination',
}

export default function SourceCharts({ id }: { id: string }) {
  const period = usePeriod()
  const { before: _, ...within } = span(period, Date.now())
  const stats = useApi('GET /api/stats', { query: { sourceId: id, step: period.step, ...within }, everyMs: period.everyMs, keep: true })
  const markers = useMarkers(within, { sourceId: id })
  return (
    <Loaded query={stats} lines={6}>
      {({ data }) => {
        const slots = slotsOf(data, STEP_MS[period.step], period.barOf)
        const pick = (name: 'accepted' | 'duplicates' | 'suppressed' | 'quarantined') =>
          slots.map(({ rows }) => rows.reduce((sum, row) => sum + (row[name] ?? 0), 0))
        const common = { slots, markers, format: count, unit: 'messages' }
        return (
          <SimpleGrid cols={{ base: 1, md: 2, xl: 3 }} spacing="sm">
            <TimeChart
              {...common}
              title="Accepted"
              empty="Nothing was accepted in this period"
              series={[
                { label: 'Accepted', color: 'blue.6', values: pick('accepted') },
                { label: 'Duplicates', color: 'gray.5', values: pick('duplicates') },
                { label: 'Suppressed', color: 'indigo.4', values: pick('suppressed') },
              ]}
            />
            <TimeChart {...common} title="Rejected" empty="Nothing was rejected in this period" series={byName(slots, 'rejected')} />
            <TimeChart
              {...common}
              title="Not sent"
              unit="messages, once for each destination"
              empty="Everything was sent in this period"
              series={[{ label: 'Quarantined', color: 'pink.6', values: pick('quarantined') }, ...byName(slots, 'skipped')]}
            />
          </SimpleGrid>
        )
      }}
    </Loaded>
  )
}

/** A series for each of the most frequent causes, and one for the others. */
function byName(slots: readonly Slot<Point>[], field: 'rejected' | 'skipped'): ChartSeries[] {
  const values = new Map<string, number[]>()
  for (const [at, { rows }] of slots.entries())
    for (const row of rows)
      for (const [name, own] of Object.entries(row[field] ?? {})) {
        const counts = values.get(name) ?? slots.map(() => 0)
        counts[at] = (counts[at] as number) + own
        values.set(name, counts)
      }
  const total = (counts: readonly number[]): number => counts.reduce((sum, own) => sum + own, 0)
  const ranked = [...values].sort(([, a], [, b]) => total(b) - total(a))
  const series = ranked
    .slice(0, COLORS.length - 1)
    .map(([name, counts], at) => ({ label: REASONS[name] ?? name, color: COLORS[at] as string, values: counts }))
  const others = ranked.slice(COLORS.length - 1)
  if (others.length === 0) return series
  const rest = slots.map((_, at) => others.reduce((sum, [, counts]) => sum + (counts[at] as number), 0))
  return [...series, { label: 'Others', color: COLORS.at(-1) as string, values: rest }]
}
