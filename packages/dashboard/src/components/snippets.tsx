// Code to copy that sends a message with the given write key. The chosen kind is in the URL, like every tab.

import { Group, Stack } from '@mantine/core'
import { useState } from 'react'
import { isHiddenKey, maskedKey, SNIPPET_KINDS, SNIPPET_LABELS, type SnippetFor, snippetNote, snippetOf } from '../text/snippets.ts'
import { useSearchState } from '../url/url-state.ts'
import { CodeBlock } from './copyable.tsx'
import { ParamSegments } from './inputs.tsx'
import { Note, RowButton } from './styled.tsx'

const CHOICES = SNIPPET_KINDS.map((value) => ({ value, label: SNIPPET_LABELS[value] }))

interface SnippetsProps extends Omit<SnippetFor, 'origin'> {
  /** Whether the write key is masked until the viewer shows it. What is copied has the key. */
  isMasked?: boolean
}

export function Snippets({ writeKey, requireOAuth = false, isMasked = false }: SnippetsProps) {
  const [isShown, setShown] = useState(!isMasked)
  const [params] = useSearchState()
  const kind = SNIPPET_KINDS.find((each) => each === params.get('snippet')) ?? 'curl'
  const source = { origin: window.location.origin, writeKey: isHiddenKey(writeKey) ? 'YOUR_WRITE_KEY' : writeKey, requireOAuth }
  return (
    <Stack gap="xs">
      <ParamSegments param="snippet" fallback="curl" options={CHOICES} isReplacing aria-label="Send with" maw={360} />
      <CodeBlock
        text={snippetOf(kind, source)}
        shown={isShown || isHiddenKey(writeKey) ? undefined : snippetOf(kind, { ...source, writeKey: maskedKey(writeKey) })}
        label={`code for ${SNIPPET_LABELS[kind]}`}
      />
      <Group justify="space-between" gap="xs">
        <Note>{snippetNote(kind, source)}</Note>
        {isMasked && !isHiddenKey(writeKey) && (
          <RowButton onClick={() => setShown(!isShown)}>{isShown ? 'Hide write key' : 'Show write key'}</RowButton>
        )}
      </Group>
    </Stack>
  )
}
