// Mutes alerts: of a rule about a source or destination, or all of them.

import { NativeSelect, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useChange } from '../api/queries.ts'
import { FormDialog } from '../components/confirm-dialog.tsx'
import { entered } from '../components/inputs.tsx'
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
    setNote('')
    onClose()
  }
  const { kind, id } = incident?.subject ?? {}
  const about = kind === 'source' ? { sourceId: id } : kind === 'destination' ? { destinationId: id } : {}
  const body = { minutes: Number(minutes), ...about, ...(incident && { rule: incident.rule }), ...(note === '' ? {} : { note }) }
  return (
    <FormDialog opened={opened} onClose={close} title="Mute alerts" verb="Mute" onSubmit={() => create.mutateAsync({ body })} centered>
      <Text size="sm">
        {incident === undefined
          ? 'No alert is sent until the mute ends.'
          : `No alert “${incident.event}” about ${incident.subject.name} is sent until the mute ends.`}{' '}
        Incidents are still recorded. If an incident is still open when the mute ends, its alert is sent then.
      </Text>
      <NativeSelect
        label="For"
        {...entered(minutes, setMinutes)}
        data={MUTE_MINUTES.map(([value, label]) => ({ value: String(value), label }))}
      />
      <TextInput label="Note" description="Why, for other people. Optional." maxLength={500} {...entered(note, setNote)} />
    </FormDialog>
  )
}
