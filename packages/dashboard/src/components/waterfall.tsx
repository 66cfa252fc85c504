// The phases of an attempt as one bar, each as long as it took. The text below the bar has the same numbers, for screen readers too.

import { Box, Group, Text } from '@mantine/core'
import { isReused, PHASE_LABELS, type PhaseName, phasesOf, type Timings } from '../text/attempt-phases.ts'
import { duration } from '../text/format.ts'
import { SmallNote } from './styled.tsx'

const COLORS: Readonly<Record<PhaseName, string>> = {
  dns: 'grape',
  connect: 'orange',
  tls: 'yellow',
  wait: 'blue',
  answer: 'teal',
  lost: 'red',
}

const colorOf = (name: PhaseName): string => `var(--mantine-color-${COLORS[name]}-5)`

/** `scaleMs`: the time that the full width represents, to compare several attempts. The default is the total of this attempt. */
export function Waterfall({ timings, scaleMs }: { timings: Timings; scaleMs?: number }) {
  const phases = phasesOf(timings)
  const wholeMs = Math.max(scaleMs ?? timings.totalMs, Number.MIN_VALUE)
  return (
    <Box>
      <Box
        pos="relative"
        h={10}
        bg="var(--mantine-color-default-hover)"
        style={{ borderRadius: 3, overflow: 'hidden' }}
        aria-hidden="true"
        data-waterfall
      >
        {phases.map(({ name, startMs, ms }) => (
          <Box
            key={name}
            pos="absolute"
            top={0}
            h="100%"
            bg={colorOf(name)}
            style={{ left: `${(startMs / wholeMs) * 100}%`, width: `max(1px, ${(ms / wholeMs) * 100}%)` }}
          />
        ))}
      </Box>
      <Group gap="xs" mt={4} style={{ rowGap: 2 }}>
        {phases.map(({ name, ms }) => (
          <Group key={name} gap={4} wrap="nowrap">
            <Box w={8} h={8} bg={colorOf(name)} style={{ borderRadius: 2, flexShrink: 0 }} aria-hidden="true" />
            <SmallNote>
              {PHASE_LABELS[name]} {duration(ms)}
            </SmallNote>
          </Group>
        ))}
        <Text size="xs" fw={600}>
          total {duration(timings.totalMs)}
        </Text>
        {isReused(timings) && <SmallNote>reused connection</SmallNote>}
      </Group>
    </Box>
  )
}
