// A series as a row of thin bars. Decorative: the number beside it has the meaning, so screen readers skip it. Drawn without the chart
// library, so that pages that need no other chart do not load it.

import { Box } from '@mantine/core'

interface SparklineProps {
  values: readonly number[]
  color?: string
  width?: number
  height?: number
  isWide?: boolean
}

/** With `isWide`, fills the available width. */
export function Sparkline({ values, color = 'blue', width = 120, height = 28, isWide = false }: SparklineProps) {
  const most = Math.max(1, ...values)
  const step = width / Math.max(1, values.length)
  return (
    <Box
      component="svg"
      width={isWide ? '100%' : width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      c={`var(--mantine-color-${color}-filled)`}
      style={{ display: 'block', flexShrink: 0 }}
    >
      <line x1={0} y1={height - 0.5} x2={width} y2={height - 0.5} stroke="currentColor" strokeOpacity={0.35} />
      {values.map((value, at) =>
        value === 0 ? null : (
          <rect
            key={at}
            x={at * step}
            width={Math.max(1, step - 0.5)}
            y={height - Math.max(2, (value / most) * height)}
            height={Math.max(2, (value / most) * height)}
            fill="currentColor"
          />
        ),
      )}
    </Box>
  )
}
