// Users whose new messages are dropped: found by user and source, added, and taken again.

import { Button, Group, Select, SimpleGrid, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { type Schemas, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { ViewLink } from '../../components/link.tsx'
import { Empty, ErrorAlert, Loading } from '../../components/query-states.tsx'
import { LoadMore, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Time } from '../../components/time.tsx'
import { useSession } from '../../session.tsx'
import { useSearchState } from '../../url-state.ts'
import { UserField, useUser } from './filter-bar.tsx'
import { UserForm } from './user-form.tsx'
import { joinNames, plural } from './users.ts'

/** One user of one source, or of all. */
type Removal = { userId: string; sourceId: string | null }

export function Suppressions({ isForm, onCloseForm }: { isForm: boolean; onCloseForm: () => void }) {
  const [params, change] = useSearchState()
  const { isAdmin } = useSession()
  const names = useNames()
  const { user, userId } = useUser()
  const sourceId = params.get('source') ?? undefined
  const list = useList('GET /api/suppressions', { query: { userId, sourceId } })
  const add = useChange('POST /api/suppressions', 'GET /api/suppressions')
  const remove = useChange('DELETE /api/suppressions', 'GET /api/suppressions')
  const [removal, setRemoval] = useState<Removal | null>(null)
  const nameOf = (id: string): string => names.sources.get(id) ?? id
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
        <UserField />
        <Select
          label="Source"
          placeholder="All"
          data={[...names.sources].map(([value, label]) => ({ value, label }))}
          value={sourceId ?? null}
          onChange={(value) => change({ source: value })}
          searchable
          clearable
        />
      </SimpleGrid>
      {list.problem !== null && list.rows.length === 0 ? (
        <ErrorAlert problem={list.problem} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading />
      ) : list.rows.length === 0 ? (
        <Empty title={user === '' && sourceId === undefined ? 'Nobody is suppressed' : 'Nobody fits these filters'}>
          {user === '' && sourceId === undefined
            ? 'Messages of all users are taken. Suppress users to drop what they send from now on; what is stored of them stays.'
            : 'A user is found by the whole id.'}
        </Empty>
      ) : (
        <>
          {isAdmin && userId !== undefined && sourceId === undefined && list.rows.length > 1 && (
            <Group>
              <Button size="xs" variant="default" onClick={() => setRemoval({ userId, sourceId: null })}>
                Take messages of {userId} again, of all {list.rows.length} sources
              </Button>
            </Group>
          )}
          <ResponsiveTable<Schemas['Suppression']>
            label="Suppressed users"
            rows={list.rows}
            keyOf={(row) => `${row.sourceId} ${row.userId}`}
            columns={[
              { label: 'User', cell: (row) => row.userId },
              {
                label: 'Source',
                cell: (row) => <ViewLink to={`/sources/${encodeURIComponent(row.sourceId)}`}>{nameOf(row.sourceId)}</ViewLink>,
              },
              { label: 'Dropped since', cell: ({ since }) => <Time at={since} /> },
              {
                label: 'Change',
                isActions: true,
                cell: (row) => (
                  <Button
                    size="compact-sm"
                    variant="default"
                    disabled={!isAdmin}
                    aria-label={`Take again: messages of ${row.userId} to ${nameOf(row.sourceId)}`}
                    onClick={() => setRemoval(row)}
                  >
                    Take again
                  </Button>
                ),
              },
            ]}
          />
          <LoadMore list={list} />
        </>
      )}
      {!isAdmin && (
        <Text size="sm" c="dimmed">
          Changing this needs a token with the role admin.
        </Text>
      )}
      <UserForm
        opened={isForm}
        onClose={onCloseForm}
        title="Suppress users"
        about="What they send from now on is taken and dropped: nothing is stored or delivered. What is stored already stays; to remove it, delete the users."
        asksSuppress={false}
        next="Go on"
        confirmTitle="Drop messages of these users?"
        verb="Suppress"
        sentence={({ userIds, sourceIds }) => (
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            Messages of {joinNames(userIds)} ({plural(userIds.length, 'user')}) to{' '}
            {sourceIds === null ? 'the sources that there are now' : joinNames(sourceIds.map(nameOf))} are dropped from now on, until you
            take them again. They cannot be got back later.
          </Text>
        )}
        onConfirm={async ({ userIds, sourceIds }) => {
          const { added } = await add.mutateAsync({ body: { userIds, ...(sourceIds === null ? {} : { sourceIds }) } })
          notifications.show({
            message: added === 0 ? 'They were suppressed already.' : `Suppressed: ${plural(added, 'pair')} of user and source.`,
          })
        }}
      />
      <ConfirmDialog
        opened={removal !== null}
        onClose={() => setRemoval(null)}
        title="Take messages of this user again?"
        verb="Take again"
        onConfirm={async () => {
          if (removal === null) return
          await remove.mutateAsync({
            query: { userId: removal.userId, ...(removal.sourceId === null ? {} : { sourceId: removal.sourceId }) },
          })
        }}
      >
        {removal !== null && (
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            What {removal.userId} sends to {removal.sourceId === null ? 'any source' : nameOf(removal.sourceId)} from now on is stored and
            delivered again. What was dropped meanwhile is gone. Did the user agree?
          </Text>
        )}
      </ConfirmDialog>
    </Stack>
  )
}
