// What runs here, whether it is well, and a copy of it. The checks read the whole store, so they are made when somebody asks for them.

import { Alert, Badge, Button, Code, Group, Paper, Progress, Stack, Text, Title } from '@mantine/core'
import { useState } from 'react'
import { type Answer, useApi, useChange } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { useNow } from '../../components/countdown.tsx'
import { Facts } from '../../components/facts.tsx'
import { ViewLink } from '../../components/link.tsx'
import { ErrorAlert, Loaded, Loading } from '../../components/query-states.tsx'
import { Time } from '../../components/time.tsx'
import { useSession } from '../../session.tsx'
import { bytes, duration } from '../../text/format.ts'
import { useSearchState } from '../../url-state.ts'
import { plural } from '../deletions/users.ts'
import { byUrgency, type CheckState, checkName, summaryOf } from './diagnostics.ts'
import { ADMIN_ONLY } from './needs-admin.tsx'

type Installation = Answer<'GET /api/installation'>
type Check = Answer<'GET /api/diagnostics'>['checks'][number]

export default function About() {
  const installation = useApi('GET /api/installation', { everyMs: 60_000 })
  return (
    <Loaded query={installation}>
      {(data) => (
        <Stack gap="lg">
          <Installed installation={data} />
          <Diagnostics />
          <Backups installation={data} />
        </Stack>
      )}
    </Loaded>
  )
}

function Installed({ installation: { version, startedAt, now, storeKind, store, retentionDays } }: { installation: Installation }) {
  const nowMs = useNow(10_000)
  // By the service's clock as it was told, gone on by this browser's: theirs may differ.
  const [askedMs, setAsked] = useState({ now, at: Date.now() })
  if (askedMs.now !== now) setAsked({ now, at: Date.now() })
  const upMs = startedAt === null ? null : Date.parse(now) + Math.max(0, nowMs - askedMs.at) - Date.parse(startedAt)
  return (
    <Paper withBorder p="md">
      <Facts
        facts={[
          ['Version', version ?? 'not known'],
          [
            'Runs for',
            upMs === null || startedAt === null ? (
              'not known'
            ) : (
              <>
                {duration(upMs)}, since <Time at={startedAt} />
              </>
            ),
          ],
          [
            'Store',
            storeKind === null ? 'not known' : `${storeKind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}${store === null ? '' : `, ${store}`}`,
          ],
          [
            'Messages are kept for',
            retentionDays === null ? 'not known' : `${plural(retentionDays, 'day')}, and longer while something of them is pending`,
          ],
          ['Clock of the service', <Time key="now" at={now} />],
          ['License', 'Apache-2.0'],
        ]}
      />
    </Paper>
  )
}

const COLORS: Record<CheckState, string> = { good: 'teal', warning: 'orange', bad: 'red', unknown: 'gray' }
const WORDS: Record<CheckState, string> = { good: 'good', warning: 'look at it', bad: 'bad', unknown: 'not known' }

function Diagnostics() {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const isAsked = isAdmin && params.get('check') !== null
  const names = useNames()
  const found = useApi('GET /api/diagnostics', { enabled: isAsked })
  const ask = (): void => {
    if (isAsked) void found.refetch()
    else change({ check: '1' })
  }
  return (
    <Paper withBorder p="md" component="section" aria-label="Checks">
      <Stack>
        <Group justify="space-between" align="flex-start">
          <Stack gap={2} miw={0} style={{ flex: '1 1 240px' }}>
            <Title order={2} size="h4">
              Is everything all right?
            </Title>
            <Text size="sm" c="dimmed">
              Checks the store, the ledger, the disk, the clock, the key, and whether each destination can be reached. It reads the whole
              store, which takes a while when that is large. Nothing is changed, and no receiver gets a request.
            </Text>
          </Stack>
          <Button variant="default" loading={found.isFetching} disabled={!isAdmin} onClick={ask}>
            {found.data === undefined ? 'Check now' : 'Check again'}
          </Button>
        </Group>
        {!isAdmin && (
          <Text size="sm" c="dimmed">
            {ADMIN_ONLY}
          </Text>
        )}
        {isAsked && found.data === undefined && found.error === null && <Loading label="Checking" />}
        {found.error !== null && <ErrorAlert problem={found.error} onRetry={() => void found.refetch()} />}
        {found.data !== undefined && (
          <Stack gap="sm" role="status" aria-label="Results">
            <Text size="sm">
              {summaryOf(found.data.checks)} Checked <Time at={found.data.at} />.
            </Text>
            <Stack gap="xs" role="list" aria-label="Checks that were made">
              {byUrgency(found.data.checks).map((check, at) => (
                <CheckRow
                  key={`${check.name} ${check.destinationId} ${check.url} ${at}`}
                  check={check}
                  destination={check.destinationId === null ? null : (names.destinations.get(check.destinationId) ?? check.destinationId)}
                />
              ))}
            </Stack>
            {found.data.secretKeyPath !== null && (
              <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
                The key of stored secrets is in {found.data.secretKeyPath}. It is in no backup: keep a copy of it elsewhere.
              </Text>
            )}
          </Stack>
        )}
      </Stack>
    </Paper>
  )
}

function CheckRow({ check, destination }: { check: Check; destination: string | null }) {
  return (
    <Group role="listitem" align="flex-start" gap="sm" wrap="nowrap">
      <Badge color={COLORS[check.state]} variant="light" tt="none" w={88} style={{ flexShrink: 0 }}>
        {WORDS[check.state]}
      </Badge>
      <Stack gap={2} miw={0}>
        <Text size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
          {checkName(check.name)}
          {check.destinationId !== null && (
            <>
              {' '}
              <ViewLink to={`/destinations/${encodeURIComponent(check.destinationId)}`}>{destination}</ViewLink>
            </>
          )}
        </Text>
        {check.url !== null && (
          <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            {check.url}
          </Text>
        )}
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {check.message}
        </Text>
        {check.advice !== null && (
          <Text size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
            {check.advice}
          </Text>
        )}
      </Stack>
    </Group>
  )
}

function Backups({ installation }: { installation: Installation }) {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const id = params.get('backup')
  const begin = useChange('POST /api/backups', 'GET /api/audit')
  return (
    <Paper withBorder p="md" component="section" aria-label="Backup">
      <Stack>
        <Group justify="space-between" align="flex-start">
          <Stack gap={2} miw={0} style={{ flex: '1 1 240px' }}>
            <Title order={2} size="h4">
              Backup
            </Title>
            <Text size="sm" c="dimmed">
              {installation.backups
                ? 'A copy of the store as it is at one moment, made while it is in use. It needs as much room again on its disk. The key that opens stored secrets is not in it.'
                : 'The service does not copy this store itself: back PostgreSQL up with tools of its own, pg_dump or pg_basebackup. docs/operations/backup.md says how.'}
            </Text>
          </Stack>
          {installation.backups && (
            <Button
              variant="default"
              loading={begin.isPending}
              disabled={!isAdmin || id !== null}
              onClick={() => begin.mutate({}, { onSuccess: (job) => change({ backup: job.id }, { replace: true }) })}
            >
              Make a copy
            </Button>
          )}
        </Group>
        {installation.backups && !isAdmin && (
          <Text size="sm" c="dimmed">
            {ADMIN_ONLY}
          </Text>
        )}
        {begin.error !== null && <ErrorAlert problem={begin.error} />}
        {installation.backups && isAdmin && id !== null && <Backup id={id} onGone={() => change({ backup: null }, { replace: true })} />}
        {installation.backups && (
          <Text size="xs" c="dimmed">
            For a backup every night: <Code>npx switchyard backup FILE</Code>, which also checks the copy.
          </Text>
        )}
      </Stack>
    </Paper>
  )
}

function Backup({ id, onGone }: { id: string; onGone: () => void }) {
  const backup = useApi('GET /api/backups/{id}', {
    params: { id },
    everyMs: (answer) => (answer === undefined || answer.state === 'copying' ? 2_000 : 30_000),
  })
  const remove = useChange('DELETE /api/backups/{id}')
  const [isRemoving, setRemoving] = useState(false)
  if (backup.error?.code === 'backup_not_found')
    return (
      <Alert color="gray" title="That copy is gone" withCloseButton closeButtonLabel="Close" onClose={onGone}>
        Copies are kept for a quarter of an hour. Make another.
      </Alert>
    )
  return (
    <Loaded query={backup} lines={2}>
      {({ state, doneBytes, totalBytes, error, createdAt }) => (
        <Stack gap="sm">
          {state === 'copying' && (
            <>
              <Progress value={totalBytes === 0 ? 0 : (doneBytes / totalBytes) * 100} aria-label="Copied so far" animated />
              <Text size="sm" role="status">
                {bytes(doneBytes)} of {bytes(totalBytes)} copied.
              </Text>
            </>
          )}
          {state === 'ready' && (
            <Text size="sm" role="status">
              The copy of <Time at={createdAt} /> is ready: {bytes(totalBytes)}. It is kept for a quarter of an hour.
            </Text>
          )}
          {state === 'failed' && (
            <Alert color="red" title="The copy failed">
              {error ?? 'The log of the service says why.'}
            </Alert>
          )}
          <Group>
            {state === 'ready' && (
              <Button
                component="a"
                href={`/api/backups/${encodeURIComponent(id)}/file`}
                download={`switchyard-${createdAt.slice(0, 16).replaceAll(':', '')}.db`}
              >
                Download
              </Button>
            )}
            <Button variant="light" color="red" onClick={() => setRemoving(true)}>
              {state === 'copying' ? 'Give it up' : 'Remove it'}
            </Button>
          </Group>
          <ConfirmDialog
            opened={isRemoving}
            onClose={() => setRemoving(false)}
            title={state === 'copying' ? 'Give up this copy?' : 'Remove this copy?'}
            verb={state === 'copying' ? 'Give it up' : 'Remove'}
            onConfirm={async () => {
              await remove.mutateAsync({ params: { id } })
              onGone()
            }}
          >
            <Text size="sm">
              The copy is removed from the disk of the service. What was downloaded stays, and the store is not touched.
            </Text>
          </ConfirmDialog>
        </Stack>
      )}
    </Loaded>
  )
}
