// A section of the form that can be opened and closed, with a note about what is set in it.

import { Accordion, Badge, Group, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'

export function Section({
  value,
  title,
  note,
  isInvalid,
  children,
}: {
  value: string
  title: string
  note: string
  isInvalid: boolean
  children: ReactNode
}) {
  return (
    <Accordion.Item value={value}>
      <Accordion.Control>
        <Group gap="sm" style={{ rowGap: 0 }}>
          <Text span fw={600}>
            {title}
          </Text>
          <Text span size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            {note}
          </Text>
          {isInvalid && (
            <Badge color="red" variant="light" tt="none" size="sm">
              has errors
            </Badge>
          )}
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack>{children}</Stack>
      </Accordion.Panel>
    </Accordion.Item>
  )
}
