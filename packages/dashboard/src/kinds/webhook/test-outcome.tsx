// The outcome of a test of a webhook: the response of each URL, and the request.

import { Alert, Stack, Text } from '@mantine/core'
import { SectionTitle, ViewLink } from '../../components/styled.tsx'
import { RequestView } from '../../delivery/request.tsx'
import { type Sent, TestAttempts } from '../../destination/test-panel.tsx'
import { WebhookAttempt } from './attempt.tsx'
import type { Webhook } from './form/webhook-draft.ts'

export function WebhookOutcome({
  sent: { success, attempts, request },
  destination: { urls, hasSharedSecret, hasSigningSecrets, request: shape },
}: {
  sent: Sent
  destination: Webhook
}) {
  const good = attempts.filter(({ reason }) => reason === null).length
  const title = success
    ? attempts.length === 1
      ? `Test passed: the URL answered ${attempts[0]?.status ?? '2xx'}.`
      : good === attempts.length
        ? `Test passed: all ${attempts.length} URLs answered 2xx.`
        : `Test passed: ${good} of ${attempts.length} URLs answered 2xx. One is enough.`
    : 'Test failed: no URL answered 2xx.'
  return (
    <Stack gap="lg">
      <Alert color={success ? 'teal' : 'red'} variant="light" title={title} role="status">
        {success ? (
          <Text size="sm">
            A real message would be delivered.{' '}
            {!hasSharedSecret &&
              !hasSigningSecrets &&
              'The request is not signed: set a signing secret in the settings so that the receiver can verify who sent it.'}
          </Text>
        ) : (
          <Text size="sm">
            A real message would be retried or would fail, depending on the reason below. If the receiver rejected the signature, the{' '}
            <ViewLink to="/signature" c="inherit" underline="always">
              signature checker
            </ViewLink>{' '}
            shows what differs.
          </Text>
        )}
      </Alert>
      <TestAttempts Attempt={WebhookAttempt} title={attempts.length === 1 ? 'Response' : 'Responses'} attempts={attempts} />
      {request !== null && (
        <Stack gap="sm">
          <SectionTitle>Request</SectionTitle>
          <RequestView request={{ ...request, note: null }} url={attempts[0]?.url ?? urls[0] ?? null} method={shape?.method ?? 'POST'} />
        </Stack>
      )}
    </Stack>
  )
}
