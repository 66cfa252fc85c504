// The cause of an incident, in the words of the receiver or tool if the viewer may see them.

import { useApi } from '../api/queries.ts'
import { causeInFull, type Incident } from './incident-text.ts'

/** The cause, and how the response of the receiver began. Empty if it is hidden. The health has only what the viewer may see. */
export function useCause(incident: Pick<Incident, 'subject' | 'cause' | 'state'>, { isHidden = false } = {}): string[] {
  const { subject, cause, state } = incident
  const isAsked = !isHidden && subject.kind === 'destination' && cause !== null && state !== 'closed'
  const health = useApi('GET /api/destinations/health', { everyMs: 10_000, enabled: isAsked })
  return isHidden ? [] : causeInFull(incident, isAsked ? (health.data?.data ?? []) : [])
}
