// Badges for the state of a source.

import { Badge, Group } from '@mantine/core'
import type { Schemas } from '../../api/client.ts'

export function SourceBadges({ source: { enabled, requireOAuth }, size = 'sm' }: { source: Schemas['Source']; size?: string }) {
  return (
    <Group gap={4}>
      <Badge color={enabled ? 'teal' : 'gray'} variant="light" tt="none" size={size}>
        {enabled ? 'enabled' : 'disabled'}
      </Badge>
      {requireOAuth && (
        <Badge color="blue" variant="light" tt="none" size={size}>
          requires OAuth
        </Badge>
      )}
    </Group>
  )
}
