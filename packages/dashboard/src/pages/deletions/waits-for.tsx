// What a deletion request waits for: the destinations that have not accepted a delete message yet, the users, and the last error.

import { Stack } from '@mantine/core'
import { useApi } from '../../api/queries.ts'
import { useDestinationNames } from '../../api/use-names.ts'
import { LongText, Note, ViewLink } from '../../components/styled.tsx'
import { plural } from '../../text/format.ts'
import { type Target, waitingFor } from './users.ts'

/** How many destinations are listed. The others are only counted. */
const SHOWN = 3
const SAMPLE = 100

export const isInProgress = (state: string | undefined): boolean => state === 'pending' || state === 'running'

/** A failed request can still be finished: when its delete messages are replayed. */
export const isUnfinished = (state: string | undefined): boolean => isInProgress(state) || state === 'failed'

/** For a request that is not finished. */
export function WaitsFor({ id }: { id: string }) {
  const { nameOf } = useDestinationNames()
  const targets = useTargets(id)
  const health = useApi('GET /api/destinations/health', { everyMs: 10_000 })
  if (targets === undefined) return <Note span>…</Note>
  const waiting = waitingFor(targets)
  if (waiting.length === 0) return <Note span>The stored messages are being deleted.</Note>
  const isMore = targets.length >= SAMPLE
  return (
    <Stack gap={2}>
      {waiting.slice(0, SHOWN).map(({ destinationId, users }) => {
        const failure = health.data?.data.find((each) => each.destinationId === destinationId)?.failure
        return (
          <LongText key={destinationId}>
            <ViewLink to={`/destinations/${encodeURIComponent(destinationId)}`}>{nameOf(destinationId)}</ViewLink> has not accepted the
            deletion of {users.length === 1 ? users[0] : `${isMore ? 'at least ' : ''}${plural(users.length, 'user')}`}
            {failure == null ? '.' : `: ${failure.error}`}
          </LongText>
        )
      })}
      {waiting.length > SHOWN && <Note>And {plural(waiting.length - SHOWN, 'more destination')}.</Note>}
    </Stack>
  )
}

/** The targets whose delivery failed for good, and those whose delivery was attempted without success; if there are none of these, those that were not attempted yet. */
function useTargets(id: string): readonly Target[] | undefined {
  const common = { params: { id }, everyMs: 5_000 }
  const running = useApi('GET /api/deletions/{id}/targets', { ...common, query: { state: 'running', limit: SAMPLE } })
  const isIdle = running.data?.data.every(({ destinationId }) => destinationId === null) === true
  const pending = useApi('GET /api/deletions/{id}/targets', { ...common, query: { state: 'pending', limit: SAMPLE }, enabled: isIdle })
  // The request is not finished before they are replayed.
  const failed = useApi('GET /api/deletions/{id}/targets', { ...common, query: { state: 'failed', limit: SAMPLE } })
  const open = isIdle ? pending.data?.data : running.data?.data
  return open === undefined || failed.data === undefined ? undefined : [...failed.data.data, ...open]
}
