// The last messages and what is sent for each with the settings as they are typed: before and after side by side. Nothing is sent.

import { Badge, Box, Button, Code, Group, Paper, SimpleGrid, Stack, Text, Title, UnstyledButton } from '@mantine/core'
import { useState } from 'react'
import { CodeBlock } from '../../../components/copyable.tsx'
import { Json } from '../../../components/json.tsx'
import { ErrorAlert, Loading } from '../../../components/query-states.tsx'
import { Time } from '../../../components/time.tsx'
import { countsText, detailOf, KIND_COLORS, kindOf, type PreviewEntry, requestsOf, titleOf } from './preview-rows.ts'
import classes from './shape.module.css'
import { shapeFieldOf } from './shape-draft.ts'
import type { PreviewState, ShapeState } from './use-shape.ts'

export function Preview({ shape, preview }: { shape: ShapeState; preview: PreviewState }) {
  const { entries, problem, isLoading } = preview
  const [chosen, choose] = useState<string | null>(null)
  const entry = entries?.find((each, at) => keyOf(each, at) === chosen) ?? entries?.[0]
  const isStale = problem !== null || shape.problems.size > 0
  return (
    <Stack gap="sm" component="section" aria-labelledby="preview">
      <Group justify="space-between">
        <Title order={2} size="h4" id="preview">
          Preview
        </Title>
        <Button size="xs" variant="default" onClick={preview.refresh} loading={isLoading} disabled={shape.problems.size > 0}>
          Refresh
        </Button>
      </Group>
      {problem !== null && shapeFieldOf(problem.field, shape.draft) === null && <ErrorAlert problem={problem} onRetry={preview.refresh} />}
      {entries === null ? (
        isStale ? (
          <Text size="sm" c="dimmed">
            The preview appears when the errors are corrected.
          </Text>
        ) : (
          <Loading lines={5} label="Loading the preview" />
        )
      ) : entry === undefined ? (
        <Text size="sm" c="dimmed">
          No message from the sources of this destination is stored yet. The preview appears with the first one.
        </Text>
      ) : (
        <>
          <Text size="sm" role="status">
            {isStale ? 'Shows the result from before the errors. ' : ''}
            {countsText(entries)} Nothing is sent.
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
    <Badge size="sm" variant="light" tt="none" color={KIND_COLORS[kind]} style={{ flexShrink: 0 }}>
      {kind}
    </Badge>
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
          <Text size="sm" fw={600}>
            Before
          </Text>
          <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            <Time at={receivedAt} size="xs" /> · {messageId}
          </Text>
          <Json value={message} label="the message before" maxHeight={420} />
        </Stack>
      </Paper>
      <Paper withBorder p="sm" miw={0} component="section" aria-label="After">
        <Stack gap={6}>
          <Group gap="xs">
            <Text size="sm" fw={600}>
              After
            </Text>
            <KindBadge entry={entry} />
          </Group>
          {kind !== 'sent' && (
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              {detailOf(entry)}
            </Text>
          )}
          {kind === 'sent' && requests.length === 0 && (
            <Text size="sm" c="dimmed">
              No HTTP request is made for this message.
            </Text>
          )}
          {requests.map((request, at) => (
            <Stack key={at} gap={6} component="section" aria-label={requests.length === 1 ? 'Request' : `Request ${at + 1}`}>
              {request.subscription !== undefined && (
                <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
                  {request.subscription}
                </Text>
              )}
              <Code style={{ overflowWrap: 'anywhere' }}>
                {request.method} {request.url}
              </Code>
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
              <Text size="xs" c="dimmed">
                Log
              </Text>
              <CodeBlock text={logs} label="the log" maxHeight={160} />
            </Stack>
          )}
        </Stack>
      </Paper>
    </SimpleGrid>
  )
}

function Body({ text }: { text: string }) {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return <Json text={text} label="the body after" maxHeight={420} />
  }
  return <Json value={value} label="the body after" maxHeight={420} />
}
