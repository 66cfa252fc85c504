// Where alerts go: the destinations that are attached to the source `system`, and ways to attach another.

import { Alert, Code, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { type Schemas, useApi, useChange } from '../../api/queries.ts'
import { CodeBlock } from '../../components/copyable.tsx'
import { entered, Form } from '../../components/inputs.tsx'
import { ErrorAlert, Loaded } from '../../components/page.tsx'
import { Note, SecondaryButton, ViewLink } from '../../components/styled.tsx'
import { urlProblem } from '../../kinds/webhook/form/validation.ts'
import { ADMIN_ONLY } from '../../session/needs-role.tsx'
import { useCommand, useSession } from '../../session/session.tsx'
import { NewReceiver } from './new-receiver.tsx'

const SYSTEM = 'system'

export function AlertReceivers() {
  const command = useCommand()
  const { mayEdit, isLimited } = useSession()
  const destinations = useApi('GET /api/destinations', { query: { limit: 1_000 }, everyMs: 5_000 })
  return (
    <Loaded query={destinations}>
      {({ data }) => {
        const attached = data.filter(({ sourceIds }) => sourceIds.includes(SYSTEM))
        return (
          <Stack gap="md">
            {attached.length === 0 ? (
              <Text size="sm">No destination receives alerts yet. Incidents are recorded here anyway.</Text>
            ) : (
              <Stack gap={4} component="ul" m={0} pl="lg" aria-label="Destinations that receive alerts">
                {attached.map((each) => (
                  <li key={each.id}>
                    <ViewLink to={`/destinations/${encodeURIComponent(each.id)}`}>{each.name}</ViewLink>
                    {!each.enabled && <Note span> (disabled)</Note>}
                  </li>
                ))}
              </Stack>
            )}
            {attached.length > 0 && <TestAlert />}
            {mayEdit && !isLimited ? (
              <>
                <Attach destinations={data.filter(({ sourceIds }) => !sourceIds.includes(SYSTEM))} />
                <AddWebhook />
                <NewReceiver />
                <Note>
                  For other tools, <ViewLink to="/catalog">add an integration</ViewLink> or{' '}
                  <ViewLink to="/destinations/new">a destination with its own request</ViewLink> and choose the source <Code>system</Code>.
                  To see alerts in a terminal, run:
                </Note>
                <CodeBlock text={`${command} listen --connect --source system`} label="command that shows alerts" />
              </>
            ) : (
              <Note>Choosing a destination for alerts requires the editor or admin role and access to all sources.</Note>
            )}
          </Stack>
        )
      }}
    </Loaded>
  )
}

function Attach({ destinations }: { destinations: readonly Schemas['Destination'][] }) {
  const attach = useChange('PATCH /api/destinations/{id}', 'GET /api/destinations', 'GET /api/alerts')
  const [id, setId] = useState('')
  const chosen = destinations.find((each) => each.id === id)
  if (destinations.length === 0) return null
  const submit = (): void => {
    if (chosen === undefined) return
    attach.mutate({ params: { id: chosen.id }, body: { sourceIds: [...chosen.sourceIds, SYSTEM] } }, { onSuccess: () => setId('') })
  }
  return (
    <Form onSubmit={submit} aria-label="Send alerts to an existing destination">
      <Group align="flex-end" gap="sm">
        <NativeSelect
          label="An existing destination"
          {...entered(id, setId)}
          data={[{ value: '', label: 'Choose one' }, ...destinations.map((each) => ({ value: each.id, label: each.name }))]}
          style={{ flex: '1 1 200px' }}
          maw={360}
        />
        <SecondaryButton type="submit" disabled={chosen === undefined} loading={attach.isPending}>
          Send alerts there
        </SecondaryButton>
      </Group>
      {attach.error !== null && <ErrorAlert problem={attach.error} />}
    </Form>
  )
}

function AddWebhook() {
  const create = useChange('POST /api/destinations', 'GET /api/destinations', 'GET /api/alerts')
  const [url, setUrl] = useState('')
  const [isSubmitted, setSubmitted] = useState(false)
  const problem = urlProblem(url)
  const submit = (): void => {
    setSubmitted(true)
    if (problem !== null) return
    create.mutate(
      { body: { name: 'Alerts', urls: [url], sourceIds: [SYSTEM] } },
      {
        onSuccess: () => {
          setUrl('')
          setSubmitted(false)
        },
      },
    )
  }
  return (
    <Form onSubmit={submit} aria-label="Add a webhook for alerts">
      <Group align="flex-end" gap="sm">
        <TextInput
          label="A new webhook"
          placeholder="https://example.com/hooks/alerts"
          type="url"
          inputMode="url"
          {...entered(url, (next) => setUrl(next.trim()))}
          error={isSubmitted ? (create.error?.message ?? problem) : null}
          autoComplete="off"
          data-1p-ignore
          style={{ flex: '1 1 200px' }}
          maw={360}
        />
        <SecondaryButton type="submit" loading={create.isPending}>
          Add webhook
        </SecondaryButton>
      </Group>
    </Form>
  )
}

/** The message is stored and routed like an alert, so its page shows what happened to it. */
export function TestAlert() {
  const { isAdmin } = useSession()
  const test = useChange('POST /api/alerts/test', 'GET /api/alerts')
  return (
    <Stack gap="xs" align="flex-start" aria-live="polite">
      <SecondaryButton
        disabled={!isAdmin}
        title={isAdmin ? undefined : ADMIN_ONLY}
        loading={test.isPending}
        onClick={() => test.mutate({})}
      >
        Send a test
      </SecondaryButton>
      {test.error !== null && <ErrorAlert problem={test.error} />}
      {test.data !== undefined && (
        <Alert color="teal" variant="light" title="Test alert sent" role="status">
          {test.data.destinationIds.length === 0 ? 'No destination receives alerts, so it was not sent to anyone. ' : ''}
          <ViewLink to={`/messages/${encodeURIComponent(test.data.messageId)}`}>View its delivery status</ViewLink>
        </Alert>
      )}
    </Stack>
  )
}
