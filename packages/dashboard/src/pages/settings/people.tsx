// The people who have logged in with single sign-on. The identity provider decides who has which role, so nothing about a person can be changed here; their
// sessions can be ended.

import { Code, Stack } from '@mantine/core'
import { type Schemas, useApi, useChange, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmButton } from '../../components/confirm-dialog.tsx'
import { Empty } from '../../components/page.tsx'
import { LoadedTable } from '../../components/responsive-table.tsx'
import { DangerButton, LongNote, LongText, Note, Tag, Time, ViewLink } from '../../components/styled.tsx'
import { ADMIN_ONLY } from '../../session/needs-role.tsx'
import { useSession } from '../../session/session.tsx'
import { plural } from '../../text/format.ts'
import { scopeText } from './scope-text.ts'

type Person = Schemas['Person']

export default function People() {
  const { isAdmin } = useSession()
  if (!isAdmin) return <Note>{ADMIN_ONLY} Your own role and sources are in the menu at the top right.</Note>
  return <PeopleList />
}

function PeopleList() {
  const { actor } = useSession()
  const names = useNames()
  const methods = useApi('GET /api/login/methods', {})
  const list = useList('GET /api/people', { everyMs: 10_000 })
  const isOff = methods.data?.oidc === null
  return (
    <Stack>
      <Note maw={720}>
        Everybody who has logged in with single sign-on. The role and the sources of a person come from the identity provider and the rules
        in <Code>SWITCHYARD_OIDC_ROLES</Code>, and are asked for again while somebody is logged in.
      </Note>
      <LoadedTable<Person>
        list={list}
        empty={
          isOff ? (
            <Empty title="Single sign-on is not set up">
              People can log in with control tokens only. The documentation has a page with settings for Keycloak, Okta, Google and Entra
              ID: <a href="/docs/guide/single-sign-on">Single sign-on</a>.
            </Empty>
          ) : (
            <Empty title="Nobody has logged in yet">Each person is listed here from the first login on.</Empty>
          )
        }
        label="People"
        columns={[
          {
            label: 'Person',
            cell: ({ id, name, email, subject }) => (
              <Stack gap={0}>
                <LongText span fw={500}>
                  {name ?? email ?? subject}{' '}
                  {id === actor.id && (
                    <Tag size="xs" miw="max-content">
                      you
                    </Tag>
                  )}
                </LongText>
                {email !== null && email !== name && <LongNote size="xs">{email}</LongNote>}
              </Stack>
            ),
          },
          {
            label: 'Role',
            cell: ({ role, hasAccess }) => (hasAccess ? role : <Tag color="gray">no access</Tag>),
            isShort: true,
          },
          {
            label: 'Sources',
            cell: ({ sources, hasAccess }) => <LongText span>{hasAccess ? scopeText(sources, names.sources) : '–'}</LongText>,
          },
          { label: 'Last seen', cell: ({ lastSeenAt }) => <Time at={lastSeenAt} relative /> },
          { label: 'Sessions', cell: ({ sessions }) => sessions, isNumber: true },
          {
            label: 'Audit log',
            cell: ({ id, name, email, subject }) => (
              <ViewLink to={`/settings/audit?actor=${encodeURIComponent(id)}`} aria-label={`View actions of ${name ?? email ?? subject}`}>
                View actions
              </ViewLink>
            ),
            isShort: true,
          },
          { label: 'Actions', isActions: true, cell: (person) => person.sessions > 0 && <EndSessions person={person} /> },
        ]}
      />
    </Stack>
  )
}

function EndSessions({ person: { id, name, email, subject, sessions } }: { person: Person }) {
  const { actor } = useSession()
  const end = useChange('DELETE /api/people/{id}/sessions', 'GET /api/people', 'GET /api/audit')
  const who = name ?? email ?? subject
  return (
    <ConfirmButton
      button={(open) => (
        <DangerButton size="compact-sm" onClick={open} aria-label={`End sessions of ${who}`}>
          End sessions
        </DangerButton>
      )}
      title="End the sessions of this person?"
      verb="End sessions"
      onConfirm={() => end.mutateAsync({ params: { id } })}
    >
      <LongText>
        {plural(sessions, 'session')} of <b>{who}</b> {sessions === 1 ? 'ends' : 'end'} on all nodes within a second.{' '}
        {id === actor.id ? 'That includes this one: you will be logged out. ' : ''}
        Tokens of the person keep working; revoke them under Tokens. To keep the person out, remove the access at the identity provider:
        otherwise they can log in again.
      </LongText>
    </ConfirmButton>
  )
}
