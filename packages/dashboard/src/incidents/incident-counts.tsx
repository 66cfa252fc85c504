// How many incidents need attention, as the badge of the navigation counts them, and how many others are in the list.

import { Badge } from '@mantine/core'
import { SmallNote } from '../components/styled.tsx'
import { type Incident, mostUrgentFirst, SEVERITY_LOOKS, unattended, uncountedText } from './incident-text.ts'

export function IncidentCounts({ incidents }: { incidents: readonly Incident[] }) {
  const waiting = mostUrgentFirst(unattended(incidents))
  const others = uncountedText(incidents)
  return (
    <>
      {waiting[0] !== undefined && (
        <Badge
          color={SEVERITY_LOOKS[waiting[0].severity].color}
          variant="light"
          aria-label={`${waiting.length} that nobody has acknowledged`}
        >
          {waiting.length}
        </Badge>
      )}
      {others !== '' && <SmallNote span>{waiting.length === 0 ? others : `and ${others}`}</SmallNote>}
    </>
  )
}
