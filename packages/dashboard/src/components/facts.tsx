// Names and their values, as a list that wraps: beside each other where there is room, below each other on a phone.

import { Box, SimpleGrid, Text } from '@mantine/core'
import type { ReactNode } from 'react'

export type Fact = readonly [name: string, value: ReactNode]

/** Those whose value is null or undefined are left out. */
export function Facts({ facts, cols = 3 }: { facts: readonly Fact[]; cols?: number }) {
  return (
    <SimpleGrid component="dl" cols={{ base: 1, xs: 2, md: cols }} spacing="md" verticalSpacing="sm" m={0}>
      {facts
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <Box key={name} miw={0}>
            <Text component="dt" size="xs" c="dimmed">
              {name}
            </Text>
            <Text component="dd" size="sm" m={0} style={{ overflowWrap: 'anywhere' }}>
              {value}
            </Text>
          </Box>
        ))}
    </SimpleGrid>
  )
}
