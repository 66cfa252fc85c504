// Badges for the state of a source.

import { Group } from '@mantine/core'
import type { Schemas } from '../../api/client.ts'
import { Tag } from '../../components/styled.tsx'

export function SourceBadges({ source: { enabled, requireOAuth }, size = 'sm' }: { source: Schemas['Source']; size?: string }) {
  return (
    <Group gap={4}>
      <Tag color={enabled ? 'teal' : 'gray'} size={size}>
        {enabled ? 'enabled' : 'disabled'}
      </Tag>
      {requireOAuth && (
        <Tag color="blue" size={size}>
          requires OAuth
        </Tag>
      )}
    </Group>
  )
}
