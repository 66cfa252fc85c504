// The versions of what the destination sends: when each was saved, by whom, what it contains, and restoring it.

import { Badge, Button, Group, Modal, Stack, Text, Title } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import type { ApiProblem } from '../../../api/client.ts'
import { type Answer, useList } from '../../../api/queries.ts'
import { ConfirmDialog } from '../../../components/confirm-dialog.tsx'
import { CodeBlock } from '../../../components/copyable.tsx'
import { Json } from '../../../components/json.tsx'
import { ErrorAlert } from '../../../components/query-states.tsx'
import { LoadMore, ResponsiveTable } from '../../../components/responsive-table.tsx'
import { Time } from '../../../components/time.tsx'
import { whenText } from '../integration/when-fields.tsx'
import type { ShapeState } from './use-shape.ts'

type Version = Answer<'GET /api/destinations/{id}/versions'>['data'][number]

export function Versions({ shape }: { shape: ShapeState }) {
  const { destination, isReadOnly, isChanged } = shape
  const versions = useList('GET /api/destinations/{id}/versions', { params: { id: destination.id }, query: { limit: 10 } })
  const [shown, show] = useState<Version | null>(null)
  const [asked, ask] = useState<number | null>(null)
  const [busy, setBusy] = useState<number | null>(null)
  const restore = async (version: number): Promise<void> => {
    setBusy(version)
    try {
      const saved = await shape.save({ version })
      notifications.show({ color: 'teal', message: `Version ${version} was restored as version ${saved.version}.` })
    } catch (error) {
      notifications.show({ color: 'red', title: `Could not restore version ${version}`, message: (error as ApiProblem).message })
    } finally {
      setBusy(null)
    }
  }
  return (
    <Stack gap="sm" component="section" aria-labelledby="versions">
      <Title order={2} size="h4" id="versions">
        Versions
      </Title>
      {versions.problem !== null && <ErrorAlert problem={versions.problem} onRetry={() => void versions.refetch()} />}
      <ResponsiveTable
        rows={versions.rows}
        keyOf={({ version }) => String(version)}
        label="Versions, newest first"
        columns={[
          {
            label: 'Version',
            isShort: true,
            cell: ({ version }) => (
              <Group gap="xs" wrap="nowrap">
                {version}
                {version === destination.version && (
                  <Badge size="sm" variant="light" tt="none">
                    current
                  </Badge>
                )}
              </Group>
            ),
          },
          { label: 'Saved', isShort: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
          { label: 'By', cell: ({ actor }) => actor?.name ?? '–' },
          { label: 'Contains', cell: (version) => contentText(version) },
          {
            label: 'Actions',
            isActions: true,
            cell: (version) => (
              <Group gap="xs" wrap="nowrap" justify="flex-end">
                <Button size="compact-sm" variant="default" onClick={() => show(version)} aria-label={`View version ${version.version}`}>
                  View
                </Button>
                {!isReadOnly && version.version !== destination.version && (
                  <Button
                    size="compact-sm"
                    variant="default"
                    loading={busy === version.version}
                    disabled={busy !== null}
                    onClick={() => (isChanged ? ask(version.version) : void restore(version.version))}
                    aria-label={`Restore version ${version.version}`}
                  >
                    Restore
                  </Button>
                )}
              </Group>
            ),
          },
        ]}
      />
      <LoadMore list={versions} />
      <Modal
        opened={shown !== null}
        onClose={() => show(null)}
        title={`Version ${shown?.version ?? ''}`}
        size="lg"
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {shown !== null && <Content version={shown} />}
      </Modal>
      <ConfirmDialog
        opened={asked !== null}
        onClose={() => ask(null)}
        title={`Restore version ${asked ?? ''}?`}
        verb="Discard and restore"
        onConfirm={() => restore(asked as number)}
      >
        <Text size="sm">Your unsaved changes are discarded.</Text>
      </ConfirmDialog>
    </Stack>
  )
}

/** `PUT /users/{{userId}}, mapping; transformation, 12 lines (restored from 3)` */
function contentText({ request, transformation, subscriptions, restoredFrom }: Version): string {
  const parts = [
    ...(request === null
      ? []
      : [`${request.method ?? 'POST'}${request.path ? ` ${request.path}` : ''}${request.body == null ? '' : ', mapping'}`]),
    ...(transformation === null ? [] : [`transformation of ${linesText(transformation.code)}`]),
  ]
  if (subscriptions != null && subscriptions.length > 0) parts.push(subscriptionsText(subscriptions))
  const text = parts.length === 0 ? 'messages as they are' : parts.join('; ')
  return restoredFrom === null ? text : `${text} (restored from ${restoredFrom})`
}

function subscriptionsText(subscriptions: NonNullable<Version['subscriptions']>): string {
  const on = subscriptions.filter(({ enabled }) => enabled).length
  const text = subscriptions.length === 1 ? '1 subscription' : `${subscriptions.length} subscriptions`
  return on === subscriptions.length ? text : `${text}, ${on} on`
}

function linesText(code: string): string {
  const lines = code.trimEnd().split('\n').length
  return lines === 1 ? '1 line' : `${lines} lines`
}

function Content({ version: { request, transformation, subscriptions } }: { version: Version }) {
  return (
    <Stack>
      {subscriptions?.map((subscription) => (
        <Stack key={subscription.id} gap={4}>
          <Text size="sm" fw={600}>
            {subscription.name}
            {!subscription.enabled && ' (off)'}
          </Text>
          <Text size="sm">{whenText(subscription.subscribe)}</Text>
          <Json value={subscription.mapping} label={`the mapping of ${subscription.name}`} />
        </Stack>
      ))}
      {request === null && transformation === null && !subscriptions?.length && <Text size="sm">Messages are sent as they are.</Text>}
      {request !== null && (
        <Stack gap={4}>
          <Text size="sm" fw={600}>
            Request
          </Text>
          <Json value={request} label="the request settings" />
        </Stack>
      )}
      {transformation !== null && (
        <Stack gap={4}>
          <Text size="sm" fw={600}>
            Transformation ({transformation.timeoutMs} ms, {transformation.memoryMb} MB)
          </Text>
          <CodeBlock text={transformation.code} label="the code" maxHeight={480} />
        </Stack>
      )}
    </Stack>
  )
}
