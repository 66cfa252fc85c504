// OAuth applications: their sources and public keys, made and changed. A private key that is pasted by mistake is refused here, before
// anything is sent.

import { Button, Group, MultiSelect, Paper, Stack, Text, TextInput, Title } from '@mantine/core'
import { useState } from 'react'
import { type Schemas, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { CodeBlock, Copyable } from '../../components/copyable.tsx'
import { Facts } from '../../components/facts.tsx'
import { ViewLink } from '../../components/link.tsx'
import { Empty, ErrorAlert, Loading } from '../../components/query-states.tsx'
import { LoadMore, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Time } from '../../components/time.tsx'
import { useSession } from '../../session.tsx'
import { useSearchState } from '../../url-state.ts'
import { plural } from '../deletions/users.ts'
import { FormModal } from './form-modal.tsx'
import { ADMIN_ONLY, NeedsAdmin } from './needs-admin.tsx'
import { checkPublicKey } from './public-key.ts'
import { type KeyDraft, KeyFields, keyOf, NO_KEY } from './public-key-fields.tsx'

type App = Schemas['OAuthApp']
type Key = Schemas['OAuthKey']

const LISTS = ['GET /api/oauth-apps', 'GET /api/audit'] as const

export default function OAuthApps() {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const list = useList('GET /api/oauth-apps', {})
  const edited = list.rows.find(({ id }) => id === params.get('edit'))
  const close = (): void => change({ new: null, edit: null }, { replace: true })
  if (list.problem !== null && list.rows.length === 0) return <ErrorAlert problem={list.problem} onRetry={() => void list.refetch()} />
  if (list.isPending) return <Loading />
  const isNew = isAdmin && params.get('new') !== null
  const add = (
    <Button size="sm" disabled={!isAdmin} title={isAdmin ? undefined : ADMIN_ONLY} onClick={() => change({ new: '1' })}>
      Add an application
    </Button>
  )
  return (
    <Stack>
      {list.rows.length > 0 && (
        <Group justify="space-between">
          <Text size="sm" c="dimmed" maw={640}>
            A program proves with its private key who it is, and gets an access token for a day. A source asks for one when its setting
            Require OAuth is on.
          </Text>
          {add}
        </Group>
      )}
      <NeedsAdmin />
      {list.rows.length === 0 ? (
        <Empty title="There are no OAuth applications" action={add}>
          They are for servers that are not to send with a write key alone: a program signs with its private key, gets an access token for a
          day, and sends with that. Only the public key is kept here.
        </Empty>
      ) : (
        list.rows.map((app) => <AppCard key={app.id} app={app} onEdit={() => change({ edit: app.id })} />)
      )}
      <LoadMore list={list} />
      {isNew && <AppForm app={null} onClose={close} />}
      {isAdmin && edited !== undefined && <AppForm app={edited} onClose={close} />}
    </Stack>
  )
}

function AppCard({ app, onEdit }: { app: App; onEdit: () => void }) {
  const { isAdmin } = useSession()
  const names = useNames()
  const [asked, setAsked] = useState<'key' | 'revoke' | 'delete' | Key | null>(null)
  const revoke = useChange('POST /api/oauth-apps/{id}/revoke-tokens', ...LISTS)
  const remove = useChange('DELETE /api/oauth-apps/{id}', ...LISTS)
  const removeKey = useChange('DELETE /api/oauth-apps/{id}/keys/{keyId}', ...LISTS)
  const [lastKey, setLastKey] = useState<Key | null>(null)
  const params = { id: app.id }
  const close = (): void => setAsked(null)
  const sources = app.sourceIds.map((id) => (
    <ViewLink key={id} to={`/sources/${encodeURIComponent(id)}`}>
      {names.sources.get(id) ?? id}
    </ViewLink>
  ))
  return (
    <Paper withBorder p="md" component="section" aria-label={app.name}>
      <Stack>
        <Group justify="space-between" align="flex-start">
          <Title order={2} size="h4" style={{ overflowWrap: 'anywhere' }}>
            {app.name}
          </Title>
          <Group gap="xs">
            <Button size="compact-sm" variant="default" disabled={!isAdmin} onClick={onEdit} aria-label={`Edit ${app.name}`}>
              Edit
            </Button>
            <Button
              size="compact-sm"
              variant="default"
              disabled={!isAdmin}
              onClick={() => setAsked('revoke')}
              aria-label={`Revoke tokens of ${app.name}`}
            >
              Revoke tokens
            </Button>
            <Button
              size="compact-sm"
              variant="light"
              color="red"
              disabled={!isAdmin}
              onClick={() => setAsked('delete')}
              aria-label={`Delete ${app.name}`}
            >
              Delete
            </Button>
          </Group>
        </Group>
        <Facts
          facts={[
            ['Client id', <Copyable key="id" text={app.id} label="the client id" />],
            [
              'May send to',
              sources.length === 0 ? (
                'no source: give it some'
              ) : (
                <Group key="sources" gap="xs">
                  {sources}
                </Group>
              ),
            ],
            ['Made', <Time key="made" at={app.createdAt} />],
            [
              'Access tokens from before are refused',
              app.tokensRevokedBefore === null ? null : <Time key="revoked" at={app.tokensRevokedBefore} />,
            ],
          ]}
        />
        <Group justify="space-between">
          <Title order={3} size="h5">
            {plural(app.keys.length, 'public key')}
          </Title>
          <Button
            size="compact-sm"
            variant="default"
            disabled={!isAdmin}
            onClick={() => setAsked('key')}
            aria-label={`Add a key to ${app.name}`}
          >
            Add a key
          </Button>
        </Group>
        {app.keys.length === 0 ? (
          <Text size="sm" c="dimmed">
            Without a key it can get no access token.
          </Text>
        ) : (
          <ResponsiveTable<Key>
            label={`Keys of ${app.name}`}
            rows={app.keys}
            keyOf={({ id }) => id}
            columns={[
              { label: 'Key id', cell: ({ id }) => <Copyable text={id} label="the key id" /> },
              { label: 'Kind', cell: ({ publicKeyPem }) => kindOf(publicKeyPem) },
              { label: 'Added', cell: ({ createdAt }) => <Time at={createdAt} /> },
              {
                label: 'Change',
                isActions: true,
                cell: (key) => (
                  <Button
                    size="compact-sm"
                    variant="light"
                    color="red"
                    disabled={!isAdmin}
                    aria-label={`Remove the key ${key.id} of ${app.name}`}
                    onClick={() => {
                      setLastKey(key)
                      setAsked(key)
                    }}
                  >
                    Remove
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Stack>
      {asked === 'key' && <AddKey app={app} onClose={close} />}
      <ConfirmDialog
        opened={asked === 'revoke'}
        onClose={close}
        title="Revoke its access tokens?"
        verb="Revoke"
        onConfirm={() => revoke.mutateAsync({ params })}
      >
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          Every access token that <b>{app.name}</b> has is refused from now on. It can get new ones with its keys at once, so a program that
          works as it should goes on after one refused call. If a private key is known to others, remove that key instead.
        </Text>
      </ConfirmDialog>
      <ConfirmDialog
        opened={asked === 'delete'}
        onClose={close}
        title="Delete this application?"
        verb="Delete"
        typed={app.name}
        onConfirm={() => remove.mutateAsync({ params })}
      >
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          <b>{app.name}</b>, its {plural(app.keys.length, 'key')} and all its access tokens are refused from now on. It sends to{' '}
          {plural(app.sourceIds.length, 'source')}; what it sent stays. It cannot be undone: a new application has another client id.
        </Text>
      </ConfirmDialog>
      <ConfirmDialog
        opened={typeof asked === 'object' && asked !== null}
        onClose={close}
        title="Remove this key?"
        verb="Remove"
        onConfirm={async () => {
          if (lastKey !== null) await removeKey.mutateAsync({ params: { ...params, keyId: lastKey.id } })
        }}
      >
        {lastKey !== null && (
          <Stack gap="xs">
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              Who signs with the key <b>{lastKey.id}</b> gets no access token any more, and those that were got with it are refused from now
              on.
              {app.keys.length === 1 && ' It is the only key: the application can send nothing until it has another.'}
            </Text>
            <CodeBlock text={lastKey.publicKeyPem} label="the public key" maxHeight={160} />
          </Stack>
        )}
      </ConfirmDialog>
    </Paper>
  )
}

function kindOf(publicKeyPem: string): string {
  const judged = checkPublicKey(publicKeyPem)
  return judged.ok ? judged.kind : 'of another kind'
}

function AddKey({ app, onClose }: { app: App; onClose: () => void }) {
  const [draft, setDraft] = useState<KeyDraft>(NO_KEY)
  const add = useChange('POST /api/oauth-apps/{id}/keys', ...LISTS)
  const key = keyOf(draft)
  return (
    <FormModal
      title={`Add a key to ${app.name}`}
      verb="Add"
      isReady={key !== null}
      onClose={onClose}
      onSubmit={async () => {
        if (key !== null) await add.mutateAsync({ params: { id: app.id }, body: key })
      }}
    >
      <Text size="sm">
        The keys that are there go on working. So a key is changed without a pause: add the new one, let the programs sign with it, then
        remove the old one.
      </Text>
      <KeyFields draft={draft} onChange={setDraft} isRequired />
    </FormModal>
  )
}

/** For a new one, with its first key; or for the name and sources of one that is there. */
function AppForm({ app, onClose }: { app: App | null; onClose: () => void }) {
  const names = useNames()
  const [name, setName] = useState(app?.name ?? '')
  const [sourceIds, setSourceIds] = useState<string[]>(app?.sourceIds ?? [])
  const [draft, setDraft] = useState<KeyDraft>(NO_KEY)
  const create = useChange('POST /api/oauth-apps', ...LISTS)
  const update = useChange('PATCH /api/oauth-apps/{id}', ...LISTS)
  const isKeyGiven = draft.pem.trim() !== ''
  const key = keyOf(draft)
  const lost = (app?.sourceIds ?? []).filter((id) => !sourceIds.includes(id))
  return (
    <FormModal
      title={app === null ? 'Add an application' : `Edit ${app.name}`}
      verb={app === null ? 'Add' : 'Save'}
      isReady={name.trim() !== '' && (!isKeyGiven || key !== null)}
      onClose={onClose}
      onSubmit={async () => {
        const body = { name: name.trim(), sourceIds }
        if (app === null) await create.mutateAsync({ body: { ...body, ...(key === null ? {} : { keys: [key] }) } })
        else await update.mutateAsync({ params: { id: app.id }, body })
      }}
    >
      <TextInput
        label="Name"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        maxLength={100}
        required
        data-autofocus
      />
      <MultiSelect
        label="Sources"
        description="That its access tokens may send to."
        data={[...names.sources].map(([value, label]) => ({ value, label }))}
        value={sourceIds}
        onChange={setSourceIds}
        placeholder={sourceIds.length === 0 ? 'None yet' : ''}
        searchable
        clearable
      />
      {lost.length > 0 && (
        <Text size="sm" c="orange">
          Its calls to {lost.map((id) => names.sources.get(id) ?? id).join(', ')} are refused once this is saved.
        </Text>
      )}
      {app === null && <KeyFields draft={draft} onChange={setDraft} isRequired={false} />}
    </FormModal>
  )
}
