// One attempt of a delivery or of a test: the URL, the status or the error, how long each phase took, and the start of the response body.

import { Badge, Code, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '../api/client.ts'
import { preciseTime } from '../text/format.ts'
import { reasonAdvice, reasonSentence } from '../text/reasons.ts'
import { CodeBlock } from './copyable.tsx'
import { Waterfall } from './waterfall.tsx'

export function AttemptView({ attempt, withAdvice = true }: { attempt: Schemas['Attempt']; withAdvice?: boolean }) {
  const { url, address, startedAt, status, reason, error, timings, responseStart } = attempt
  const advice = reason === null ? '' : reasonAdvice(reason)
  return (
    <Stack gap={6}>
      <Group gap="xs" style={{ rowGap: 4 }}>
        <Badge color={reason === null ? 'teal' : 'red'} variant="light" tt="none" size="sm" style={{ flexShrink: 0 }}>
          {reason === null ? `HTTP ${status}` : reason}
        </Badge>
        <Code style={{ overflowWrap: 'anywhere' }}>POST {url}</Code>
        {address !== null && (
          <Text size="xs" c="dimmed">
            at {address}
          </Text>
        )}
      </Group>
      {reason !== null && (
        <Text size="sm">
          {error ?? reasonSentence(reason)}
          {withAdvice && advice !== '' && (
            <Text span c="dimmed" size="sm">
              {' '}
              {advice}
            </Text>
          )}
        </Text>
      )}
      <Waterfall timings={timings} />
      {responseStart !== null &&
        (responseStart === '' ? (
          <Text size="xs" c="dimmed">
            The response had no body.
          </Text>
        ) : (
          <Stack gap={2}>
            <Text size="xs" c="dimmed">
              Start of the response
            </Text>
            <CodeBlock
              text={responseStart}
              label={`start of the response to the attempt at ${preciseTime(startedAt)} to ${url}`}
              maxHeight={160}
            />
          </Stack>
        ))}
    </Stack>
  )
}
