// A new plan: learned from the messages of a source, or written by hand. What was found is shown before anything is saved.

import { Alert, Button, Code, Group, NativeSelect, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { useLocation } from 'wouter'
import type { Answer } from '../../api/client.ts'
import { useApi, useChange } from '../../api/queries.ts'
import { entered, ParamSelect } from '../../components/inputs.tsx'
import { ErrorAlert, Loading, Page, Section } from '../../components/page.tsx'
import { SmallButton } from '../../components/styled.tsx'
import { useCommand, useSession } from '../../session/session.tsx'
import { exactCount, plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import type { Rule } from './plan-text.ts'
import type { PlanContent } from './plan-yaml.ts'
import { Rules } from './rules.tsx'

const PlanEditor = lazy(() => import('./plan-editor.tsx'))

type Learned = Answer<'POST /api/plans/learn'>

const PERIODS = [
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
]
const DAY_MS = 86_400_000

const TEMPLATE = `name: My plan
unplanned: allow
rules:
  - type: track
    event: Order Completed
    description: A customer has paid for an order.
    mode: observe
    schema:
      type: object
      properties:
        orderId: { type: string }
        total: { type: number }
      required: [ orderId, total ]
`

export default function NewPlanPage() {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const sources = useApi('GET /api/sources', { query: { limit: 1_000 } })
  const plans = useApi('GET /api/plans', { query: { limit: 1_000 } })
  const [learned, setLearned] = useState<Learned | null>(null)
  const learn = useChange('POST /api/plans/learn')
  const create = useChange('POST /api/plans', 'GET /api/plans', 'GET /api/events/{id}')
  const [, navigate] = useLocation()
  const isByHand = params.get('by') === 'hand'
  const names = new Map((sources.data?.data ?? []).map(({ id, name }) => [id, name]))
  const choices = (sources.data?.data ?? []).filter(({ builtIn }) => !builtIn)
  const source = params.get('source') ?? choices[0]?.id ?? ''
  const days = PERIODS.find(({ value }) => value === params.get('days'))?.value ?? '7'
  const other = plans.data?.data.find(({ sourceIds }) => sourceIds.includes(source))
  const start = async (): Promise<void> => {
    setLearned(null)
    const from = new Date(Date.now() - Number(days) * DAY_MS).toISOString()
    setLearned(await learn.mutateAsync({ body: { source, from } }).catch(() => null))
  }
  const save = async (content: PlanContent, sourceIds: string[] | undefined): Promise<void> => {
    const body = { ...content, ...(sourceIds === undefined ? {} : { sourceIds }) }
    const { id, name } = await create.mutateAsync({ body: body as Parameters<typeof create.mutate>[0]['body'] })
    notifications.show({ color: 'teal', message: `Saved the plan ${name}.` })
    navigate(`/plans/${encodeURIComponent(id)}`)
  }
  const editor = (text: string) => (
    <Suspense fallback={<Loading lines={8} label="Loading editor" />}>
      <PlanEditor key={text} initial={text} sources={names} verb="Save plan" onSave={save} isReadOnly={!isAdmin} />
    </Suspense>
  )
  return (
    <Page
      title="Add a plan"
      about="Learn a plan from the messages that a source has sent, or write it yourself. Nothing is saved until you choose Save plan."
      back={{ to: '/plans', label: 'All plans' }}
    >
      {!isAdmin && <Alert color="blue">You can learn a plan, but saving it requires an admin token.</Alert>}
      {sources.data === undefined ? (
        <Loading lines={4} label="Loading sources" />
      ) : isByHand ? (
        <Section title="Write a plan" actions={<SmallButton onClick={() => change({ by: null })}>Learn a plan instead</SmallButton>}>
          {editor(TEMPLATE)}
        </Section>
      ) : (
        <>
          <Section
            title="Learn a plan"
            about="Reads the retained messages of a source and describes them: types, properties that are always present, small sets of values, and formats. Values that may be personal data are left out."
            actions={<SmallButton onClick={() => change({ by: 'hand' })}>Write a plan by hand</SmallButton>}
          >
            <Group align="flex-end" gap="sm">
              <NativeSelect
                label="Source"
                {...entered(source, (source) => change({ source }, { replace: true }))}
                data={choices.map(({ id, name }) => ({ value: id, label: name }))}
                style={{ flex: '1 1 180px' }}
                maw={320}
              />
              <ParamSelect param="days" label="Messages" options={PERIODS} all={null} fallback="7" isReplacing grow={140} maw={200} />
              <Button onClick={() => void start()} loading={learn.isPending} disabled={source === ''}>
                Learn
              </Button>
            </Group>
            {other !== undefined && (
              <Text size="sm">
                This source already has the plan {other.name}. To save the new plan, remove the source from its text, or detach the source
                from that plan first.
              </Text>
            )}
            {learn.error !== null && <ErrorAlert problem={learn.error} onRetry={() => void start()} />}
          </Section>
          {learned !== null && learned.messages === 0 && (
            <Alert color="orange" variant="light" title="No messages in this period">
              Choose a longer period or another source, or send some messages first.
            </Alert>
          )}
          {learned !== null && learned.messages > 0 && <Found learned={learned}>{editor(learned.yaml)}</Found>}
        </>
      )}
    </Page>
  )
}

function Found({ learned: { plan, messages, complete, leftOut }, children }: { learned: Learned; children: ReactNode }) {
  const command = useCommand()
  const rules = ((plan as { rules?: Rule[] }).rules ?? []) as readonly Rule[]
  return (
    <>
      <Section
        title={`Found ${plural(rules.length, 'event')} in ${plural(messages, 'message')}`}
        about="All rules only observe at first. Open a rule to see what was found."
      >
        {!complete && (
          <Text size="sm">
            There are more messages in this period; only the newest ones were read. <Code>{command} plan learn</Code> reads all of them.
          </Text>
        )}
        {leftOut.events > 0 && (
          <Text size="sm">
            {exactCount(leftOut.events)} events with {exactCount(leftOut.messages)} messages got no rule, because their names look generated
            or there are too many.
          </Text>
        )}
        <Rules rules={rules} />
      </Section>
      <Section title="Check and save" about="Change what you like: for example add descriptions and owners, or remove rules.">
        <Stack>{children}</Stack>
      </Section>
    </>
  )
}
