// How often an event was sent, per hour or per day. In a file of its own because the chart library is large.

import { ParamSegments } from '../../components/inputs.tsx'
import '@mantine/charts/styles.css'
import { BarChart } from '@mantine/charts'
import { Stack } from '@mantine/core'
import type { Answer } from '../../api/client.ts'
import { Section } from '../../components/page.tsx'
import { Note } from '../../components/styled.tsx'
import { count, plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'

const STEPS = [
  { value: 'hour', label: 'Per hour, 7 days' },
  { value: 'day', label: 'Per day, 90 days' },
]

type Points = Answer<'GET /api/events/{id}'>['hours']

export default function EventChart({ hours, days }: { hours: Points; days: Points }) {
  const [params] = useSearchState()
  const isPerDay = params.get('per') === 'day'
  const points = isPerDay ? days : hours
  const period = isPerDay ? 'the last 90 days' : 'the last 7 days'
  const total = points.reduce((sum, { count: each }) => sum + each, 0)
  const words = `${plural(total, 'message')} in ${period}`
  return (
    <Section
      title="Messages over time"
      about={`${words}. ${isPerDay ? 'Days are in UTC.' : ''}`}
      actions={<ParamSegments param="per" fallback="hour" options={STEPS} isReplacing size="xs" aria-label="Period" />}
    >
      {total === 0 ? (
        <Stack h={200} align="center" justify="center">
          <Note>No messages in {period}</Note>
        </Stack>
      ) : (
        <div role="img" aria-label={`Messages per ${isPerDay ? 'day' : 'hour'}: ${words}`}>
          <BarChart
            h={200}
            data={points.map(({ at, count: messages }) => ({ at: (isPerDay ? dayText : hourText)(at), messages }))}
            dataKey="at"
            series={[{ name: 'messages', color: 'blue.6' }]}
            valueFormatter={count}
            tickLine="none"
            gridAxis="x"
            barChartProps={{ accessibilityLayer: false }}
          />
        </div>
      )}
    </Section>
  )
}

function hourText(at: string): string {
  return new Date(at).toLocaleString(undefined, { weekday: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hour12: false })
}

function dayText(at: string): string {
  return new Date(at).toLocaleDateString(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' })
}
