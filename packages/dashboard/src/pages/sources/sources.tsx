// The list of sources with their message counts over a period. Below it, the rejected calls without a known write key.

import { Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import { useLocation } from 'wouter'
import type { Schemas } from '../../api/client.ts'
import { useApi, useChange, useWholeList } from '../../api/queries.ts'
import { PeriodChoice, usePeriod } from '../../components/charts/period-choice.tsx'
import { whichPeriod } from '../../components/charts/periods.ts'
import { PlusIcon } from '../../components/icons.tsx'
import { ParamInput } from '../../components/inputs.tsx'
import { Empty, Loaded, Page } from '../../components/page.tsx'
import { RejectedCalls } from '../../components/rejected-calls.tsx'
import { type Column, FirstRows, FoundCount, LoadedList, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { NameLink, Note, SectionTitle } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { count, exactCount } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { NameDialog } from './name-dialog.tsx'
import { SourceBadges } from './source-badges.tsx'
import { useVolumes, type Volume, type VolumeState } from './use-volumes.ts'

type Source = Schemas['Source']

/** Limited because every shown source loads its own statistics. */
const SHOWN_AT_FIRST = 20
/** From this number of sources on, a filter is shown. */
const MIN_FOR_FILTER = 8

export default function SourcesPage() {
  const { isAdmin } = useSession()
  const list = useWholeList('GET /api/sources', { query: { limit: 1_000 }, everyMs: 15_000 })
  const [params, change] = useSearchState()
  const isCreating = params.get('create') === 'yes'
  const { rows } = list

  const text = params.get('q') ?? ''
  const found = rows.filter((source) => matches(source, text))
  const add = isAdmin ? (
    <Button leftSection={<PlusIcon size={16} />} onClick={() => change({ create: 'yes' })}>
      Add a source
    </Button>
  ) : null

  return (
    <Page title="Sources" about="Where messages come from: an app, a website, a server. Each source has its own write keys." actions={add}>
      <LoadedList
        list={list}
        lines={6}
        label="Loading sources"
        empty={
          <Empty title="No sources yet" action={add ?? <Text size="sm">An admin can add one.</Text>}>
            Without a source there is no write key, and every call is rejected. Add a source for each application that sends messages.
          </Empty>
        }
      >
        <Stack>
          <Group gap="sm" align="flex-end" justify="space-between">
            {rows.length >= MIN_FOR_FILTER || text !== '' ? (
              <ParamInput param="q" label="Name, id or description" placeholder="Any" style={{ flex: '1 1 200px' }} maw={360} />
            ) : (
              <span />
            )}
            <PeriodChoice />
          </Group>
          <FoundCount found={found.length} total={rows.length} word="source" />
          {found.length === 0 ? (
            <Empty title="No matching sources" filters={['q']}>
              No source has this text in its name, id or description.
            </Empty>
          ) : (
            <FirstRows rows={found} first={SHOWN_AT_FIRST}>
              {(shown) => <SourceRows sources={shown} />}
            </FirstRows>
          )}
        </Stack>
      </LoadedList>
      <RejectedWithoutSource />
      <CreateDialog opened={isCreating && isAdmin} onClose={() => change({ create: null }, { replace: true })} />
    </Page>
  )
}

function matches({ name, id, description }: Source, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  return wanted === '' || [name, id, description ?? ''].some((each) => each.toLowerCase().includes(wanted))
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
      cell: ({ id, name, description }) => (
        <>
          <NameLink to={`/sources/${encodeURIComponent(id)}`}>{name}</NameLink>
          {description !== null && (
            <Text size="xs" c="dimmed" lineClamp={2}>
              {description}
            </Text>
          )}
        </>
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
      label={`Sources and their messages in the ${whichPeriod(period)}`}
    />
  )
}

function Cell({ state, pick }: { state: VolumeState | undefined; pick: (volume: Volume) => number }) {
  if (state?.data !== undefined) return <span>{count(pick(state.data))}</span>
  if (state?.error)
    return (
      <Note span title={state.error.message}>
        unknown
      </Note>
    )
  return <Skeleton height={16} width={40} display="inline-block" />
}

/** Calls that could not be assigned to a source. */
function RejectedWithoutSource() {
  const rejections = useApi('GET /api/rejections', { everyMs: 15_000 })
  const rows = rejections.data?.data.filter(({ sourceId }) => sourceId === null) ?? []
  return (
    <Stack component="section" aria-labelledby="rejected-without-source" gap="sm">
      <SectionTitle id="rejected-without-source">Rejected calls without a source</SectionTitle>
      <Note>
        Calls with a missing or unknown write key, counted since the installation was created. Rejected calls with a known write key are
        listed on the page of their source.
      </Note>
      <Loaded query={rejections} lines={2}>
        {() => (rows.length === 0 ? <Text size="sm">None.</Text> : <RejectedCalls rows={rows} label="Rejected calls without a source" />)}
      </Loaded>
    </Stack>
  )
}

function CreateDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const create = useChange('POST /api/sources', 'GET /api/sources', 'GET /api/stats/totals')
  const [, navigate] = useLocation()
  return (
    <NameDialog
      opened={opened}
      onClose={onClose}
      title="Add a source"
      description="The source gets its own write key, which is shown next. Its messages are not sent anywhere until you select it in a destination."
      verb="Add"
      onSave={async (name) => {
        const { id } = await create.mutateAsync({ body: { name } })
        // After the dialog has been removed from the address.
        setTimeout(() => navigate(`/sources/${id}`), 0)
      }}
    />
  )
}
