// What privacy rules do to the last messages of the source, or to a message that the user enters: before and after, side by side.

import { Group, JsonInput, SegmentedControl, SimpleGrid, Stack, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { type Answer, type ApiProblem, call } from '../../api/client.ts'
import { Json } from '../../components/copyable.tsx'
import { ErrorAlert } from '../../components/page.tsx'
import { LongText, Note, RowButton, SmallTitle, Strong } from '../../components/styled.tsx'
import { changedFields, type Rule, SAMPLE, typedMessage } from './privacy-draft.ts'

type Previewed = Answer<'POST /api/sources/{id}/privacy/preview'>

export interface Preview {
  query: UseQueryResult<Previewed, ApiProblem>
  isTyped: boolean
  setTyped: (isTyped: boolean) => void
  text: string
  setText: (text: string) => void
  problem: string | null
}

export function usePreview(id: string, privacy: readonly Rule[]): Preview {
  const [isTyped, setTyped] = useState(false)
  const [text, setText] = useState(SAMPLE)
  const [typed] = useDebouncedValue(text, 300)
  const given = typedMessage(typed)
  const message = isTyped && 'message' in given ? given.message : undefined
  const query = useQuery<Previewed, ApiProblem>({
    queryKey: ['privacy preview', id, privacy, isTyped, message],
    queryFn: ({ signal }) =>
      call('POST /api/sources/{id}/privacy/preview', { params: { id }, body: { privacy: [...privacy], message, limit: 20 }, signal }),
    enabled: privacy.length > 0 && (!isTyped || message !== undefined),
    retry: false,
    placeholderData: keepPreviousData,
  })
  return { query, isTyped, setTyped, text, setText, problem: isTyped && 'problem' in given ? given.problem : null }
}

/** `isShownAtRule`: the error of the preview is already shown at one of the rules. */
export function PrivacyPreview({ preview, isShownAtRule }: { preview: Preview; isShownAtRule: boolean }) {
  const { query, isTyped, setTyped, text, setText, problem } = preview
  const titleId = useId()
  const [at, setAt] = useState(0)
  const messages = query.data?.data ?? []
  const shown = messages[Math.min(at, messages.length - 1)]
  const changed = messages.filter(({ before, after }) => changedFields(before, after).length > 0).length
  return (
    <Stack gap="sm" component="section" aria-labelledby={titleId}>
      <Group justify="space-between" gap="sm">
        <SmallTitle id={titleId}>Preview</SmallTitle>
        <SegmentedControl
          size="xs"
          aria-label="Messages of the preview"
          data={[
            { value: 'last', label: 'Last messages' },
            { value: 'typed', label: 'Your message' },
          ]}
          value={isTyped ? 'typed' : 'last'}
          onChange={(value) => {
            setTyped(value === 'typed')
            setAt(0)
          }}
        />
      </Group>
      {isTyped && (
        <JsonInput
          label="Message"
          description="Nothing of it is stored."
          value={text}
          onChange={setText}
          error={problem}
          autosize
          minRows={4}
          maxRows={14}
          spellCheck={false}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        />
      )}
      {query.error !== null && !isShownAtRule && <ErrorAlert problem={query.error} onRetry={() => void query.refetch()} />}
      {query.data !== undefined && messages.length === 0 && (
        <Text size="sm">No messages of this source are stored. Choose “Your message” to try the rules.</Text>
      )}
      {shown !== undefined && problem === null && (
        <>
          {!isTyped && (
            <Group gap="sm">
              <Text size="sm" role="status">
                {changed} of the last {messages.length} messages {changed === 1 ? 'changes' : 'change'}. Saved rules may already have been
                applied to them.
              </Text>
              <Group gap={4} role="group" aria-label="Choose a message">
                <RowButton disabled={at === 0} onClick={() => setAt(at - 1)}>
                  Newer
                </RowButton>
                <Note px={4}>
                  {Math.min(at, messages.length - 1) + 1} of {messages.length}
                </Note>
                <RowButton disabled={at >= messages.length - 1} onClick={() => setAt(at + 1)}>
                  Older
                </RowButton>
              </Group>
            </Group>
          )}
          <ChangedFields fields={changedFields(shown.before, shown.after)} />
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
            <Side title="Before" value={shown.before} />
            <Side title="After" value={shown.after} />
          </SimpleGrid>
        </>
      )}
    </Stack>
  )
}

function ChangedFields({ fields }: { fields: readonly string[] }) {
  return (
    <LongText>
      {fields.length === 0 ? 'The rules change nothing in this message.' : 'Changed: '}
      {fields.map((field, nth) => (
        <Text key={field} span ff="monospace" size="sm">
          {nth > 0 && ', '}
          {field}
        </Text>
      ))}
    </LongText>
  )
}

function Side({ title, value }: { title: string; value: object }) {
  return (
    <Stack gap={4} miw={0}>
      <Strong>{title}</Strong>
      <Json value={value} label={`Message ${title.toLowerCase()} the rules`} maxHeight={320} />
    </Stack>
  )
}
