// Text that is to be copied: shown as it is, with a button.

import { ActionIcon, Box, Button, Code, CopyButton, Group, Tooltip } from '@mantine/core'
import { CheckIcon, CopyIcon } from './icons.tsx'

export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <Group gap={4} wrap="nowrap" miw={0}>
      <Code style={{ overflowWrap: 'anywhere' }}>{text}</Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? 'Copied' : `Copy ${label}`}>
            <ActionIcon variant="subtle" color={copied ? 'teal' : 'gray'} onClick={copy} aria-label={`Copy ${label}`}>
              {copied ? <CheckIcon /> : <CopyIcon />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </Group>
  )
}

/** A block of text as it is, which scrolls by itself and never by the page. */
export function CodeBlock({ text, label, maxHeight = 360 }: { text: string; label: string; maxHeight?: number }) {
  return (
    <Box pos="relative">
      <Code
        block
        tabIndex={0}
        role="region"
        aria-label={label}
        style={{ maxHeight, overflow: 'auto', whiteSpace: 'pre', paddingRight: 84 }}
      >
        {text}
      </Code>
      <Box pos="absolute" top={6} right={6}>
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy} aria-label={`Copy ${label}`}>
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      </Box>
    </Box>
  )
}
