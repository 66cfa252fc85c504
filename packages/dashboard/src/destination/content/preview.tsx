// The last messages and what is sent for each with the settings as they are typed: before and after side by side. Nothing is sent.

import { Box, Group, Paper, SimpleGrid, Stack, Text, UnstyledButton } from '@mantine/core'
import { useState } from 'react'
import { CodeBlock, Json } from '../../components/copyable.tsx'
import { ErrorAlert, Loading } from '../../components/page.tsx'
import { LongCode, LongText, Note, SectionTitle, SmallButton, SmallNote, SmallTag, Strong, Time } from '../../components/styled.tsx'
import { parsedJson } from '../../text/json-tokens.ts'
import classes from './content.module.css'
import { countsText, detailOf, KIND_COLORS, kindOf, type PreviewEntry, requestsOf, titleOf } from './preview-rows.ts'
import type { ContentState, PreviewState } from './use-content.ts'

export function Preview({ content, preview }: { content: ContentState; preview: PreviewState }) {
  const { entries, problem, isLoading } = preview
  const [chosen, choose] = useState<string | null>(null)
  const entry = entries?.find((each, at) => keyOf(each, at) === chosen) ?? entries?.[0]
  const isStale = problem !== null || content.problems.size > 0
  return (
    <Stack gap="sm" component="section" aria-labelledby="preview">
      <Group justify="space-between">
        <SectionTitle id="preview">Preview</SectionTitle>
        <SmallButton onClick={preview.refresh} loading={isLoading} disabled={content.problems.size > 0}>
          Refresh
        </SmallButton>
      </Group>
      {problem !== null && content.fieldOf(problem.field) === null && <ErrorAlert problem={problem} onRetry={preview.refresh} />}
      {entries === null ? (
        isStale ? (
          <Note>The preview appears when the errors are corrected.</Note>
        ) : (
          <Loading lines={5} label="Loading the preview" />
        )
      ) : entry === undefined ? (
        <Note>No message from the sources of this destination is stored yet. The preview appears with the first one.</Note>
      ) : (
        <>
          <Text size="sm" role="status">
            {isStale ? 'Shows the result from before the errors. ' : ''}
            {countsText(entries)} This is a preview: nothing leaves the service.
          </Text>
          <div className={classes.columns}>
            <Stack gap={2} className={classes.list} role="group" aria-label="Last messages, newest first" tabIndex={0}>
              {entries.map((each, at) => (
                <UnstyledButton
                  key={keyOf(each, at)}
                  className={classes.row}
                  aria-pressed={each === entry}
                  onClick={() => choose(keyOf(each, at))}
                >
                  <Text span size="sm" className={classes.title}>
                    {titleOf(each)}
                  </Text>
                  <KindBadge entry={each} />
                </UnstyledButton>
              ))}
            </Stack>
            <Comparison entry={entry} />
          </div>
        </>
      )}
    </Stack>
  )
}

/** A message without a messageId is known by its place. */
function keyOf({ messageId }: PreviewEntry, at: number): string {
  return messageId ?? `message ${at}`
}

function KindBadge({ entry }: { entry: PreviewEntry }) {
  const kind = kindOf(entry)
  return (
    <SmallTag color={KIND_COLORS[kind]} style={{ flexShrink: 0 }}>
      {kind}
    </SmallTag>
  )
}

function Comparison({ entry }: { entry: PreviewEntry }) {
  const { messageId, receivedAt, message, logs } = entry
  const requests = requestsOf(entry)
  const kind = kindOf(entry)
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} miw={0}>
      <Paper withBorder p="sm" miw={0} component="section" aria-label="Before">
        <Stack gap={6}>
          <Strong>Before</Strong>
          <SmallNote style={{ overflowWrap: 'anywhere' }}>
            <Time at={receivedAt} size="xs" /> · {messageId}
          </SmallNote>
          <Json value={message} label="the message before" maxHeight={420} />
        </Stack>
      </Paper>
      <Paper withBorder p="sm" miw={0} component="section" aria-label="After">
        <Stack gap={6}>
          <Group gap="xs">
            <Strong>After</Strong>
            <KindBadge entry={entry} />
          </Group>
          {kind !== 'sent' && <LongText>{detailOf(entry)}</LongText>}
          {kind === 'sent' && requests.length === 0 && <Note>No HTTP request is made for this message.</Note>}
          {requests.map((request, at) => (
            <Stack key={at} gap={6} component="section" aria-label={requests.length === 1 ? 'Request' : `Request ${at + 1}`}>
              {request.subscription !== undefined && <SmallNote style={{ overflowWrap: 'anywhere' }}>{request.subscription}</SmallNote>}
              <LongCode>
                {request.method} {request.url}
              </LongCode>
              {request.body !== null && request.body !== '' && <Body text={request.body} />}
              <details>
                <summary className={classes.summary}>Headers ({Object.keys(request.headers).length})</summary>
                <Box fz="xs" ff="monospace" mt={4} style={{ overflowWrap: 'anywhere' }}>
                  {Object.entries(request.headers).map(([name, value]) => (
                    <div key={name}>
                      {name}: {value}
                    </div>
                  ))}
                </Box>
              </details>
            </Stack>
          ))}
          {logs !== undefined && logs !== '' && (
            <Stack gap={2}>
              <SmallNote>Log</SmallNote>
              <CodeBlock text={logs} label="the log" maxHeight={160} />
            </Stack>
          )}
        </Stack>
      </Paper>
    </SimpleGrid>
  )
}

function Body({ text }: { text: string }) {
  const value = parsedJson(text)
  return <Json {...(value === undefined ? { text } : { value })} label="the body after" maxHeight={420} />
}
