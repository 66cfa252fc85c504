// A section of the form that can be opened and closed, with a note about what is set in it.

import { Accordion, Group, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { Note, SmallTag } from '../../components/styled.tsx'

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
          <Note span style={{ overflowWrap: 'anywhere' }}>
            {note}
          </Note>
          {isInvalid && <SmallTag color="red">has errors</SmallTag>}
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack>{children}</Stack>
      </Accordion.Panel>
    </Accordion.Item>
  )
}
