// Sends one sample message and shows the requests and responses. The test is not stored or counted.

import { Alert, Button, Group, Paper, Select, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRef } from 'react'
import { type Answer, type ApiProblem, call } from '../../api/client.ts'
import { AttemptView } from '../../components/attempt.tsx'
import { ViewLink } from '../../components/link.tsx'
import { ErrorAlert } from '../../components/query-states.tsx'
import { Time } from '../../components/time.tsx'
import { useSearchState } from '../../url-state.ts'
import { RequestView } from '../deliveries/request.tsx'
import { holdOf } from './destination-status.ts'
import type { Destination, Webhook } from './draft.ts'
import { targetText } from './target-text.ts'
import { MESSAGE_TYPES } from './validation.ts'

const TYPES = [...MESSAGE_TYPES, 'delete'] as const
type SampleType = (typeof TYPES)[number]
type Sent = Answer<'POST /api/destinations/{id}/test'>

export function TestPanel({ destination, isAdmin }: { destination: Destination; isAdmin: boolean }) {
  const { id, timeoutMs } = destination
  const hold = holdOf(destination)
  const [params, change] = useSearchState()
  const asked = params.get('type')
  const type: SampleType = TYPES.find((each) => each === asked) ?? 'track'
  const client = useQueryClient()
  const outcome = useRef<HTMLDivElement>(null)
  const test = useMutation<Sent, ApiProblem, SampleType>({
    mutationFn: (sample) => call('POST /api/destinations/{id}/test', { params: { id }, body: { type: sample } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['GET /api/audit'] }),
    onSettled: () => setTimeout(() => outcome.current?.focus({ preventScroll: true }), 50),
  })
  return (
    <Stack gap="lg" maw={860}>
      <Stack gap="sm">
        <Text size="sm">
          {destination.type === 'integration'
            ? `Runs the subscriptions that match a sample message now. ${targetText(destination)} receives it as real data.`
            : `Sends a sample message to ${destination.urls.length === 1 ? 'the URL' : `all ${destination.urls.length} URLs`} now, signed like any other.`}{' '}
          The test bypasses the queue and the circuit breaker{hold === null ? '' : ` and works while the destination is ${hold}`}. It is not
          stored or counted.
        </Text>
        <Group align="flex-end" gap="sm">
          <Select
            label="Message type"
            data={[...TYPES]}
            value={type}
            onChange={(value) => change({ type: value === 'track' ? null : value }, { replace: true })}
            allowDeselect={false}
            w={180}
          />
          <Button onClick={() => test.mutate(type)} loading={test.isPending} disabled={!isAdmin}>
            {test.data === undefined ? 'Send a test' : 'Send another test'}
          </Button>
        </Group>
        {!isAdmin && (
          <Text size="sm" c="dimmed">
            Sending a test requires an admin token.
          </Text>
        )}
        {test.isPending && (
          <Text size="sm" c="dimmed" role="status">
            Waiting for the response (timeout {timeoutMs / 1_000} s).
          </Text>
        )}
      </Stack>
      <div ref={outcome} tabIndex={-1} style={{ outline: 'none' }}>
        {test.error !== null && <ErrorAlert problem={test.error} onRetry={() => test.mutate(type)} />}
        {test.data !== undefined &&
          !test.isPending &&
          (destination.type === 'webhook' ? (
            <Outcome sent={test.data} destination={destination} />
          ) : (
            <IntegrationOutcome sent={test.data} />
          ))}
      </div>
    </Stack>
  )
}

function Outcome({
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
      <Attempts title={attempts.length === 1 ? 'Response' : 'Responses'} attempts={attempts} />
      {request !== null && (
        <Stack gap="sm">
          <Title order={2} size="h4">
            Request
          </Title>
          <RequestView request={{ ...request, note: null }} url={attempts[0]?.url ?? urls[0] ?? null} method={shape?.method ?? 'POST'} />
        </Stack>
      )}
    </Stack>
  )
}

/** A test of an integration has a result for each request, and for each subscription that failed without one. */
function IntegrationOutcome({ sent: { success, attempts } }: { sent: Sent }) {
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
      {attempts.length > 0 && <Attempts title={attempts.length === 1 ? 'Request' : 'Requests'} attempts={attempts} />}
    </Stack>
  )
}

function Attempts({ title, attempts }: { title: string; attempts: Sent['attempts'] }) {
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        {title}
      </Title>
      {attempts.map((attempt, at) => (
        <Paper key={at} withBorder p="sm">
          <Stack gap={6}>
            <Text size="xs" c="dimmed">
              <Time at={attempt.startedAt} size="xs" />
            </Text>
            <AttemptView attempt={attempt} />
            {attempt.status !== null && attempt.responseStart === null && (
              <Text size="xs" c="dimmed">
                The response had no body.
              </Text>
            )}
          </Stack>
        </Paper>
      ))}
    </Stack>
  )
}
