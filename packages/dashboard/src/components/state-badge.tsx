// The state of a delivery as a coloured badge with its name.

import { Tag } from './styled.tsx'
import { type DeliveryState, STATE_COLORS } from './theme.ts'

export function StateBadge({ state, size = 'sm' }: { state: DeliveryState; size?: string }) {
  return (
    <Tag color={STATE_COLORS[state]} size={size} style={{ flexShrink: 0 }}>
      {state}
    </Tag>
  )
}
