// The mutes that have not ended, and the dialog that mutes alerts of a rule, of a source or destination, or of all.

import { Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useApi, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { FormDialog } from '../../components/confirm-dialog.tsx'
import { entered } from '../../components/inputs.tsx'
import { Empty, ErrorAlert } from '../../components/page.tsx'
import { LoadedTable } from '../../components/responsive-table.tsx'
import { SecondaryButton, SmallButton, Time } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { type Incident, MUTE_MINUTES, type Mute, muteScope } from './incident-text.ts'

export function Mutes() {
  const { mayEdit } = useSession()
  const { sources, destinations } = useNames()
  const list = useList('GET /api/alerts/mutes', { everyMs: 5_000 })
  const alerts = useApi('GET /api/alerts', {})
  const end = useChange('DELETE /api/alerts/mutes/{id}', 'GET /api/alerts/mutes', 'GET /api/incidents', 'GET /api/alerts')
  const [isOpen, setOpen] = useState(false)
  const events = new Map(alerts.data?.rules.map(({ rule, event }) => [rule, event]))
  const nameOf = (id: string): string => sources.get(id) ?? destinations.get(id) ?? id
  return (
    <Stack>
      {mayEdit && (
        <Group>
          <SmallButton onClick={() => setOpen(true)}>Mute all alerts</SmallButton>
        </Group>
      )}
      {end.error !== null && <ErrorAlert problem={end.error} />}
      <LoadedTable<Mute>
        list={list}
        lines={3}
        empty={<Empty title="Nothing is muted">To mute the alerts about one source or destination, open an incident about it.</Empty>}
        label="Mutes"
        columns={[
          { label: 'Muted', cell: (mute) => muteScope(mute, events, nameOf) },
          { label: 'Until', cell: ({ until }) => <Time at={until} /> },
          { label: 'By', cell: ({ createdBy }) => createdBy.name },
          { label: 'Note', cell: ({ note }) => note ?? '–' },
          {
            label: 'Actions',
            isActions: true,
            cell: ({ id }) => (
              <SecondaryButton
                size="compact-xs"
                disabled={!mayEdit}
                onClick={() => end.mutate({ params: { id } })}
                loading={end.isPending && end.variables?.params.id === id}
              >
                End
              </SecondaryButton>
            ),
          },
        ]}
      />
      <MuteDialog opened={isOpen} onClose={() => setOpen(false)} />
    </Stack>
  )
}

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
