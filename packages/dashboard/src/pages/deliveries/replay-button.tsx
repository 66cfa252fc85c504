// Replays a delivery: asks for confirmation, then opens the new delivery.

import { Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useLocation } from 'wouter'
import { useChange } from '../../api/queries.ts'
import { ConfirmButton } from '../../components/confirm-dialog.tsx'
import { ReplayIcon } from '../../components/icons.tsx'
import { ExplainedButton, ViewLink } from '../../components/styled.tsx'
import type { Hold } from '../../destination/destination-status.ts'
import { EDITOR_ONLY } from '../../session/needs-role.tsx'
import { useSession } from '../../session/session.tsx'

export interface ReplayButtonProps {
  delivery: { id: string; state: string; replayedBy: string | null }
  /** The name of the destination, or its id. */
  destination: string
  hold?: Hold | null
  /** Why it cannot be replayed; null if it can. */
  obstacle: string | null
  size?: string
}

export function ReplayButton({ delivery, destination, hold = null, obstacle, size = 'xs' }: ReplayButtonProps) {
  const [, go] = useLocation()
  const { mayEdit } = useSession()
  const replay = useChange('POST /api/deliveries/{id}/replay', 'GET /api/messages/{id}', 'GET /api/deliveries/{id}', 'GET /api/deliveries')
  const reason = mayEdit ? obstacle : EDITOR_ONLY
  const confirm = async (): Promise<void> => {
    const { id } = await replay.mutateAsync({ params: { id: delivery.id }, body: {} })
    notifications.show({ color: 'teal', message: `Replay to ${destination} started. This is the new delivery.` })
    go(`/deliveries/${encodeURIComponent(id)}`)
  }
  return (
    <ConfirmButton
      button={(open) => (
        <ExplainedButton
          name={`Replay to ${destination}`}
          why={reason}
          variant="default"
          size={size}
          leftSection={<ReplayIcon size={14} />}
          onClick={open}
        >
          Replay
        </ExplainedButton>
      )}
      title={`Replay to ${destination}?`}
      verb="Replay"
      color="blue"
      onConfirm={confirm}
    >
      <Stack gap="xs">
        <Text size="sm">
          The message is sent again as a new delivery, with the current settings of the destination. The request has the header{' '}
          <b>X-Replay: true</b> and the same messageId, so that the receiver can recognize it.
        </Text>
        {delivery.state === 'delivered' && <Text size="sm">The message was already delivered. The receiver will get it again.</Text>}
        {delivery.replayedBy !== null && (
          <Text size="sm">
            It was already replayed, by the delivery{' '}
            <ViewLink to={`/deliveries/${encodeURIComponent(delivery.replayedBy)}`}>{delivery.replayedBy}</ViewLink>.
          </Text>
        )}
        {hold !== null && (
          <Text size="sm">
            The destination is {hold}: the new delivery stays pending until it is {hold === 'disabled' ? 'enabled' : 'resumed'}.
          </Text>
        )}
        <Text size="sm">This delivery and its attempts do not change.</Text>
      </Stack>
    </ConfirmButton>
  )
}
