// Says that somebody else saved another version while this one is edited.

import { Alert, Group, Text } from '@mantine/core'
import { SmallButton } from '../../components/styled.tsx'
import type { ContentState } from './use-content.ts'

export function OutdatedAlert({ content: { isOutdated, destination, discard } }: { content: ContentState }) {
  if (!isOutdated) return null
  return (
    <Alert color="blue" variant="light" title={`Version ${destination.version} was saved elsewhere`}>
      <Group gap="sm">
        <Text size="sm">You are editing an older version. Saving replaces the newer one.</Text>
        <SmallButton onClick={discard}>Discard my changes</SmallButton>
      </Group>
    </Alert>
  )
}
