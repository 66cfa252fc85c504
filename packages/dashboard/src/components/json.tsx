// JSON with syntax colours and a button that copies it. Large JSON is shown as plain text, so that a message of 500 KB does not block the page.

import { Box, Code, CopyButton, Group, Stack } from '@mantine/core'
import { useMemo } from 'react'
import { bytes } from '../text/format.ts'
import { jsonTokens } from '../text/json-tokens.ts'
import classes from './json.module.css'
import { RowButton, SmallNote } from './styled.tsx'

/** Above this many characters, thousands of coloured elements would slow the page down. */
const MAX_COLOURED = 40_000

/** Takes either `value`, which is formatted, or `text`, which is shown unchanged. */
export function Json({
  value,
  text: given,
  label,
  maxHeight = 480,
}: {
  value?: unknown
  text?: string
  label: string
  maxHeight?: number
}) {
  const text = useMemo(() => given ?? JSON.stringify(value, null, 2), [given, value])
  const size = useMemo(() => new TextEncoder().encode(text).length, [text])
  const isColoured = text.length <= MAX_COLOURED
  const tokens = useMemo(() => (isColoured ? jsonTokens(text) : null), [text, isColoured])
  return (
    <Stack gap={6}>
      <Group justify="space-between" gap="xs">
        <SmallNote>
          {bytes(size)}
          {!isColoured && ', shown as plain text because of its size'}
        </SmallNote>
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <RowButton onClick={copy} aria-label={`Copy ${label}`}>
              {copied ? 'Copied' : 'Copy'}
            </RowButton>
          )}
        </CopyButton>
      </Group>
      <Box>
        <Code block tabIndex={0} role="region" aria-label={label} style={{ maxHeight, overflow: 'auto', whiteSpace: 'pre' }}>
          {tokens === null
            ? text
            : tokens.map(([kind, part], at) =>
                kind === 'plain' ? (
                  part
                ) : (
                  <span key={at} className={classes[kind]}>
                    {part}
                  </span>
                ),
              )}
        </Code>
      </Box>
    </Stack>
  )
}
