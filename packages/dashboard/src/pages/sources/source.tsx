// One source: what it sent, its write keys, how to send with them, where its messages go, and what of it was refused and why.

import { Alert, Anchor, Badge, Button, Code, Group, Paper, SimpleGrid, Skeleton, Stack, Switch, Text, Title } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { type ReactNode, useId, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { ApiProblem, Schemas } from '../../api/client.ts'
import { useApi, useChange } from '../../api/queries.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { ViewLink } from '../../components/link.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, ErrorAlert, Loaded, Loading } from '../../components/query-states.tsx'
import { RejectedCalls } from '../../components/rejected-calls.tsx'
import { Snippets } from '../../components/snippets.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { Time } from '../../components/time.tsx'
import { useSession } from '../../session.tsx'
import { count, exactCount } from '../../text/format.ts'
import { usePathPart, useSearchState } from '../../url-state.ts'
import { holdOf } from '../destinations/destination-status.ts'
import { NameDialog } from './name-dialog.tsx'
import { PeriodChoice, usePeriod } from './period-choice.tsx'
import { SourceBadges } from './source-badges.tsx'
import { useVolumes } from './use-volumes.ts'
import { WriteKeys } from './write-keys.tsx'

type Source = Schemas['Source']

const ALL = { limit: 1_000 }
const STALE = ['GET /api/sources', 'GET /api/sources/{id}'] as const

export default function SourcePage() {
  const id = usePathPart(1)
  const source = useApi('GET /api/sources/{id}', { params: { id }, everyMs: 15_000 })
  if (source.error !== null && (source.data === undefined || source.error.code === 'source_not_found'))
    return (
      <Page title="Source">
        {source.error.code === 'source_not_found' ? (
          <Empty
            title="There is no such source"
            action={
              <Button component={Link} href="/sources">
                All sources
              </Button>
            }
          >
            It was deleted, or a part of the address is missing.
          </Empty>
        ) : (
          <ErrorAlert problem={source.error} onRetry={() => void source.refetch()} />
        )}
      </Page>
    )
  if (source.data === undefined)
    return (
      <Page title="Source">
        <Loading lines={6} label="Loading the source" />
      </Page>
    )
  return <Shown key={id} source={source.data} />
}

function Shown({ source }: { source: Source }) {
  const { isAdmin } = useSession()
  const { id, name, enabled, writeKeys, requireOAuth, createdAt } = source
  const newest = writeKeys.at(-1)
  return (
    <Page
      title={name}
      actions={
        isAdmin ? (
          <Actions source={source} />
        ) : (
          <Text size="sm" c="dimmed">
            read only: your token may only look
          </Text>
        )
      }
    >
      <Stack gap="xs">
        <Group gap="sm">
          <SourceBadges source={source} size="lg" />
          <Copyable text={id} label="the id" />
          <Text size="sm" c="dimmed" component="span">
            created <Time at={createdAt} />
          </Text>
        </Group>
        <Group gap="md">
          <ViewLink to={`/messages?sourceId=${encodeURIComponent(id)}`}>Its messages</ViewLink>
          <ViewLink to={`/live?sourceId=${encodeURIComponent(id)}`}>Watch it live</ViewLink>
        </Group>
      </Stack>
      {!enabled && (
        <Alert color="orange" variant="light" title="It is disabled">
          Every call with its write keys is refused with 403 source_disabled and not stored. What it sent before is still delivered.
        </Alert>
      )}
      <Volumes id={id} />
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
        <Section title="Write keys" about="Whoever has one can send as this source. They are no secret in a browser, and read nothing.">
          <WriteKeys source={source} isAdmin={isAdmin} />
        </Section>
        <Section title="Send to it" about={writeKeys.length > 1 ? 'With the newest key filled in.' : 'With the key filled in.'}>
          {newest !== undefined && <Snippets writeKey={newest} requireOAuth={requireOAuth} />}
        </Section>
        <Section title="Where its messages go">
          <Destinations id={id} isAdmin={isAdmin} />
        </Section>
        <Section title="OAuth 2.0">
          <OAuth source={source} isAdmin={isAdmin} />
        </Section>
      </SimpleGrid>
      <Refused id={id} />
    </Page>
  )
}

function Section({ title, about, children }: { title: string; about?: string; children: ReactNode }) {
  const titleId = useId()
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={titleId} miw={0}>
      <Stack gap="sm">
        <Stack gap={2}>
          <Title order={2} size="h4" id={titleId}>
            {title}
          </Title>
          {about !== undefined && (
            <Text size="sm" c="dimmed">
              {about}
            </Text>
          )}
        </Stack>
        {children}
      </Stack>
    </Paper>
  )
}

function Volumes({ id }: { id: string }) {
  const period = usePeriod()
  const volume = useVolumes([id], period).get(id)
  const data = volume?.data
  const numbers: [name: string, value: number | undefined, about: string][] = [
    ['Accepted', data?.accepted, 'stored, for every destination'],
    ['Duplicates', data?.duplicates, 'had been accepted before, and were dropped'],
    ['Rejected', data?.rejected, 'refused, and not stored'],
    ['Suppressed', data?.suppressed, 'of users whose messages are dropped'],
  ]
  return (
    <Section title="Volumes">
      <Group justify="space-between" gap="sm">
        <Text size="sm" c="dimmed">
          Messages in the last {period.words}
        </Text>
        <PeriodChoice />
      </Group>
      {volume?.error && data === undefined ? (
        <ErrorAlert problem={volume.error} onRetry={() => void volume.refetch()} />
      ) : (
        <SimpleGrid component="dl" cols={{ base: 2, sm: 4 }} m={0}>
          {numbers.map(([name, value, about]) => (
            <div key={name}>
              <Text component="dt" size="sm" c="dimmed">
                {name}
              </Text>
              <Text component="dd" m={0} fz="xl" fw={650} title={value === undefined ? '' : exactCount(value)}>
                {value === undefined ? <Skeleton height={28} width={60} /> : count(value)}
              </Text>
              <Text component="dd" m={0} size="xs" c="dimmed">
                {about}
              </Text>
            </div>
          ))}
        </SimpleGrid>
      )}
      {data !== undefined && data.accepted > 0 && <Sparkline values={data.bars.map(({ accepted }) => accepted)} isWide height={48} />}
    </Section>
  )
}

function Destinations({ id, isAdmin }: { id: string; isAdmin: boolean }) {
  const destinations = useApi('GET /api/destinations', { query: ALL, everyMs: 30_000 })
  return (
    <Loaded query={destinations} lines={3}>
      {({ data }) => {
        const fed = data.filter(({ sourceIds }) => sourceIds.includes(id))
        if (fed.length === 0)
          return (
            <Stack gap="sm" align="flex-start">
              <Text size="sm">
                Nowhere yet: no destination takes its messages. They are stored, and what was accepted before a destination takes them does
                not go to it.
              </Text>
              {data.length === 0 ? (
                isAdmin && (
                  <Button component={Link} href="/destinations/new" variant="default">
                    Add a destination
                  </Button>
                )
              ) : (
                <ViewLink to="/destinations">Choose this source in the settings of a destination</ViewLink>
              )}
            </Stack>
          )
        return (
          <Stack component="ul" gap="xs" p={0} m={0} style={{ listStyle: 'none' }} aria-label="Destinations that it feeds">
            {fed.map(({ id: destinationId, name, enabled, paused, filter }) => (
              <Group key={destinationId} component="li" gap="xs">
                <Anchor
                  component={Link}
                  href={`/destinations/${encodeURIComponent(destinationId)}`}
                  size="sm"
                  style={{ overflowWrap: 'anywhere' }}
                >
                  {name}
                </Anchor>
                {(!enabled || paused) && (
                  <Badge color="gray" variant="light" tt="none" size="sm">
                    {holdOf({ enabled, paused })}
                  </Badge>
                )}
                {isFiltered(filter) && (
                  <Text span size="xs" c="dimmed">
                    takes some of them, by its filter
                  </Text>
                )}
              </Group>
            ))}
          </Stack>
        )
      }}
    </Loaded>
  )
}

function isFiltered({ types, events }: Schemas['Destination']['filter']): boolean {
  return [types?.allow, types?.deny, events?.allow, events?.deny].some((list) => list !== undefined && list.length > 0)
}

function OAuth({ source: { id, name, requireOAuth }, isAdmin }: { source: Source; isAdmin: boolean }) {
  const apps = useApi('GET /api/oauth-apps', { query: ALL })
  const change = useChange('PATCH /api/sources/{id}', ...STALE)
  const [isAsking, setAsking] = useState(false)
  const attached = apps.data?.data.filter(({ sourceIds }) => sourceIds.includes(id)) ?? []
  const set = (value: boolean): Promise<unknown> => change.mutateAsync({ params: { id }, body: { requireOAuth: value } })
  return (
    <Stack gap="sm">
      <Switch
        label="Require an access token"
        description="On: a write key alone is refused. A server sends with an access token, which it gets with a private key that never leaves it, and which ends after a day. Not for browsers: a page cannot keep a key."
        checked={requireOAuth}
        disabled={!isAdmin || change.isPending}
        onChange={(event) => {
          if (event.currentTarget.checked) setAsking(true)
          else
            void set(false).catch(({ message }: ApiProblem) => notifications.show({ color: 'red', title: 'That was not changed', message }))
        }}
      />
      {!isAdmin && (
        <Text size="xs" c="dimmed">
          Your token may only look, so this cannot be changed here.
        </Text>
      )}
      <Loaded query={apps} lines={1}>
        {() => (
          <Text size="sm">
            {attached.length === 0
              ? 'No OAuth application is attached to it. '
              : `${attached.length === 1 ? 'The OAuth application' : 'The OAuth applications'} ${attached.map((app) => app.name).join(', ')} may send to it. `}
            <ViewLink to="/settings/oauth">OAuth applications</ViewLink>
          </Text>
        )}
      </Loaded>
      <ConfirmDialog
        opened={isAsking}
        onClose={() => setAsking(false)}
        title="Require an access token?"
        verb="Require it"
        onConfirm={() => set(true)}
      >
        <Stack gap="xs">
          <Text size="sm">
            From now on, calls to {name} with a write key alone are refused with 401 oauth_required and not stored. Clients do not send
            again what was refused.
          </Text>
          {apps.data !== undefined && attached.length === 0 && (
            <Text size="sm" fw={600}>
              No OAuth application is attached to it: nobody could send to it at all.
            </Text>
          )}
        </Stack>
      </ConfirmDialog>
    </Stack>
  )
}

function Refused({ id }: { id: string }) {
  const rejections = useApi('GET /api/rejections', { everyMs: 10_000 })
  return (
    <Section
      title="Refused calls"
      about="Since the installation began, by code. What was refused is not stored; the start of the last of each is kept, to find who sends it."
    >
      <Loaded query={rejections} lines={3}>
        {({ data }) => {
          const rows = data.filter(({ sourceId }) => sourceId === id).sort((a, b) => b.lastAt.localeCompare(a.lastAt))
          if (rows.length > 0) return <RejectedCalls rows={rows} label="Refused calls by code" />
          return (
            <Text size="sm">
              None. Calls with a key that is not known are counted apart:{' '}
              <ViewLink to="/sources">refused before the source was known</ViewLink>.
            </Text>
          )
        }}
      </Loaded>
    </Section>
  )
}

function Actions({ source: { id, name, enabled, writeKeys } }: { source: Source }) {
  const [params, changeAddress] = useSearchState()
  const [, navigate] = useLocation()
  const change = useChange('PATCH /api/sources/{id}', ...STALE)
  const remove = useChange('DELETE /api/sources/{id}', 'GET /api/sources', 'GET /api/destinations')
  const destinations = useApi('GET /api/destinations', { query: ALL })
  const fed = destinations.data?.data.filter(({ sourceIds }) => sourceIds.includes(id))
  const asked = params.get('do')
  const ask = (what: string | null): void => changeAddress({ do: what }, { replace: true })
  const enable = (): void =>
    change.mutate(
      { params: { id }, body: { enabled: true } },
      { onError: ({ message }: ApiProblem) => notifications.show({ color: 'red', title: 'It was not enabled', message }) },
    )
  return (
    <>
      <Button variant="default" onClick={() => ask('rename')}>
        Rename
      </Button>
      {enabled ? (
        <Button variant="default" onClick={() => ask('disable')}>
          Disable
        </Button>
      ) : (
        <Button onClick={enable} loading={change.isPending}>
          Enable
        </Button>
      )}
      <Button variant="light" color="red" onClick={() => ask('delete')}>
        Delete
      </Button>
      <NameDialog
        opened={asked === 'rename'}
        onClose={() => ask(null)}
        title="Rename"
        about="The name is for people. Write keys and destinations stay as they are."
        verb="Rename"
        initial={name}
        onSave={(to) => change.mutateAsync({ params: { id }, body: { name: to } })}
      />
      <ConfirmDialog
        opened={asked === 'disable'}
        onClose={() => ask(null)}
        title={`Disable ${name}?`}
        verb="Disable"
        onConfirm={() => change.mutateAsync({ params: { id }, body: { enabled: false } })}
      >
        <Text size="sm">
          From now on every call with {writeKeys.length === 1 ? 'its write key' : `one of its ${exactCount(writeKeys.length)} write keys`}{' '}
          is refused with 403 source_disabled and not stored. Clients do not send again what was refused: it is lost. What was accepted
          before is still delivered. You can enable it again at any time.
        </Text>
      </ConfirmDialog>
      <ConfirmDialog
        opened={asked === 'delete'}
        onClose={() => ask(null)}
        title={`Delete ${name}?`}
        verb="Delete the source"
        typed={name}
        onConfirm={async () => {
          await remove.mutateAsync({ params: { id } })
          notifications.show({ message: `${name} was deleted.` })
          // After the dialog has left the address.
          setTimeout(() => navigate('/sources'), 0)
        }}
      >
        <Stack gap="xs">
          <Text size="sm">
            {writeKeys.length === 1 ? 'Its write key is' : `Its ${exactCount(writeKeys.length)} write keys are`} refused from now on, with
            401 <Code>invalid_write_key</Code>: what is sent with {writeKeys.length === 1 ? 'it' : 'them'} is not stored. This cannot be
            undone.
          </Text>
          {fed !== undefined && (
            <Text size="sm">
              {fed.length === 0
                ? 'No destination takes its messages.'
                : `${fed.length === 1 ? 'One destination gets' : `${exactCount(fed.length)} destinations get`} nothing more from it: ${fed
                    .slice(0, 5)
                    .map((each) => each.name)
                    .join(', ')}${fed.length > 5 ? ' and others' : ''}.`}
            </Text>
          )}
          <Text size="sm">What it has sent stays stored as long as messages are kept, and what is still owed is delivered.</Text>
        </Stack>
      </ConfirmDialog>
    </>
  )
}
