// The list of tracking plans; and, for all plans, what violated them and what is in quarantine.

import { Anchor, Button, Stack, Tabs, Text } from '@mantine/core'
import { Link } from 'wouter'
import { useApi, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { PlusIcon } from '../../components/icons.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, ErrorAlert, Loading } from '../../components/query-states.tsx'
import { type Column, LoadMore, ResponsiveTable } from '../../components/responsive-table.tsx'
import { useSession } from '../../session.tsx'
import { exactCount } from '../../text/format.ts'
import { useSearchState } from '../../url-state.ts'
import { type Plan, rulesSummary } from './plan-text.ts'
import { Quarantine } from './quarantine.tsx'
import { SourceLinks } from './source-links.tsx'
import { Violations } from './violations.tsx'

const TABS = ['plans', 'violations', 'quarantine'] as const

export default function PlansPage() {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const tab = TABS.find((each) => each === params.get('tab')) ?? 'plans'
  const totals = useApi('GET /api/stats/totals', { everyMs: 15_000 })
  const held = totals.data?.data.reduce((sum, { quarantined }) => sum + quarantined, 0) ?? 0
  return (
    <Page
      title="Plans"
      about="A tracking plan says which events your sources send and what their properties look like. Messages are never rejected because of a plan."
      actions={
        isAdmin && (
          <Button component={Link} href="/plans/new" leftSection={<PlusIcon size={16} />}>
            Add a plan
          </Button>
        )
      }
    >
      <Tabs
        value={tab}
        onChange={(value) => change({ tab: value === 'plans' ? null : value, source: null, rule: null })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="plans">Plans</Tabs.Tab>
          <Tabs.Tab value="violations">Violations</Tabs.Tab>
          <Tabs.Tab value="quarantine">Quarantine{held === 0 ? '' : ` (${exactCount(held)})`}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="plans">
          <PlanList isAdmin={isAdmin} />
        </Tabs.Panel>
        <Tabs.Panel value="violations">
          <Violations />
        </Tabs.Panel>
        <Tabs.Panel value="quarantine">
          <Quarantine />
        </Tabs.Panel>
      </Tabs>
    </Page>
  )
}

function PlanList({ isAdmin }: { isAdmin: boolean }) {
  const list = useList('GET /api/plans', { query: { limit: 100 }, everyMs: 15_000 })
  const { sources } = useNames()
  if (list.problem !== null && list.rows.length === 0) return <ErrorAlert problem={list.problem} onRetry={() => void list.refetch()} />
  if (list.isPending) return <Loading lines={4} label="Loading plans" />
  if (list.rows.length === 0)
    return (
      <Empty
        title="No tracking plans yet"
        action={
          isAdmin ? (
            <Button component={Link} href="/plans/new">
              Learn a plan
            </Button>
          ) : (
            <Text size="sm">An admin can add one.</Text>
          )
        }
      >
        Let Switchyard write the first plan from the messages that a source has sent. It only observes: no message is held back until you
        choose the mode quarantine.
      </Empty>
    )
  const columns: Column<Plan>[] = [
    {
      label: 'Plan',
      cell: ({ id, name, description }) => (
        <Stack gap={2}>
          <Anchor component={Link} href={`/plans/${encodeURIComponent(id)}`} fw={600} style={{ overflowWrap: 'anywhere' }}>
            {name}
          </Anchor>
          {description !== null && (
            <Text size="sm" c="dimmed" lineClamp={2}>
              {description}
            </Text>
          )}
        </Stack>
      ),
    },
    { label: 'Rules', cell: ({ rules }) => rulesSummary(rules) },
    { label: 'Sources', cell: ({ sourceIds }) => <SourceLinks ids={sourceIds} names={sources} /> },
    { label: 'Version', isNumber: true, cell: ({ version }) => exactCount(version) },
  ]
  return (
    <Stack>
      <ResponsiveTable rows={list.rows} columns={columns} keyOf={({ id }) => id} label="Tracking plans" />
      <LoadMore list={list} />
    </Stack>
  )
}
