// The list of suppressed users, whose new messages are dropped: filter, add and remove.

import { Group, SimpleGrid, Stack } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import type { ReactNode } from 'react'
import { type Schemas, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmButton } from '../../components/confirm-dialog.tsx'
import { nameOptions } from '../../components/inputs.tsx'
import { Empty } from '../../components/page.tsx'
import { ParamCombobox } from '../../components/param-combobox.tsx'
import { LoadedList, ResponsiveTable } from '../../components/responsive-table.tsx'
import { LongText, Note, RowButton, SmallButton, Time, ViewLink } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { UserField, useUser } from './filter-bar.tsx'
import { UserForm } from './user-form.tsx'
import { joinNames } from './users.ts'

type Suppression = Schemas['Suppression']

export function Suppressions({ isForm, onCloseForm }: { isForm: boolean; onCloseForm: () => void }) {
  const [params] = useSearchState()
  const { mayEdit } = useSession()
  const { sources } = useNames()
  const { user, userId } = useUser()
  const sourceId = params.get('source') ?? undefined
  const list = useList('GET /api/suppressions', { query: { userId, sourceId } })
  const isFiltered = user !== '' || sourceId !== undefined
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
        <UserField />
        <ParamCombobox param="source" label="Source" placeholder="All" options={nameOptions(sources)} searchable />
      </SimpleGrid>
      <LoadedList
        list={list}
        empty={
          <Empty title={isFiltered ? 'No matching users' : 'No suppressed users'}>
            {isFiltered
              ? 'Enter the full user id.'
              : 'Messages from all users are accepted. Suppress users to drop their new messages. Messages that are already stored are kept.'}
          </Empty>
        }
      >
        {mayEdit && userId !== undefined && sourceId === undefined && list.rows.length > 1 && (
          <Group>
            <RemoveSuppression userId={userId} from="all sources">
              {(open) => (
                <SmallButton onClick={open}>
                  Remove all {list.rows.length} suppressions of {userId}
                </SmallButton>
              )}
            </RemoveSuppression>
          </Group>
        )}
        <Users rows={list.rows} nameOf={(id) => sources.get(id) ?? id} />
      </LoadedList>
      {!mayEdit && <Note>Changing suppressions requires the editor or admin role.</Note>}
      <NewSuppression opened={isForm} onClose={onCloseForm} />
    </Stack>
  )
}

function Users({ rows, nameOf }: { rows: readonly Suppression[]; nameOf: (sourceId: string) => string }) {
  const { mayEdit } = useSession()
  return (
    <ResponsiveTable
      label="Suppressed users"
      rows={rows}
      keyOf={({ sourceId, userId }) => `${sourceId} ${userId}`}
      columns={[
        { label: 'User', cell: ({ userId }) => userId },
        {
          label: 'Source',
          cell: ({ sourceId }) => <ViewLink to={`/sources/${encodeURIComponent(sourceId)}`}>{nameOf(sourceId)}</ViewLink>,
        },
        { label: 'Suppressed since', cell: ({ since }) => <Time at={since} /> },
        {
          label: 'Actions',
          isActions: true,
          cell: ({ sourceId, userId }) => (
            <RemoveSuppression userId={userId} sourceId={sourceId} from={nameOf(sourceId)}>
              {(open) => (
                <RowButton disabled={!mayEdit} onClick={open} aria-label={`Remove suppression of ${userId} for ${nameOf(sourceId)}`}>
                  Remove
                </RowButton>
              )}
            </RemoveSuppression>
          ),
        },
      ]}
    />
  )
}

interface RemoveSuppressionProps {
  userId: string
  /** Undefined for all sources. */
  sourceId?: string
  /** The name of the source. */
  from: string
  children: (open: () => void) => ReactNode
}

function RemoveSuppression({ userId, sourceId, from, children }: RemoveSuppressionProps) {
  const remove = useChange('DELETE /api/suppressions', 'GET /api/suppressions')
  return (
    <ConfirmButton
      button={children}
      title="Remove suppression?"
      verb="Remove suppression"
      onConfirm={() => remove.mutateAsync({ query: { userId, sourceId } })}
    >
      New messages from {userId} to {from} will be stored and delivered again. Messages dropped in the meantime cannot be recovered. Make
      sure that the user has agreed to this.
    </ConfirmButton>
  )
}

function NewSuppression({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { sources } = useNames()
  const add = useChange('POST /api/suppressions', 'GET /api/suppressions')
  return (
    <UserForm
      opened={opened}
      onClose={onClose}
      title="Suppress users"
      about="New messages from these users are accepted but dropped: they are neither stored nor delivered. Messages that are already stored are kept; to delete them, delete the users."
      hasSuppressOption={false}
      next="Review"
      confirmTitle="Drop messages from these users?"
      verb="Suppress"
      renderEffects={({ userIds, sourceIds }) => (
        <LongText>
          New messages from {joinNames(userIds)} ({plural(userIds.length, 'user')}) to{' '}
          {sourceIds === null ? 'all current sources' : joinNames(sourceIds.map((id) => sources.get(id) ?? id))} are dropped until you
          remove the suppression. Dropped messages cannot be recovered.
        </LongText>
      )}
      onConfirm={async ({ userIds, sourceIds }) => {
        const { added } = await add.mutateAsync({ body: { userIds, ...(sourceIds === null ? {} : { sourceIds }) } })
        notifications.show({
          message: added === 0 ? 'These users were already suppressed.' : `Added ${plural(added, 'suppression')}.`,
        })
      }}
    />
  )
}
