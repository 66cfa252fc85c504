// Says that somebody else saved another version while this one is edited.

import { Alert, Button, Group, Text } from '@mantine/core'
import type { ShapeState } from './use-shape.ts'

export function OutdatedAlert({ shape: { isOutdated, destination, discard } }: { shape: ShapeState }) {
  if (!isOutdated) return null
  return (
    <Alert color="blue" variant="light" title={`Version ${destination.version} was saved elsewhere`}>
      <Group gap="sm">
        <Text size="sm">You are editing an older version. Saving replaces the newer one.</Text>
        <Button size="xs" variant="default" onClick={discard}>
          Discard my changes
        </Button>
      </Group>
    </Alert>
  )
}
