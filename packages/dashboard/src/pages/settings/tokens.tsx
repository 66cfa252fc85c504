// Tokens of the control API: create, list with last use, and revoke. A new token is shown only once. People who are not admins see and make only their own,
// with at most their own role and sources; the service checks both.

import { Alert, Button, Code, Group, Modal, MultiSelect, Radio, Select, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { type Schemas, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmButton, DialogEnd } from '../../components/confirm-dialog.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { entered, Form } from '../../components/inputs.tsx'
import { Empty } from '../../components/page.tsx'
import { LoadedTable } from '../../components/responsive-table.tsx'
import { DangerButton, LongText, Note, Tag, Time, ViewLink } from '../../components/styled.tsx'
import { ADMIN_ONLY, NeedsAdmin } from '../../session/needs-role.tsx'
import { useSession } from '../../session/session.tsx'
import { useSearchState } from '../../url/url-state.ts'
import { scopeText } from './scope-text.ts'

type Token = Schemas['Token']

const DAY_MS = 86_400_000
/** The least first. */
const ROLES: readonly Token['role'][] = ['viewer', 'editor', 'admin']
const EXPIRIES = ['7', '30', '90', '365'].map((days) => ({ value: days, label: `In ${days} days` }))

export default function Tokens() {
  const { isAdmin, actor } = useSession()
  const names = useNames()
  const isPerson = actor.type === 'person'
  const mayCreate = isAdmin || isPerson
  const [params, change] = useSearchState()
  const list = useList('GET /api/tokens', { everyMs: 30_000 })
  return (
    <Stack>
      <Group justify="space-between">
        <Note maw={640}>
          {isPerson
            ? 'Your tokens for programs and for the command line. A token does at most what you may do, and works only while you have access.'
            : 'Create a separate token for each program. The audit log shows who used which, and each can be revoked on its own.'}
          {isPerson && (
            <>
              {' '}
              On your own computer, <Code>switchyard login --host {location.origin}</Code> creates one.
            </>
          )}
        </Note>
        <Button size="sm" disabled={!mayCreate} title={mayCreate ? undefined : ADMIN_ONLY} onClick={() => change({ new: '1' })}>
          Create token
        </Button>
      </Group>
      {!mayCreate && <NeedsAdmin />}
      <LoadedTable<Token>
        list={list}
        empty={<Empty title="No tokens">{isPerson ? 'You have not created any.' : undefined}</Empty>}
        label="Control tokens"
        columns={[
          {
            label: 'Name',
            cell: ({ id, name }) => (
              <Group gap={6}>
                <LongText span fw={500}>
                  {name}
                </LongText>
                {id === actor.id && (
                  <Tag size="xs" miw="max-content">
                    yours
                  </Tag>
                )}
              </Group>
            ),
          },
          { label: 'Owner', cell: ({ owner }) => (owner === null ? '–' : <LongText span>{owner.email ?? owner.subject}</LongText>) },
          { label: 'Role', cell: ({ role }) => role, isShort: true },
          { label: 'Sources', cell: ({ sources }) => <LongText span>{scopeText(sources, names.sources)}</LongText> },
          { label: 'Expires', cell: ({ expiresAt }) => (expiresAt === null ? 'never' : <Time at={expiresAt} relative />) },
          {
            label: 'Created',
            cell: ({ createdAt }) => (createdAt === null ? 'first start, or SWITCHYARD_ADMIN_TOKEN' : <Time at={createdAt} />),
          },
          { label: 'Last used', cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <Time at={lastUsedAt} relative />) },
          {
            label: 'Audit log',
            cell: ({ id, name }) => (
              <ViewLink to={`/settings/audit?actor=${encodeURIComponent(id)}`} aria-label={`View actions of ${name}`}>
                View actions
              </ViewLink>
            ),
            isShort: true,
          },
          { label: 'Actions', isActions: true, cell: (token) => token.createdAt !== null && <RevokeButton token={token} /> },
        ]}
      />
      <NewToken opened={mayCreate && params.get('new') !== null} onClose={() => change({ new: null }, { replace: true })} />
    </Stack>
  )
}

function RevokeButton({ token: { id, name, lastUsedAt } }: { token: Token }) {
  const { isAdmin, actor } = useSession()
  // Only admins see the tokens of others.
  const isPossible = isAdmin || actor.type === 'person' || id === actor.id
  const revoke = useChange('DELETE /api/tokens/{id}', 'GET /api/tokens', 'GET /api/audit')
  return (
    <ConfirmButton
      button={(open) => (
        <DangerButton size="compact-sm" disabled={!isPossible} onClick={open} aria-label={`Revoke ${name}`}>
          Revoke
        </DangerButton>
      )}
      title="Revoke this token?"
      verb="Revoke"
      onConfirm={() => revoke.mutateAsync({ params: { id } })}
    >
      <Stack gap="xs">
        <LongText>
          Requests with <b>{name}</b> are rejected from now on. Dashboard sessions that were started with it end at once, and live feeds are
          closed. This cannot be undone, but you can create a new token.
        </LongText>
        {lastUsedAt !== null && (
          <Text size="sm">
            Last used <Time at={lastUsedAt} relative />.
          </Text>
        )}
        {id === actor.id && <Alert color="orange">You are logged in with this token, so you will be logged out.</Alert>}
      </Stack>
    </ConfirmButton>
  )
}

/** The sources that the token is limited to. An admin has all; the list of others has only their own. */
function SourceChoice({ role, value, onChange }: { role: Token['role']; value: string[]; onChange: (ids: string[]) => void }) {
  const { sources } = useNames()
  const { isLimited } = useSession()
  const isAdmin = role === 'admin'
  const all = isLimited ? 'All my sources' : 'All sources'
  return (
    <MultiSelect
      label="Sources"
      description="Limits the token to these sources and what belongs to them."
      placeholder={isAdmin || value.length === 0 ? all : undefined}
      data={[...sources].filter(([id]) => id !== 'system').map(([value, label]) => ({ value, label }))}
      value={isAdmin ? [] : value}
      onChange={onChange}
      disabled={isAdmin}
      searchable
    />
  )
}

/** Nobody can give more than they have. */
function RoleChoice({ value, onChange }: { value: Token['role']; onChange: (role: Token['role']) => void }) {
  const session = useSession()
  const mayGive = (given: Token['role']): boolean => ROLES.indexOf(given) <= ROLES.indexOf(session.role)
  return (
    <Radio.Group label="Role" value={value} onChange={(next) => onChange(ROLES.find((known) => known === next) ?? 'viewer')}>
      <Stack gap="xs" mt={6}>
        <Radio value="viewer" label="Viewer" description="Read-only. Header values and URL query strings are hidden." />
        <Radio
          value="editor"
          disabled={!mayGive('editor')}
          label="Editor"
          description="Can also change destinations, plans, privacy rules, replays, quarantine, mutes and suppressions, and see write keys."
        />
        <Radio
          value="admin"
          label="Admin"
          disabled={!mayGive('admin')}
          description={mayGive('admin') ? 'Can change everything, including tokens.' : `Your own role is ${session.role}.`}
        />
      </Stack>
    </Radio.Group>
  )
}

function NewToken({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const session = useSession()
  const [name, setName] = useState('')
  const [role, setRole] = useState<Token['role']>('viewer')
  const [sourceIds, setSourceIds] = useState<string[]>([])
  const [expiresIn, setExpiresIn] = useState<string | null>(null)
  const [created, setCreated] = useState<{ name: string; token: string } | null>(null)
  const create = useChange('POST /api/tokens', 'GET /api/tokens', 'GET /api/audit')
  const close = (): void => {
    setName('')
    setRole('viewer')
    setSourceIds([])
    setExpiresIn(null)
    setCreated(null)
    create.reset()
    onClose()
  }
  const submit = (): void => {
    const { sources: own } = session
    const sources = role === 'admin' ? 'all' : sourceIds.length === 0 ? own : sourceIds
    const expiresAt = expiresIn === null ? null : new Date(Date.now() + Number(expiresIn) * DAY_MS).toISOString()
    create.mutate({ body: { name: name.trim(), role, sources, expiresAt } }, { onSuccess: setCreated })
  }
  // A click outside the dialog would lose the token.
  const isShown = created !== null
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={isShown ? 'Copy the token now' : 'Create token'}
      closeOnClickOutside={!isShown}
      closeOnEscape={!isShown}
      withCloseButton={!isShown}
    >
      {isShown ? (
        <Stack>
          <Text size="sm">
            This is the token of <b>{created.name}</b>. It is shown only once. If you lose it, create another.
          </Text>
          <Copyable text={created.token} label="the token" />
          <Group justify="flex-end">
            <Button onClick={close}>Done</Button>
          </Group>
        </Stack>
      ) : (
        <Form onSubmit={submit}>
          <Stack>
            <TextInput
              label="Name"
              description="The person or program that uses it. Shown in the audit log."
              {...entered(name, setName)}
              maxLength={100}
              required
              data-autofocus
              error={create.error?.message ?? null}
            />
            <RoleChoice value={role} onChange={setRole} />
            <SourceChoice role={role} value={sourceIds} onChange={setSourceIds} />
            <Select label="Expires" data={EXPIRIES} value={expiresIn} onChange={setExpiresIn} placeholder="Never" clearable />
            <DialogEnd verb="Create" problem={null} loading={create.isPending} disabled={name.trim() === ''} onCancel={close} />
          </Stack>
        </Form>
      )}
    </Modal>
  )
}
