// The form for a new integration, made from its definition. After saving, leads to its test.

import { Alert, Group, Paper, Stack } from '@mantine/core'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { ApiProblem, call } from '../../api/client.ts'
import { useApi } from '../../api/queries.ts'
import { IntegrationTile, LinkedText } from '../../components/integration-tile.tsx'
import { Empty, ErrorAlert, Loaded, Loading, Page } from '../../components/page.tsx'
import { LinkButton, Note, SectionTitle } from '../../components/styled.tsx'
import { DestinationForm } from '../../destination/form/destination-form.tsx'
import { messageAtField, onlySource } from '../../destination/form/draft.ts'
import { useCreateDestination } from '../../destination/form/use-create-destination.tsx'
import { useSession } from '../../session/session.tsx'
import { usePathPart } from '../../url/url-state.ts'
import { type Definition, definitionOf } from './definition.ts'
import type { Lookup, Tool } from './field-choices.tsx'
import { createBodyOf, type IntegrationDraft, type IntegrationSchema, newIntegration } from './integration-draft.ts'
import { settingsOf, settingsProblems } from './settings-draft.ts'
import { integrationForm } from './settings-fields.tsx'
import { actionDraft, presetDraft, type SubscriptionDraft, subscriptionOf, subscriptionProblems } from './subscription-draft.ts'
import { Subscriptions } from './subscriptions.tsx'

export default function NewIntegrationPage() {
  const slug = usePathPart(1)
  const { mayEdit } = useSession()
  const definition = useApi('GET /api/catalog/{slug}', { params: { slug } })
  const sources = useApi('GET /api/sources', { query: { limit: 2 } })
  const { data, error } = definition
  const all = <LinkButton to="/catalog">All integrations</LinkButton>
  if (data === undefined) {
    return (
      <Page title="Add a destination" actions={all}>
        {error === null ? (
          <Loading lines={8} label="Loading the integration" />
        ) : error.status === 404 ? (
          <Empty title="Integration not found" action={all}>
            The catalogue does not have this integration, or is not installed.
          </Empty>
        ) : (
          <ErrorAlert problem={error} onRetry={() => void definition.refetch()} />
        )}
      </Page>
    )
  }
  return (
    <Page title={`Add ${data.title}`} actions={all}>
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <IntegrationTile slug={data.slug} title={data.title} size={44} />
        <Note>{data.description === '' ? `Sends your events to ${data.title}.` : <LinkedText markdown={data.description} />}</Note>
      </Group>
      {data.available && data.problem !== null && (
        <Alert color="orange" title="Does not work with Switchyard">
          {data.problem}
        </Alert>
      )}
      {data.problem === null && data.needs !== null && (
        <Alert color="blue" title="Needs audiences">
          {data.needs}
        </Alert>
      )}
      {!data.available ? (
        <Empty title="Not available" action={all}>
          {data.problem}
        </Empty>
      ) : !mayEdit ? (
        <Empty title="Your token is read-only" action={all}>
          Adding a destination requires the editor or admin role.
        </Empty>
      ) : (
        <Loaded query={sources} lines={8}>
          {({ data: first }) => <NewIntegration key={slug} definition={definitionOf(data)} sourceIds={onlySource(first)} />}
        </Loaded>
      )}
    </Page>
  )
}

/** The presets that make sense for every source, or the only action. */
function firstSubscriptions(definition: Definition): SubscriptionDraft[] {
  const presets = definition.presets.filter(({ type }) => type === 'automatic')
  const [action, ...others] = definition.actions
  if (presets.length === 0 && action !== undefined && others.length === 0) return [actionDraft(action, 'first')]
  return presets.map((preset, at) => presetDraft(definition, preset, `preset ${at}`))
}

/** With the settings as they are typed, before anything is stored. */
async function askUnsaved({ slug, settings: schema }: Definition, { settings }: IntegrationDraft, lookup: Lookup): ReturnType<Tool['ask']> {
  const [problem] = settingsProblems(schema, settings, []).values()
  if (problem !== undefined) throw new ApiProblem(400, 'invalid', `Complete the settings first: ${problem}`)
  return await call('POST /api/catalog/{slug}/choices', { params: { slug }, body: { ...lookup, settings: settingsOf(schema, settings) } })
}

function NewIntegration({ definition, sourceIds }: { definition: Definition; sourceIds: string[] }) {
  const [, navigate] = useLocation()
  const { create, dialog } = useCreateDestination('integration')
  const [subscriptions, setSubscriptions] = useState(() => firstSubscriptions(definition))
  const [shown, show] = useState<ReadonlyMap<string, string>>(new Map())
  const schema: IntegrationSchema = { slug: definition.slug, schema: definition.settings, storedSecrets: [] }
  const [initial] = useState<IntegrationDraft>(() => ({ ...newIntegration(schema), name: definition.title, sourceIds }))

  const save = async (draft: IntegrationDraft): Promise<void> => {
    const problems = subscriptionProblems(definition, subscriptions)
    show(problems)
    if (problems.size > 0) throw new ApiProblem(400, 'invalid', 'Correct the errors in the subscriptions.')
    try {
      const body = { ...createBodyOf(schema, draft), subscriptions: subscriptions.map(subscriptionOf) }
      const { id } = await create(body)
      navigate(`/destinations/${encodeURIComponent(id)}?tab=test&created=yes`)
    } catch (error) {
      if (error instanceof ApiProblem && error.field?.startsWith('subscriptions'))
        show(new Map([[error.field, messageAtField(error.field, error.message)]]))
      throw error
    }
  }

  return (
    <>
      {dialog}
      <DestinationForm form={integrationForm(schema)} id={null} initial={initial} isReadOnly={false} onSave={save}>
        {(draft) => (
          <Paper withBorder p="md">
            <Stack gap="sm">
              <SectionTitle>What is sent</SectionTitle>
              <Note>Each subscription runs an action for the messages that match. You can change them later, with a preview.</Note>
              <Subscriptions
                definition={definition}
                subscriptions={subscriptions}
                onChange={(next) => {
                  setSubscriptions(next)
                  show(new Map())
                }}
                sourceIds={draft.sourceIds}
                problem={(field) => shown.get(field) ?? null}
                wrong={[...shown.keys()]}
                isReadOnly={false}
                tool={{ name: definition.title, ask: (lookup) => askUnsaved(definition, draft, lookup) }}
              />
            </Stack>
          </Paper>
        )}
      </DestinationForm>
    </>
  )
}
