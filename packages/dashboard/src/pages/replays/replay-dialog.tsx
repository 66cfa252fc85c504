// Asks before many deliveries are sent again: counts them first, says where they go and how fast, and leads to the job that does it.

import { Alert, Button, Group, List, Modal, NumberInput, Radio, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { type ApiProblem, call } from '../../api/client.ts'
import { useChange } from '../../api/queries.ts'
import { ErrorAlert, Loading } from '../../components/query-states.tsx'
import { duration, exactCount } from '../../text/format.ts'
import type { ReplayBody } from '../deliveries/filters.ts'
import { rateText } from './progress.ts'

interface Count {
  total: number
  alreadyReplayed: number
  byDestination: { destinationId: string; total: number; alreadyReplayed: number }[]
}

const USUAL_RATE = 100
const MAX_RATE = 100_000
/** Destinations that are named; of more, how many there are. */
const MAX_NAMED = 8

export interface ReplayDialogProps {
  /** Null: closed. */
  body: ReplayBody | null
  onClose: () => void
  nameOf: (destinationId: string) => string
}

export function ReplayDialog({ body, onClose, nameOf }: ReplayDialogProps) {
  return (
    <Modal opened={body !== null} onClose={onClose} title="Send again" size="lg" centered closeButtonProps={{ 'aria-label': 'Close' }}>
      {body !== null && <Asked body={body} onClose={onClose} nameOf={nameOf} />}
    </Modal>
  )
}

function Asked({ body, onClose, nameOf }: ReplayDialogProps & { body: ReplayBody }) {
  const [, navigate] = useLocation()
  const [isLimited, setLimited] = useState(true)
  const [rate, setRate] = useState<number | string>(USUAL_RATE)
  const count = useQuery<Count, ApiProblem>({
    queryKey: ['count of a replay', body],
    queryFn: async ({ signal }) => (await call('POST /api/replays', { body: { ...body, dryRun: true }, signal })) as Count,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  const start = useChange('POST /api/replays', 'GET /api/replays')
  const ratePerSecond = isLimited ? Number(rate) : null
  const isRate = ratePerSecond === null || (Number.isInteger(ratePerSecond) && ratePerSecond >= 1 && ratePerSecond <= MAX_RATE)
  const begin = (): void => {
    start.mutate(
      { body: { ...body, ratePerSecond } },
      {
        onSuccess: (job) => {
          onClose()
          if ('id' in job) navigate(`/replays/${encodeURIComponent(job.id)}`)
        },
      },
    )
  }
  if (count.error) return <ErrorAlert problem={count.error} onRetry={() => void count.refetch()} />
  if (count.data === undefined) return <Loading lines={4} label="Counting what would be sent again" />
  const { total, alreadyReplayed } = count.data
  const toSend = total - alreadyReplayed
  return (
    <Stack gap="md">
      <Told count={count.data} nameOf={nameOf} />
      {body.states?.includes('delivered') && (
        <Alert color="orange" title="They were delivered already">
          Their receivers get each of them a second time.
        </Alert>
      )}
      {toSend > 0 && (
        <>
          <Radio.Group label="How fast" value={isLimited ? 'limited' : 'free'} onChange={(value) => setLimited(value === 'limited')}>
            <Stack gap="xs" mt={6}>
              <Group gap="xs">
                <Radio value="limited" label="At most" />
                <NumberInput
                  aria-label="Deliveries a second"
                  value={rate}
                  onChange={setRate}
                  onFocus={() => setLimited(true)}
                  min={1}
                  max={MAX_RATE}
                  allowDecimal={false}
                  w={110}
                  size="xs"
                  error={isLimited && !isRate}
                />
                <Text size="sm">a second</Text>
              </Group>
              <Radio value="free" label="As fast as the destinations take them" />
            </Stack>
          </Radio.Group>
          <Text size="sm">
            {isRate ? (
              <>
                <b>{exactCount(toSend)}</b> will be sent, {rateText(ratePerSecond)}
                {ratePerSecond !== null && `: about ${duration(Math.max(1_000, (toSend / ratePerSecond) * 1_000))}`}. The job can be paused,
                made slower or faster, and cancelled.
              </>
            ) : (
              `Give a whole number from 1 to ${exactCount(MAX_RATE)}.`
            )}
          </Text>
          <Text size="sm" c="dimmed">
            Each is a delivery of its own with the same messageId and the header X-Replay. What failed stays on record.
          </Text>
        </>
      )}
      {start.error && (
        <Alert color="red" role="alert">
          {start.error.message}
        </Alert>
      )}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {toSend > 0 ? 'Cancel' : 'Close'}
        </Button>
        {toSend > 0 && (
          <Button onClick={begin} loading={start.isPending} disabled={!isRate} data-autofocus>
            Send {exactCount(toSend)} again
          </Button>
        )}
      </Group>
    </Stack>
  )
}

function Told({ count: { total, alreadyReplayed, byDestination }, nameOf }: { count: Count; nameOf: (id: string) => string }) {
  if (total === 0) return <Text size="sm">Nothing matches: there is nothing to send again.</Text>
  return (
    <Stack gap="xs">
      <Text size="sm">
        <b>{exactCount(total)}</b> {total === 1 ? 'delivery matches' : 'deliveries match'}
        {byDestination.length > 0 && ', to'}
        {byDestination.length === 0 ? '.' : ':'}
      </Text>
      {byDestination.length > 0 && (
        <List size="sm" spacing={2}>
          {byDestination.slice(0, MAX_NAMED).map((each) => (
            <List.Item key={each.destinationId} style={{ overflowWrap: 'anywhere' }}>
              {nameOf(each.destinationId)}: {exactCount(each.total)}
            </List.Item>
          ))}
          {byDestination.length > MAX_NAMED && <List.Item>and {exactCount(byDestination.length - MAX_NAMED)} more destinations</List.Item>}
        </List>
      )}
      {alreadyReplayed > 0 && (
        <Text size="sm">
          {alreadyReplayed === total ? 'All of them' : exactCount(alreadyReplayed)} {alreadyReplayed === 1 && total > 1 ? 'is' : 'are'}{' '}
          pending again, or a later delivery of the same message stands for them: {alreadyReplayed === 1 ? 'it is' : 'they are'} skipped.
        </Text>
      )}
    </Stack>
  )
}
