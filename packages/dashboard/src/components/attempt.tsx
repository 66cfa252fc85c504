// One attempt of a delivery or of a test: the URL, the status or the error, how long each phase took, the start of the response body, and what
// the transformation printed. An integration has an attempt for each request, and for each subscription that ended without one.

import { Badge, Code, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '../api/client.ts'
import { duration, preciseTime } from '../text/format.ts'
import { reasonAdvice, reasonSentence } from '../text/reasons.ts'
import { CodeBlock } from './copyable.tsx'
import { Waterfall } from './waterfall.tsx'

/** The attempt ended before a request was built. */
const NEVER_SENT = new Set(['mapping_failed', 'transformation_failed', 'dropped_by_transformation'])

export function AttemptView({ attempt, withAdvice = true }: { attempt: Schemas['Attempt']; withAdvice?: boolean }) {
  const { url, address, startedAt, status, reason, error, timings, responseStart, version, logs, subscription, method, request } = attempt
  const isSent = subscription === null ? reason === null || !NEVER_SENT.has(reason) : method !== null
  // The phases of an integration's requests are not measured.
  const isStep = subscription !== null
  const advice = reason === null ? '' : reasonAdvice(reason, subscription !== null)
  return (
    <Stack gap={6}>
      <Group gap="xs" style={{ rowGap: 4 }}>
        <Badge color={reason === null ? 'teal' : 'red'} variant="light" tt="none" size="sm" style={{ flexShrink: 0 }}>
          {reason === null ? (status === null ? 'success' : `HTTP ${status}`) : reason}
        </Badge>
        {subscription !== null && (
          <Text size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
            {subscription}
          </Text>
        )}
        {isSent && (
          <Code style={{ overflowWrap: 'anywhere' }}>
            {method !== null && `${method} `}
            {url}
          </Code>
        )}
        {(version > 1 || !isSent) && (
          <Text size="xs" c="dimmed">
            version {version}
          </Text>
        )}
        {address !== null && (
          <Text size="xs" c="dimmed">
            at {address}
          </Text>
        )}
      </Group>
      {reason !== null && (
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {error ?? reasonSentence(reason)}
          {withAdvice && advice !== '' && (
            <Text span c="dimmed" size="sm">
              {' '}
              {advice}
            </Text>
          )}
        </Text>
      )}
      {subscription !== null && !isSent && reason === null && (
        <Text size="sm" c="dimmed">
          The subscription made no HTTP request.
        </Text>
      )}
      {isSent && !isStep && <Waterfall timings={timings} />}
      {isSent && isStep && (
        <Text size="xs" fw={600}>
          total {duration(timings.totalMs)}
        </Text>
      )}
      {request !== undefined && (
        <Stack gap={2}>
          <Text size="xs" c="dimmed">
            Body of the request
          </Text>
          <CodeBlock text={request.body} label={`body of the request to ${url}`} maxHeight={240} />
        </Stack>
      )}
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
      {logs !== null && (
        <Stack gap={2}>
          <Text size="xs" c="dimmed">
            Log of the {subscription === null ? 'transformation' : 'integration'}
          </Text>
          <CodeBlock text={logs} label={`log of the attempt at ${preciseTime(startedAt)}`} maxHeight={160} />
        </Stack>
      )}
    </Stack>
  )
}
