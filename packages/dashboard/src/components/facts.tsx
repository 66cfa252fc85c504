// A list of names and values: in columns where there is room, in a single column on a phone.

import { Box, SimpleGrid, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { SmallNote } from './styled.tsx'

export type Fact = readonly [name: string, value: ReactNode]

/** Leaves out facts whose value is null or undefined. */
export function Facts({ facts, cols = 3 }: { facts: readonly Fact[]; cols?: number }) {
  return (
    <SimpleGrid component="dl" cols={{ base: 1, xs: 2, md: cols }} spacing="md" verticalSpacing="sm" m={0}>
      {facts
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <Box key={name} miw={0}>
            <SmallNote component="dt">{name}</SmallNote>
            <Text component="dd" size="sm" m={0} style={{ overflowWrap: 'anywhere' }}>
              {value}
            </Text>
          </Box>
        ))}
    </SimpleGrid>
  )
}
