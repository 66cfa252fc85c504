// The mutes that have not ended.

import { Group, Stack } from '@mantine/core'
import { useState } from 'react'
import { useApi, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { Empty, ErrorAlert } from '../../components/page.tsx'
import { LoadedTable } from '../../components/responsive-table.tsx'
import { SecondaryButton, SmallButton, Time } from '../../components/styled.tsx'
import { type Mute, muteScope } from '../../incidents/incident-text.ts'
import { MuteDialog } from '../../incidents/mute-dialog.tsx'
import { useSession } from '../../session/session.tsx'

export function Mutes() {
  const { mayEdit, isLimited } = useSession()
  const { sources, destinations } = useNames()
  const list = useList('GET /api/alerts/mutes', { everyMs: 5_000 })
  const alerts = useApi('GET /api/alerts', {})
  const end = useChange('DELETE /api/alerts/mutes/{id}', 'GET /api/alerts/mutes', 'GET /api/incidents', 'GET /api/alerts')
  const [isOpen, setOpen] = useState(false)
  const events = new Map(alerts.data?.rules.map(({ rule, event }) => [rule, event]))
  const nameOf = (id: string): string => sources.get(id) ?? destinations.get(id) ?? id
  return (
    <Stack>
      {mayEdit && !isLimited && (
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
