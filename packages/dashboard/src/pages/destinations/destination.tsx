// The page of one destination: health, test, what it sends, and settings. /destinations/new shows the form for a new webhook.

import { Alert, Button, Group, Tabs, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { lazy, Suspense, useState } from 'react'
import { Link } from 'wouter'
import { useApi, useChange } from '../../api/queries.ts'
import { Copyable } from '../../components/copyable.tsx'
import { IntegrationTile } from '../../components/integration-tile.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, ErrorAlert, Loaded, Loading } from '../../components/query-states.tsx'
import { useSession } from '../../session.tsx'
import { usePathPart, useSearchState } from '../../url-state.ts'
import { DestinationActions } from './actions.tsx'
import { statusOf } from './destination-status.ts'
import { type Destination, draftOf, type Integration, type IntegrationForm, patchBodyOf } from './draft.ts'
import { DestinationForm } from './form/destination-form.tsx'
import { HealthView } from './health.tsx'
import { type Definition, definitionOf } from './integration/definition.ts'
import { NewDestination } from './new-destination.tsx'
import { CodeFailure } from './shape/code-failure.tsx'
import { useShape } from './shape/use-shape.ts'
import { StatusBadge } from './status-view.tsx'
import { targetText } from './target-text.ts'
import { TestPanel } from './test-panel.tsx'

const TABS = {
  webhook: ['health', 'test', 'request', 'transformation', 'settings'],
  integration: ['health', 'test', 'subscriptions', 'settings'],
} as const

const ShapeTab = lazy(() => import('./shape/shape-tabs.tsx'))
const SubscriptionsTab = lazy(() => import('./integration/subscriptions-tab.tsx'))

export default function DestinationPage() {
  const id = usePathPart(1)
  return id === 'new' ? <NewDestination /> : <LoadedDestination key={id} id={id} />
}

function LoadedDestination({ id }: { id: string }) {
  const destination = useApi('GET /api/destinations/{id}', { params: { id }, everyMs: 15_000 })
  const slug = destination.data?.type === 'integration' ? destination.data.integration : null
  const definition = useApi('GET /api/catalog/{slug}', { params: { slug: slug ?? '' }, enabled: slug !== null })
  if (destination.data !== undefined && (slug === null || definition.data !== undefined || definition.error !== null))
    return (
      <DestinationDetails
        destination={destination.data}
        definition={definition.data === undefined ? null : definitionOf(definition.data)}
      />
    )
  if (destination.error === null)
    return (
      <Page title="Destination">
        <Loading lines={6} label="Loading destination" />
      </Page>
    )
  return (
    <Page title="Destination">
      {destination.error.code === 'destination_not_found' ? (
        <Empty
          title="Destination not found"
          action={
            <Button component={Link} href="/destinations">
              All destinations
            </Button>
          }
        >
          The destination was deleted, or the URL is incomplete.
        </Empty>
      ) : (
        <ErrorAlert problem={destination.error} onRetry={() => void destination.refetch()} />
      )}
    </Page>
  )
}

/** `definition` is null for a webhook, and if the catalogue does not have the integration. */
function DestinationDetails({ destination, definition }: { destination: Destination; definition: Definition | null }) {
  const { id, name, type } = destination
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const asked = params.get('tab')
  const tab = TABS[type].find((each) => each === asked) ?? 'health'
  const health = useApi('GET /api/destinations/{id}/health', { params: { id }, everyMs: 5_000 })
  const shape = useShape(destination, !isAdmin, definition)
  const status = health.data === undefined ? null : statusOf(destination, health.data, health.dataUpdatedAt)
  return (
    <Page
      title={name}
      actions={
        isAdmin ? (
          <DestinationActions destination={destination} />
        ) : (
          <Text size="sm" c="dimmed">
            Read-only: your token has the viewer role
          </Text>
        )
      }
    >
      <Group gap="sm">
        {destination.type === 'integration' && (
          <>
            <IntegrationTile slug={destination.integration} name={destination.integrationName} size={28} />
            <Text size="sm">{targetText(destination)}</Text>
          </>
        )}
        {status !== null && <StatusBadge status={status} size="lg" />}
        <Copyable text={id} label="the id" />
      </Group>
      {params.get('created') === 'yes' && (
        <Alert
          color="teal"
          variant="light"
          title="Destination created"
          withCloseButton
          closeButtonLabel="Close"
          onClose={() => change({ created: null }, { replace: true })}
          role="status"
        >
          {tab === 'test' ? 'Send a test to check that it works.' : 'Its health is shown here.'}
          {destination.sourceIds.length === 0 && ' No source sends to it yet. Choose one in the settings.'}
        </Alert>
      )}
      {health.data?.content.failing != null && <CodeFailure id={id} failing={health.data.content.failing} />}
      <Tabs
        value={tab}
        onChange={(value) => change({ tab: value === 'health' ? null : value, range: null, type: null })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {TABS[type].map((value) => (
            <Tabs.Tab key={value} value={value} px={{ base: 6, xs: 'md' }}>
              {value.charAt(0).toUpperCase() + value.slice(1)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="health">
          <Loaded query={health} lines={6}>
            {(data) => <HealthView destination={destination} health={data} seenAtMs={health.dataUpdatedAt} />}
          </Loaded>
        </Tabs.Panel>
        <Tabs.Panel value="test" keepMounted>
          <TestPanel destination={destination} isAdmin={isAdmin} />
        </Tabs.Panel>
        {type === 'webhook' &&
          (['request', 'transformation'] as const).map((part) => (
            <Tabs.Panel key={part} value={part}>
              <Suspense fallback={<Loading lines={6} />}>
                <ShapeTab shape={shape} part={part} />
              </Suspense>
            </Tabs.Panel>
          ))}
        <Tabs.Panel value="subscriptions">
          <Suspense fallback={<Loading lines={6} />}>
            {definition === null ? <NoDefinition /> : <SubscriptionsTab shape={shape} definition={definition} />}
          </Suspense>
        </Tabs.Panel>
        {/* Stays mounted so that unsaved input survives a change of tabs. */}
        <Tabs.Panel value="settings" keepMounted>
          {type === 'integration' && definition === null ? (
            <NoDefinition />
          ) : (
            <Settings destination={destination} definition={definition} isAdmin={isAdmin} />
          )}
        </Tabs.Panel>
      </Tabs>
    </Page>
  )
}

function NoDefinition() {
  return (
    <Empty
      title="The integration is not in the catalogue"
      action={
        <Button component={Link} href="/catalog" variant="default">
          Open the catalogue
        </Button>
      }
    >
      The integrations package is not installed, or its version does not have this integration. Deliveries are retried until it is
      installed.
    </Empty>
  )
}

function Settings({ destination, definition, isAdmin }: { destination: Destination; definition: Definition | null; isAdmin: boolean }) {
  // The destination as it was when the form was opened. Changes by others since then neither replace what was typed nor are overwritten.
  const [{ base, version }, setForm] = useState({ base: destination, version: 0 })
  const reload = (next: Destination): void => setForm({ base: next, version: version + 1 })
  const save = useChange(
    'PATCH /api/destinations/{id}',
    'GET /api/destinations',
    'GET /api/destinations/{id}',
    'GET /api/destinations/{id}/health',
    'GET /api/destinations/health',
  )
  const form = definition === null || base.type === 'webhook' ? null : formOf(base, definition)
  const isChangedElsewhere = JSON.stringify(settingsOf(base)) !== JSON.stringify(settingsOf(destination))
  return (
    <>
      {isChangedElsewhere && (
        <Alert color="blue" variant="light" title="The settings were changed elsewhere" mb="md" maw={860}>
          <Group gap="sm">
            <Text size="sm">This form shows older values. Saving writes only the fields that you changed.</Text>
            <Button size="xs" variant="default" onClick={() => reload(destination)}>
              Load current settings
            </Button>
          </Group>
        </Alert>
      )}
      <DestinationForm
        // A new base needs a new form.
        key={version}
        initial={draftOf(base, form)}
        id={base.id}
        isNew={false}
        hasSharedSecret={base.type === 'webhook' && base.hasSharedSecret}
        signingSecretCount={base.type === 'webhook' ? base.signingSecretCount : 0}
        integration={form}
        isReadOnly={!isAdmin}
        onSave={async (draft) => {
          const body = patchBodyOf(base, draft, form)
          // The values are the same in another notation (240 min, 4 h): nothing to save, and the form shows the normal notation.
          const saved = body === null ? base : await save.mutateAsync({ params: { id: base.id }, body })
          notifications.show({ color: 'teal', message: 'Saved.' })
          reload(saved)
        }}
      />
    </>
  )
}

function formOf({ integration, secretSettings }: Integration, { settings }: Definition): IntegrationForm {
  return { slug: integration, schema: settings, storedSecrets: secretSettings }
}

/** Ignores what this form does not edit. */
function settingsOf(destination: Destination): Destination {
  const same = { enabled: true, paused: false, version: 1 }
  return destination.type === 'webhook'
    ? { ...destination, ...same, request: null, transformation: null }
    : { ...destination, ...same, subscriptions: [] }
}
