// Queries over a Parquet lake: an editor that knows the tables, the result as a table and a chart, and saved queries.

import { Alert, Box, Button, Group, NativeSelect, Stack, Table, TextInput } from '@mantine/core'
import { useMemo, useState } from 'react'
import { type Answer, call } from '../../api/client.ts'
import { useApi } from '../../api/queries.ts'
import { CodeEditor } from '../../components/code-editor.tsx'
import { ConfirmButton } from '../../components/confirm-dialog.tsx'
import { Empty, ErrorAlert, Loaded, Page, Section } from '../../components/page.tsx'
import { DangerButton, Note, SecondaryButton, SmallButton, SmallNote } from '../../components/styled.tsx'
import { EDITOR_ONLY } from '../../session/needs-role.tsx'
import { useSession } from '../../session/session.tsx'
import { exactCount, plural } from '../../text/format.ts'
import { chartOf, type Result } from './chartable.ts'
import { failedQuery, identifier } from './failed-query.ts'
import { openedQuery, type SavedQuery } from './listed-queries.ts'
import { ResultChart } from './result-chart.tsx'
import { csvOf } from './result-csv.ts'
import { useSavedQueries } from './saved-queries.ts'
import { type Run, useQueryRun } from './use-query-run.ts'

type Destination = Answer<'GET /api/destinations'>['data'][number]
type LakeTable = Answer<'GET /api/sql/tables'>['data'][number]

const SHOWN_ROWS = 500
/** How long the browser can read the file of a download. */
const KEPT_MS = 10_000
const EXAMPLE = "select date_trunc('day', received_at) as day, count(*) as messages\nfrom _messages\ngroup by 1\norder by 1"
const ABOUT = 'Queries over all messages that were loaded into a Parquet lake.'

export default function SqlPage() {
  const { mayEdit } = useSession()
  const destinations = useApi('GET /api/destinations', { query: { limit: 1_000 }, enabled: mayEdit })
  return (
    <Page title="SQL" about={ABOUT}>
      {mayEdit ? (
        <Loaded query={destinations} lines={6}>
          {({ data }) => <Lakes destinations={data} />}
        </Loaded>
      ) : (
        <Empty title="Queries are for editors">{EDITOR_ONLY}</Empty>
      )}
    </Page>
  )
}

function Lakes({ destinations }: { destinations: readonly Destination[] }) {
  const lakes = destinations.filter((each) => each.type === 'warehouse' && each.warehouse.engine === 'parquet')
  const [chosen, choose] = useState('')
  const lake = lakes.find(({ id }) => id === chosen) ?? lakes[0]
  if (lake === undefined)
    return (
      <Empty title="No lake yet" link={{ to: '/destinations/new?type=warehouse', label: 'Add a lake' }}>
        A lake is a warehouse of Parquet files in a folder or in a bucket. Messages can be queried a moment after they were accepted.
      </Empty>
    )
  return (
    <Stack gap="lg">
      {lakes.length > 1 && (
        <NativeSelect
          label="Lake"
          value={lake.id}
          onChange={({ currentTarget }) => choose(currentTarget.value)}
          data={lakes.map(({ id, name }) => ({ value: id, label: name }))}
          maw={320}
        />
      )}
      <Workbench key={lake.id} lake={lake} destinations={destinations} />
    </Stack>
  )
}

function Workbench({ lake, destinations }: { lake: Destination; destinations: readonly Destination[] }) {
  const tables = useApi('GET /api/sql/tables', { query: { destinationId: lake.id } })
  const known = tables.data?.data ?? []
  const [query, setQuery] = useState(EXAMPLE)
  const { run, start, cancel } = useQueryRun(lake.id)
  const problems = useMemo(() => problemsOf(run), [run])
  const completions = useMemo(() => completionsOf(known), [known])
  return (
    <>
      <Stack gap="sm">
        <CodeEditor label="Query" language="sql" value={query} onChange={setQuery} problems={problems} completions={completions} />
        <Group gap="sm">
          {run.state === 'running' ? (
            <DangerButton onClick={cancel}>Cancel</DangerButton>
          ) : (
            <Button onClick={() => start(query)} disabled={query.trim() === ''}>
              Run
            </Button>
          )}
          <FailedMessages lake={lake} destinations={destinations} tables={known} onQuery={setQuery} />
        </Group>
        <Saved lake={lake} query={query} onOpen={setQuery} />
      </Stack>
      <Outcome run={run} />
      <Tables tables={known} />
    </>
  )
}

function FailedMessages({
  lake,
  destinations,
  tables,
  onQuery,
}: {
  lake: Destination
  destinations: readonly Destination[]
  tables: readonly LakeTable[]
  onQuery: (query: string) => void
}) {
  const [isLoading, setLoading] = useState(false)
  const others = destinations.filter(({ id, sourceIds }) => id !== lake.id && sourceIds.some((source) => lake.sourceIds.includes(source)))
  if (others.length === 0) return null
  const explain = async (id: string): Promise<void> => {
    setLoading(true)
    try {
      const idsOf = async (state: 'failed' | 'delivered'): Promise<string[]> =>
        (await call('GET /api/deliveries', { query: { destinationId: id, state, limit: 500 } })).data.flatMap(
          ({ messageId }) => messageId ?? [],
        )
      const [failed, delivered] = await Promise.all([idsOf('failed'), idsOf('delivered')])
      onQuery(failedQuery([...new Set(tables.map(({ schema }) => schema))], failed, delivered))
    } finally {
      setLoading(false)
    }
  }
  return (
    <NativeSelect
      aria-label="Explain what failed"
      value=""
      disabled={isLoading}
      onChange={({ currentTarget }) => void explain(currentTarget.value)}
      data={[{ value: '', label: 'Explain what failed…', disabled: true }, ...others.map(({ id, name }) => ({ value: id, label: name }))]}
    />
  )
}

function Saved({ lake, query, onOpen }: { lake: Destination; query: string; onOpen: (query: string) => void }) {
  const { saved, isShared, save, remove, unshared, share, problem } = useSavedQueries(lake)
  const [name, setName] = useState('')
  const [key, setKey] = useState<string | null>(null)
  const opened = openedQuery(saved, key, name)
  return (
    <>
      <Group gap="sm" align="flex-end">
        {saved.length > 0 && (
          <NativeSelect
            label="Saved queries"
            value={opened?.key ?? ''}
            onChange={({ currentTarget }) => {
              const chosen = saved.find((each) => each.key === currentTarget.value)
              setKey(chosen?.key ?? null)
              setName(chosen?.name ?? '')
              onOpen(chosen?.query ?? '')
            }}
            data={[{ value: '', label: 'Choose…', disabled: true }, ...saved.map(({ key: value, label }) => ({ value, label }))]}
          />
        )}
        <TextInput label="Name of the query" value={name} onChange={({ currentTarget }) => setName(currentTarget.value)} />
        <SecondaryButton disabled={name.trim() === '' || query.trim() === ''} onClick={() => save({ name: name.trim(), query })}>
          Save query
        </SecondaryButton>
        {opened !== undefined && (
          <SecondaryButton
            onClick={() => {
              remove(opened)
              // Otherwise a second click would remove another query with this name.
              setName('')
            }}
          >
            Remove
          </SecondaryButton>
        )}
        {unshared.length > 0 && <ShareQueries lake={lake} queries={unshared} onShare={share} />}
      </Group>
      {!isShared && <SmallNote>Saved queries stay in this browser, because you do not have access to all sources of the lake.</SmallNote>}
      {problem !== null && <ErrorAlert problem={problem} />}
    </>
  )
}

function ShareQueries({ lake, queries, onShare }: { lake: Destination; queries: readonly SavedQuery[]; onShare: () => Promise<void> }) {
  const move = `Move ${plural(queries.length, 'query')} from this browser to the lake`
  return (
    <ConfirmButton
      title={move}
      verb="Move and share"
      color="blue"
      onConfirm={onShare}
      button={(open) => <SecondaryButton onClick={open}>{move}</SecondaryButton>}
    >
      Only this browser has {queries.map(({ name }) => `“${name}”`).join(', ')}. After the move, everybody who may query all of the lake{' '}
      {lake.name} can see, change and remove {queries.length === 1 ? 'it' : 'them'}.
    </ConfirmButton>
  )
}

function Outcome({ run: { state, result, problem, tookMs } }: { run: Run }) {
  if (state === 'running') return <Note role="status">The query is running.</Note>
  if (state === 'cancelled') return <Note role="status">The query was cancelled.</Note>
  if (problem !== null) return <ErrorAlert problem={problem} />
  if (result === null) return null
  const took = tookMs === null ? '' : ` in ${(tookMs / 1_000).toFixed(1)} s`
  return (
    <Section
      title="Result"
      about={`${plural(result.rows.length, 'row')}${took}${result.truncated ? '; there are more' : ''}`}
      actions={<SmallButton onClick={() => downloadCsv(result)}>Download CSV</SmallButton>}
    >
      {result.warnings.map((warning) => (
        <Alert key={warning} color="yellow" variant="light">
          {warning}
        </Alert>
      ))}
      <Chart result={result} />
      <Rows result={result} />
    </Section>
  )
}

function downloadCsv(result: Result): void {
  const address = URL.createObjectURL(new Blob([csvOf(result)], { type: 'text/csv' }))
  const link = document.createElement('a')
  link.href = address
  link.download = 'result.csv'
  link.click()
  // The browser may start to read it a moment later.
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS)
}

function Chart({ result }: { result: Result }) {
  const chart = useMemo(() => chartOf(result), [result])
  if (chart === null) return null
  return <ResultChart chart={chart} />
}

function Rows({ result: { columns, rows } }: { result: Result }) {
  const shown = rows.slice(0, SHOWN_ROWS)
  return (
    <>
      <Box style={{ maxHeight: 560, overflow: 'auto' }} tabIndex={0} role="region" aria-label="Rows">
        <Table verticalSpacing={4} striped stickyHeader>
          <Table.Thead>
            <Table.Tr>
              {columns.map(({ name, type }, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: two columns may have one name
                <Table.Th key={at} title={type} style={{ whiteSpace: 'nowrap' }}>
                  {name}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map((row, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows have no ids and do not change
              <Table.Tr key={at}>
                {row.map((value, column) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: as above
                  <Table.Td key={column} style={{ whiteSpace: 'nowrap', maxWidth: 420, overflow: 'hidden', textOverflow: 'ellipsis' }}>
                    {textOf(value)}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Box>
      {rows.length > SHOWN_ROWS && <SmallNote>The first {exactCount(SHOWN_ROWS)} rows are shown. The CSV file has all of them.</SmallNote>}
    </>
  )
}

function Tables({ tables }: { tables: readonly LakeTable[] }) {
  if (tables.length === 0) return null
  return (
    <Section title="Tables" about="Names without a schema work where they are unique.">
      <ul style={{ margin: 0, paddingLeft: '1.2em' }}>
        {tables.map(({ schema, table, columns }) => (
          <li key={`${schema}.${table}`} style={{ overflowWrap: 'anywhere' }}>
            {identifier(schema)}.{identifier(table)} <SmallNote span>({columns.map(({ name }) => name).join(', ')})</SmallNote>
          </li>
        ))}
      </ul>
    </Section>
  )
}

function textOf(value: unknown): string {
  return value === null ? 'NULL' : typeof value === 'string' ? value : JSON.stringify(value)
}

function problemsOf({ problem }: Run) {
  if (problem === null || problem.line === null) return []
  return [{ line: problem.line, column: problem.column, message: problem.message }]
}

function completionsOf(tables: readonly LakeTable[]) {
  const columns = new Set(tables.flatMap((table) => table.columns.map(({ name }) => name)))
  return [
    ...tables.map(({ schema, table }) => ({ label: `${identifier(schema)}.${identifier(table)}`, type: 'class' })),
    ...[...columns].sort().map((name) => ({ label: identifier(name), type: 'property' })),
  ]
}
