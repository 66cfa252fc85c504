// Text with a button that copies it: ids, code, JSON and write keys. Large JSON has no colours, so that a message of 500 KB does not block the page.
// Write keys are masked, because screens are shared and a key is valid until it is removed.

import { ActionIcon, Box, Button, type ButtonProps, Code, CopyButton, Group, Stack, Tooltip } from '@mantine/core'
import { useMemo, useState } from 'react'
import { bytes } from '../text/format.ts'
import { jsonTokens } from '../text/json-tokens.ts'
import { isHiddenKey, maskedKey } from '../text/snippets.ts'
import { CheckIcon, CopyIcon, EyeIcon, EyeOffIcon } from './icons.tsx'
import classes from './json.module.css'
import { LongCode, SmallNote } from './styled.tsx'

/** `name`: what is copied. */
function CopyIconButton({ text, label, name }: { text: string; label: string; name: string }) {
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : label}>
          <ActionIcon variant="subtle" color={copied ? 'teal' : 'gray'} onClick={copy} aria-label={`Copy ${name}`}>
            {copied ? <CheckIcon /> : <CopyIcon />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  )
}

interface CopyTextButtonProps extends ButtonProps {
  text: string
  label?: string
  'aria-label'?: string
}

export function CopyTextButton({ text, label = 'Copy', ...button }: CopyTextButtonProps) {
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <Button variant="default" {...button} onClick={copy}>
          {copied ? 'Copied' : label}
        </Button>
      )}
    </CopyButton>
  )
}

export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <Group gap={4} wrap="nowrap" miw={0}>
      <LongCode>{text}</LongCode>
      <CopyIconButton text={text} label={`Copy ${label}`} name={label} />
    </Group>
  )
}

interface CodeBlockProps {
  text: string
  /** What is shown instead of the text, for example with a masked key. */
  shown?: string | undefined
  label: string
  maxHeight?: number
}

/** A block of preformatted text with a button that copies it. Long lines scroll within the block, so that the page never gets wider. */
export function CodeBlock({ text, shown = text, label, maxHeight = 360 }: CodeBlockProps) {
  // Beside the text and not above it: the button must not cover what scrolls below it.
  return (
    <Group gap={6} wrap="nowrap" align="flex-start">
      <Code block tabIndex={0} role="region" aria-label={label} miw={0} style={{ flex: 1, maxHeight, overflow: 'auto', whiteSpace: 'pre' }}>
        {shown}
      </Code>
      <CopyTextButton text={text} size="compact-xs" aria-label={`Copy ${label}`} style={{ flexShrink: 0 }} />
    </Group>
  )
}

/** Above this many characters, thousands of coloured elements would slow the page down. */
const MAX_COLOURED = 40_000

interface JsonProps {
  value?: unknown
  text?: string
  label: string
  maxHeight?: number
}

/** Takes either `value`, which is formatted, or `text`, which is shown unchanged. */
export function Json({ value, text: given, label, maxHeight = 480 }: JsonProps) {
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
        <CopyTextButton text={text} size="compact-sm" aria-label={`Copy ${label}`} />
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

export function WriteKey({ writeKey, name = 'the write key' }: { writeKey: string; name?: string }) {
  const [isShown, setShown] = useState(false)
  if (isHiddenKey(writeKey))
    return (
      <Tooltip label="Viewers cannot see write keys">
        <Code fz="sm">{writeKey}</Code>
      </Tooltip>
    )
  return (
    <Group gap={4} wrap="nowrap" miw={0}>
      <Code fz="sm" style={isShown ? { overflowWrap: 'anywhere' } : { whiteSpace: 'nowrap' }}>
        {isShown ? writeKey : maskedKey(writeKey)}
      </Code>
      <Tooltip label={isShown ? 'Hide' : 'Show'}>
        <ActionIcon
          variant="subtle"
          color="gray"
          onClick={() => setShown(!isShown)}
          aria-label={`${isShown ? 'Hide' : 'Show'} ${name}`}
          aria-pressed={isShown}
        >
          {isShown ? <EyeOffIcon /> : <EyeIcon />}
        </ActionIcon>
      </Tooltip>
      <CopyIconButton text={writeKey} label="Copy" name={name} />
    </Group>
  )
}
