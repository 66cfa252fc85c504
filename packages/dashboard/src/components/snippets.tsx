// Lines to copy that send a message with the given write key. Which kind is shown stands in the address, as every tab does.

import { SegmentedControl, Stack, Text } from '@mantine/core'
import { SNIPPET_KINDS, SNIPPET_LABELS, type SnippetFor, snippetNote, snippetOf } from '../text/snippets.ts'
import { useSearchState } from '../url-state.ts'
import { CodeBlock } from './copyable.tsx'

const CHOICES = SNIPPET_KINDS.map((value) => ({ value, label: SNIPPET_LABELS[value] }))

export function Snippets({ writeKey, requireOAuth = false }: Omit<SnippetFor, 'origin'>) {
  const [params, change] = useSearchState()
  const kind = SNIPPET_KINDS.find((each) => each === params.get('snippet')) ?? 'curl'
  const source = { origin: window.location.origin, writeKey, requireOAuth }
  return (
    <Stack gap="xs">
      <SegmentedControl
        aria-label="Sent by"
        data={CHOICES}
        value={kind}
        onChange={(value) => change({ snippet: value === 'curl' ? null : value }, { replace: true })}
        maw={360}
      />
      <CodeBlock text={snippetOf(kind, source)} label={`the lines for ${SNIPPET_LABELS[kind]}`} />
      <Text size="sm" c="dimmed">
        {snippetNote(kind, source)}
      </Text>
    </Stack>
  )
}
