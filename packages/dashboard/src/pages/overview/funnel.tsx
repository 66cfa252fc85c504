// The funnel: four bars with their numbers, which are text, and what left on the way.

import { Group, Paper, Stack, Text } from '@mantine/core'
import type { Point } from '../../components/charts/periods.ts'
import { SmallNote, Strong } from '../../components/styled.tsx'
import { BAD } from '../../destination/status-view.tsx'
import { count, exactCount } from '../../text/format.ts'
import { funnelOf, type Step } from './funnel-steps.ts'

const BAD_ENDS: ReadonlySet<string> = new Set(['rejected', 'failed', 'expired', 'quarantined'])

export function Funnel({ points, pendingNow }: { points: readonly Point[]; pendingNow?: number | undefined }) {
  const { messages, deliveries } = funnelOf(points, pendingNow)
  return (
    <Paper withBorder p="sm" component="section" aria-label="From received to delivered">
      <Strong mb={6}>
        From received to delivered{' '}
        <SmallNote span>
          first messages, then deliveries: a message may go to several destinations. Replays are delivered, but not routed again.
        </SmallNote>
      </Strong>
      <Stack gap={6} component="ol" m={0} p={0} style={{ listStyle: 'none' }}>
        <Bars steps={messages} color="blue" />
        <Bars steps={deliveries} color="teal" />
      </Stack>
    </Paper>
  )
}

function Bars({ steps, color }: { steps: readonly Step[]; color: string }) {
  const most = Math.max(1, ...steps.map((step) => step.count))
  return steps.map(({ name, count: own, left }) => (
    <Group key={name} component="li" gap="sm" wrap="nowrap" align="flex-start">
      <Text size="sm" w={76} style={{ flexShrink: 0 }}>
        {name}
      </Text>
      <Stack gap={0} style={{ flex: 1 }} miw={0}>
        <Group gap={8} wrap="nowrap">
          <div
            style={{
              width: `${(own / most) * 70}%`,
              minWidth: own > 0 ? 3 : 0,
              height: 16,
              borderRadius: 3,
              background: `var(--mantine-color-${color}-6)`,
            }}
          />
          <Text size="sm" fw={600} title={exactCount(own)} style={{ fontVariantNumeric: 'tabular-nums' }}>
            {count(own)}
          </Text>
        </Group>
        {left.some((each) => each.count > 0) && (
          <Group gap="sm" style={{ rowGap: 0 }}>
            {left
              .filter((each) => each.count > 0)
              .map((each) => (
                <Text key={each.name} size="xs" c={BAD_ENDS.has(each.name) ? BAD : 'dimmed'}>
                  {exactCount(each.count)} {each.name}
                </Text>
              ))}
          </Group>
        )}
      </Stack>
    </Group>
  ))
}
