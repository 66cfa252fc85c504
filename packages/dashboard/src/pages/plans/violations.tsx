// What violated tracking plans: which rule and property, what was expected and found, how often, and sample messages.

import { Alert, Group, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import type { Schemas } from '../../api/client.ts'
import { useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { nameOptions, ParamSelect } from '../../components/inputs.tsx'
import { Empty } from '../../components/page.tsx'
import { type Column, LoadedList, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { Note, SmallTag, Time, ViewLink } from '../../components/styled.tsx'
import { count, exactCount } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { ruleTitle, violationSentence } from './plan-text.ts'

type Counted = Schemas['CountedViolation']

const SAMPLES_AT_FIRST = 3

export function Violations({ planId }: { planId?: string }) {
  const [params] = useSearchState()
  const { sources } = useNames()
  const source = params.get('source') ?? ''
  const list = useList('GET /api/violations', { query: { limit: 100, plan: planId, sourceId: source }, everyMs: 10_000, keep: true })
  const { rows } = list
  const columns: Column<Counted>[] = [
    {
      label: 'Rule',
      cell: ({ violation, planId: plan }) => (
        <ViewLink to={`/plans/${encodeURIComponent(plan)}`} fw={600} style={{ overflowWrap: 'anywhere' }}>
          {violation === null ? 'Others' : ruleTitle(violation.rule)}
        </ViewLink>
      ),
    },
    {
      label: 'Violation',
      cell: ({ violation }) => (violation === null ? 'Violations beyond the first 1,000 of the source.' : violationSentence(violation)),
    },
    { label: 'Source', cell: ({ sourceId }) => sources.get(sourceId) ?? sourceId },
    {
      label: 'Last 30 days',
      isShort: true,
      cell: ({ days, total }) => (
        <Group gap="sm" wrap="nowrap">
          <Sparkline values={days} width={90} height={22} color="orange" />
          <span title={exactCount(total)}>{count(days.reduce((sum, each) => sum + each, 0))}</span>
        </Group>
      ),
    },
    { label: 'Last seen', isShort: true, cell: ({ lastSeen }) => <Time at={lastSeen} relative /> },
    { label: 'Messages', cell: ({ messageIds }) => <Samples ids={messageIds} /> },
  ]
  return (
    <Stack>
      <Note>
        How messages differ from the plan of their source, and how often. Violations are kept for 90 days. They contain no values of
        messages.
      </Note>
      {(rows.length > 0 || source !== '') && <ParamSelect param="source" label="Source" options={nameOptions(sources)} maw={260} />}
      <Faults faults={list.data?.pages[0]} />
      <LoadedList
        list={list}
        lines={5}
        label="Loading violations"
        empty={
          <Empty title="No violations">
            All messages since the plan was applied matched it, or no message has arrived yet. New messages are checked when they arrive.
          </Empty>
        }
      >
        <ResponsiveTable rows={rows} columns={columns} keyOf={keyOf} label="Violations, newest first" />
      </LoadedList>
    </Stack>
  )
}

export function keyOf({ planId, sourceId, violation }: Counted): string {
  return JSON.stringify([planId, sourceId, violation?.rule, violation?.code, violation?.path])
}

interface Fault {
  planId: string
  rule: string
  message: string
}

function Faults({ faults }: { faults: { faults?: Fault[] } | undefined }) {
  const all = faults?.faults ?? []
  if (all.length === 0) return null
  return (
    <Alert color="red" variant="light" title="Some rules cannot be applied; their messages count as valid">
      {all.map(({ planId, rule, message }) => (
        <Text key={`${planId} ${rule}`} size="sm">
          {ruleTitle(rule)}: {message}
        </Text>
      ))}
    </Alert>
  )
}

function Samples({ ids }: { ids: readonly string[] }) {
  const [isAll, setAll] = useState(false)
  const shown = isAll ? ids : ids.slice(0, SAMPLES_AT_FIRST)
  return (
    <Stack gap={2}>
      {shown.map((id) => (
        <ViewLink key={id} to={`/messages/${encodeURIComponent(id)}`} truncate display="block" maw={160}>
          {id}
        </ViewLink>
      ))}
      {ids.length > shown.length && (
        <SmallTag component="button" color="gray" onClick={() => setAll(true)} style={{ cursor: 'pointer' }}>
          {ids.length - shown.length} more
        </SmallTag>
      )}
    </Stack>
  )
}
