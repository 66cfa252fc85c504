// The page of a webhook: the health of each URL, a banner while its code or its mapping fails, and the outcome of a test.

import { Alert, Group, Stack, Text } from '@mantine/core'
import { lazy } from 'react'
import type { Answer } from '../../api/queries.ts'
import { ResponsiveTable } from '../../components/responsive-table.tsx'
import { AlertLink, SectionTitle, Time } from '../../components/styled.tsx'
import { deliveriesAddress } from '../../delivery/filters.ts'
import { RequestView } from '../../delivery/request.tsx'
import { useContent } from '../../destination/content/use-content.ts'
import { SettingsTab } from '../../destination/form/settings-tab.tsx'
import { DestinationFrame } from '../../destination/frame.tsx'
import type { Health } from '../../destination/health.tsx'
import { Latency, Success } from '../../destination/status-view.tsx'
import { type Sent, TestAttempts } from '../../destination/test-panel.tsx'
import { useMayEdit } from '../../session/session.tsx'
import { exactCount } from '../../text/format.ts'
import { WEBHOOK_CONTENT } from './content/webhook-content.ts'
import type { Webhook } from './form/webhook-draft.ts'
import { WEBHOOK_FORM } from './form/webhook-form.ts'
import { WEBHOOK_SUMMARY, WebhookAttempt } from './summary.tsx'

const ContentTab = lazy(() => import('./content/webhook-content-tab.tsx'))

export default function WebhookPage({ destination }: { destination: Webhook }) {
  const { id, urls } = destination
  const mayEdit = useMayEdit(destination)
  const content = useContent(destination, WEBHOOK_CONTENT, !mayEdit)
  const target = urls.length === 1 ? 'the URL' : `all ${urls.length} URLs`
  return (
    <DestinationFrame
      destination={destination}
      kind={WEBHOOK_SUMMARY}
      notice={({ content: { failing } }) => failing !== null && <CodeFailure id={id} failing={failing} />}
      healthDetails={(health) => <Urls health={health} />}
      test={{
        about: `Sends a sample message to ${target} now, signed like any other.`,
        outcome: (sent) => <WebhookOutcome sent={sent} destination={destination} />,
      }}
      tabs={{
        request: <ContentTab content={content} part="request" />,
        transformation: <ContentTab content={content} part="transformation" />,
      }}
      settings={<SettingsTab destination={destination} formOf={() => WEBHOOK_FORM} mayEdit={mayEdit} />}
    />
  )
}

export function Urls({ health: { urls } }: { health: Health }) {
  return (
    <Stack gap="xs">
      <SectionTitle>{urls.length === 1 ? 'URL' : 'URLs'}</SectionTitle>
      <ResponsiveTable
        label="URLs with success rate and latency"
        rows={urls}
        keyOf={({ url }) => url}
        columns={[
          { label: 'URL', cell: ({ url }) => url },
          { label: 'Success rate', cell: ({ success }) => <Success success={success} /> },
          { label: 'Latency', cell: ({ latencyMs }) => <Latency latencyMs={latencyMs} /> },
          { label: 'In flight', cell: ({ inFlight }) => exactCount(inFlight), isNumber: true },
        ]}
      />
    </Stack>
  )
}

export function WebhookOutcome({
  sent: { success, attempts, request },
  destination: { urls, hasSharedSecret, hasSigningSecrets, request: shape },
}: {
  sent: Sent
  destination: Webhook
}) {
  const good = attempts.filter(({ reason }) => reason === null).length
  const title = success
    ? attempts.length === 1
      ? `Test passed: the URL answered ${attempts[0]?.status ?? '2xx'}.`
      : good === attempts.length
        ? `Test passed: all ${attempts.length} URLs answered 2xx.`
        : `Test passed: ${good} of ${attempts.length} URLs answered 2xx. One is enough.`
    : 'Test failed: no URL answered 2xx.'
  return (
    <Stack gap="lg">
      <Alert color={success ? 'teal' : 'red'} variant="light" title={title} role="status">
        {success ? (
          <Text size="sm">
            A real message would be delivered.{' '}
            {!hasSharedSecret &&
              !hasSigningSecrets &&
              'The request is not signed: set a signing secret in the settings so that the receiver can verify who sent it.'}
          </Text>
        ) : (
          <Text size="sm">
            A real message would be retried or would fail, depending on the reason below. If the receiver rejected the signature, the{' '}
            <AlertLink to="/signature">signature checker</AlertLink> shows what differs.
          </Text>
        )}
      </Alert>
      <TestAttempts Attempt={WebhookAttempt} title={attempts.length === 1 ? 'Response' : 'Responses'} attempts={attempts} />
      {request !== null && (
        <Stack gap="sm">
          <SectionTitle>Request</SectionTitle>
          <RequestView request={{ ...request, note: null }} url={attempts[0]?.url ?? urls[0] ?? null} method={shape?.method ?? 'POST'} />
        </Stack>
      )}
    </Stack>
  )
}

type Failing = NonNullable<Answer<'GET /api/destinations/{id}/health'>['content']['failing']>

export function CodeFailure({ id, failing: { reason, error, sinceVersion, lastAt } }: { id: string; failing: Failing }) {
  const part = reason === 'transformation_failed' ? 'transformation' : 'request'
  return (
    <Alert
      color="red"
      variant="light"
      role="status"
      title={`${part === 'transformation' ? 'The transformation' : 'The mapping of the request'} fails since version ${sinceVersion}`}
    >
      <Text size="sm" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
        {error}
      </Text>
      <Text size="sm" mt={4} component="div">
        The last delivery failed <Time at={lastAt} relative />. Correct the {part === 'transformation' ? 'code' : 'mapping'} or restore an
        older version, then replay the failed deliveries.
      </Text>
      <Group gap="md" mt={4}>
        <AlertLink to={`/destinations/${encodeURIComponent(id)}?tab=${part}`}>Open the {part}</AlertLink>
        <AlertLink to={deliveriesAddress({ destinationId: id, state: 'failed', reason })}>View failed deliveries</AlertLink>
      </Group>
    </Alert>
  )
}
