// The tracking plan of a source, how often it was violated, and how many of its messages are in quarantine.

import { Text } from '@mantine/core'
import { useApi } from '../../api/queries.ts'
import { Facts, Loaded } from '../../components/page.tsx'
import { ViewLink } from '../../components/styled.tsx'
import { exactCount, plural } from '../../text/format.ts'
import { rulesSummary } from '../plans/plan-text.ts'

export function SourcePlan({ id }: { id: string }) {
  const plans = useApi('GET /api/plans', { query: { limit: 1_000 } })
  const totals = useApi('GET /api/stats/totals', { everyMs: 15_000 })
  const violations = useApi('GET /api/violations', { query: { sourceId: id, limit: 1_000 }, everyMs: 15_000 })
  const violated = violations.data?.data.reduce((sum, { hours }) => sum + hours.reduce((day, hour) => day + hour, 0), 0)
  const counts = totals.data?.data.find(({ sourceId }) => sourceId === id)
  const held = counts?.quarantined ?? 0
  return (
    <Loaded query={plans} lines={2}>
      {({ data }) => {
        const plan = data.find(({ sourceIds }) => sourceIds.includes(id))
        return (
          <>
            {plan === undefined && (
              <Text size="sm">
                None: messages are not compared with what you expect.{' '}
                <ViewLink to={`/plans/new?source=${encodeURIComponent(id)}`}>Learn a plan from the messages of this source</ViewLink>
              </Text>
            )}
            <Facts
              cols={2}
              facts={[
                ['Plan', plan && <ViewLink to={`/plans/${encodeURIComponent(plan.id)}`}>{plan.name}</ViewLink>],
                ['Rules', plan && rulesSummary(plan.rules)],
                [
                  'In quarantine',
                  plan === undefined && held === 0 ? null : (
                    <ViewLink to={`/plans?tab=quarantine&source=${encodeURIComponent(id)}`}>{plural(held, 'message')}</ViewLink>
                  ),
                ],
                [
                  'Violations in the last 24 hours',
                  plan && (
                    <ViewLink to={`/plans?tab=violations&source=${encodeURIComponent(id)}`}>
                      {violated === undefined ? 'View violations' : exactCount(violated)}
                    </ViewLink>
                  ),
                ],
              ]}
            />
          </>
        )
      }}
    </Loaded>
  )
}
