// A new plan: learned from the messages of a source, or written by hand. What was found is shown before anything is saved.

import { Alert, Button, Code, Group, NativeSelect, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { lazy, Suspense, useState } from 'react'
import { useLocation } from 'wouter'
import type { Answer } from '../../api/client.ts'
import { useApi, useChange } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
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
  const { mayEdit } = useSession()
  const [params, change] = useSearchState()
  const sources = useApi('GET /api/sources', { query: { limit: 1_000 } })
  const [learned, setLearned] = useState<Learned | null>(null)
  return (
    <Page
      title="Add a plan"
      about="Learn a plan from the messages that a source has sent, or write it yourself. Nothing is saved until you choose Save plan."
      back={{ to: '/plans', label: 'All plans' }}
    >
      {!mayEdit && <Alert color="blue">You can learn a plan, but saving it requires the editor or admin role.</Alert>}
      {sources.data === undefined ? (
        <Loading lines={4} label="Loading sources" />
      ) : params.get('by') === 'hand' ? (
        <Section title="Write a plan" actions={<SmallButton onClick={() => change({ by: null })}>Learn a plan instead</SmallButton>}>
          <Editor text={TEMPLATE} />
        </Section>
      ) : (
        <>
          <Learn sources={sources.data.data.filter(({ builtIn }) => !builtIn)} onLearned={setLearned} />
          {learned !== null && learned.messages === 0 && (
            <Alert color="orange" variant="light" title="No messages in this period">
              Choose a longer period or another source, or send some messages first.
            </Alert>
          )}
          {learned !== null && learned.messages > 0 && <Found learned={learned} />}
        </>
      )}
    </Page>
  )
}

function Editor({ text }: { text: string }) {
  const { mayEdit } = useSession()
  const { sources } = useNames()
  const [, navigate] = useLocation()
  const create = useChange('POST /api/plans', 'GET /api/plans', 'GET /api/events/{id}')
  const save = async (content: PlanContent, sourceIds: string[] | undefined): Promise<void> => {
    const body = { ...content, ...(sourceIds === undefined ? {} : { sourceIds }) }
    const { id, name } = await create.mutateAsync({ body: body as Parameters<typeof create.mutate>[0]['body'] })
    notifications.show({ color: 'teal', message: `Saved the plan ${name}.` })
    navigate(`/plans/${encodeURIComponent(id)}`)
  }
  return (
    <Suspense fallback={<Loading lines={8} label="Loading editor" />}>
      <PlanEditor key={text} initial={text} sources={sources} verb="Save plan" onSave={save} isReadOnly={!mayEdit} />
    </Suspense>
  )
}

interface LearnProps {
  sources: readonly { id: string; name: string }[]
  onLearned: (learned: Learned | null) => void
}

function Learn({ sources, onLearned }: LearnProps) {
  const [params, change] = useSearchState()
  const plans = useApi('GET /api/plans', { query: { limit: 1_000 } })
  const learn = useChange('POST /api/plans/learn')
  const source = params.get('source') ?? sources[0]?.id ?? ''
  const days = PERIODS.find(({ value }) => value === params.get('days'))?.value ?? '7'
  const other = plans.data?.data.find(({ sourceIds }) => sourceIds.includes(source))
  const start = async (): Promise<void> => {
    onLearned(null)
    const from = new Date(Date.now() - Number(days) * DAY_MS).toISOString()
    onLearned(await learn.mutateAsync({ body: { source, from } }).catch(() => null))
  }
  return (
    <Section
      title="Learn a plan"
      about="Reads the retained messages of a source and describes them: types, properties that are always present, small sets of values, and formats. Values that may be personal data are left out."
      actions={<SmallButton onClick={() => change({ by: 'hand' })}>Write a plan by hand</SmallButton>}
    >
      <Group align="flex-end" gap="sm">
        <NativeSelect
          label="Source"
          {...entered(source, (source) => change({ source }, { replace: true }))}
          data={sources.map(({ id, name }) => ({ value: id, label: name }))}
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
          This source already has the plan {other.name}. To save the new plan, remove the source from its text, or detach the source from
          that plan first.
        </Text>
      )}
      {learn.error !== null && <ErrorAlert problem={learn.error} onRetry={() => void start()} />}
    </Section>
  )
}

function Found({ learned: { plan, messages, complete, leftOut, yaml } }: { learned: Learned }) {
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
        <Editor text={yaml} />
      </Section>
    </>
  )
}
