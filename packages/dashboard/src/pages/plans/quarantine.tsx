// Messages in quarantine: why, and how to release or delete them. The filters are in the page's address. With many messages, the API works in
// steps, and the page shows how far it is.

import { Checkbox, Group, Stack, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import type { Answer } from '../../api/client.ts'
import { useApi, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ParamSelect, ticked } from '../../components/inputs.tsx'
import { Empty } from '../../components/page.tsx'
import { type Column, LoadedList, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Note, SmallNote, SmallTag, Time, ViewLink } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { exactCount } from '../../text/format.ts'
import { useParam, useSearchState } from '../../url/url-state.ts'
import { EndButtons, Reasons } from './end-buttons.tsx'
import type { QuarantineSelection } from './end-quarantine.ts'
import { ruleTitle } from './plan-text.ts'

type Held = Answer<'GET /api/quarantine'>['data'][number]

export function Quarantine({ planId }: { planId?: string }) {
  const [params] = useSearchState()
  const source = params.get('source') ?? ''
  const rule = params.get('rule') ?? ''
  const list = useList('GET /api/quarantine', { query: { limit: 50, plan: planId, sourceId: source, rule }, everyMs: 10_000, keep: true })
  const totals = useApi('GET /api/stats/totals', { everyMs: 15_000 })
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  useEffect(() => setSelected(new Set()), [source, rule])
  const { rows } = list
  const held = totals.data?.data.filter(({ quarantined }) => quarantined > 0).map(({ sourceId }) => sourceId) ?? []
  const sources = [...new Set([...held, ...(source === '' ? [] : [source])])]
  // All messages of a filter can be released only within a source, as the API does it.
  const onlySource = source !== '' ? source : sources.length === 1 ? sources[0] : undefined
  const isFiltered = source !== '' || rule !== ''
  return (
    <Stack>
      <Note>
        Stored and acknowledged, but not sent to any destination until you release them. Released messages are routed like new ones, each
        exactly once.
      </Note>
      <Counts totals={totals.data?.data} source={source} />
      {(rows.length > 0 || isFiltered) && <Filters sources={sources} rules={rows.map((row) => row.rule)} />}
      <Selected
        rows={rows}
        selected={selected}
        onSelect={setSelected}
        all={onlySource === undefined ? null : { sourceId: onlySource, ...(rule === '' ? {} : { rule }) }}
      />
      <LoadedList
        list={list}
        lines={5}
        label="Loading quarantine"
        empty={
          isFiltered ? (
            <Empty title="No messages match the filters" filters={['source', 'rule']} />
          ) : (
            <Empty title="Nothing is in quarantine">
              Messages come here if they violate a rule in mode quarantine. Choose the mode on the page of a plan.
            </Empty>
          )
        }
      >
        <Rows rows={rows} selected={selected} onSelect={setSelected} />
      </LoadedList>
    </Stack>
  )
}

const COUNTS = [
  ['In quarantine', 'quarantined'],
  ['Released', 'released'],
  ['Deleted', 'deleted'],
] as const

function Counts({ totals, source }: { totals: Answer<'GET /api/stats/totals'>['data'] | undefined; source: string }) {
  const counted = totals?.filter(({ sourceId }) => source === '' || sourceId === source)
  return (
    <Group gap="lg">
      {COUNTS.map(([label, name]) => (
        <Text key={name} size="sm">
          <Note span>{label}</Note>{' '}
          <Text span fw={650}>
            {counted === undefined ? '–' : exactCount(counted.reduce((sum, each) => sum + each[name], 0))}
          </Text>
        </Text>
      ))}
      <SmallNote>{source === '' ? 'of all sources and plans' : 'of this source'}</SmallNote>
    </Group>
  )
}

function Filters({ sources, rules }: { sources: readonly string[]; rules: readonly string[] }) {
  const names = useNames()
  const [rule] = useParam({ param: 'rule' })
  const sourceOptions = sources.map((id) => ({ value: id, label: names.sources.get(id) ?? id }))
  const ruleOptions = [...new Set([...rules, ...(rule === '' ? [] : [rule])])].map((key) => ({ value: key, label: ruleTitle(key) }))
  return (
    <Group gap="sm" align="flex-end">
      <ParamSelect param="source" label="Source" options={sourceOptions} grow={160} maw={260} />
      <ParamSelect param="rule" label="Rule" options={ruleOptions} grow={160} maw={260} />
    </Group>
  )
}

interface SelectionProps {
  rows: readonly Held[]
  selected: ReadonlySet<string>
  onSelect: (selected: ReadonlySet<string>) => void
}

/** Selects all messages that are shown, and ends the quarantine of those that are selected; if none are, of all that match. */
function Selected({ rows, selected, onSelect, all }: SelectionProps & { all: QuarantineSelection | null }) {
  const { mayEdit } = useSession()
  const { sources } = useNames()
  // Messages may have been released by somebody else.
  const ids = rows.map(({ id }) => id).filter((id) => selected.has(id))
  const selection = ids.length > 0 ? { ids } : all
  if (!mayEdit || rows.length === 0) return null
  return (
    <Group gap="xs">
      <Checkbox
        label={`Select all ${exactCount(rows.length)} shown`}
        indeterminate={ids.length > 0 && ids.length < rows.length}
        {...ticked(ids.length === rows.length, (isOn) => onSelect(new Set(isOn ? rows.map(({ id }) => id) : [])))}
        mr="sm"
      />
      {selection !== null && <EndButtons selection={selection} onEnd={() => onSelect(new Set())} names={sources} />}
    </Group>
  )
}

/** The messages whose reasons are those of the message above. */
function sameAsAbove(rows: readonly Held[]): ReadonlySet<string> {
  const same = new Set<string>()
  for (const [at, { id, violations }] of rows.entries()) {
    if (at > 0 && JSON.stringify(rows[at - 1]?.violations) === JSON.stringify(violations)) same.add(id)
  }
  return same
}

function Rows({ rows, selected, onSelect }: SelectionProps) {
  const { mayEdit } = useSession()
  const { sources } = useNames()
  const toggle = (id: string, isOn: boolean): void =>
    onSelect(new Set(isOn ? [...selected, id] : [...selected].filter((each) => each !== id)))
  const repeated = sameAsAbove(rows)
  const columns: Column<Held>[] = [
    {
      label: 'Message',
      cell: ({ id, messageId, rule, type }) => (
        <Group gap="xs">
          {mayEdit && <Checkbox aria-label={`Select ${messageId ?? id}`} {...ticked(selected.has(id), (isOn) => toggle(id, isOn))} />}
          <ViewLink to={`/messages/${encodeURIComponent(id)}`} fw={600} style={{ overflowWrap: 'anywhere' }}>
            {ruleTitle(rule)}
          </ViewLink>
          <SmallTag color="gray">{type ?? 'deleted'}</SmallTag>
          {messageId !== null && (
            <SmallNote span style={{ overflowWrap: 'anywhere' }}>
              {messageId}
            </SmallNote>
          )}
        </Group>
      ),
    },
    {
      label: 'Why',
      cell: ({ id, violations }) => (repeated.has(id) ? <Note>Same as above</Note> : <Reasons violations={violations} />),
    },
    { label: 'Source', cell: ({ sourceId }) => sources.get(sourceId) ?? sourceId },
    { label: 'User', cell: ({ userId, anonymousId }) => userId ?? (anonymousId === null ? 'no user' : `anonymous ${anonymousId}`) },
    { label: 'Received', isShort: true, cell: ({ receivedAt }) => <Time at={receivedAt} relative /> },
  ]
  return <ResponsiveTable rows={rows} columns={columns} keyOf={({ id }) => id} label="Messages in quarantine, newest first" />
}
