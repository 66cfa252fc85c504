// The progress of a replay job as a bar, with a legend for its colours.

import { Group, Progress, Stack, Text } from '@mantine/core'
import { Note } from '../../components/styled.tsx'
import { STATE_COLORS } from '../../components/theme.ts'
import { exactCount } from '../../text/format.ts'
import { donePercent, type Job, shares } from './progress.ts'

const COLORS = { ...STATE_COLORS, skipped: 'gray' } as const

export function JobBar({ job, withLegend = false }: { job: Job; withLegend?: boolean }) {
  const parts = shares(job)
  const label = `${donePercent(job)}% done: ${parts.map(({ name, count }) => `${count} ${name}`).join(', ') || 'nothing yet'}`
  return (
    <Stack gap={6}>
      <Progress.Root size={withLegend ? 'xl' : 'md'} role="img" aria-label={label}>
        {parts.map(({ name, percent }) => (
          <Progress.Section key={name} value={percent} color={COLORS[name]} withAria={false} striped={name === 'skipped'} />
        ))}
      </Progress.Root>
      {withLegend && (
        <Group gap="md">
          {parts.map(({ name, count }) => (
            <Group key={name} gap={6} wrap="nowrap">
              <span
                aria-hidden="true"
                style={{ width: 10, height: 10, borderRadius: 3, background: `var(--mantine-color-${COLORS[name]}-filled)` }}
              />
              <Text size="sm">
                {exactCount(count)} {name}
              </Text>
            </Group>
          ))}
          {job.total > job.done && <Note>{exactCount(job.total - job.done)} remaining</Note>}
        </Group>
      )}
    </Stack>
  )
}
