// Sends one sample message now and shows what went out and what came back, from each URL. Nothing of it is stored or counted.

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
import type { Destination } from './draft.ts'
import { MESSAGE_TYPES } from './validation.ts'

const TYPES = [...MESSAGE_TYPES, 'delete'] as const
type SampleType = (typeof TYPES)[number]
type Sent = Answer<'POST /api/destinations/{id}/test'>

export function TestPanel({ destination, isAdmin }: { destination: Destination; isAdmin: boolean }) {
  const { id, urls, timeoutMs } = destination
  const hold = holdOf(destination)
  const [params, change] = useSearchState()
  const asked = params.get('type')
  const type: SampleType = TYPES.find((each) => each === asked) ?? 'track'
  const client = useQueryClient()
  const answer = useRef<HTMLDivElement>(null)
  const test = useMutation<Sent, ApiProblem, SampleType>({
    mutationFn: (sample) => call('POST /api/destinations/{id}/test', { params: { id }, body: { type: sample } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['GET /api/audit'] }),
    onSettled: () => setTimeout(() => answer.current?.focus({ preventScroll: true }), 50),
  })
  return (
    <Stack gap="lg" maw={860}>
      <Stack gap="sm">
        <Text size="sm">
          A sample message goes to {urls.length === 1 ? 'the URL' : `each of the ${urls.length} URLs`} at once, signed like every other,
          past queue and breaker
          {hold === null ? '' : `, also while it is ${hold}`}. It is not stored and counts nowhere.
        </Text>
        <Group align="flex-end" gap="sm">
          <Select
            label="Type of the message"
            data={[...TYPES]}
            value={type}
            onChange={(value) => change({ type: value === 'track' ? null : value }, { replace: true })}
            allowDeselect={false}
            w={180}
          />
          <Button onClick={() => test.mutate(type)} loading={test.isPending} disabled={!isAdmin}>
            {test.data === undefined ? 'Send a test' : 'Send another'}
          </Button>
        </Group>
        {!isAdmin && (
          <Text size="sm" c="dimmed">
            Your token may only look. Somebody with an admin token can send a test.
          </Text>
        )}
        {test.isPending && (
          <Text size="sm" c="dimmed" role="status">
            Waiting for the answer, for {timeoutMs / 1_000} s at most.
          </Text>
        )}
      </Stack>
      <div ref={answer} tabIndex={-1} style={{ outline: 'none' }}>
        {test.error !== null && <ErrorAlert problem={test.error} onRetry={() => test.mutate(type)} />}
        {test.data !== undefined && !test.isPending && <Outcome sent={test.data} destination={destination} />}
      </div>
    </Stack>
  )
}

function Outcome({
  sent: { success, attempts, request },
  destination: { urls, hasSharedSecret, hasSigningSecrets },
}: {
  sent: Sent
  destination: Destination
}) {
  const good = attempts.filter(({ reason }) => reason === null).length
  const title = success
    ? attempts.length === 1
      ? 'It arrived'
      : good === attempts.length
        ? 'It arrived at every URL'
        : `It arrived at ${good} of ${attempts.length} URLs, which is enough`
    : 'It was not taken'
  return (
    <Stack gap="lg">
      <Alert color={success ? 'teal' : 'red'} variant="light" title={title} role="status">
        {success ? (
          <Text size="sm">
            A real message would count as delivered.{' '}
            {!hasSharedSecret &&
              !hasSigningSecrets &&
              'It is not signed: set a signing secret in the settings, so that the receiver can tell who sends.'}
          </Text>
        ) : (
          <Text size="sm">
            A real message would be retried, or fail for good, by the reason below. Signature not accepted?{' '}
            <ViewLink to="/signature" c="inherit" underline="always">
              The signature checker
            </ViewLink>{' '}
            says what differs.
          </Text>
        )}
      </Alert>
      <Stack gap="sm">
        <Title order={2} size="h4">
          {attempts.length === 1 ? 'Answer' : 'Answers'}
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
                  The answer had no body.
                </Text>
              )}
            </Stack>
          </Paper>
        ))}
      </Stack>
      <Stack gap="sm">
        <Title order={2} size="h4">
          Request
        </Title>
        <RequestView request={{ ...request, note: null }} url={attempts[0]?.url ?? urls[0] ?? null} />
      </Stack>
    </Stack>
  )
}
