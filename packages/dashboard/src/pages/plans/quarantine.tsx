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
import { Note, SecondaryButton, SmallNote, SmallTag, Time, ViewLink } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { exactCount } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { EndButtons, Reasons } from './end-buttons.tsx'
import { ruleTitle } from './plan-text.ts'

type Held = Answer<'GET /api/quarantine'>['data'][number]

export function Quarantine({ planId }: { planId?: string }) {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const names = useNames()
  const source = params.get('source') ?? ''
  const rule = params.get('rule') ?? ''
  const list = useList('GET /api/quarantine', { query: { limit: 50, plan: planId, sourceId: source, rule }, everyMs: 10_000, keep: true })
  const totals = useApi('GET /api/stats/totals', { everyMs: 15_000 })
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  useEffect(() => setSelected(new Set()), [source, rule])
  const { rows } = list
  // Messages may have been released by somebody else.
  const chosen = rows.filter(({ id }) => selected.has(id)).map(({ id }) => id)
  const toggle = (ids: readonly string[], isOn: boolean): void =>
    setSelected((before) => new Set(isOn ? [...before, ...ids] : [...before].filter((id) => !ids.includes(id))))
  const counts = totals.data?.data.filter(({ sourceId }) => source === '' || sourceId === source) ?? []
  const sum = (name: 'quarantined' | 'released' | 'deleted'): number => counts.reduce((total, each) => total + each[name], 0)
  const sourceChoices = new Set([
    ...(totals.data?.data ?? []).filter(({ quarantined }) => quarantined > 0).map(({ sourceId }) => sourceId),
    ...(source === '' ? [] : [source]),
  ])
  const ruleChoices = new Set([...rows.map((row) => row.rule), ...(rule === '' ? [] : [rule])])
  const sourceOptions = [...sourceChoices].map((id) => ({ value: id, label: names.sources.get(id) ?? id }))
  const ruleOptions = [...ruleChoices].map((key) => ({ value: key, label: ruleTitle(key) }))
  const isFiltered = source !== '' || rule !== ''
  // All messages of a filter can be released only within a source, as the API does it.
  const [onlySource] = source !== '' ? [source] : sourceChoices.size === 1 ? sourceChoices : []
  const columns: Column<Held>[] = [
    {
      label: 'Message',
      cell: ({ id, messageId, rule: key, type }) => (
        <Group gap="xs">
          {isAdmin && <Checkbox aria-label={`Select ${messageId ?? id}`} {...ticked(selected.has(id), (next) => toggle([id], next))} />}
          <ViewLink to={`/messages/${encodeURIComponent(id)}`} fw={600} style={{ overflowWrap: 'anywhere' }}>
            {ruleTitle(key)}
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
    { label: 'Why', cell: ({ violations }) => <Reasons violations={violations} /> },
    { label: 'Source', cell: ({ sourceId }) => names.sources.get(sourceId) ?? sourceId },
    { label: 'User', cell: ({ userId, anonymousId }) => userId ?? (anonymousId === null ? 'no user' : `anonymous ${anonymousId}`) },
    { label: 'Received', isShort: true, cell: ({ receivedAt }) => <Time at={receivedAt} relative /> },
  ]
  return (
    <Stack>
      <Note>
        Stored and acknowledged, but not sent to any destination until you release them. Released messages are routed like new ones, each
        exactly once.
      </Note>
      <Group gap="lg">
        {(
          [
            ['In quarantine', 'quarantined'],
            ['Released', 'released'],
            ['Deleted', 'deleted'],
          ] as const
        ).map(([label, name]) => (
          <Text key={name} size="sm">
            <Note span>{label}</Note>{' '}
            <Text span fw={650}>
              {totals.data === undefined ? '–' : exactCount(sum(name))}
            </Text>
          </Text>
        ))}
        <SmallNote>{source === '' ? 'of all sources and plans' : 'of this source'}</SmallNote>
      </Group>
      {(rows.length > 0 || isFiltered) && (
        <Group gap="sm" align="flex-end">
          <ParamSelect param="source" label="Source" options={sourceOptions} grow={160} maw={260} />
          <ParamSelect param="rule" label="Rule" options={ruleOptions} grow={160} maw={260} />
        </Group>
      )}
      {isAdmin && rows.length > 0 && (
        <Group gap="xs">
          <Checkbox
            label={`Select all ${exactCount(rows.length)} shown`}
            checked={chosen.length === rows.length}
            indeterminate={chosen.length > 0 && chosen.length < rows.length}
            onChange={({ currentTarget }) =>
              toggle(
                rows.map(({ id }) => id),
                currentTarget.checked,
              )
            }
            mr="sm"
          />
          {chosen.length > 0 ? (
            <EndButtons selection={{ ids: chosen }} onEnd={() => setSelected(new Set())} names={names.sources} />
          ) : (
            onlySource !== undefined && (
              <EndButtons
                selection={{ sourceId: onlySource, ...(rule === '' ? {} : { rule }) }}
                onEnd={() => setSelected(new Set())}
                names={names.sources}
              />
            )
          )}
        </Group>
      )}
      <LoadedList
        list={list}
        lines={5}
        label="Loading quarantine"
        empty={
          <Empty
            title={isFiltered ? 'No messages match the filters' : 'Nothing is in quarantine'}
            {...(isFiltered
              ? {
                  action: <SecondaryButton onClick={() => change({ source: null, rule: null })}>Show all</SecondaryButton>,
                }
              : {})}
          >
            {isFiltered
              ? undefined
              : 'Messages come here if they violate a rule in mode quarantine. Choose the mode on the page of a plan.'}
          </Empty>
        }
      >
        <ResponsiveTable rows={rows} columns={columns} keyOf={({ id }) => id} label="Messages in quarantine, newest first" />
      </LoadedList>
    </Stack>
  )
}
