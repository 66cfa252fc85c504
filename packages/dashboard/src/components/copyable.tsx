// Text with a button that copies it.

import { ActionIcon, Box, Code, CopyButton, Group, Tooltip } from '@mantine/core'
import { CheckIcon, CopyIcon } from './icons.tsx'
import { SecondaryButton } from './styled.tsx'

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

/** A block of preformatted text with a button that copies it. Long lines scroll within the block, so that the page never gets wider. */
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
            <SecondaryButton size="compact-xs" onClick={copy} aria-label={`Copy ${label}`}>
              {copied ? 'Copied' : 'Copy'}
            </SecondaryButton>
          )}
        </CopyButton>
      </Box>
    </Box>
  )
}
