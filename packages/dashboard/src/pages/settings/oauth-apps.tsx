// OAuth applications with their sources and public keys. A private key that is pasted by mistake is rejected here, before anything is
// sent.

import { Button, Code, Group, MultiSelect, Paper, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { type Schemas, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmButton, FormDialog } from '../../components/confirm-dialog.tsx'
import { CodeBlock, Copyable } from '../../components/copyable.tsx'
import { entered, SmallCodeArea } from '../../components/inputs.tsx'
import { Empty, Facts } from '../../components/page.tsx'
import { LoadedList, ResponsiveTable } from '../../components/responsive-table.tsx'
import { DangerButton, LongText, Note, RowButton, SectionTitle, SmallNote, SmallTitle, Time, ViewLink } from '../../components/styled.tsx'
import { ADMIN_ONLY, NeedsAdmin } from '../../session/needs-role.tsx'
import { useSession } from '../../session/session.tsx'
import { plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { checkPublicKey } from './public-key.ts'

type App = Schemas['OAuthApp']
type Key = Schemas['OAuthKey']

const LISTS = ['GET /api/oauth-apps', 'GET /api/audit'] as const

export default function OAuthApps() {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const list = useList('GET /api/oauth-apps', {})
  const edited = list.rows.find(({ id }) => id === params.get('edit'))
  const close = (): void => change({ new: null, edit: null }, { replace: true })
  const add = (
    <Button size="sm" disabled={!isAdmin} title={isAdmin ? undefined : ADMIN_ONLY} onClick={() => change({ new: '1' })}>
      Add an application
    </Button>
  )
  return (
    <Stack>
      {list.rows.length > 0 && (
        <Group justify="space-between">
          <Note maw={640}>
            An application authenticates with its private key and gets an access token that is valid for one day. Sources can require access
            tokens.
          </Note>
          {add}
        </Group>
      )}
      <NeedsAdmin />
      <LoadedList
        list={list}
        empty={
          <Empty title="No OAuth applications" action={add}>
            Use OAuth for servers that should authenticate with more than a write key. An application authenticates with its private key and
            gets an access token that is valid for one day. Only the public key is stored here.
          </Empty>
        }
      >
        {list.rows.map((app) => (
          <AppCard key={app.id} app={app} onEdit={() => change({ edit: app.id })} />
        ))}
      </LoadedList>
      {isAdmin && params.get('new') !== null && <AppForm app={null} onClose={close} />}
      {isAdmin && edited !== undefined && <AppForm app={edited} onClose={close} />}
    </Stack>
  )
}

function AppCard({ app, onEdit }: { app: App; onEdit: () => void }) {
  const names = useNames()
  const { id, name, sourceIds, createdAt, tokensRevokedBefore } = app
  const sources = sourceIds.map((sourceId) => (
    <ViewLink key={sourceId} to={`/sources/${encodeURIComponent(sourceId)}`}>
      {names.sources.get(sourceId) ?? sourceId}
    </ViewLink>
  ))
  return (
    <Paper withBorder p="md" component="section" aria-label={name}>
      <Stack>
        <Group justify="space-between" align="flex-start">
          <SectionTitle style={{ overflowWrap: 'anywhere' }}>{name}</SectionTitle>
          <Group gap="xs">
            <AppActions app={app} onEdit={onEdit} />
          </Group>
        </Group>
        <Facts
          facts={[
            ['Client id', <Copyable key="id" text={id} label="the client id" />],
            ['Sources', sources.length === 0 ? 'none: it cannot send messages' : <Group gap="xs">{sources}</Group>],
            ['Created', <Time key="created" at={createdAt} />],
            ['Access tokens revoked', tokensRevokedBefore === null ? null : <Time key="revoked" at={tokensRevokedBefore} />],
          ]}
        />
        <Keys app={app} />
      </Stack>
    </Paper>
  )
}

function AppActions({ app: { id, name, keys, sourceIds }, onEdit }: { app: App; onEdit: () => void }) {
  const { isAdmin } = useSession()
  const revoke = useChange('POST /api/oauth-apps/{id}/revoke-tokens', ...LISTS)
  const remove = useChange('DELETE /api/oauth-apps/{id}', ...LISTS)
  const params = { id }
  return (
    <>
      <RowButton disabled={!isAdmin} onClick={onEdit} aria-label={`Edit ${name}`}>
        Edit
      </RowButton>
      <ConfirmButton
        button={(open) => (
          <RowButton disabled={!isAdmin} onClick={open} aria-label={`Revoke tokens of ${name}`}>
            Revoke tokens
          </RowButton>
        )}
        title="Revoke access tokens?"
        verb="Revoke tokens"
        onConfirm={() => revoke.mutateAsync({ params })}
      >
        All access tokens of <b>{name}</b> are rejected from now on. The application can get new ones with its keys at once, so a working
        client continues after one rejected call. If a private key was leaked, remove that key instead.
      </ConfirmButton>
      <ConfirmButton
        button={(open) => (
          <DangerButton size="compact-sm" disabled={!isAdmin} onClick={open} aria-label={`Delete ${name}`}>
            Delete
          </DangerButton>
        )}
        title="Delete this application?"
        verb="Delete"
        typed={name}
        onConfirm={() => remove.mutateAsync({ params })}
      >
        The {plural(keys.length, 'key')} and all access tokens of <b>{name}</b> are rejected from now on. It can no longer send to its{' '}
        {plural(sourceIds.length, 'source')}. Messages that it sent earlier are kept. This cannot be undone: a new application gets another
        client id.
      </ConfirmButton>
    </>
  )
}

function Keys({ app }: { app: App }) {
  const { isAdmin } = useSession()
  const [isAdding, setAdding] = useState(false)
  return (
    <>
      <Group justify="space-between">
        <SmallTitle>{plural(app.keys.length, 'public key')}</SmallTitle>
        <RowButton disabled={!isAdmin} onClick={() => setAdding(true)} aria-label={`Add a key to ${app.name}`}>
          Add a key
        </RowButton>
      </Group>
      {app.keys.length === 0 ? (
        <Note>Without a key, the application cannot get access tokens.</Note>
      ) : (
        <ResponsiveTable<Key>
          label={`Keys of ${app.name}`}
          rows={app.keys}
          keyOf={({ id }) => id}
          columns={[
            { label: 'Key id', cell: ({ id }) => <Copyable text={id} label="the key id" /> },
            { label: 'Type', cell: ({ publicKeyPem }) => kindOf(publicKeyPem) },
            { label: 'Added', cell: ({ createdAt }) => <Time at={createdAt} /> },
            { label: 'Actions', isActions: true, cell: (key) => <RemoveKey app={app} addedKey={key} /> },
          ]}
        />
      )}
      {isAdding && <AddKey app={app} onClose={() => setAdding(false)} />}
    </>
  )
}

function RemoveKey({ app, addedKey: { id, publicKeyPem } }: { app: App; addedKey: Key }) {
  const { isAdmin } = useSession()
  const remove = useChange('DELETE /api/oauth-apps/{id}/keys/{keyId}', ...LISTS)
  return (
    <ConfirmButton
      button={(open) => (
        <DangerButton size="compact-sm" disabled={!isAdmin} onClick={open} aria-label={`Remove key ${id} of ${app.name}`}>
          Remove
        </DangerButton>
      )}
      title="Remove this key?"
      verb="Remove key"
      onConfirm={() => remove.mutateAsync({ params: { id: app.id, keyId: id } })}
    >
      <Stack gap="xs">
        <LongText>
          The key <b>{id}</b> can no longer be used to get access tokens, and access tokens issued with it are rejected from now on.
          {app.keys.length === 1 && ' This is the only key: the application cannot send until you add another.'}
        </LongText>
        <CodeBlock text={publicKeyPem} label="the public key" maxHeight={160} />
      </Stack>
    </ConfirmButton>
  )
}

function kindOf(publicKeyPem: string): string {
  const checked = checkPublicKey(publicKeyPem)
  return checked.ok ? checked.kind : 'other'
}

function AddKey({ app, onClose }: { app: App; onClose: () => void }) {
  const [draft, setDraft] = useState<KeyDraft>(NO_KEY)
  const add = useChange('POST /api/oauth-apps/{id}/keys', ...LISTS)
  const key = keyOf(draft)
  return (
    <FormDialog
      size="lg"
      title={`Add a key to ${app.name}`}
      verb="Add"
      isReady={key !== null}
      onClose={onClose}
      onSubmit={async () => {
        if (key !== null) await add.mutateAsync({ params: { id: app.id }, body: key })
      }}
    >
      <Text size="sm">
        Existing keys keep working. To rotate a key without downtime, add the new one, switch the clients to it, then remove the old one.
      </Text>
      <KeyFields draft={draft} onChange={setDraft} isRequired />
    </FormDialog>
  )
}

/** The form for a new application with its first key, or for the name and sources of an existing one. */
function AppForm({ app, onClose }: { app: App | null; onClose: () => void }) {
  const names = useNames()
  const [name, setName] = useState(app?.name ?? '')
  const [sourceIds, setSourceIds] = useState<string[]>(app?.sourceIds ?? [])
  const [draft, setDraft] = useState<KeyDraft>(NO_KEY)
  const create = useChange('POST /api/oauth-apps', ...LISTS)
  const update = useChange('PATCH /api/oauth-apps/{id}', ...LISTS)
  const isKeyGiven = draft.pem.trim() !== ''
  const key = keyOf(draft)
  const removedSourceIds = (app?.sourceIds ?? []).filter((id) => !sourceIds.includes(id))
  return (
    <FormDialog
      size="lg"
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
      <TextInput label="Name" {...entered(name, setName)} maxLength={100} required data-autofocus />
      <MultiSelect
        label="Sources"
        description="The sources that this application can send to."
        data={[...names.sources].map(([value, label]) => ({ value, label }))}
        value={sourceIds}
        onChange={setSourceIds}
        placeholder={sourceIds.length === 0 ? 'Choose sources' : ''}
        searchable
        clearable
      />
      {removedSourceIds.length > 0 && (
        <Text size="sm" c="orange">
          After you save, its calls to {removedSourceIds.map((id) => names.sources.get(id) ?? id).join(', ')} are rejected.
        </Text>
      )}
      {app === null && <KeyFields draft={draft} onChange={setDraft} isRequired={false} />}
    </FormDialog>
  )
}

interface KeyDraft {
  id: string
  pem: string
}

const NO_KEY: KeyDraft = { id: '', pem: '' }

const KEY_ID = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,99}$/

/** The key as sent to the API; null while the fields are invalid. */
function keyOf({ id, pem }: KeyDraft): { id?: string; publicKeyPem: string } | null {
  if (!checkPublicKey(pem).ok || (id !== '' && !KEY_ID.test(id))) return null
  return id === '' ? { publicKeyPem: pem } : { id, publicKeyPem: pem }
}

function KeyFields({ draft, onChange, isRequired }: { draft: KeyDraft; onChange: (draft: KeyDraft) => void; isRequired: boolean }) {
  const checked = draft.pem.trim() === '' ? null : checkPublicKey(draft.pem)
  return (
    <Stack gap="sm">
      <SmallCodeArea
        label="Public key"
        description="PEM format: RSA (2048 bits or more), EC P-256 or Ed25519. Never paste the private key."
        placeholder={'-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----'}
        {...entered(draft.pem, (pem) => onChange({ ...draft, pem }))}
        error={checked !== null && !checked.ok ? checked.problem : null}
        minRows={4}
        maxRows={12}
        required={isRequired}
      />
      {checked?.ok && (
        <Text size="sm" c="teal" role="status">
          Valid {checked.kind} key.
        </Text>
      )}
      {checked === null && (
        <SmallNote>
          To create a key pair: <Code>openssl genpkey -algorithm ed25519 -out private.pem</Code>. To print the public key:{' '}
          <Code>openssl pkey -in private.pem -pubout</Code>
        </SmallNote>
      )}
      <TextInput
        label="Key id"
        description="The keyId that clients use. Leave empty to generate one."
        {...entered(draft.id, (id) => onChange({ ...draft, id: id.trim() }))}
        error={
          draft.id !== '' && !KEY_ID.test(draft.id) ? 'Use at most 100 letters, digits and . _ ~ - and start with a letter or digit.' : null
        }
      />
    </Stack>
  )
}
