// The loads of a warehouse: what waits and when it is loaded, what the latest loads did, and a chart of them beside the list.

import { Box, Button, SimpleGrid, Stack } from '@mantine/core'
import type { Answer } from '../../api/client.ts'
import { useApi, useChange } from '../../api/queries.ts'
import { TimeChart } from '../../components/charts/time-chart.tsx'
import { Loaded, Section } from '../../components/page.tsx'
import { FirstRows, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Countdown, LongText, Note, SmallNote, Time } from '../../components/styled.tsx'
import { holdOf } from '../../destination/destination-status.ts'
import { Card, CardNote, ExpiryNote, type Health, Value } from '../../destination/health.tsx'
import { useMayEdit } from '../../session/session.tsx'
import { bytes, count, duration, exactCount, plural } from '../../text/format.ts'
import type { Warehouse } from './form/warehouse-draft.ts'

type Load = Answer<'GET /api/destinations/{id}/loads'>['data'][number]

const SHOWN_BARS = 60

function useLoads(id: string) {
  return useApi('GET /api/destinations/{id}/loads', { params: { id }, everyMs: 5_000 })
}

export function LoadNumbers({ destination, health }: { destination: Warehouse; health: Health }) {
  const { id, load } = destination
  const mayEdit = useMayEdit(destination)
  const loadNow = useChange('POST /api/destinations/{id}/load', 'GET /api/destinations/{id}/loads', 'GET /api/destinations/{id}/health')
  const tables = useApi('GET /api/destinations/{id}/tables', { params: { id }, everyMs: 10_000 }).data?.data ?? []
  const last = useLoads(id).data?.data[0]
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  const unfit = tables.reduce((sum, table) => sum + unfitOf(table), 0)
  const { pending, oldestPendingAt, inFlight, nextAttemptAt } = health
  const hold = holdOf(destination)
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="sm">
      <Card title="Waiting">
        <Value>{plural(pending, 'message')}</Value>
        {oldestPendingAt !== null && (
          <CardNote>
            lag: oldest accepted <Time at={oldestPendingAt} relative size="xs" />
          </CardNote>
        )}
        <CardNote>
          {hold !== null ? (
            `nothing is loaded while ${hold}`
          ) : inFlight > 0 ? (
            'a load is running'
          ) : oldestPendingAt === null ? (
            `loaded at most ${duration(load.everyMs)} after they arrive`
          ) : (
            <>
              next load <Countdown at={nextLoadAt(oldestPendingAt, load.everyMs, nextAttemptAt)} size="xs" />
            </>
          )}
        </CardNote>
        <ExpiryNote destination={destination} health={health} />
        {mayEdit && pending > 0 && (
          <Button size="compact-sm" mt={6} variant="default" loading={loadNow.isPending} onClick={() => loadNow.mutate({ params: { id } })}>
            Load now
          </Button>
        )}
      </Card>
      <Card title="Last load">
        <Value>{last === undefined ? '–' : <Time at={last.at} relative size="xl" />}</Value>
        <CardNote>
          {last === undefined
            ? 'nothing was loaded yet'
            : `${plural(last.rows, 'row')} in ${plural(last.tables, 'table')}, ${bytes(last.bytes)}, in ${duration(last.durationMs)}`}
        </CardNote>
        {last !== undefined && last.failed.length > 0 && <CardNote isBad>not loaded: {last.failed.join(', ')}</CardNote>}
      </Card>
      <Card title="Rows">
        <Value>{count(rows)}</Value>
        <CardNote>loaded into {plural(tables.length, 'table')}</CardNote>
      </Card>
      <Card title="Did not fit">
        <Value>{plural(unfit, 'value')}</Value>
        <CardNote>{unfit === 0 ? 'every value is in its column' : 'kept in the column _unfit; see Tables'}</CardNote>
      </Card>
    </SimpleGrid>
  )
}

/** When the oldest message is due, or a load that has failed is repeated. */
function nextLoadAt(oldestAt: string, everyMs: number, nextAttemptAt: string | null): string {
  return new Date(Math.max(Date.parse(oldestAt) + everyMs, nextAttemptAt === null ? 0 : Date.parse(nextAttemptAt))).toISOString()
}

export function unfitOf({ columns, unfit }: Answer<'GET /api/destinations/{id}/tables'>['data'][number]): number {
  return [...columns.map((column) => column.unfit.count), ...unfit.map((each) => each.count)].reduce((sum, each) => sum + each, 0)
}

export function LoadHistory({ id }: { id: string }) {
  return (
    <Section title="Loads" about="The latest loads, newest first. A load is a set of messages that is written into all its tables.">
      <Loaded query={useLoads(id)} lines={4}>
        {({ data }) => (data.length === 0 ? <Note>Nothing was loaded yet.</Note> : <History loads={data} />)}
      </Loaded>
    </Section>
  )
}

function History({ loads }: { loads: readonly Load[] }) {
  const shown = loads.slice(0, SHOWN_BARS).toReversed()
  const slots = shown.map(({ at, durationMs }) => ({ at: new Date(Date.parse(at) - durationMs).toISOString(), until: at }))
  const common = { slots, empty: 'Nothing was loaded' }
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
      <Stack gap="sm" miw={0}>
        <TimeChart
          {...common}
          title="Rows"
          unit="per load"
          format={count}
          series={[{ label: 'Rows', color: 'blue.6', values: shown.map(({ rows }) => rows) }]}
        />
        <TimeChart
          {...common}
          title="Duration"
          unit="per load"
          format={duration}
          isWhole={false}
          series={[{ label: 'Duration', color: 'teal.6', values: shown.map(({ durationMs }) => durationMs) }]}
        />
      </Stack>
      <Box miw={0}>
        <FirstRows rows={loads} first={10}>
          {(rows) => (
            <ResponsiveTable
              label="Loads"
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                { label: 'Loaded', cell: ({ at }) => <Time at={at} relative />, isShort: true },
                { label: 'Messages', cell: ({ messages }) => exactCount(messages), isNumber: true },
                { label: 'Rows', cell: (load) => exactCount(load.rows), isNumber: true },
                { label: 'Tables', cell: Tables },
                { label: 'Size', cell: (load) => bytes(load.bytes), isNumber: true },
                { label: 'Duration', cell: ({ durationMs }) => duration(durationMs), isNumber: true },
              ]}
            />
          )}
        </FirstRows>
      </Box>
    </SimpleGrid>
  )
}

function Tables({ tables, failed }: Load) {
  return (
    <>
      {exactCount(tables)}
      {failed.length > 0 && <LongText c="var(--mantine-color-error)">not loaded: {failed.join(', ')}</LongText>}
    </>
  )
}

export function UpkeepSection({ destination }: { destination: Warehouse }) {
  const { id, warehouse } = destination
  const mayEdit = useMayEdit(destination)
  const upkeep = useApi('GET /api/destinations/{id}/upkeep', {
    params: { id },
    everyMs: (answer) => (answer?.state === 'running' || answer?.state === 'waiting' ? 1_000 : 15_000),
  })
  const start = useChange('POST /api/destinations/{id}/upkeep', 'GET /api/destinations/{id}/upkeep')
  const { keepDays } = warehouse
  const work = [
    ...(warehouse.engine === 'parquet' ? ['merges the small files of past days'] : []),
    ...(keepDays === null ? [] : [`removes rows that are older than ${plural(keepDays, 'day')}`]),
  ]
  const about = work.length === 0 ? 'Nothing is done' : `Once a day, half an hour after midnight UTC, the service ${work.join(', and ')}`
  return (
    <Section
      title="Upkeep"
      about={`${about}.${keepDays === null ? ' All days are kept.' : ''}`}
      actions={
        mayEdit && (
          <Button variant="default" size="xs" loading={start.isPending} onClick={() => start.mutate({ params: { id } })}>
            Run now
          </Button>
        )
      }
    >
      <Loaded query={upkeep} lines={2}>
        {({ state, finishedAt, changed, problems, error }) => (
          <Stack gap={4}>
            <Note role="status">
              {state === 'never' ? (
                'It has not run yet.'
              ) : state === 'done' ? (
                <>
                  Last run <Time at={finishedAt} relative />:{' '}
                  {changed === 0 ? 'nothing to do' : `${exactCount(changed)} files or rows changed`}.
                </>
              ) : state === 'running' ? (
                `Running: ${exactCount(changed)} files or rows changed so far.`
              ) : (
                'A run is waiting for its turn.'
              )}
            </Note>
            {error !== null && <LongText>The last step failed and is repeated: {error}</LongText>}
            {problems.map(({ code, message }) => (
              <LongText key={message}>
                {message} <SmallNote span>{code}</SmallNote>
              </LongText>
            ))}
          </Stack>
        )}
      </Loaded>
    </Section>
  )
}
