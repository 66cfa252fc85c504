// A coloured square with the letters of an integration. Decorative: the name is always beside it.

import { Box } from '@mantine/core'
import type { ReactNode } from 'react'
import { tileColor, tileLetters } from '../text/integration-tile.ts'

export function IntegrationTile({ slug, name, size = 36 }: { slug: string; name: string; size?: number }) {
  return (
    <Tile color={tileColor(slug)} size={size}>
      {tileLetters(name)}
    </Tile>
  )
}

export function Tile({ color, size = 36, children }: { color: string; size?: number; children: ReactNode }) {
  return (
    <Box
      component="span"
      aria-hidden="true"
      w={size}
      h={size}
      fz={Math.round(size * 0.42)}
      fw={650}
      c="white"
      bg={color}
      style={{ borderRadius: 8, display: 'grid', placeItems: 'center', flexShrink: 0, userSelect: 'none' }}
    >
      {children}
    </Box>
  )
}
