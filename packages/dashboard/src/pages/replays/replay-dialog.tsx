// Asks before many deliveries are replayed: counts them, lists their destinations, asks for the rate, and opens the replay job.

import { Alert, Button, Checkbox, Group, List, Modal, NumberInput, Radio, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { type ApiProblem, call } from '../../api/client.ts'
import { useChange } from '../../api/queries.ts'
import { ticked } from '../../components/inputs.tsx'
import { ErrorAlert, Loading } from '../../components/page.tsx'
import { Note, SecondaryButton } from '../../components/styled.tsx'
import type { ReplayBody } from '../../delivery/filters.ts'
import { duration, exactCount } from '../../text/format.ts'
import { isRate, MAX_RATE, rateText } from './progress.ts'

interface Count {
  total: number
  alreadyReplayed: number
  byDestination: { destinationId: string; total: number; alreadyReplayed: number }[]
}

const DEFAULT_RATE = 100
/** The number of destinations that are listed by name. */
const MAX_NAMED = 8

export interface ReplayDialogProps {
  /** Null if the dialog is closed. */
  body: ReplayBody | null
  onClose: () => void
  nameOf: (destinationId: string) => string
}

export function ReplayDialog({ body, onClose, nameOf }: ReplayDialogProps) {
  return (
    <Modal
      opened={body !== null}
      onClose={onClose}
      title="Replay deliveries"
      size="lg"
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {body !== null && <ReplayForm body={body} onClose={onClose} nameOf={nameOf} />}
    </Modal>
  )
}

function ReplayForm({ body, onClose, nameOf }: ReplayDialogProps & { body: ReplayBody }) {
  const [, navigate] = useLocation()
  const [ratePerSecond, setRate] = useState<number | null>(DEFAULT_RATE)
  const [includeReplayed, setIncludeReplayed] = useState(false)
  const count = useQuery<Count, ApiProblem>({
    queryKey: ['replay count', body],
    queryFn: async ({ signal }) => (await call('POST /api/replays', { body: { ...body, dryRun: true }, signal })) as Count,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  const start = useChange('POST /api/replays', 'GET /api/replays')
  const submit = (): void => {
    start.mutate(
      { body: { ...body, ratePerSecond, includeReplayed } },
      {
        onSuccess: (job) => {
          onClose()
          if ('id' in job) navigate(`/replays/${encodeURIComponent(job.id)}`)
        },
      },
    )
  }
  if (count.error) return <ErrorAlert problem={count.error} onRetry={() => void count.refetch()} />
  if (count.data === undefined) return <Loading lines={4} label="Counting matching deliveries" />
  const { total, alreadyReplayed } = count.data
  const toSend = includeReplayed ? total : total - alreadyReplayed
  return (
    <Stack gap="md">
      <CountSummary count={count.data} nameOf={nameOf} isIncluded={includeReplayed} />
      {alreadyReplayed > 0 && (
        <Checkbox
          label="Also send messages that were replayed before"
          description="For a receiver that has lost its data again. Each message is sent once; messages that are pending again are skipped."
          {...ticked(includeReplayed, setIncludeReplayed)}
        />
      )}
      {body.states?.includes('delivered') && (
        <Alert color="orange" title="These deliveries already succeeded">
          Receivers will get each message a second time.
        </Alert>
      )}
      {toSend > 0 && <Rate ratePerSecond={ratePerSecond} onChange={setRate} toSend={toSend} isUpTo={includeReplayed} />}
      {start.error && (
        <Alert color="red" role="alert">
          {start.error.message}
        </Alert>
      )}
      <Group justify="flex-end">
        <SecondaryButton onClick={onClose}>{toSend > 0 ? 'Cancel' : 'Close'}</SecondaryButton>
        {toSend > 0 && (
          <Button onClick={submit} loading={start.isPending} disabled={!isRate(ratePerSecond)} data-autofocus>
            {includeReplayed ? `Replay up to ${exactCount(toSend)}` : `Replay ${exactCount(toSend)}`}
          </Button>
        )}
      </Group>
    </Stack>
  )
}

interface RateProps {
  ratePerSecond: number | null
  onChange: (ratePerSecond: number | null) => void
  toSend: number
  /** Whether some of them may be skipped. */
  isUpTo: boolean
}

function Rate({ ratePerSecond, onChange, toSend, isUpTo }: RateProps) {
  const [typed, setTyped] = useState<number | string>(DEFAULT_RATE)
  const setLimited = (isLimited: boolean): void => onChange(isLimited ? Number(typed) : null)
  return (
    <>
      <Radio.Group label="Rate" value={ratePerSecond === null ? 'free' : 'limited'} onChange={(value) => setLimited(value === 'limited')}>
        <Stack gap="xs" mt={6}>
          <Group gap="xs">
            <Radio value="limited" label="At most" />
            <NumberInput
              aria-label="Deliveries per second"
              value={typed}
              onChange={(value) => {
                setTyped(value)
                onChange(Number(value))
              }}
              onFocus={() => setLimited(true)}
              min={1}
              max={MAX_RATE}
              allowDecimal={false}
              w={110}
              size="xs"
              error={!isRate(ratePerSecond)}
            />
            <Text size="sm">per second</Text>
          </Group>
          <Radio value="free" label="No rate limit" />
        </Stack>
      </Radio.Group>
      <Text size="sm">
        {isRate(ratePerSecond) ? (
          <>
            {isUpTo && 'Up to '}
            <b>{exactCount(toSend)}</b> {toSend === 1 ? 'delivery' : 'deliveries'}, {rateText(ratePerSecond)}
            {ratePerSecond !== null && `: about ${duration(Math.max(1_000, (toSend / ratePerSecond) * 1_000))}`}. You can pause or cancel
            the job and change its rate.
          </>
        ) : (
          `Enter a whole number from 1 to ${exactCount(MAX_RATE)}.`
        )}
      </Text>
      <Note>Each replay is a new delivery with the same messageId and the header X-Replay. The original deliveries are kept.</Note>
    </>
  )
}

interface CountSummaryProps {
  count: Count
  nameOf: (id: string) => string
  isIncluded: boolean
}

function CountSummary({ count: { total, alreadyReplayed, byDestination }, nameOf, isIncluded }: CountSummaryProps) {
  if (total === 0) return <Text size="sm">No deliveries match.</Text>
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
          {alreadyReplayed === total ? 'All of them' : `${exactCount(alreadyReplayed)} of them`} {alreadyReplayed === 1 ? 'was' : 'were'}{' '}
          already replayed: the message is pending again or has a later delivery.{' '}
          {isIncluded ? 'Their messages will be sent again, except those that are pending.' : 'They will be skipped.'}
        </Text>
      )}
    </Stack>
  )
}
