// The state of a delivery as a coloured badge with its name.

import { Badge } from '@mantine/core'
import { type DeliveryState, STATE_COLORS } from '../theme.ts'

export function StateBadge({ state, size = 'sm' }: { state: DeliveryState; size?: string }) {
  return (
    <Badge color={STATE_COLORS[state]} variant="light" size={size} tt="none" style={{ flexShrink: 0 }}>
      {state}
    </Badge>
  )
}
