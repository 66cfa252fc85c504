// How integrations are shown: a coloured square with letters, which is decorative because the name is always beside it, and third-party text
// with links. No HTML: see markdown-links.ts.

import { Anchor, Box } from '@mantine/core'
import type { ReactNode } from 'react'
import { tileColor, tileLetters } from '../text/integration-tile.ts'
import { linkedParts } from '../text/markdown-links.ts'

export function IntegrationTile({ slug, title, size = 36 }: { slug: string; title: string; size?: number }) {
  return (
    <Tile color={tileColor(slug)} size={size}>
      {tileLetters(title)}
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

export function LinkedText({ markdown }: { markdown: string }) {
  return (
    <span style={{ overflowWrap: 'anywhere' }}>
      {linkedParts(markdown).map(({ text, href }, at) =>
        href === null ? (
          text
        ) : (
          <Anchor key={at} href={href} target="_blank" rel="noopener noreferrer nofollow" inherit underline="always">
            {text}
          </Anchor>
        ),
      )}
    </span>
  )
}
