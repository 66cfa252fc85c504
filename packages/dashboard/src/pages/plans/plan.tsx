// The page of one tracking plan: its rules, its sources, what violated it, what is in quarantine, and the editor.

import { Alert, Group, MultiSelect, NativeSelect, SimpleGrid, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { lazy, Suspense, useState } from 'react'
import { useLocation } from 'wouter'
import type { ApiProblem } from '../../api/client.ts'
import { useApi, useChange } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { ConfirmButton } from '../../components/confirm-dialog.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { entered } from '../../components/inputs.tsx'
import { Empty, Loading, Page, PageTabs, ResourcePage } from '../../components/page.tsx'
import { DangerButton, Note, SmallButton, Tag, Time } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { keyOfRule, type Mode, type Plan, type Rule, rulesSummary, ruleTitle, UNPLANNED, type Unplanned } from './plan-text.ts'
import type { PlanContent } from './plan-yaml.ts'
import { Quarantine } from './quarantine.tsx'
import { Rules } from './rules.tsx'
import { Violations } from './violations.tsx'

const PlanEditor = lazy(() => import('./plan-editor.tsx'))

const STALE = ['GET /api/plans', 'GET /api/plans/{id}', 'GET /api/events/{id}'] as const

export default function PlanPage() {
  return (
    <ResourcePage name="Plan" reasons="The plan was deleted, or the URL is incomplete.">
      {(plan) => <PlanDetails plan={plan} />}
    </ResourcePage>
  )
}

function PlanDetails({ plan }: { plan: Plan }) {
  const { mayEdit } = useSession()
  const { id, name, description, version, createdAt, rules } = plan
  const update = useChange('PATCH /api/plans/{id}', ...STALE)
  const set = (body: Parameters<typeof update.mutate>[0]['body'], done: string): void =>
    update.mutate(
      { params: { id }, body },
      {
        onSuccess: () => notifications.show({ color: 'teal', message: done }),
        onError: ({ message }: ApiProblem) => notifications.show({ color: 'red', title: 'Could not change the plan', message }),
      },
    )
  const setMode = (rule: Rule, mode: Mode): void => {
    const key = keyOfRule(rule)
    set({ rules: rules.map((each) => (keyOfRule(each) === key ? { ...each, mode } : each)) }, `${ruleTitle(key)} is now in mode ${mode}.`)
  }
  return (
    <Page title={name} about={description ?? undefined} actions={mayEdit && <DeleteButton plan={plan} />}>
      <Group gap="sm">
        <Tag color="gray">version {version}</Tag>
        <Copyable text={id} label="the id" />
        <Note component="span">
          created <Time at={createdAt} />
        </Note>
      </Group>
      <Attachment plan={plan} mayEdit={mayEdit} onChange={set} />
      <PageTabs
        clears={['source', 'rule']}
        tabs={[
          {
            name: 'rules',
            label: 'Rules',
            panel: (
              <Stack>
                <Note>{rulesSummary(rules)}. Open a rule to see its properties.</Note>
                {rules.length === 0 ? (
                  <Empty title="The plan has no rules">Add rules in the editor, or learn a plan from the messages of a source.</Empty>
                ) : (
                  <Rules rules={rules} onMode={mayEdit ? setMode : undefined} />
                )}
              </Stack>
            ),
          },
          { name: 'violations', label: 'Violations', panel: <Violations planId={id} /> },
          { name: 'quarantine', label: 'Quarantine', panel: <Quarantine planId={id} /> },
          { name: 'edit', label: mayEdit ? 'Edit' : 'YAML', panel: <Editor plan={plan} mayEdit={mayEdit} /> },
        ]}
      />
    </Page>
  )
}

interface AttachmentProps {
  plan: Plan
  mayEdit: boolean
  onChange: (body: { sourceIds?: string[]; unplanned?: Unplanned }, done: string) => void
}

function Attachment({ plan: { id, sourceIds, unplanned }, mayEdit, onChange }: AttachmentProps) {
  const { sources } = useNames()
  const plans = useApi('GET /api/plans', { query: { limit: 1_000 } })
  const taken = new Map(
    (plans.data?.data ?? []).filter((other) => other.id !== id).flatMap((other) => other.sourceIds.map((source) => [source, other.name])),
  )
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <MultiSelect
        label="Sources"
        description="New messages of these sources are checked against the plan. A source has at most one plan."
        placeholder={sourceIds.length === 0 ? 'Not attached to any source' : ''}
        data={[...sources].map(([value, label]) => {
          const other = taken.get(value)
          return { value, label: other === undefined ? label : `${label} (has the plan ${other})`, disabled: other !== undefined }
        })}
        value={sourceIds}
        onChange={(value) => onChange({ sourceIds: value }, 'Sources saved.')}
        disabled={!mayEdit}
      />
      <NativeSelect
        label="Messages without a rule"
        description="What happens to events that the plan does not mention."
        {...entered(unplanned, (next) => onChange({ unplanned: next as Unplanned }, 'Saved.'))}
        data={Object.entries(UNPLANNED).map(([value, label]) => ({ value, label }))}
        disabled={!mayEdit}
      />
    </SimpleGrid>
  )
}

function Editor({ plan, mayEdit }: { plan: Plan; mayEdit: boolean }) {
  const names = useNames()
  const update = useChange('PATCH /api/plans/{id}', ...STALE)
  // What is being edited. A change by somebody else must not replace what was typed.
  const [base, setBase] = useState(plan)
  const save = async (content: PlanContent, sourceIds: string[] | undefined): Promise<void> => {
    // A field that was removed from the text gets its default.
    const body = { description: null, unplanned: 'allow', ...content, ...(sourceIds === undefined ? {} : { sourceIds }) }
    const saved = await update.mutateAsync({ params: { id: plan.id }, body: body as Parameters<typeof update.mutate>[0]['body'] })
    setBase(saved)
    notifications.show({ color: 'teal', message: `Saved as version ${saved.version}.` })
  }
  if (!names.isLoaded) return <Loading lines={8} label="Loading editor" />
  return (
    <Stack>
      {plan.version > base.version && (
        <Alert color="orange" variant="light" title={`The plan was changed: it is now version ${plan.version}`}>
          <Stack gap="xs" align="flex-start">
            <Text size="sm">You are editing version {base.version}. Saving would undo that change.</Text>
            <SmallButton onClick={() => setBase(plan)}>Load version {plan.version} and discard my changes</SmallButton>
          </Stack>
        </Alert>
      )}
      <Suspense fallback={<Loading lines={8} label="Loading editor" />}>
        <PlanEditor key={base.version} initial={base} sources={names.sources} verb="Save" onSave={save} isReadOnly={!mayEdit} />
      </Suspense>
    </Stack>
  )
}

function DeleteButton({ plan: { id, name } }: { plan: Plan }) {
  const [, navigate] = useLocation()
  const remove = useChange('DELETE /api/plans/{id}', 'GET /api/plans')
  return (
    <ConfirmButton
      button={(open) => <DangerButton onClick={open}>Delete</DangerButton>}
      title="Delete this plan?"
      verb="Delete plan"
      onConfirm={async () => {
        await remove.mutateAsync({ params: { id } })
        notifications.show({ color: 'teal', message: `Deleted the plan ${name}.` })
        navigate('/plans')
      }}
    >
      Messages of its sources are no longer checked. Messages that are in quarantine stay there until you release or delete them. The plan
      cannot be restored, unless you have its file.
    </ConfirmButton>
  )
}
