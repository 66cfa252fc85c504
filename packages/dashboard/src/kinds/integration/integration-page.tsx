// The page of an integration, and the outcome of a test. Its forms are made from its definition, so that is loaded first.

import { Alert, Stack, Text } from '@mantine/core'
import { lazy } from 'react'
import { useApi } from '../../api/queries.ts'
import { Empty, Loading, Page } from '../../components/page.tsx'
import { LinkButton } from '../../components/styled.tsx'
import { useContent } from '../../destination/content/use-content.ts'
import { SettingsTab } from '../../destination/form/settings-tab.tsx'
import { DestinationFrame } from '../../destination/frame.tsx'
import { type Sent, TestAttempts } from '../../destination/test-panel.tsx'
import { useMayEdit } from '../../session/session.tsx'
import { type Definition, definitionOf } from './definition.ts'
import type { Integration } from './integration-draft.ts'
import { integrationForm } from './settings-fields.tsx'
import { integrationContent } from './subscription-draft.ts'
import { INTEGRATION_SUMMARY, IntegrationAttempt } from './summary.tsx'

const SubscriptionsTab = lazy(() => import('./subscriptions-tab.tsx'))

export default function IntegrationPage({ destination }: { destination: Integration }) {
  const { data, error } = useApi('GET /api/catalog/{slug}', { params: { slug: destination.integration } })
  if (data === undefined && error === null)
    return (
      <Page title="Destination">
        <Loading lines={6} label="Loading destination" />
      </Page>
    )
  return <Details destination={destination} definition={data === undefined ? null : definitionOf(data)} />
}

/** `definition` is null if the catalogue does not have the integration. */
function Details({ destination, definition }: { destination: Integration; definition: Definition | null }) {
  const mayEdit = useMayEdit(destination)
  const content = useContent(destination, integrationContent(definition), !mayEdit)
  const formOf = ({ integration, secretSettings }: Integration, { settings }: Definition) =>
    integrationForm({ slug: integration, schema: settings, storedSecrets: secretSettings })
  return (
    <DestinationFrame
      destination={destination}
      kind={INTEGRATION_SUMMARY}
      test={{
        about: `Runs the subscriptions that match a sample message now. ${INTEGRATION_SUMMARY.target(destination)} receives it as real data.`,
        outcome: (sent) => <IntegrationOutcome sent={sent} />,
      }}
      tabs={{ subscriptions: definition === null ? <NoDefinition /> : <SubscriptionsTab content={content} definition={definition} /> }}
      settings={
        definition === null ? (
          <NoDefinition />
        ) : (
          <SettingsTab destination={destination} formOf={(saved) => formOf(saved, definition)} mayEdit={mayEdit} />
        )
      }
    />
  )
}

function NoDefinition() {
  return (
    <Empty title="The integration is not in the catalogue" action={<LinkButton to="/catalog">Open the catalogue</LinkButton>}>
      The integrations package is not installed, or its version does not have this integration. Deliveries are held until it is installed.
    </Empty>
  )
}

export function IntegrationOutcome({ sent: { success, attempts } }: { sent: Sent }) {
  const title = !success
    ? 'Test failed.'
    : attempts.length === 0
      ? 'No subscription matches the sample message, so nothing was sent.'
      : 'Test passed: all matching subscriptions succeeded.'
  return (
    <Stack gap="lg">
      <Alert color={!success ? 'red' : attempts.length === 0 ? 'gray' : 'teal'} variant="light" title={title} role="status">
        <Text size="sm">
          {success
            ? attempts.length === 0
              ? 'Choose another type of message, or change when the subscriptions run.'
              : 'A real message would be delivered.'
            : 'A real message would be retried or would fail, depending on the reason below.'}
        </Text>
      </Alert>
      {attempts.length > 0 && (
        <TestAttempts Attempt={IntegrationAttempt} title={attempts.length === 1 ? 'Request' : 'Requests'} attempts={attempts} />
      )}
    </Stack>
  )
}
