// How often an event was sent, per hour or per day.

import { Stack } from '@mantine/core'
import type { Answer } from '../../api/client.ts'
import { TimeChart } from '../../components/charts/time-chart.tsx'
import { ParamSegments } from '../../components/inputs.tsx'
import { Section } from '../../components/page.tsx'
import { Note } from '../../components/styled.tsx'
import { count, plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'

const STEPS = [
  { value: 'hour', label: 'Per hour, 7 days' },
  { value: 'day', label: 'Per day, 90 days' },
]

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

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
        <TimeChart
          title={isPerDay ? 'Per day' : 'Per hour'}
          unit="messages"
          slots={points.map(({ at }) => ({ at, until: new Date(Date.parse(at) + (isPerDay ? DAY_MS : HOUR_MS)).toISOString() }))}
          series={[{ label: 'Messages', color: 'blue.6', values: points.map(({ count: messages }) => messages) }]}
          format={count}
          empty={`No messages in ${period}`}
        />
      )}
    </Section>
  )
}
