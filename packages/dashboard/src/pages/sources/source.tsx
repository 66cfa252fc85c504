// The page of one source: message counts, write keys, code snippets, destinations, OAuth, and rejected calls.

import { Alert, Anchor, Button, Code, Group, SimpleGrid, Skeleton, Stack, Switch, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { lazy, Suspense, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { ApiProblem, Schemas } from '../../api/client.ts'
import { useApi, useChange } from '../../api/queries.ts'
import { PeriodChoice, usePeriod } from '../../components/charts/period-choice.tsx'
import { whichPeriod } from '../../components/charts/periods.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { ErrorAlert, Loaded, Loading, Page, ResourcePage, Section } from '../../components/page.tsx'
import { RejectedCalls } from '../../components/rejected-calls.tsx'
import { FirstRows } from '../../components/responsive-table.tsx'
import { Snippets } from '../../components/snippets.tsx'
import { DangerButton, LinkButton, Note, SecondaryButton, SmallNote, SmallTag, Strong, Time, ViewLink } from '../../components/styled.tsx'
import { holdOf } from '../../destination/destination-status.ts'
import { IncidentsAbout } from '../../incidents/incidents-about.tsx'
import { ADMIN_ONLY } from '../../session/needs-role.tsx'
import { useSession } from '../../session/session.tsx'
import { count, exactCount, plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { NameDialog } from './name-dialog.tsx'
import { Privacy } from './privacy.tsx'
import { SourceBadges, Warnings } from './source-badges.tsx'
import { SourcePlan } from './source-plan.tsx'
import { useVolumes } from './use-volumes.ts'
import { WriteKeys } from './write-keys.tsx'

type Source = Schemas['Source']

const ALL = { limit: 1_000 }
/** Hundreds of links would make the page slow. */
const FIRST_SHOWN = 20
const STALE = ['GET /api/sources', 'GET /api/sources/{id}'] as const

export default function SourcePage() {
  return (
    <ResourcePage name="Source" reasons="The source was deleted, or the URL is incomplete.">
      {(source) => <SourceDetails source={source} />}
    </ResourcePage>
  )
}

function SourceDetails({ source }: { source: Source }) {
  const { isAdmin, mayEdit } = useSession()
  const { id, name, description, enabled, writeKeys, requireOAuth, createdAt } = source
  const newest = writeKeys.at(-1)
  return (
    <Page
      title={name}
      actions={isAdmin ? <Actions source={source} /> : <Note>Renaming, disabling and deleting require the admin role</Note>}
    >
      <IncidentsAbout kind="source" id={id} />
      <Stack gap="xs">
        {description !== null && <Text style={{ overflowWrap: 'anywhere' }}>{description}</Text>}
        <Group gap="sm">
          <SourceBadges source={source} size="lg" />
          <Copyable text={id} label="the id" />
          <Note component="span">
            created <Time at={createdAt} />
          </Note>
        </Group>
        <Group gap="md">
          <ViewLink to={`/events?sourceId=${encodeURIComponent(id)}`}>View events</ViewLink>
          <ViewLink to={`/messages?sourceId=${encodeURIComponent(id)}`}>View messages</ViewLink>
          <ViewLink to={`/live?sourceId=${encodeURIComponent(id)}`}>View live</ViewLink>
        </Group>
      </Stack>
      {!enabled && (
        <Alert color="orange" variant="light" title="This source is disabled">
          Calls with its write keys are rejected with 403 source_disabled and not stored. Messages accepted earlier are still delivered.
        </Alert>
      )}
      <Volumes id={id} />
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
        <Section
          title="Write keys"
          about="Anyone with a write key can send messages as this source. Write keys cannot read data, so they may be used in browsers."
        >
          <WriteKeys source={source} isAdmin={isAdmin} />
        </Section>
        <Section
          title="Send messages"
          about={writeKeys.length > 1 ? 'Snippets use the newest write key.' : 'Snippets use the write key of this source.'}
        >
          {newest !== undefined && <Snippets writeKey={newest} requireOAuth={requireOAuth} isMasked />}
        </Section>
        <Section title="Destinations">
          <Destinations id={id} mayEdit={mayEdit} />
        </Section>
        <Section title="OAuth 2.0">
          <OAuth source={source} isAdmin={isAdmin} />
        </Section>
      </SimpleGrid>
      <Section title="Tracking plan" about="Which events this source should send, and what their properties look like.">
        <SourcePlan id={id} />
      </Section>
      <Section
        title="Privacy"
        about="Values that are dropped, hashed or masked before a message is stored, so that they reach no disk, log, live view or destination. Paths such as traits.email or properties.products.*.name; * stands for all elements or keys."
      >
        <Privacy source={source} mayEdit={mayEdit} />
      </Section>
      <Rejected source={source} />
    </Page>
  )
}

const SourceCharts = lazy(() => import('./source-charts.tsx'))

function Volumes({ id }: { id: string }) {
  const period = usePeriod()
  const volume = useVolumes([id], period).get(id)
  const data = volume?.data
  const numbers: [name: string, value: number | undefined, about: string][] = [
    ['Accepted', data?.accepted, 'stored and routed'],
    ['Duplicates', data?.duplicates, 'already accepted; dropped'],
    ['Rejected', data?.rejected, 'not stored'],
    ['Suppressed', data?.suppressed, 'user suppressed; dropped'],
  ]
  return (
    <Section title="Messages">
      <Group justify="space-between" gap="sm">
        <Note>In the {whichPeriod(period)}</Note>
        <PeriodChoice />
      </Group>
      {volume?.error && data === undefined ? (
        <ErrorAlert problem={volume.error} onRetry={() => void volume.refetch()} />
      ) : (
        <SimpleGrid component="dl" cols={{ base: 2, sm: 4 }} m={0}>
          {numbers.map(([name, value, about]) => (
            <div key={name}>
              <Note component="dt">{name}</Note>
              <Text component="dd" m={0} fz="xl" fw={650} title={value === undefined ? '' : exactCount(value)}>
                {value === undefined ? <Skeleton height={28} width={60} /> : count(value)}
              </Text>
              <SmallNote component="dd" m={0}>
                {about}
              </SmallNote>
            </div>
          ))}
        </SimpleGrid>
      )}
      {data !== undefined && <Warnings counts={data.warnings} />}
      <Suspense fallback={<Loading lines={6} label="Loading charts" />}>
        <SourceCharts id={id} />
      </Suspense>
    </Section>
  )
}

function Destinations({ id, mayEdit }: { id: string; mayEdit: boolean }) {
  const destinations = useApi('GET /api/destinations/summary', { everyMs: 30_000 })
  return (
    <Loaded query={destinations} lines={3}>
      {({ data }) => {
        const connected = data.filter(({ sourceIds }) => sourceIds.includes(id))
        if (connected.length === 0)
          return (
            <Stack gap="sm" align="flex-start">
              <Text size="sm">
                No destination receives messages from this source. Messages are stored, but those accepted before a destination is connected
                are not sent to it.
              </Text>
              {data.length === 0 ? (
                mayEdit && <LinkButton to="/catalog">Add a destination</LinkButton>
              ) : (
                <ViewLink to="/destinations">Select this source in a destination</ViewLink>
              )}
            </Stack>
          )
        return (
          <FirstRows rows={connected} first={FIRST_SHOWN}>
            {(shown) => (
              <Stack component="ul" gap="xs" p={0} m={0} style={{ listStyle: 'none' }} aria-label="Connected destinations">
                {shown.map(({ id: destinationId, name, enabled, paused, filtered }) => (
                  <Group key={destinationId} component="li" gap="xs">
                    <Anchor
                      component={Link}
                      href={`/destinations/${encodeURIComponent(destinationId)}`}
                      size="sm"
                      style={{ overflowWrap: 'anywhere' }}
                    >
                      {name}
                    </Anchor>
                    {(!enabled || paused) && <SmallTag color="gray">{holdOf({ enabled, paused })}</SmallTag>}
                    {filtered && <SmallNote span>filtered</SmallNote>}
                  </Group>
                ))}
              </Stack>
            )}
          </FirstRows>
        )
      }}
    </Loaded>
  )
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
        description="Rejects calls that have only a write key. Servers get an access token with their private key; it is valid for one day. Not suitable for browsers, which cannot keep a private key secret."
        checked={requireOAuth}
        disabled={!isAdmin || change.isPending}
        onChange={(event) => {
          if (event.currentTarget.checked) setAsking(true)
          else
            void set(false).catch(({ message }: ApiProblem) =>
              notifications.show({ color: 'red', title: 'Could not change the setting', message }),
            )
        }}
      />
      {!isAdmin && <SmallNote>{ADMIN_ONLY}</SmallNote>}
      <Loaded query={apps} lines={1}>
        {() => (
          <Text size="sm">
            {attached.length === 0
              ? 'No OAuth application can send to this source. '
              : `${attached.length === 1 ? 'The OAuth application' : 'The OAuth applications'} ${attached.map((app) => app.name).join(', ')} can send to this source. `}
            <ViewLink to="/settings/oauth">OAuth applications</ViewLink>
          </Text>
        )}
      </Loaded>
      <ConfirmDialog
        opened={isAsking}
        onClose={() => setAsking(false)}
        title="Require an access token?"
        verb="Require access token"
        onConfirm={() => set(true)}
      >
        <Stack gap="xs">
          <Text size="sm">
            From now on, calls to {name} with only a write key are rejected with 401 oauth_required and not stored. Clients do not retry
            rejected messages.
          </Text>
          {apps.data !== undefined && attached.length === 0 && (
            <Strong>No OAuth application can send to this source, so all calls will be rejected.</Strong>
          )}
        </Stack>
      </ConfirmDialog>
    </Stack>
  )
}

function Rejected({ source: { id, privacy } }: { source: Source }) {
  const rejections = useApi('GET /api/rejections', { everyMs: 10_000 })
  return (
    <Section
      title="Rejected calls"
      about={`By error code, since the installation was created. Rejected messages are not stored; ${
        privacy.length === 0
          ? 'only the start of the latest one of each code is kept, to help find the sender.'
          : 'because of the privacy rules, at most the type and messageId of the latest one of each code are kept.'
      }`}
    >
      <Loaded query={rejections} lines={3}>
        {({ data }) => {
          const rows = data.filter(({ sourceId }) => sourceId === id).sort((a, b) => b.lastAt.localeCompare(a.lastAt))
          if (rows.length > 0) return <RejectedCalls rows={rows} label="Rejected calls by code" />
          return (
            <Text size="sm">
              None. Calls with an unknown write key are listed under <ViewLink to="/sources">rejected calls without a source</ViewLink>.
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
  const destinations = useApi('GET /api/destinations/summary', {})
  const connected = destinations.data?.data.filter(({ sourceIds }) => sourceIds.includes(id))
  const asked = params.get('do')
  const ask = (what: string | null): void => changeAddress({ do: what }, { replace: true })
  const enable = (): void =>
    change.mutate(
      { params: { id }, body: { enabled: true } },
      { onError: ({ message }: ApiProblem) => notifications.show({ color: 'red', title: 'Could not enable the source', message }) },
    )
  return (
    <>
      <SecondaryButton onClick={() => ask('rename')}>Rename</SecondaryButton>
      {enabled ? (
        <SecondaryButton onClick={() => ask('disable')}>Disable</SecondaryButton>
      ) : (
        <Button onClick={enable} loading={change.isPending}>
          Enable
        </Button>
      )}
      <DangerButton onClick={() => ask('delete')}>Delete</DangerButton>
      <NameDialog
        opened={asked === 'rename'}
        onClose={() => ask(null)}
        title="Rename source"
        description="Write keys and destinations do not change."
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
        From now on, calls with {writeKeys.length === 1 ? 'its write key' : `any of its ${exactCount(writeKeys.length)} write keys`} are
        rejected with 403 source_disabled and not stored. Clients do not retry rejected messages, so they are lost. Messages accepted
        earlier are still delivered. You can enable the source again at any time.{' '}
      </ConfirmDialog>
      <ConfirmDialog
        opened={asked === 'delete'}
        onClose={() => ask(null)}
        title={`Delete ${name}?`}
        verb="Delete source"
        typed={name}
        onConfirm={async () => {
          await remove.mutateAsync({ params: { id } })
          notifications.show({ message: `${name} was deleted.` })
          // After the dialog has been removed from the address.
          setTimeout(() => navigate('/sources'), 0)
        }}
      >
        <Stack gap="xs">
          <Text size="sm">
            From now on, calls with {writeKeys.length === 1 ? 'its write key' : `any of its ${exactCount(writeKeys.length)} write keys`} are
            rejected with 401 <Code>invalid_write_key</Code> and not stored. This cannot be undone.
          </Text>
          {connected !== undefined && (
            <Text size="sm">
              {connected.length === 0
                ? 'No destination receives its messages.'
                : `${plural(connected.length, 'destination')} will no longer receive messages from it: ${connected
                    .slice(0, 5)
                    .map((each) => each.name)
                    .join(', ')}${connected.length > 5 ? ' and others' : ''}.`}
            </Text>
          )}
          <Text size="sm">Stored messages are kept until the retention period ends, and pending deliveries are still sent.</Text>
        </Stack>
      </ConfirmDialog>
    </>
  )
}
