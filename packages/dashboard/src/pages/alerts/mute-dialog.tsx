// Mutes alerts for some time: of a rule, of a source or destination, or of all.

import { Button, Group, Modal, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useChange } from '../../api/queries.ts'
import { ErrorAlert } from '../../components/page.tsx'
import { SecondaryButton } from '../../components/styled.tsx'
import { type Incident, MUTE_MINUTES } from './incident-text.ts'

/** Without an incident, mutes all alerts. */
export function MuteDialog({ opened, onClose, incident }: { opened: boolean; onClose: () => void; incident?: Incident }) {
  const create = useChange(
    'POST /api/alerts/mutes',
    'GET /api/alerts/mutes',
    'GET /api/incidents',
    'GET /api/incidents/{id}',
    'GET /api/alerts',
  )
  const [minutes, setMinutes] = useState('60')
  const [note, setNote] = useState('')
  const close = (): void => {
    create.reset()
    setNote('')
    onClose()
  }
  const { kind, id } = incident?.subject ?? {}
  const about = kind === 'source' ? { sourceId: id } : kind === 'destination' ? { destinationId: id } : {}
  const mute = (): void =>
    create.mutate(
      { body: { minutes: Number(minutes), ...about, ...(incident && { rule: incident.rule }), ...(note === '' ? {} : { note }) } },
      { onSuccess: close },
    )
  return (
    <Modal opened={opened} onClose={close} title="Mute alerts" centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <Text size="sm">
          {incident === undefined
            ? 'No alert is sent until the mute ends.'
            : `No alert “${incident.event}” about ${incident.subject.name} is sent until the mute ends.`}{' '}
          Incidents are still recorded. If an incident is still open when the mute ends, its alert is sent then.
        </Text>
        <NativeSelect
          label="For"
          value={minutes}
          onChange={({ currentTarget }) => setMinutes(currentTarget.value)}
          data={MUTE_MINUTES.map(([value, label]) => ({ value: String(value), label }))}
        />
        <TextInput
          label="Note"
          description="Why, for other people. Optional."
          maxLength={500}
          value={note}
          onChange={({ currentTarget }) => setNote(currentTarget.value)}
        />
        {create.error !== null && <ErrorAlert problem={create.error} />}
        <Group justify="flex-end">
          <SecondaryButton onClick={close}>Cancel</SecondaryButton>
          <Button loading={create.isPending} onClick={mute}>
            Mute
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
