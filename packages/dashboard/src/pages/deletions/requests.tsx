// The list of deletion requests, and the form that makes one. A request cannot be taken back, so it says first what it will do and to how
// many.

import { List, Stack, Text } from '@mantine/core'
import { useLocation } from 'wouter'
import { useApi, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ViewLink } from '../../components/link.tsx'
import { Empty, ErrorAlert, Loading } from '../../components/query-states.tsx'
import { LoadMore, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Time } from '../../components/time.tsx'
import { useSearchState } from '../../url-state.ts'
import { DeletionStateBadge, stateOf } from './deletion-state.tsx'
import { StateAndUser, useUser } from './filter-bar.tsx'
import { UserForm, type UserRequest } from './user-form.tsx'
import { joinNames, notifiedDestinations, plural } from './users.ts'

export function Requests({ isForm, onCloseForm }: { isForm: boolean; onCloseForm: () => void }) {
  const [params] = useSearchState()
  const state = stateOf(params.get('state'))
  const { user, userId } = useUser()
  const list = useList('GET /api/deletions', { query: { state, userId }, everyMs: 5_000 })
  const names = useNames()
  const isFiltered = state !== undefined || user !== ''
  return (
    <Stack>
      <StateAndUser />
      {list.problem !== null && list.rows.length === 0 ? (
        <ErrorAlert problem={list.problem} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading />
      ) : list.rows.length === 0 ? (
        isFiltered ? (
          <Empty title="No request fits these filters">A user is found by the whole id, also where it is shown by pseudonym.</Empty>
        ) : (
          <Empty title="Nobody was deleted yet">
            When a user asks to be forgotten, delete the user here. The messages that are stored are removed, and every webhook that may
            have got them is sent a message of type delete.
          </Empty>
        )
      ) : (
        <>
          <ResponsiveTable
            label="Deletion requests"
            rows={list.rows}
            keyOf={({ id }) => id}
            columns={[
              {
                label: 'Request',
                cell: ({ id, userCount }) => <ViewLink to={`/deletions/${encodeURIComponent(id)}`}>{plural(userCount, 'user')}</ViewLink>,
                isShort: true,
              },
              { label: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
              { label: 'State', cell: (row) => <DeletionStateBadge state={row.state} />, isShort: true },
              { label: 'Sources', cell: ({ sourceIds }) => joinNames(sourceIds.map((id) => names.sources.get(id) ?? id)) },
              { label: 'From then on', cell: ({ suppress }) => (suppress ? 'new messages are dropped' : 'taken as ever') },
              { label: 'Removed', cell: ({ purged }) => plural(purged, 'message'), isShort: true },
            ]}
          />
          <LoadMore list={list} />
        </>
      )}
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
      about="Their messages are removed from this service, and the webhooks that may have got them are sent a message of type delete, signed and retried as any other."
      asksSuppress
      next="Look at what it does"
      confirmTitle="Delete these users?"
      verb="Delete"
      typed="delete"
      sentence={(request) => <WhatItDoes request={request} />}
      onConfirm={async ({ userIds, sourceIds, suppress }) => {
        const { id } = await create.mutateAsync({ body: { userIds, suppress, ...(sourceIds === null ? {} : { sourceIds }) } })
        // After the form has closed, which goes to an address of its own.
        setTimeout(() => go(`/deletions/${encodeURIComponent(id)}`))
      }}
    />
  )
}

function WhatItDoes({ request: { userIds, sourceIds, suppress } }: { request: UserRequest }) {
  const destinations = useApi('GET /api/destinations', { query: { limit: 1_000 } })
  const names = useNames()
  const told = destinations.data === undefined ? null : notifiedDestinations(destinations.data.data, sourceIds)
  const from = sourceIds === null ? 'all sources' : joinNames(sourceIds.map((id) => names.sources.get(id) ?? id))
  return (
    <List size="sm" spacing="xs">
      <List.Item>
        Every stored message of{' '}
        <Text span size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
          {joinNames(userIds)}
        </Text>{' '}
        ({plural(userIds.length, 'user')}) in {from} is removed. This cannot be undone.
      </List.Item>
      <List.Item>
        What is still owed of them is not sent: it is cancelled when its turn comes. An attempt that is on its way is not called back.
      </List.Item>
      <List.Item>Messages that have only an anonymousId are not found by a user id, and stay.</List.Item>
      <List.Item>
        {told === null
          ? 'Every enabled destination of these sources is told.'
          : told.length === 0
            ? 'No enabled destination gets anything of these sources, so nobody is told.'
            : `${plural(told.length, 'destination')} ${told.length === 1 ? 'is' : 'are'} told: ${joinNames(told.map(({ name }) => name))}.`}
      </List.Item>
      <List.Item>
        {suppress
          ? 'What these users send from now on is dropped, until you take it again.'
          : 'What these users send from now on is stored and delivered as ever.'}
      </List.Item>
    </List>
  )
}
