// How often an event was sent, in the time range of the dashboard.

import { perText } from '../../components/charts/chart-text.ts'
import { useMarkers } from '../../components/charts/markers.ts'
import { PeriodChoice, usePeriod } from '../../components/charts/period-choice.tsx'
import { span, whichPeriod } from '../../components/charts/periods.ts'
import { TimeChart } from '../../components/charts/time-chart.tsx'
import { Section } from '../../components/page.tsx'
import { useNow } from '../../components/styled.tsx'
import { count, dateTime, plural } from '../../text/format.ts'
import { type EventPoint, eventSeries } from './event-period.ts'

const BY_DAY = ' Events older than 7 days are counted per day, in UTC.'

interface EventChartProps {
  sourceId: string
  hours: readonly EventPoint[]
  days: readonly EventPoint[]
}

export default function EventChart({ sourceId, hours, days }: EventChartProps) {
  const period = usePeriod()
  const nowMs = useNow(60_000)
  const { before: _, ...within } = span(period, nowMs)
  const markers = useMarkers(within, { sourceId })
  const { slots, step, beginsAt } = eventSeries(hours, days, period, nowMs)
  const values = slots.map(({ rows }) => rows.reduce((sum, { count: messages }) => sum + messages, 0))
  const total = values.reduce((sum, messages) => sum + messages, 0)
  const where = beginsAt === null ? `in the ${whichPeriod(period)}` : `since ${dateTime(beginsAt)}`
  const oldest = days[0]
  const why = step === 'day' ? BY_DAY : beginsAt === null ? '' : ' Events are counted per hour.'
  const missing = oldest !== undefined && within.from < oldest.at ? ` There are no counts before ${dateTime(oldest.at)}.` : ''
  return (
    <Section title="Messages over time" about={`${plural(total, 'message')} ${where}.${why}${missing}`} actions={<PeriodChoice />}>
      <TimeChart
        title="Messages"
        unit={perText(slots)}
        slots={slots}
        series={[{ label: 'Messages', color: 'blue.6', values }]}
        markers={markers}
        format={count}
        empty={`No messages in the ${whichPeriod(period)}`}
      />
    </Section>
  )
}
