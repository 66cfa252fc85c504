// The incidents about a source, a destination or nodes, on their page.

import { Paper } from '@mantine/core'
import { IncidentItem } from './incident-item.tsx'
import { type Incident, isAbout, mostUrgentFirst, repeatsCause } from './incident-text.ts'
import { useActiveIncidents } from './use-incidents.ts'

export function IncidentsAbout({ kind, id }: { kind: Incident['subject']['kind']; id?: string }) {
  const { data } = useActiveIncidents()
  const own = (data?.data ?? []).filter((incident) => isAbout(incident, kind, id))
  if (own.length === 0) return null
  const sorted = mostUrgentFirst(own)
  return (
    <Paper withBorder component="ul" p={0} m={0} style={{ listStyle: 'none', overflow: 'hidden' }} aria-label="Incidents">
      {sorted.map((incident, at) => (
        <IncidentItem key={incident.id} incident={incident} isFirst={at === 0} hidesCause={repeatsCause(incident, sorted[at - 1])} />
      ))}
    </Paper>
  )
}
