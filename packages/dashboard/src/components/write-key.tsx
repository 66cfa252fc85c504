// A write key. Masked, because screens are shared and a key is valid until it is removed; it can be shown, or copied without being shown.

import { ActionIcon, Code, CopyButton, Group, Tooltip } from '@mantine/core'
import { useState } from 'react'
import { isHiddenKey, maskedKey } from '../text/snippets.ts'
import { CheckIcon, CopyIcon, EyeIcon, EyeOffIcon } from './icons.tsx'

export function WriteKey({ writeKey, name = 'the write key' }: { writeKey: string; name?: string }) {
  const [isShown, setShown] = useState(false)
  if (isHiddenKey(writeKey))
    return (
      <Tooltip label="Only admins see write keys">
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
      <CopyButton value={writeKey}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? 'Copied' : 'Copy'}>
            <ActionIcon variant="subtle" color={copied ? 'teal' : 'gray'} onClick={copy} aria-label={`Copy ${name}`}>
              {copied ? <CheckIcon /> : <CopyIcon />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </Group>
  )
}
