// Pause, disable and delete: each says what it does to what is owed before it is done, with the number that waits now.

import { Button, List, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { useApi, useChange } from '../../api/queries.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { DeletionIcon, PauseIcon, PlayIcon, PowerIcon, StopIcon } from '../../components/icons.tsx'
import { exactCount } from '../../text/format.ts'
import { holdOf } from './destination-status.ts'
import type { Destination } from './draft.ts'
import { BAD } from './status-view.tsx'

const DONE = { resume: { paused: false }, enable: { enabled: true } } as const

export function DestinationActions({ destination }: { destination: Destination }) {
  const { id, name, enabled, paused } = destination
  const [asked, setAsked] = useState<'pause' | 'disable' | 'delete' | null>(null)
  const [, navigate] = useLocation()
  const ledger = useApi('GET /api/ledger', { enabled: asked !== null, everyMs: 5_000 })
  const change = useChange(
    'PATCH /api/destinations/{id}',
    'GET /api/destinations',
    'GET /api/destinations/{id}',
    'GET /api/destinations/{id}/health',
    'GET /api/destinations/health',
  )
  const remove = useChange('DELETE /api/destinations/{id}', 'GET /api/destinations', 'GET /api/destinations/health', 'GET /api/ledger')
  const pending = ledger.data?.data.find(({ destinationId }) => destinationId === id)?.pending
  const waits = pending === undefined ? null : pending === 1 ? '1 pending delivery' : `${exactCount(pending)} pending deliveries`

  const release = (how: keyof typeof DONE): void => {
    change.mutate(
      { params: { id }, body: DONE[how] },
      {
        onSuccess: (now) => {
          const hold = holdOf(now)
          const then = hold === null ? 'What was held goes out now.' : `It is still ${hold}, so nothing is sent yet.`
          notifications.show({ color: hold === null ? 'teal' : 'orange', message: `${name} is ${how}d. ${then}` })
        },
        onError: ({ message }) => notifications.show({ color: 'red', title: `It was not ${how}d`, message }),
      },
    )
  }

  return (
    <>
      {paused ? (
        <Button leftSection={<PlayIcon size={16} />} loading={change.isPending} onClick={() => release('resume')}>
          Resume
        </Button>
      ) : (
        <Button variant="default" leftSection={<PauseIcon size={16} />} onClick={() => setAsked('pause')}>
          Pause
        </Button>
      )}
      {enabled ? (
        <Button variant="default" leftSection={<StopIcon size={16} />} onClick={() => setAsked('disable')}>
          Disable
        </Button>
      ) : (
        <Button
          variant={paused ? 'default' : 'filled'}
          leftSection={<PowerIcon size={16} />}
          loading={change.isPending}
          onClick={() => release('enable')}
        >
          Enable
        </Button>
      )}
      <Button variant="default" leftSection={<DeletionIcon size={16} />} onClick={() => setAsked('delete')}>
        Delete
      </Button>

      <ConfirmDialog
        opened={asked === 'pause'}
        onClose={() => setAsked(null)}
        title={`Pause ${name}?`}
        verb="Pause it"
        color="orange"
        onConfirm={() => change.mutateAsync({ params: { id }, body: { paused: true } })}
      >
        <Stack gap="xs">
          <Text size="sm">Nothing is sent to it until you resume it, and nothing is lost.</Text>
          <List size="sm" spacing={4}>
            <List.Item>
              What it is owed is held: {waits ?? 'counting …'}
              {pending === 0 ? ' now' : enabled ? ', sent when you resume it' : ', sent when it is resumed and enabled'}.
            </List.Item>
            {enabled ? (
              <List.Item>Messages that come in meanwhile are kept for it too, and sent when you resume it.</List.Item>
            ) : (
              <List.Item>It is disabled: messages that come in skip it until you enable it.</List.Item>
            )}
            <List.Item>What is under way comes to its end. A delivery does not expire because of the pause.</List.Item>
          </List>
        </Stack>
      </ConfirmDialog>

      <ConfirmDialog
        opened={asked === 'disable'}
        onClose={() => setAsked(null)}
        title={`Disable ${name}?`}
        verb="Disable it"
        color="orange"
        onConfirm={() => change.mutateAsync({ params: { id }, body: { enabled: false } })}
      >
        <Stack gap="xs">
          <Text size="sm">Nothing is sent to it until you enable it again.</Text>
          <List size="sm" spacing={4}>
            <List.Item>Messages that come in meanwhile skip it. They are stored, with that reason, and are not sent to it later.</List.Item>
            <List.Item>
              What it is owed is held: {waits ?? 'counting …'}
              {pending === 0 ? ' now' : paused ? ', sent when it is enabled and resumed' : ', sent when you enable it'}.
            </List.Item>
          </List>
          {!paused && <Text size="sm">To stop sending and keep new messages for it too, pause it instead.</Text>}
        </Stack>
      </ConfirmDialog>

      <ConfirmDialog
        opened={asked === 'delete'}
        onClose={() => setAsked(null)}
        title={`Delete ${name}?`}
        verb="Delete it for good"
        typed={name}
        onConfirm={async () => {
          await remove.mutateAsync({ params: { id } })
          notifications.show({ color: 'teal', message: `${name} is deleted.` })
          navigate('/destinations')
        }}
      >
        <Stack gap="xs">
          <Text size="sm" fw={600} c={pending === 0 ? 'var(--mantine-color-text)' : BAD}>
            {ledger.error !== null && waits === null
              ? `What is pending could not be counted: ${ledger.error.message}`
              : waits === null
                ? 'Counting what is pending …'
                : pending === 0
                  ? 'Nothing is pending: no delivery is lost.'
                  : `${waits} ${pending === 1 ? 'is' : 'are'} cancelled and never sent.`}
          </Text>
          <Text size="sm">
            Its settings and secrets are gone for good, and new messages do not go to it. The records of its past deliveries stay as long as
            messages are kept; they cannot be replayed to it.
          </Text>
          {!paused && pending !== 0 && <Text size="sm">To stop sending and lose nothing, pause it instead.</Text>}
        </Stack>
      </ConfirmDialog>
    </>
  )
}
