// The list of tracking plans; and, for all plans, what violated them and what is in quarantine.

import { Group, Stack, Text } from '@mantine/core'
import { useApi, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { PlusIcon } from '../../components/icons.tsx'
import { Empty, Page, PageTabs } from '../../components/page.tsx'
import { type Column, LoadedTable } from '../../components/responsive-table.tsx'
import { LinkButton, NameLink, Note, ViewLink } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { exactCount } from '../../text/format.ts'
import { type Plan, rulesSummary } from './plan-text.ts'
import { Quarantine } from './quarantine.tsx'
import { Violations } from './violations.tsx'

export default function PlansPage() {
  const { mayEdit } = useSession()
  const totals = useApi('GET /api/stats/totals', { everyMs: 15_000 })
  const held = totals.data?.data.reduce((sum, { quarantined }) => sum + quarantined, 0) ?? 0
  return (
    <Page
      title="Plans"
      about="A tracking plan says which events your sources send and what their properties look like. Messages are never rejected because of a plan."
      actions={
        mayEdit && (
          <LinkButton to="/plans/new" variant="filled" leftSection={<PlusIcon size={16} />}>
            Add a plan
          </LinkButton>
        )
      }
    >
      <PageTabs
        clears={['source', 'rule']}
        tabs={[
          { name: 'plans', label: 'Plans', panel: <PlanList mayEdit={mayEdit} /> },
          { name: 'violations', label: 'Violations', panel: <Violations /> },
          { name: 'quarantine', label: `Quarantine${held === 0 ? '' : ` (${exactCount(held)})`}`, panel: <Quarantine /> },
        ]}
      />
    </Page>
  )
}

function PlanList({ mayEdit }: { mayEdit: boolean }) {
  const list = useList('GET /api/plans', { query: { limit: 100 }, everyMs: 15_000 })
  const { sources } = useNames()
  const violations = useApi('GET /api/violations', { query: { limit: 1_000 }, everyMs: 15_000 })
  const violated = violations.data === undefined ? undefined : countsOf(violations.data.data)
  const columns: Column<Plan>[] = [
    {
      label: 'Plan',
      cell: ({ id, name, description }) => (
        <Stack gap={2}>
          <NameLink to={`/plans/${encodeURIComponent(id)}`}>{name}</NameLink>
          {description !== null && <Note lineClamp={2}>{description}</Note>}
        </Stack>
      ),
    },
    { label: 'Rules', cell: ({ rules }) => rulesSummary(rules) },
    { label: 'Sources', cell: ({ sourceIds }) => <SourceLinks ids={sourceIds} names={sources} /> },
    {
      label: 'Violations (24 h)',
      isNumber: true,
      cell: ({ id }) =>
        violated === undefined ? (
          '–'
        ) : (
          <ViewLink to={`/plans/${encodeURIComponent(id)}?tab=violations`}>
            {exactCount(violated.get(id) ?? 0)}
            {violations.data?.next != null && '+'}
          </ViewLink>
        ),
    },
    { label: 'Version', isNumber: true, cell: ({ version }) => exactCount(version) },
  ]
  const empty = (
    <Empty
      title="No tracking plans yet"
      {...(mayEdit
        ? { link: { to: '/plans/new', label: 'Learn a plan' } }
        : { action: <Text size="sm">An editor or admin can add one.</Text> })}
    >
      Let Switchyard write the first plan from the messages that a source has sent. It only observes: no message is held back until you
      choose the mode quarantine.
    </Empty>
  )
  return (
    <Stack>
      <LoadedTable list={list} columns={columns} label="Tracking plans" empty={empty} />
    </Stack>
  )
}

/** The number of violations of each plan in the last 24 hours. */
function countsOf(violations: readonly { planId: string; hours: readonly number[] }[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { planId, hours } of violations) counts.set(planId, (counts.get(planId) ?? 0) + hours.reduce((sum, each) => sum + each, 0))
  return counts
}

export function SourceLinks({ ids, names }: { ids: readonly string[]; names: ReadonlyMap<string, string> }) {
  if (ids.length === 0) return <Note span>none</Note>
  return (
    <Group gap="xs">
      {ids.map((id) => (
        <ViewLink key={id} to={`/sources/${encodeURIComponent(id)}`}>
          {names.get(id) ?? id}
        </ViewLink>
      ))}
    </Group>
  )
}
