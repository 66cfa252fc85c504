// The layout of a page: its title (also the title of the browser tab), a sentence about it, and its actions.

import { Stack } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import type { ReactNode } from 'react'
import { Heading, type Titled } from './section.tsx'

export function Page({ children, ...titled }: Titled & { children: ReactNode }) {
  useDocumentTitle(`${titled.title} · Switchyard`)
  return (
    <Stack gap="lg" maw={1400} mx="auto" w="100%">
      <Heading {...titled} order={1} size="h2" />
      {children}
    </Stack>
  )
}
