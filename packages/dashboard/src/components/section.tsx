// A titled part of a page in a frame, with a sentence about it and its actions.

import { Group, Paper, Stack, Title } from '@mantine/core'
import { type ReactNode, useId } from 'react'
import { Note } from './styled.tsx'

export interface Titled {
  title: string
  about?: ReactNode
  actions?: ReactNode
}

export function Section({ children, ...titled }: Titled & { children: ReactNode }) {
  const titleId = useId()
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={titleId} miw={0}>
      <Stack gap="sm">
        <Heading {...titled} order={2} size="h4" id={titleId} />
        {children}
      </Stack>
    </Paper>
  )
}

export function Heading({ title, about, actions, ...own }: Titled & { order: 1 | 2; size: string; id?: string }) {
  return (
    <Group justify="space-between" align="flex-start" gap="sm">
      <Stack gap={2} miw={0} style={{ flex: '1 1 240px' }}>
        <Title style={{ overflowWrap: 'anywhere' }} {...own}>
          {title}
        </Title>
        {about !== undefined && <Note>{about}</Note>}
      </Stack>
      {actions !== undefined && <Group gap="xs">{actions}</Group>}
    </Group>
  )
}
