// Pause, disable and delete. Each asks first and says what happens to pending deliveries and how many there are.

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

const RELEASES = { resume: { paused: false }, enable: { enabled: true } } as const

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
  const pendingText = pending === undefined ? null : pending === 1 ? '1 pending delivery' : `${exactCount(pending)} pending deliveries`

  const release = (how: keyof typeof RELEASES): void => {
    change.mutate(
      { params: { id }, body: RELEASES[how] },
      {
        onSuccess: (now) => {
          const hold = holdOf(now)
          const then = hold === null ? 'Pending deliveries are being sent.' : `Nothing is sent yet because it is still ${hold}.`
          notifications.show({ color: hold === null ? 'teal' : 'orange', message: `${name} was ${how}d. ${then}` })
        },
        onError: ({ message }) => notifications.show({ color: 'red', title: `Could not ${how} ${name}`, message }),
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
        verb="Pause"
        color="orange"
        onConfirm={() => change.mutateAsync({ params: { id }, body: { paused: true } })}
      >
        <Stack gap="xs">
          <Text size="sm">Nothing is sent to this destination until you resume it. No message is lost.</Text>
          <List size="sm" spacing={4}>
            <List.Item>
              {pending === undefined
                ? 'Counting pending deliveries …'
                : pending === 0
                  ? 'No deliveries are pending.'
                  : `${pendingText}: held until ${enabled ? 'you resume it' : 'it is resumed and enabled'}.`}
            </List.Item>
            {enabled ? (
              <List.Item>New messages are queued and sent when you resume it.</List.Item>
            ) : (
              <List.Item>It is disabled, so new messages skip it until you enable it.</List.Item>
            )}
            <List.Item>Requests in flight are completed. No delivery expires because of the pause.</List.Item>
          </List>
        </Stack>
      </ConfirmDialog>

      <ConfirmDialog
        opened={asked === 'disable'}
        onClose={() => setAsked(null)}
        title={`Disable ${name}?`}
        verb="Disable"
        color="orange"
        onConfirm={() => change.mutateAsync({ params: { id }, body: { enabled: false } })}
      >
        <Stack gap="xs">
          <Text size="sm">Nothing is sent to this destination until you enable it again.</Text>
          <List size="sm" spacing={4}>
            <List.Item>New messages skip it. They are stored, with the reason, but are not sent to it later.</List.Item>
            <List.Item>
              {pending === undefined
                ? 'Counting pending deliveries …'
                : pending === 0
                  ? 'No deliveries are pending.'
                  : `${pendingText}: held until ${paused ? 'it is enabled and resumed' : 'you enable it'}.`}
            </List.Item>
          </List>
          {!paused && <Text size="sm">To stop sending but queue new messages, pause it instead.</Text>}
        </Stack>
      </ConfirmDialog>

      <ConfirmDialog
        opened={asked === 'delete'}
        onClose={() => setAsked(null)}
        title={`Delete ${name}?`}
        verb="Delete destination"
        typed={name}
        onConfirm={async () => {
          await remove.mutateAsync({ params: { id } })
          notifications.show({ color: 'teal', message: `${name} was deleted.` })
          navigate('/destinations')
        }}
      >
        <Stack gap="xs">
          <Text size="sm" fw={600} c={pending === 0 ? 'var(--mantine-color-text)' : BAD}>
            {ledger.error !== null && pendingText === null
              ? `Could not count pending deliveries: ${ledger.error.message}`
              : pendingText === null
                ? 'Counting pending deliveries …'
                : pending === 0
                  ? 'No deliveries are pending, so none will be lost.'
                  : `${pendingText} will be cancelled and never sent.`}
          </Text>
          <Text size="sm">
            Its settings and secrets are deleted permanently, and new messages are not sent to it. Its past deliveries are kept until the
            retention period ends, but cannot be replayed.
          </Text>
          {!paused && pending !== 0 && <Text size="sm">To stop sending without losing anything, pause it instead.</Text>}
        </Stack>
      </ConfirmDialog>
    </>
  )
}
