// The list of deletion requests, and the form for a new one. A deletion cannot be undone, so the form first shows what it will do.

import { List, Stack } from '@mantine/core'
import { useLocation } from 'wouter'
import { useApi, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { Empty } from '../../components/page.tsx'
import { LoadedTable } from '../../components/responsive-table.tsx'
import { LongStrong, Time, ViewLink } from '../../components/styled.tsx'
import { plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { DeletionStateBadge, StateAndUser, stateOf, useUser } from './filter-bar.tsx'
import { UserForm, type UserRequest } from './user-form.tsx'
import { joinNames, notifiedDestinations } from './users.ts'
import { isUnfinished, WaitsFor } from './waits-for.tsx'

/** For how many unfinished requests the list shows what they wait for. The page of each request shows it, too. */
const FOLLOWED = 10

export function Requests({ isForm, onCloseForm }: { isForm: boolean; onCloseForm: () => void }) {
  const [params] = useSearchState()
  const state = stateOf(params.get('state'))
  const { user, userId } = useUser()
  const list = useList('GET /api/deletions', { query: { state, userId }, everyMs: 5_000 })
  const names = useNames()
  const isFiltered = state !== undefined || user !== ''
  const followed = new Set(list.rows.filter((row) => isUnfinished(row.state)).slice(0, FOLLOWED))
  return (
    <Stack>
      <StateAndUser />
      <LoadedTable
        list={list}
        empty={
          isFiltered ? (
            <Empty title="No matching requests">Enter the full user id. This also finds users that are shown as a pseudonym.</Empty>
          ) : (
            <Empty title="No deletion requests yet">
              If a user asks to be forgotten, delete the user here. Their stored messages are deleted, and every destination that may have
              received them gets a message of type delete.
            </Empty>
          )
        }
        label="Deletion requests"
        columns={[
          {
            label: 'Request',
            cell: ({ id, userCount }) => <ViewLink to={`/deletions/${encodeURIComponent(id)}`}>{plural(userCount, 'user')}</ViewLink>,
            isShort: true,
          },
          { label: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
          { label: 'State', cell: (row) => <DeletionStateBadge state={row.state} />, isShort: true },
          {
            label: 'Waiting for',
            cell: (row) => (followed.has(row) ? <WaitsFor {...row} /> : isUnfinished(row.state) ? 'destinations' : '–'),
          },
          { label: 'Sources', cell: ({ sourceIds }) => joinNames(sourceIds.map((id) => names.sources.get(id) ?? id)) },
          { label: 'New messages', cell: ({ suppress }) => (suppress ? 'dropped' : 'accepted') },
          { label: 'Deleted', cell: ({ purged }) => plural(purged, 'message'), isShort: true },
        ]}
      />
      <NewDeletion opened={isForm} onClose={onCloseForm} />
    </Stack>
  )
}

function NewDeletion({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [, go] = useLocation()
  const create = useChange('POST /api/deletions', 'GET /api/deletions', 'GET /api/suppressions')
  return (
    <UserForm
      opened={opened}
      onClose={onClose}
      title="Delete users"
      about="Deletes their messages from Switchyard. Destinations that may have received them get a message of type delete, signed and retried like any other."
      hasSuppressOption
      next="Review"
      confirmTitle="Delete these users?"
      verb="Delete"
      typed="delete"
      renderEffects={(request) => <DeletionEffects request={request} />}
      onConfirm={async ({ userIds, sourceIds, suppress }) => {
        const { id } = await create.mutateAsync({ body: { userIds, suppress, ...(sourceIds === null ? {} : { sourceIds }) } })
        // After the form has closed, because closing it changes the address too.
        setTimeout(() => go(`/deletions/${encodeURIComponent(id)}`))
      }}
    />
  )
}

function DeletionEffects({ request: { userIds, sourceIds, suppress } }: { request: UserRequest }) {
  const destinations = useApi('GET /api/destinations/summary', {})
  const names = useNames()
  const notified = destinations.data === undefined ? null : notifiedDestinations(destinations.data.data, sourceIds)
  const sourcesText = sourceIds === null ? 'all sources' : joinNames(sourceIds.map((id) => names.sources.get(id) ?? id))
  return (
    <List size="sm" spacing="xs">
      <List.Item>
        All stored messages of <LongStrong span>{joinNames(userIds)}</LongStrong> ({plural(userIds.length, 'user')}) in {sourcesText} are
        deleted. This cannot be undone.
      </List.Item>
      <List.Item>Their pending deliveries are cancelled. A request already in flight cannot be stopped.</List.Item>
      <List.Item>Messages that have only an anonymousId have no user id to match and are kept.</List.Item>
      <List.Item>
        {notified === null
          ? 'A delete message is sent to every enabled destination of these sources.'
          : notified.length === 0
            ? 'No enabled destination is connected to these sources, so no delete message is sent.'
            : `A delete message is sent to ${plural(notified.length, 'destination')}: ${joinNames(notified.map(({ name }) => name))}.`}
      </List.Item>
      <List.Item>
        {suppress
          ? 'New messages from these users are dropped until you remove the suppression.'
          : 'New messages from these users are stored and delivered as usual.'}
      </List.Item>
    </List>
  )
}
