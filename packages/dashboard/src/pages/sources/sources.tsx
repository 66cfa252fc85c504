// All sources: what each sent over a period, and a way to add one. Below, the calls that were refused before it was known whose they are.

import { Anchor, Button, Group, Skeleton, Stack, Text, TextInput, Title } from '@mantine/core'
import { useEffect, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Schemas } from '../../api/client.ts'
import { useApi, useChange, useList } from '../../api/queries.ts'
import { PlusIcon } from '../../components/icons.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, ErrorAlert, Loaded, Loading } from '../../components/query-states.tsx'
import { RejectedCalls } from '../../components/rejected-calls.tsx'
import { type Column, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { useSession } from '../../session.tsx'
import { count, exactCount } from '../../text/format.ts'
import { useSearchState } from '../../url-state.ts'
import { NameDialog } from './name-dialog.tsx'
import { PeriodChoice, usePeriod } from './period-choice.tsx'
import { SourceBadges } from './source-badges.tsx'
import { useVolumes, type Volume, type VolumeState } from './use-volumes.ts'

type Source = Schemas['Source']

/** Each that is shown asks for its own series. */
const SHOWN_AT_FIRST = 20
/** Fewer than this are seen at a glance. */
const WORTH_A_FILTER = 8

export default function SourcesPage() {
  const { isAdmin } = useSession()
  const list = useList('GET /api/sources', { query: { limit: 1_000 }, everyMs: 15_000 })
  const [params, change] = useSearchState()
  const [shown, setShown] = useState(SHOWN_AT_FIRST)
  const isCreating = params.get('create') === 'yes'
  const { hasNextPage, isFetchingNextPage, fetchNextPage, rows } = list
  // The filter looks through all of them, and they are as few as a configuration holds.
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])

  const text = params.get('q') ?? ''
  const found = rows.filter((source) => matches(source, text))
  const add = isAdmin ? (
    <Button leftSection={<PlusIcon size={16} />} onClick={() => change({ create: 'yes' })}>
      Add a source
    </Button>
  ) : null

  return (
    <Page title="Sources" about="Where messages come from: an application, a site, a server. Each has write keys of its own." actions={add}>
      {list.problem !== null && rows.length === 0 ? (
        <ErrorAlert problem={list.problem} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading lines={6} label="Loading sources" />
      ) : rows.length === 0 ? (
        <Empty title="No source" action={add ?? <Text size="sm">Somebody with an admin token can add one.</Text>}>
          Without a source there is no write key, and every call is refused. Add one for each application that sends.
        </Empty>
      ) : (
        <Stack>
          <Group gap="sm" align="flex-end" justify="space-between">
            {rows.length >= WORTH_A_FILTER || text !== '' ? (
              <TextInput
                label="Name or id"
                placeholder="Any"
                value={text}
                onChange={(event) => change({ q: event.currentTarget.value }, { replace: true })}
                style={{ flex: '1 1 200px' }}
                maw={360}
              />
            ) : (
              <span />
            )}
            <PeriodChoice />
          </Group>
          <Text size="sm" c="dimmed" role="status">
            {found.length === rows.length
              ? `${exactCount(rows.length)} ${rows.length === 1 ? 'source' : 'sources'}`
              : `${exactCount(found.length)} of ${exactCount(rows.length)} sources`}
          </Text>
          {found.length === 0 ? (
            <Empty
              title="None matches"
              action={
                <Button variant="default" onClick={() => change({ q: null })}>
                  Show all
                </Button>
              }
            >
              No source has this in its name or id.
            </Empty>
          ) : (
            <SourceRows sources={found.slice(0, shown)} />
          )}
          {found.length > shown && (
            <Group justify="center">
              <Button variant="default" onClick={() => setShown(shown + SHOWN_AT_FIRST * 2)}>
                Show more of {exactCount(found.length)}
              </Button>
            </Group>
          )}
        </Stack>
      )}
      <Unclaimed />
      <Creating opened={isCreating && isAdmin} onClose={() => change({ create: null }, { replace: true })} />
    </Page>
  )
}

function matches({ name, id }: Source, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  return wanted === '' || [name, id].some((each) => each.toLowerCase().includes(wanted))
}

function SourceRows({ sources }: { sources: readonly Source[] }) {
  const period = usePeriod()
  const volumes = useVolumes(
    sources.map(({ id }) => id),
    period,
  )
  const number = (pick: (volume: Volume) => number) => (source: Source) => <Cell state={volumes.get(source.id)} pick={pick} />
  const columns: Column<Source>[] = [
    {
      label: 'Source',
      cell: ({ id, name }) => (
        <Anchor component={Link} href={`/sources/${encodeURIComponent(id)}`} fw={600} style={{ overflowWrap: 'anywhere' }}>
          {name}
        </Anchor>
      ),
    },
    { label: 'State', cell: (source) => <SourceBadges source={source} /> },
    { label: 'Over time', cell: ({ id }) => <Sparkline values={volumes.get(id)?.data?.bars.map(({ accepted }) => accepted) ?? []} /> },
    { label: 'Accepted', isNumber: true, cell: number(({ accepted }) => accepted) },
    { label: 'Duplicates', isNumber: true, cell: number(({ duplicates }) => duplicates) },
    { label: 'Rejected', isNumber: true, cell: number(({ rejected }) => rejected) },
    { label: 'Write keys', isNumber: true, cell: ({ writeKeys }) => exactCount(writeKeys.length) },
  ]
  return (
    <ResponsiveTable
      rows={sources}
      columns={columns}
      keyOf={({ id }) => id}
      label={`Sources, with what each sent in the last ${period.words}`}
    />
  )
}

function Cell({ state, pick }: { state: VolumeState | undefined; pick: (volume: Volume) => number }) {
  if (state?.data !== undefined) return <span>{count(pick(state.data))}</span>
  if (state?.error)
    return (
      <Text span size="sm" c="dimmed" title={state.error.message}>
        not known
      </Text>
    )
  return <Skeleton height={16} width={40} display="inline-block" />
}

/** Those of no source. */
function Unclaimed() {
  const rejections = useApi('GET /api/rejections', { everyMs: 15_000 })
  const rows = rejections.data?.data.filter(({ sourceId }) => sourceId === null) ?? []
  return (
    <Stack component="section" aria-labelledby="unclaimed" gap="sm">
      <Title order={2} size="h4" id="unclaimed">
        Refused before the source was known
      </Title>
      <Text size="sm" c="dimmed">
        Calls without a write key that is known belong to no source. Counted since the installation began. What a source itself sent and was
        refused is on its page.
      </Text>
      <Loaded query={rejections} lines={2}>
        {() => (rows.length === 0 ? <Text size="sm">None so far.</Text> : <RejectedCalls rows={rows} label="Refused calls of no source" />)}
      </Loaded>
    </Stack>
  )
}

function Creating({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const create = useChange('POST /api/sources', 'GET /api/sources', 'GET /api/stats/totals')
  const [, navigate] = useLocation()
  return (
    <NameDialog
      opened={opened}
      onClose={onClose}
      title="Add a source"
      about="It gets a write key of its own, which you see next. No destination takes its messages until you choose it there."
      verb="Add"
      onSave={async (name) => {
        const { id } = await create.mutateAsync({ body: { name } })
        // After the dialog has left the address.
        setTimeout(() => navigate(`/sources/${id}`), 0)
      }}
    />
  )
}
