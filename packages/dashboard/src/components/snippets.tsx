// Code to copy that sends a message with the given write key. The chosen kind is in the URL, like every tab.

import { Stack } from '@mantine/core'
import { isHiddenKey, SNIPPET_KINDS, SNIPPET_LABELS, type SnippetFor, snippetNote, snippetOf } from '../text/snippets.ts'
import { useSearchState } from '../url/url-state.ts'
import { CodeBlock } from './copyable.tsx'
import { ParamSegments } from './inputs.tsx'
import { Note } from './styled.tsx'

const CHOICES = SNIPPET_KINDS.map((value) => ({ value, label: SNIPPET_LABELS[value] }))

export function Snippets({ writeKey, requireOAuth = false }: Omit<SnippetFor, 'origin'>) {
  const [params] = useSearchState()
  const kind = SNIPPET_KINDS.find((each) => each === params.get('snippet')) ?? 'curl'
  const source = { origin: window.location.origin, writeKey: isHiddenKey(writeKey) ? 'YOUR_WRITE_KEY' : writeKey, requireOAuth }
  return (
    <Stack gap="xs">
      <ParamSegments param="snippet" fallback="curl" options={CHOICES} isReplacing aria-label="Send with" maw={360} />
      <CodeBlock text={snippetOf(kind, source)} label={`code for ${SNIPPET_LABELS[kind]}`} />
      <Note>{snippetNote(kind, source)}</Note>
    </Stack>
  )
}
