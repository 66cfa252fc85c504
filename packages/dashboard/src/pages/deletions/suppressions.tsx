// The list of suppressed users, whose new messages are dropped: filter, add and remove.

import { Group, Select, SimpleGrid, Stack } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { type Schemas, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { Empty } from '../../components/page.tsx'
import { LoadedList, ResponsiveTable } from '../../components/responsive-table.tsx'
import { LongText, Note, RowButton, SmallButton, Time, ViewLink } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { UserField, useUser } from './filter-bar.tsx'
import { UserForm } from './user-form.tsx'
import { joinNames } from './users.ts'

/** A suppression to remove: of one source, or of all sources if `sourceId` is null. */
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
      <LoadedList
        list={list}
        empty={
          <Empty title={user === '' && sourceId === undefined ? 'No suppressed users' : 'No matching users'}>
            {user === '' && sourceId === undefined
              ? 'Messages from all users are accepted. Suppress users to drop their new messages. Messages that are already stored are kept.'
              : 'Enter the full user id.'}
          </Empty>
        }
      >
        {isAdmin && userId !== undefined && sourceId === undefined && list.rows.length > 1 && (
          <Group>
            <SmallButton onClick={() => setRemoval({ userId, sourceId: null })}>
              Remove all {list.rows.length} suppressions of {userId}
            </SmallButton>
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
            { label: 'Suppressed since', cell: ({ since }) => <Time at={since} /> },
            {
              label: 'Actions',
              isActions: true,
              cell: (row) => (
                <RowButton
                  disabled={!isAdmin}
                  aria-label={`Remove suppression of ${row.userId} for ${nameOf(row.sourceId)}`}
                  onClick={() => setRemoval(row)}
                >
                  Remove
                </RowButton>
              ),
            },
          ]}
        />
      </LoadedList>
      {!isAdmin && <Note>Changing suppressions requires an admin token.</Note>}
      <UserForm
        opened={isForm}
        onClose={onCloseForm}
        title="Suppress users"
        about="New messages from these users are accepted but dropped: they are neither stored nor delivered. Messages that are already stored are kept; to delete them, delete the users."
        hasSuppressOption={false}
        next="Review"
        confirmTitle="Drop messages from these users?"
        verb="Suppress"
        renderEffects={({ userIds, sourceIds }) => (
          <LongText>
            New messages from {joinNames(userIds)} ({plural(userIds.length, 'user')}) to{' '}
            {sourceIds === null ? 'all current sources' : joinNames(sourceIds.map(nameOf))} are dropped until you remove the suppression.
            Dropped messages cannot be recovered.
          </LongText>
        )}
        onConfirm={async ({ userIds, sourceIds }) => {
          const { added } = await add.mutateAsync({ body: { userIds, ...(sourceIds === null ? {} : { sourceIds }) } })
          notifications.show({
            message: added === 0 ? 'These users were already suppressed.' : `Added ${plural(added, 'suppression')}.`,
          })
        }}
      />
      <ConfirmDialog
        opened={removal !== null}
        onClose={() => setRemoval(null)}
        title="Remove suppression?"
        verb="Remove suppression"
        onConfirm={async () => {
          if (removal === null) return
          await remove.mutateAsync({
            query: { userId: removal.userId, ...(removal.sourceId === null ? {} : { sourceId: removal.sourceId }) },
          })
        }}
      >
        {removal !== null && (
          <LongText>
            New messages from {removal.userId} to {removal.sourceId === null ? 'all sources' : nameOf(removal.sourceId)} will be stored and
            delivered again. Messages dropped in the meantime cannot be recovered. Make sure that the user has agreed to this.
          </LongText>
        )}
      </ConfirmDialog>
    </Stack>
  )
}
