// A chart of a result that has a time and numbers: a line for each number, over the rows in the order of their times.

import { Group, Stack } from '@mantine/core'
import { SmallNote } from '../../components/styled.tsx'
import type { Chartable } from './chartable.ts'

const COLORS = ['blue', 'teal', 'orange', 'grape']
const WIDTH = 800
const HEIGHT = 200

export function ResultChart({ chart: { time, numbers, points } }: { chart: Chartable }) {
  const values = points.flatMap((point) => numbers.map((name) => Number(point[name] ?? 0)))
  const top = Math.max(0, ...values)
  const bottom = Math.min(0, ...values)
  const x = (at: number): number => (at * WIDTH) / Math.max(1, points.length - 1)
  const y = (value: number): number => HEIGHT - ((value - bottom) * HEIGHT) / (top - bottom || 1)
  const line = (name: string): string => points.map((point, at) => `${x(at)},${y(Number(point[name] ?? 0))}`).join(' ')
  return (
    <Stack gap={4}>
      <SmallNote>{top.toLocaleString()}</SmallNote>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        width="100%"
        height={HEIGHT}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${numbers.join(', ')} by ${time}`}
      >
        <line x1={0} x2={WIDTH} y1={y(0)} y2={y(0)} stroke="var(--mantine-color-default-border)" vectorEffect="non-scaling-stroke" />
        {numbers.map((name, at) => (
          <polyline
            key={name}
            points={line(name)}
            fill="none"
            stroke={`var(--mantine-color-${COLORS[at]}-6)`}
            strokeWidth={2}
            vectorEffect="non-scaling-stroke"
          />
        ))}
      </svg>
      <Group justify="space-between">
        <SmallNote>{points[0]?.[time]}</SmallNote>
        <SmallNote>{numbers.join(' · ')}</SmallNote>
        <SmallNote>{points.at(-1)?.[time]}</SmallNote>
      </Group>
    </Stack>
  )
}
