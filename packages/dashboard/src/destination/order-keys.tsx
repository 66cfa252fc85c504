// The keys of an ordered destination that wait or are held: what each waits for, how long, and two buttons; and how many messages had no key. Shown only
// while there are some. Each action names the message that was shown, so that a later one is not skipped by mistake.

import { Alert, Anchor, Badge, Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { Link } from 'wouter'
import { useApi, useChange } from '../api/queries.ts'
import type { Schemas } from '../api/types.ts'
import { ConfirmDialog } from '../components/confirm-dialog.tsx'
import { plural } from '../text/format.ts'
import type { Destination } from './kind.ts'

type Key = Schemas['OrderedKey']
type Action = 'retry' | 'skip'

const SHOWN = 20
/** A key may have 1 KB. */
const KEY_LENGTH = 80

export function OrderKeys({ destination: { id }, mayEdit }: { destination: Destination; mayEdit: boolean }) {
  const order = useApi('GET /api/destinations/{id}/order', { params: { id }, query: { limit: SHOWN }, everyMs: 5_000 })
  const [asked, setAsked] = useState<{ action: Action; of: Key } | null>(null)
  const skip = useChange('POST /api/destinations/{id}/order/skip')
  const retry = useChange('POST /api/destinations/{id}/order/retry')
  const { data } = order
  if (data === undefined) return null
  const keyless = data.keylessMessages > 0 && <Keyless count={data.keylessMessages} />
  if (data.data.length === 0) return keyless
  const act = async (): Promise<void> => {
    if (asked === null || asked.of.key === null) return
    const { messageId } = asked.of.head
    const body = { key: asked.of.key, ...(messageId === null ? {} : { messageId }) }
    const { done } = await (asked.action === 'skip' ? skip : retry).mutateAsync({ params: { id }, body })
    const what = asked.action === 'skip' ? 'The message was skipped.' : 'The next attempt is due now.'
    notifications.show({
      color: 'teal',
      message: done ? what : 'The message is being attempted. It takes effect when the attempt is over.',
    })
    await order.refetch()
  }
  return (
    <>
      <Paper withBorder p="sm" mb="md">
        <Title order={2} size="h5">
          Keys that wait
        </Title>
        <Text size="sm" c="dimmed" mb="xs">
          {plural(data.waitingKeys, 'key')} waiting, {data.heldKeys} held, {plural(data.waitingMessages, 'message')} behind them. Oldest
          first.
        </Text>
        <Stack gap="xs" component="ul" m={0} p={0} style={{ listStyle: 'none' }}>
          {data.data.map((key) => (
            <KeyRow
              key={key.head.deliveryId}
              of={key}
              mayEdit={mayEdit && key.key !== null}
              onAsk={(action) => setAsked({ action, of: key })}
            />
          ))}
        </Stack>
        {data.next !== null && (
          <Text size="sm" c="dimmed" mt="xs">
            The oldest {SHOWN} are shown. The command `switchyard destinations order` lists all.
          </Text>
        )}
        <ConfirmDialog
          opened={asked !== null}
          onClose={() => setAsked(null)}
          title={asked?.action === 'skip' ? 'Skip this message?' : 'Retry this message now?'}
          verb={asked?.action === 'skip' ? 'Skip' : 'Retry'}
          color={asked?.action === 'skip' ? 'red' : 'blue'}
          onConfirm={act}
        >
          <Text size="sm">{asked === null ? '' : consequence(asked.action, asked.of)}</Text>
        </ConfirmDialog>
      </Paper>
      {keyless}
    </>
  )
}

function Keyless({ count }: { count: number }) {
  return (
    <Alert color="blue" variant="light" mb="md" title={`${plural(count, 'message')} without a key`}>
      In the last 24 hours, {plural(count, 'message')} had no value to be ordered by, or one that is empty, an object, an array, or longer
      than 1 KB. They are sent without waiting for others.
    </Alert>
  )
}

function KeyRow({ of, mayEdit, onAsk }: { of: Key; mayEdit: boolean; onAsk: (action: Action) => void }) {
  const { key, state, waiting, since, skipping, head } = of
  return (
    <Paper component="li" withBorder p="xs">
      <Group justify="space-between" gap="xs">
        <Text size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
          {key === null ? 'A deleted key' : shortened(key)}
        </Text>
        <Badge color={state === 'held' ? 'red' : 'orange'} variant="light">
          {skipping ? 'being skipped' : state}
        </Badge>
      </Group>
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        Since {new Date(since).toLocaleString()}, {plural(waiting, 'message')} {state === 'held' ? 'held behind' : 'waiting for'}{' '}
        <Anchor component={Link} href={`/deliveries/${head.deliveryId}`} size="sm" underline="always">
          {head.messageId ?? 'a deleted message'}
        </Anchor>
        {`, ${plural(head.attempts, 'attempt')}. ${head.reasonSentence ?? ''}`}
        {head.nextAttemptAt !== null && ` Next attempt: ${new Date(head.nextAttemptAt).toLocaleString()}.`}
      </Text>
      {mayEdit && (
        <Group gap="xs" mt={6}>
          <Button size="compact-sm" variant="default" onClick={() => onAsk('retry')}>
            Retry now
          </Button>
          <Button size="compact-sm" variant="default" color="red" onClick={() => onAsk('skip')}>
            Skip
          </Button>
        </Group>
      )}
    </Paper>
  )
}

function consequence(action: Action, { state, waiting }: Key): string {
  const behind = plural(waiting, 'message')
  if (action === 'retry')
    return state === 'held'
      ? 'The message is sent again before those behind it. If it fails, the key is held again.'
      : 'The next attempt is made now instead of later.'
  return state === 'held'
    ? `The failed message stays failed, and the ${behind} behind it are sent in order.`
    : `Its delivery is cancelled and not sent any more, and the ${behind} behind it are sent in order.`
}

function shortened(text: string): string {
  return text.length > KEY_LENGTH ? `${text.slice(0, KEY_LENGTH)}…` : text
}
