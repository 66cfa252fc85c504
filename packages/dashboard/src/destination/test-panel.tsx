// Sends one sample message and shows the requests and responses. The test is not stored or counted.

import { Button, Group, Paper, Select, Stack, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ComponentType, type ReactNode, useRef } from 'react'
import { type Answer, type ApiProblem, call } from '../api/client.ts'
import { MESSAGE_TYPES } from '../api/rules.ts'
import { ErrorAlert } from '../components/page.tsx'
import { Note, SectionTitle, SmallNote, Time } from '../components/styled.tsx'
import { useSearchState } from '../url/url-state.ts'
import { holdOf } from './destination-status.ts'
import type { AttemptProps, Destination } from './kind.ts'

const TYPES = [...MESSAGE_TYPES, 'delete'] as const
type SampleType = (typeof TYPES)[number]
export type Sent = Answer<'POST /api/destinations/{id}/test'>

/** What a kind says about a test. */
export interface TestView {
  /** What the test does, in a sentence or two. */
  about: string
  outcome: (sent: Sent) => ReactNode
}

export function TestPanel({ destination, mayEdit, about, outcome }: TestView & { destination: Destination; mayEdit: boolean }) {
  const { id, timeoutMs } = destination
  const hold = holdOf(destination)
  const [params, change] = useSearchState()
  const asked = params.get('type')
  const type: SampleType = TYPES.find((each) => each === asked) ?? 'track'
  const client = useQueryClient()
  const outcomeElement = useRef<HTMLDivElement>(null)
  const test = useMutation<Sent, ApiProblem, SampleType>({
    mutationFn: (sample) => call('POST /api/destinations/{id}/test', { params: { id }, body: { type: sample } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['GET /api/audit'] }),
    onSettled: () => setTimeout(() => outcomeElement.current?.focus({ preventScroll: true }), 50),
  })
  return (
    <Stack gap="lg" maw={860}>
      <Stack gap="sm">
        <Text size="sm">
          {about} The test bypasses the queue and the circuit breaker{hold === null ? '' : ` and works while the destination is ${hold}`}.
          It is not stored or counted.
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
          <Button onClick={() => test.mutate(type)} loading={test.isPending} disabled={!mayEdit}>
            {test.data === undefined ? 'Send a test' : 'Send another test'}
          </Button>
        </Group>
        {!mayEdit && <Note>Sending a test requires the editor or admin role, and access to all sources of the destination.</Note>}
        {test.isPending && <Note role="status">Waiting for the response (timeout {timeoutMs / 1_000} s).</Note>}
      </Stack>
      <div ref={outcomeElement} tabIndex={-1} style={{ outline: 'none' }}>
        {test.error !== null && <ErrorAlert problem={test.error} onRetry={() => test.mutate(type)} />}
        {test.data !== undefined && !test.isPending && outcome(test.data)}
      </div>
    </Stack>
  )
}

interface TestAttemptsProps {
  title: string
  attempts: Sent['attempts']
  Attempt: ComponentType<AttemptProps>
}

export function TestAttempts({ title, attempts, Attempt }: TestAttemptsProps) {
  return (
    <Stack gap="sm">
      <SectionTitle>{title}</SectionTitle>
      {attempts.map((attempt, at) => (
        <Paper key={at} withBorder p="sm">
          <Stack gap={6}>
            <SmallNote>
              <Time at={attempt.startedAt} size="xs" />
            </SmallNote>
            <Attempt attempt={attempt} />
            {attempt.status !== null && attempt.responseStart === null && <SmallNote>The response had no body.</SmallNote>}
          </Stack>
        </Paper>
      ))}
    </Stack>
  )
}
