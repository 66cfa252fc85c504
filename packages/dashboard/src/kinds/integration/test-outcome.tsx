// The outcome of a test of an integration: a result for each request, and for each subscription that failed without one.

import { Alert, Stack, Text } from '@mantine/core'
import { type Sent, TestAttempts } from '../../destination/test-panel.tsx'
import { IntegrationAttempt } from './attempt.tsx'

export function IntegrationOutcome({ sent: { success, attempts } }: { sent: Sent }) {
  const title = !success
    ? 'Test failed.'
    : attempts.length === 0
      ? 'No subscription matches the sample message, so nothing was sent.'
      : 'Test passed: all matching subscriptions succeeded.'
  return (
    <Stack gap="lg">
      <Alert color={!success ? 'red' : attempts.length === 0 ? 'gray' : 'teal'} variant="light" title={title} role="status">
        <Text size="sm">
          {success
            ? attempts.length === 0
              ? 'Choose another type of message, or change when the subscriptions run.'
              : 'A real message would be delivered.'
            : 'A real message would be retried or would fail, depending on the reason below.'}
        </Text>
      </Alert>
      {attempts.length > 0 && (
        <TestAttempts Attempt={IntegrationAttempt} title={attempts.length === 1 ? 'Request' : 'Requests'} attempts={attempts} />
      )}
    </Stack>
  )
}
