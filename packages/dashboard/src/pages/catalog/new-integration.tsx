// The form for a new integration, made from its definition. After saving, leads to its test.

import { Alert, Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { ApiProblem } from '../../api/client.ts'
import { useApi } from '../../api/queries.ts'
import { IntegrationTile } from '../../components/integration-tile.tsx'
import { LinkedText } from '../../components/linked-text.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, ErrorAlert, Loaded, Loading } from '../../components/query-states.tsx'
import { useSession } from '../../session.tsx'
import { shortName } from '../../text/integration-tile.ts'
import { usePathPart } from '../../url-state.ts'
import { createBodyOf, type Draft, type IntegrationForm, messageAtField, newDraft, onlySource } from '../destinations/draft.ts'
import { DestinationForm } from '../destinations/form/destination-form.tsx'
import { type Definition, definitionOf } from '../destinations/integration/definition.ts'
import {
  actionDraft,
  presetDraft,
  type SubscriptionDraft,
  subscriptionOf,
  subscriptionProblems,
} from '../destinations/integration/subscription-draft.ts'
import { Subscriptions } from '../destinations/integration/subscriptions.tsx'
import { useCreateDestination } from '../destinations/use-create-destination.tsx'

export default function NewIntegrationPage() {
  const slug = usePathPart(1)
  const { isAdmin } = useSession()
  const definition = useApi('GET /api/catalog/{slug}', { params: { slug } })
  const sources = useApi('GET /api/sources', { query: { limit: 2 } })
  const { data, error } = definition
  const all = (
    <Button component={Link} href="/catalog" variant="default">
      All integrations
    </Button>
  )
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
    <Page title={`Add ${shortName(data.name)}`} actions={all}>
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <IntegrationTile slug={data.slug} name={data.name} size={44} />
        <Text size="sm" c="dimmed">
          {data.description === '' ? `Sends your events to ${shortName(data.name)}.` : <LinkedText markdown={data.description} />}
        </Text>
      </Group>
      {data.available && data.problem !== null && (
        <Alert color="orange" title="Does not work with Switchyard">
          {data.problem}
        </Alert>
      )}
      {!data.available ? (
        <Empty title="Not available" action={all}>
          {data.problem}
        </Empty>
      ) : !isAdmin ? (
        <Empty title="Your token is read-only" action={all}>
          Adding a destination requires an admin token.
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

function NewIntegration({ definition, sourceIds }: { definition: Definition; sourceIds: string[] }) {
  const [, navigate] = useLocation()
  const { create, dialog } = useCreateDestination()
  const [subscriptions, setSubscriptions] = useState(() => firstSubscriptions(definition))
  const [shown, show] = useState<ReadonlyMap<string, string>>(new Map())
  const form: IntegrationForm = { slug: definition.slug, schema: definition.settings, storedSecrets: [] }
  const [initial] = useState<Draft>(() => ({ ...newDraft(form), name: shortName(definition.name), sourceIds }))

  const save = async (draft: Draft): Promise<void> => {
    const problems = subscriptionProblems(definition, subscriptions)
    show(problems)
    if (problems.size > 0) throw new ApiProblem(400, 'invalid', 'Correct the errors in the subscriptions.')
    try {
      const body = { ...createBodyOf(draft, form), subscriptions: subscriptions.map(subscriptionOf) }
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
      <DestinationForm
        id={null}
        initial={initial}
        isNew
        hasSharedSecret={false}
        signingSecretCount={0}
        isReadOnly={false}
        integration={form}
        onSave={save}
      >
        {(draft) => (
          <Paper withBorder p="md">
            <Stack gap="sm">
              <Title order={2} size="h4">
                What is sent
              </Title>
              <Text size="sm" c="dimmed">
                Each subscription runs an action for the messages that match. You can change them later, with a preview.
              </Text>
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
              />
            </Stack>
          </Paper>
        )}
      </DestinationForm>
    </>
  )
}
