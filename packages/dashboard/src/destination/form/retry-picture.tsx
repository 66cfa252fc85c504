// The attempts of a delivery on a time line, if none succeeds. The same is said in words below it.

import { Paper, Stack } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { SmallNote, Strong } from '../../components/styled.tsx'
import { duration } from '../../text/format.ts'
import { labelsOf, positionOf, type RetryTimes, scheduleOf, scheduleText } from './retry-schedule.ts'

const HEIGHT = 56
const AXIS = 26
/** Room for half of the first and of the last label. */
const MARGIN = 24
const LABEL_WIDTH = 64

export function RetryPicture({ times }: { times: RetryTimes | null }) {
  const { ref, width } = useElementSize()
  return (
    <Paper withBorder p="sm">
      <Stack gap={6}>
        <Strong>Attempts if the receiver does not recover</Strong>
        <div ref={ref} style={{ height: HEIGHT }}>
          {times !== null && width > 0 && <Line times={times} width={width} />}
        </div>
        <SmallNote role="status">
          {times === null ? 'Correct the values above to see when the attempts are made.' : scheduleText(times)}
        </SmallNote>
      </Stack>
    </Paper>
  )
}

function Line({ times, width }: { times: RetryTimes; width: number }) {
  const { atMs } = scheduleOf(times)
  const inner = width - 2 * MARGIN
  const x = (ms: number): number => MARGIN + positionOf(ms, times) * inner
  return (
    <svg
      width={width}
      height={HEIGHT}
      role="img"
      aria-label="Attempts on a logarithmic time line. The text below says the same."
      data-attempts={atMs.length}
    >
      <line x1={MARGIN} x2={width - MARGIN} y1={AXIS} y2={AXIS} stroke="var(--mantine-color-default-border)" strokeWidth={2} />
      <line x1={width - MARGIN} x2={width - MARGIN} y1={AXIS - 12} y2={AXIS + 12} stroke="var(--mantine-color-dimmed)" strokeWidth={2} />
      {labelsOf(times, LABEL_WIDTH / inner).map((ms) => (
        <text key={ms} x={x(ms)} y={HEIGHT - 6} fontSize={11} textAnchor="middle" fill="var(--mantine-color-dimmed)">
          {ms === 0 ? 'now' : duration(ms)}
        </text>
      ))}
      {atMs.map((ms, at) => (
        <circle key={ms} cx={x(ms)} cy={AXIS} r={at === 0 ? 6 : 4.5} fill="var(--mantine-color-blue-6)" fillOpacity={at === 0 ? 1 : 0.75} />
      ))}
    </svg>
  )
}
