// Sends a delivery again: says what that does, and then goes to the new delivery.

import { Button, Stack, Text, Tooltip } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { useChange } from '../../api/queries.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { ReplayIcon } from '../../components/icons.tsx'
import { ViewLink } from '../../components/link.tsx'
import { useSession } from '../../session.tsx'
import type { Hold } from '../destinations/destination-status.ts'

export interface ReplayButtonProps {
  delivery: { id: string; state: string; replayedBy: string | null }
  /** As it is called, or its id. */
  destination: string
  hold?: Hold | null
  /** Why it cannot be; null: it can. */
  refusal: string | null
  size?: string
}

export function ReplayButton({ delivery, destination, hold = null, refusal, size = 'xs' }: ReplayButtonProps) {
  const [isOpen, setOpen] = useState(false)
  const [, go] = useLocation()
  const { isAdmin } = useSession()
  const replay = useChange('POST /api/deliveries/{id}/replay', 'GET /api/messages/{id}', 'GET /api/deliveries/{id}', 'GET /api/deliveries')
  const reason = isAdmin ? refusal : 'Viewers cannot send again. Ask somebody with an admin token.'
  const confirm = async (): Promise<void> => {
    const { id } = await replay.mutateAsync({ params: { id: delivery.id } })
    notifications.show({ color: 'teal', message: `Sent again to ${destination}: this is the new delivery.` })
    go(`/deliveries/${encodeURIComponent(id)}`)
  }
  return (
    <>
      <Tooltip label={reason ?? ''} disabled={reason === null} events={{ hover: true, focus: true, touch: true }}>
        {/* Not by the disabled attribute: a button that cannot be focused cannot say why. */}
        <Button
          size={size}
          variant="default"
          leftSection={<ReplayIcon size={14} />}
          data-disabled={reason !== null}
          aria-disabled={reason !== null}
          aria-label={`Replay to ${destination}${reason === null ? '' : `. Not possible: ${reason}`}`}
          onClick={(event) => (reason === null ? setOpen(true) : event.preventDefault())}
        >
          Replay
        </Button>
      </Tooltip>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => setOpen(false)}
        title={`Send it again to ${destination}?`}
        verb="Send again"
        color="blue"
        onConfirm={confirm}
      >
        <Stack gap="xs">
          <Text size="sm">
            One message is sent once more, as a delivery of its own, with the settings that the destination has now. The request says{' '}
            <b>X-Replay: true</b> and carries the same messageId, so that the receiver can know it again.
          </Text>
          {delivery.state === 'delivered' && <Text size="sm">It was delivered before: the receiver gets it a second time.</Text>}
          {delivery.replayedBy !== null && (
            <Text size="sm">
              It was sent again before, by the delivery{' '}
              <ViewLink to={`/deliveries/${encodeURIComponent(delivery.replayedBy)}`}>{delivery.replayedBy}</ViewLink>.
            </Text>
          )}
          {hold !== null && (
            <Text size="sm">
              The destination is {hold}: the new delivery is held until it is {hold === 'disabled' ? 'enabled' : 'resumed'}.
            </Text>
          )}
          <Text size="sm">This delivery and its attempts stay as they are.</Text>
        </Stack>
      </ConfirmDialog>
    </>
  )
}
