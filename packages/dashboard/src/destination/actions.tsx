// Pause, disable and delete. Each asks first and says what happens to pending deliveries and how many there are.

import { Button, List, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { useApi, useChange } from '../api/queries.ts'
import { ConfirmDialog, type ConfirmDialogProps } from '../components/confirm-dialog.tsx'
import { DeletionIcon, PauseIcon, PlayIcon, PowerIcon, StopIcon } from '../components/icons.tsx'
import { DangerButton, SecondaryButton, Strong } from '../components/styled.tsx'
import { plural } from '../text/format.ts'
import { useSearchState } from '../url/url-state.ts'
import { holdOf } from './destination-status.ts'
import type { Destination } from './kind.ts'
import { BAD } from './status-view.tsx'
import { useChangeDestination } from './use-change-destination.ts'

const RELEASES = { resume: { paused: false }, enable: { enabled: true } } as const

type Asked = 'pause' | 'disable' | 'delete'

export function DestinationActions({ destination }: { destination: Destination }) {
  const { id, name, enabled, paused } = destination
  const [params, changeSearch] = useSearchState()
  const wanted = params.get('ask')
  const [asked, setAsked] = useState<Asked | null>(null)
  const ledger = useApi('GET /api/ledger', { enabled: asked !== null, everyMs: 5_000 })
  const change = useChangeDestination()
  const pending = ledger.data?.data.find(({ destinationId }) => destinationId === id)?.pending
  const dialog = (about: Asked): DialogProps => ({ destination, pending, opened: asked === about, onClose: () => setAsked(null) })
  const hold = (body: { paused: true } | { enabled: false }) => (): Promise<unknown> => change.mutateAsync({ params: { id }, body })

  const release = (how: keyof typeof RELEASES): void => {
    change.mutate(
      { params: { id }, body: RELEASES[how] },
      {
        onSuccess: (now) => {
          const still = holdOf(now)
          const then = still === null ? 'Pending deliveries are being sent.' : `Nothing is sent yet because it is still ${still}.`
          notifications.show({ color: still === null ? 'teal' : 'orange', message: `${name} was ${how}d. ${then}` })
        },
        onError: ({ message }) => notifications.show({ color: 'red', title: `Could not ${how} ${name}`, message }),
      },
    )
  }

  // The search leads here with what it was asked for. Following a link only opens the question.
  useEffect(() => {
    if (wanted === null) return
    changeSearch({ ask: null }, { replace: true })
    if (wanted === 'pause' || wanted === 'disable') setAsked(wanted)
  }, [wanted, changeSearch])

  return (
    <>
      {paused ? (
        <Button leftSection={<PlayIcon size={16} />} loading={change.isPending} onClick={() => release('resume')}>
          Resume
        </Button>
      ) : (
        <SecondaryButton leftSection={<PauseIcon size={16} />} onClick={() => setAsked('pause')}>
          Pause
        </SecondaryButton>
      )}
      {enabled ? (
        <SecondaryButton leftSection={<StopIcon size={16} />} onClick={() => setAsked('disable')}>
          Disable
        </SecondaryButton>
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
      <DangerButton leftSection={<DeletionIcon size={16} />} onClick={() => setAsked('delete')}>
        Delete
      </DangerButton>
      <PauseDialog {...dialog('pause')} onConfirm={hold({ paused: true })} />
      <DisableDialog {...dialog('disable')} onConfirm={hold({ enabled: false })} />
      <DeleteDialog {...dialog('delete')} problem={ledger.error?.message ?? null} />
    </>
  )
}

interface DialogProps extends Pick<ConfirmDialogProps, 'opened' | 'onClose'> {
  destination: Destination
  /** Undefined while they are counted. */
  pending: number | undefined
}

type HoldDialogProps = DialogProps & Pick<ConfirmDialogProps, 'onConfirm'>

function PauseDialog({ destination: { name, enabled }, pending, ...dialog }: HoldDialogProps) {
  return (
    <ConfirmDialog {...dialog} title={`Pause ${name}?`} verb="Pause" color="orange">
      <Stack gap="xs">
        <Text size="sm">Nothing is sent to this destination until you resume it. No message is lost.</Text>
        <List size="sm" spacing={4}>
          <List.Item>{heldText(pending, enabled ? 'you resume it' : 'it is resumed and enabled')}</List.Item>
          <List.Item>
            {enabled
              ? 'New messages are queued and sent when you resume it.'
              : 'It is disabled, so new messages skip it until you enable it.'}
          </List.Item>
          <List.Item>Requests in flight are completed. No delivery expires because of the pause.</List.Item>
        </List>
      </Stack>
    </ConfirmDialog>
  )
}

function DisableDialog({ destination: { name, paused }, pending, ...dialog }: HoldDialogProps) {
  return (
    <ConfirmDialog {...dialog} title={`Disable ${name}?`} verb="Disable" color="orange">
      <Stack gap="xs">
        <Text size="sm">Nothing is sent to this destination until you enable it again.</Text>
        <List size="sm" spacing={4}>
          <List.Item>New messages skip it. They are stored, with the reason, but are not sent to it later.</List.Item>
          <List.Item>{heldText(pending, paused ? 'it is enabled and resumed' : 'you enable it')}</List.Item>
        </List>
        {!paused && <Text size="sm">To stop sending but queue new messages, pause it instead.</Text>}
      </Stack>
    </ConfirmDialog>
  )
}

function heldText(pending: number | undefined, until: string): string {
  if (pending === undefined) return COUNTING
  return pending === 0 ? 'No deliveries are pending.' : `${plural(pending, 'pending delivery')}: held until ${until}.`
}

const COUNTING = 'Counting pending deliveries …'

function DeleteDialog({ destination: { id, name, paused }, pending, problem, ...dialog }: DialogProps & { problem: string | null }) {
  const [, navigate] = useLocation()
  const remove = useChange('DELETE /api/destinations/{id}', 'GET /api/destinations', 'GET /api/destinations/health', 'GET /api/ledger')
  const confirm = async (): Promise<void> => {
    await remove.mutateAsync({ params: { id } })
    notifications.show({ color: 'teal', message: `${name} was deleted.` })
    navigate('/destinations')
  }
  const lost =
    pending === undefined
      ? problem === null
        ? COUNTING
        : `Could not count pending deliveries: ${problem}`
      : pending === 0
        ? 'No deliveries are pending, so none will be lost.'
        : `${plural(pending, 'pending delivery')} will be cancelled and never sent.`
  return (
    <ConfirmDialog {...dialog} title={`Delete ${name}?`} verb="Delete destination" typed={name} onConfirm={confirm}>
      <Stack gap="xs">
        <Strong c={pending === 0 ? 'var(--mantine-color-text)' : BAD}>{lost}</Strong>
        <Text size="sm">
          Its settings and secrets are deleted permanently, and new messages are not sent to it. Its past deliveries are kept until the
          retention period ends, but cannot be replayed.
        </Text>
        {!paused && pending !== 0 && <Text size="sm">To stop sending without losing anything, pause it instead.</Text>}
      </Stack>
    </ConfirmDialog>
  )
}
