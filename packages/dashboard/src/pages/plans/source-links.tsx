// The sources that a plan is attached to, as links.

import { Group, Text } from '@mantine/core'
import { ViewLink } from '../../components/link.tsx'

export function SourceLinks({ ids, names }: { ids: readonly string[]; names: ReadonlyMap<string, string> }) {
  if (ids.length === 0)
    return (
      <Text span size="sm" c="dimmed">
        none
      </Text>
    )
  return (
    <Group gap="xs">
      {ids.map((id) => (
        <ViewLink key={id} to={`/sources/${encodeURIComponent(id)}`}>
          {names.get(id) ?? id}
        </ViewLink>
      ))}
    </Group>
  )
}
