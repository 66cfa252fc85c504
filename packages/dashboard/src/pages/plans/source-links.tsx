// The sources that a plan is attached to, as links.

import { Group } from '@mantine/core'
import { Note, ViewLink } from '../../components/styled.tsx'

export function SourceLinks({ ids, names }: { ids: readonly string[]; names: ReadonlyMap<string, string> }) {
  if (ids.length === 0) return <Note span>none</Note>
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
