// Facts about the installation, diagnostics, and backups. Diagnostics read the whole store, so they run only on request.

import { Alert, Button, Code, Group, Paper, Progress, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { type Answer, useApi, useChange } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmButton } from '../../components/confirm-dialog.tsx'
import { ErrorAlert, Facts, Loaded, Loading, Section } from '../../components/page.tsx'
import { DangerButton, LongText, Note, SecondaryButton, SmallNote, Tag, Time, useNow, ViewLink } from '../../components/styled.tsx'
import { ADMIN_ONLY } from '../../session/needs-role.tsx'
import { useCommand, useRunnable, useSession } from '../../session/session.tsx'
import { bytes, duration, plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { byUrgency, type CheckState, checkName, summaryOf } from './diagnostics.ts'

type Installation = Answer<'GET /api/installation'>
type Check = Answer<'GET /api/diagnostics'>['checks'][number]

export default function About() {
  const installation = useApi('GET /api/installation', { everyMs: 60_000 })
  return (
    <Loaded query={installation}>
      {(data) => (
        <Stack gap="lg">
          <InstallationFacts installation={data} />
          <Diagnostics />
          <Backups installation={data} />
        </Stack>
      )}
    </Loaded>
  )
}

function InstallationFacts({ installation: { version, startedAt, now, storeKind, store, retentionDays } }: { installation: Installation }) {
  const nowMs = useNow(10_000)
  // The service's clock at the time of the response, advanced by this browser's clock, because the two may differ.
  const [serviceTime, setServiceTime] = useState({ now, at: Date.now() })
  if (serviceTime.now !== now) setServiceTime({ now, at: Date.now() })
  const upMs = startedAt === null ? null : Date.parse(now) + Math.max(0, nowMs - serviceTime.at) - Date.parse(startedAt)
  return (
    <Paper withBorder p="md">
      <Facts
        facts={[
          ['Version', version ?? 'unknown'],
          [
            'Uptime',
            upMs === null || startedAt === null ? (
              'unknown'
            ) : (
              <>
                {duration(upMs)}, since <Time at={startedAt} />
              </>
            ),
          ],
          [
            'Store',
            storeKind === null ? 'unknown' : `${storeKind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}${store === null ? '' : `, ${store}`}`,
          ],
          ['Retention', retentionDays === null ? 'unknown' : `${plural(retentionDays, 'day')}; longer while a delivery is pending`],
          ['Server time', <Time key="now" at={now} />],
          ['License', 'Apache-2.0'],
        ]}
      />
    </Paper>
  )
}

const COLORS: Record<CheckState, string> = { good: 'teal', warning: 'orange', bad: 'red', unknown: 'gray' }
const LABELS: Record<CheckState, string> = { good: 'ok', warning: 'warning', bad: 'failed', unknown: 'unknown' }

function Diagnostics() {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const isRequested = isAdmin && params.get('check') !== null
  const names = useNames()
  const result = useApi('GET /api/diagnostics', { enabled: isRequested })
  const run = (): void => {
    if (isRequested) void result.refetch()
    else change({ check: '1' })
  }
  return (
    <Section
      title="Diagnostics"
      about="Checks the store, ledger, disk, clock, secret key, and whether each destination is reachable. Reads the whole store, so it can take a while. Changes nothing and sends no request to destinations."
      actions={
        <SecondaryButton loading={result.isFetching} disabled={!isAdmin} onClick={run}>
          {result.data === undefined ? 'Run checks' : 'Run again'}
        </SecondaryButton>
      }
      gap="md"
    >
      {!isAdmin && <Note>{ADMIN_ONLY}</Note>}
      {isRequested && result.data === undefined && result.error === null && <Loading label="Running checks" />}
      {result.error !== null && <ErrorAlert problem={result.error} onRetry={() => void result.refetch()} />}
      {result.data !== undefined && (
        <Stack gap="sm" role="status" aria-label="Results">
          <Text size="sm">
            {summaryOf(result.data.checks)} Checked <Time at={result.data.at} />.
          </Text>
          <Stack gap="xs" role="list" aria-label="Checks">
            {byUrgency(result.data.checks).map((check, at) => (
              <CheckRow
                key={`${check.name} ${check.destinationId} ${check.url} ${at}`}
                check={check}
                destination={check.destinationId === null ? null : (names.destinations.get(check.destinationId) ?? check.destinationId)}
              />
            ))}
          </Stack>
          {result.data.secretKeyPath !== null && (
            <SmallNote style={{ overflowWrap: 'anywhere' }}>
              The key that encrypts stored secrets is in {result.data.secretKeyPath}. Backups do not include it: keep a copy elsewhere.
            </SmallNote>
          )}
        </Stack>
      )}
    </Section>
  )
}

function CheckRow({ check, destination }: { check: Check; destination: string | null }) {
  const runnable = useRunnable()
  return (
    <Group role="listitem" align="flex-start" gap="sm" wrap="nowrap">
      <Tag color={COLORS[check.state]} w={88} style={{ flexShrink: 0 }}>
        {LABELS[check.state]}
      </Tag>
      <Stack gap={2} miw={0}>
        <LongText fw={500}>
          {checkName(check.name)}
          {check.destinationId !== null && (
            <>
              {' '}
              <ViewLink to={`/destinations/${encodeURIComponent(check.destinationId)}`}>{destination}</ViewLink>
            </>
          )}
        </LongText>
        {check.url !== null && <SmallNote style={{ overflowWrap: 'anywhere' }}>{check.url}</SmallNote>}
        <LongText>{runnable(check.message)}</LongText>
        {check.advice !== null && <LongText fw={500}>{runnable(check.advice)}</LongText>}
      </Stack>
    </Group>
  )
}

function Backups({ installation }: { installation: Installation }) {
  const command = useCommand()
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const id = params.get('backup')
  const create = useChange('POST /api/backups', 'GET /api/audit')
  return (
    <Section
      title="Backup"
      about={
        installation.backups
          ? 'A consistent copy of the store, made while it is in use. Needs as much free disk space as the store. Does not include the key that encrypts stored secrets.'
          : 'Back up PostgreSQL with its own tools, pg_dump or pg_basebackup. See docs/operations/backup.md.'
      }
      actions={
        installation.backups && (
          <SecondaryButton
            loading={create.isPending}
            disabled={!isAdmin || id !== null}
            onClick={() => create.mutate({}, { onSuccess: (job) => change({ backup: job.id }, { replace: true }) })}
          >
            Create backup
          </SecondaryButton>
        )
      }
      gap="md"
    >
      {installation.backups && !isAdmin && <Note>{ADMIN_ONLY}</Note>}
      {create.error !== null && <ErrorAlert problem={create.error} />}
      {installation.backups && isAdmin && id !== null && (
        <BackupStatus id={id} onGone={() => change({ backup: null }, { replace: true })} />
      )}
      {installation.backups && (
        <SmallNote>
          For scheduled backups, use <Code>{command} backup FILE</Code>, which also verifies the copy.
        </SmallNote>
      )}
    </Section>
  )
}

function BackupStatus({ id, onGone }: { id: string; onGone: () => void }) {
  const backup = useApi('GET /api/backups/{id}', {
    params: { id },
    everyMs: (answer) => (answer === undefined || answer.state === 'copying' ? 2_000 : 30_000),
  })
  const remove = useChange('DELETE /api/backups/{id}')
  if (backup.error?.code === 'backup_not_found')
    return (
      <Alert color="gray" title="Backup no longer available" withCloseButton closeButtonLabel="Close" onClose={onGone}>
        Backups are kept for 15 minutes. Create another one.
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
              Backup of <Time at={createdAt} /> ready: {bytes(totalBytes)}. It is kept for 15 minutes.
            </Text>
          )}
          {state === 'failed' && (
            <Alert color="red" title="Backup failed">
              {error ?? 'See the service log for the reason.'}
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
            <ConfirmButton
              button={(open) => <DangerButton onClick={open}>{state === 'copying' ? 'Cancel' : 'Delete'}</DangerButton>}
              title={state === 'copying' ? 'Cancel this backup?' : 'Delete this backup?'}
              verb={state === 'copying' ? 'Cancel backup' : 'Delete backup'}
              onConfirm={async () => {
                await remove.mutateAsync({ params: { id } })
                onGone()
              }}
            >
              Deletes the copy from the service's disk. Downloaded files and the store are not affected.
            </ConfirmButton>
          </Group>
        </Stack>
      )}
    </Loaded>
  )
}
