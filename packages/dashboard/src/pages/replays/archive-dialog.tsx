// Replays messages from the archive of a lake: to a destination that was added later, or after the store has forgotten them. Counts them first.

import { Alert, Button, Group, Modal, NativeSelect, NumberInput, SimpleGrid, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { type Answer, useApi, useChange } from '../../api/queries.ts'
import { entered, Form } from '../../components/inputs.tsx'
import { Note, SecondaryButton } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { exactCount, plural } from '../../text/format.ts'
import { isoTime, localTime } from '../../url/local-time.ts'
import { isRate, MAX_RATE } from './progress.ts'

type Destination = Answer<'GET /api/destinations'>['data'][number]

const DEFAULT_DAYS = 90
const DAY_MS = 86_400_000
const DEFAULT_RATE = 100

/** A button that opens the dialog. Nothing if there is no lake, or no other destination. */
export function ArchiveReplay() {
  const { mayEdit } = useSession()
  const destinations = useApi('GET /api/destinations', { query: { limit: 1_000 }, enabled: mayEdit })
  const [isOpen, setOpen] = useState(false)
  const known = (destinations.data?.data ?? []).filter(({ shared }) => shared !== true)
  const lakes = known.filter((each) => each.type === 'warehouse' && each.warehouse.engine === 'parquet')
  if (!mayEdit || lakes.length === 0 || known.length < 2) return null
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        Replay from a lake
      </Button>
      <Modal
        opened={isOpen}
        onClose={() => setOpen(false)}
        title="Replay from the archive of a lake"
        size="lg"
        centered
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <ArchiveForm lakes={lakes} destinations={known} onClose={() => setOpen(false)} />
      </Modal>
    </>
  )
}

interface ArchiveFormProps {
  lakes: readonly Destination[]
  destinations: readonly Destination[]
  onClose: () => void
}

/** What is asked for, and what the service has counted for exactly that. */
interface Counted {
  about: string
  total: number
}

interface Draft {
  lake: string
  target: string
  /** As inputs have times. */
  from: string
  to: string
  event: string
  user: string
}

function firstDraft(lakes: readonly Destination[], destinations: readonly Destination[]): Draft {
  const nowMs = Date.now()
  const lake = lakes[0]?.id ?? ''
  const target = destinations.find(({ id }) => id !== lake)?.id ?? ''
  const [from, to] = [nowMs - DEFAULT_DAYS * DAY_MS, nowMs].map((ms) => localTime(new Date(ms).toISOString())) as [string, string]
  return { lake, target, from, to, event: '', user: '' }
}

function ArchiveForm({ lakes, destinations, onClose }: ArchiveFormProps) {
  const [, navigate] = useLocation()
  const [draft, setDraft] = useState(() => firstDraft(lakes, destinations))
  const [rate, setRate] = useState<number | null>(DEFAULT_RATE)
  const [counted, setCounted] = useState<Counted | null>(null)
  const count = useChange('POST /api/replays')
  const start = useChange('POST /api/replays', 'GET /api/replays')
  const about = JSON.stringify(draft)
  const { lake, target, from, to, event, user } = draft
  const [after, before] = [isoTime(from), isoTime(to)]
  const isCounted = counted?.about === about
  const submit = async (): Promise<void> => {
    if (after === undefined || before === undefined) return
    const archive = { destinationId: lake, after, before, ...(event === '' ? {} : { event }), ...(user === '' ? {} : { userId: user }) }
    const body = { destinationId: target, archive }
    if (!isCounted) {
      const answer = await count.mutateAsync({ body: { ...body, dryRun: true } }).catch(() => null)
      if (answer !== null) setCounted({ about, total: answer.total })
      return
    }
    const job = await start.mutateAsync({ body: { ...body, ratePerSecond: rate } }).catch(() => null)
    if (job === null || !('id' in job)) return
    onClose()
    navigate(`/replays/${encodeURIComponent(job.id)}`)
  }
  const problem = start.error ?? count.error
  const isPossible = after !== undefined && before !== undefined && isRate(rate) && target !== lake && (!isCounted || counted.total > 0)
  return (
    <Form onSubmit={submit}>
      <Stack>
        <SelectionFields {...{ lakes, destinations, draft }} onChange={setDraft} />
        <NumberInput
          label="Deliveries per second"
          description="Empty for no limit. You can change it while the job runs."
          value={rate ?? ''}
          onChange={(value) => setRate(value === '' ? null : Number(value))}
          min={1}
          max={MAX_RATE}
          allowDecimal={false}
          maw={320}
        />
        <Note>
          Today's filters, consent, transformations and privacy rules apply. Deleted and suppressed users are left out. Receivers get the
          same messageId and times as the first time.
        </Note>
        {isCounted && (
          <Text size="sm" role="status">
            {counted.total === 0
              ? 'The archive has no message of this selection.'
              : `Up to ${plural(counted.total, 'message')} will be sent.`}
          </Text>
        )}
        {problem !== null && (
          <Alert color="red" role="alert">
            {problem.message}
          </Alert>
        )}
        <Group justify="flex-end">
          <SecondaryButton onClick={onClose}>Cancel</SecondaryButton>
          <Button type="submit" loading={count.isPending || start.isPending} disabled={!isPossible}>
            {isCounted ? `Replay up to ${exactCount(counted.total)}` : 'Count messages'}
          </Button>
        </Group>
      </Stack>
    </Form>
  )
}

interface SelectionProps extends Omit<ArchiveFormProps, 'onClose'> {
  draft: Draft
  onChange: (draft: Draft) => void
}

function SelectionFields({ lakes, destinations, draft, onChange }: SelectionProps) {
  const field = (name: keyof Draft) => entered(draft[name], (value) => onChange({ ...draft, [name]: value }))
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }}>
      <NativeSelect label="Lake" data={lakes.map(({ id, name }) => ({ value: id, label: name }))} {...field('lake')} />
      <NativeSelect
        label="To the destination"
        data={destinations.map(({ id, name }) => ({ value: id, label: name, disabled: id === draft.lake }))}
        {...field('target')}
      />
      <TextInput type="datetime-local" step={1} label="Received from" required {...field('from')} />
      <TextInput type="datetime-local" step={1} label="Received before" required {...field('to')} />
      <TextInput label="Event" description="Only this event. Empty for all messages." autoComplete="off" {...field('event')} />
      <TextInput label="User" description="Only this user id. Empty for all users." autoComplete="off" {...field('user')} />
    </SimpleGrid>
  )
}
