// Third-party text with links. No HTML: see markdown-links.ts.

import { Anchor } from '@mantine/core'
import { linkedParts } from '../text/markdown-links.ts'

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
