// The versions of what the destination sends: when each was saved, by whom, what it contains, and restoring it.

import { Group, Modal, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { type ReactNode, useState } from 'react'
import type { ApiProblem } from '../../api/client.ts'
import { type Answer, useList } from '../../api/queries.ts'
import { ConfirmButton } from '../../components/confirm-dialog.tsx'
import { ErrorAlert } from '../../components/page.tsx'
import { LoadMore, ResponsiveTable } from '../../components/responsive-table.tsx'
import { RowButton, SectionTitle, SmallTag, Strong, Time } from '../../components/styled.tsx'
import type { ContentState } from './use-content.ts'

export type Version = Answer<'GET /api/destinations/{id}/versions'>['data'][number]

/** How the versions of a kind are shown. */
export interface VersionView {
  /** What the version contains, in a few words each. */
  partsOf: (version: Version) => string[]
  content: (version: Version) => ReactNode
}

export function Versions({ content, view }: { content: ContentState; view: VersionView }) {
  const { destination, isReadOnly } = content
  const versions = useList('GET /api/destinations/{id}/versions', { params: { id: destination.id }, query: { limit: 10 } })
  const [shown, show] = useState<Version | null>(null)
  return (
    <Stack gap="sm" component="section" aria-labelledby="versions">
      <SectionTitle id="versions">Versions</SectionTitle>
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
                {version === destination.version && <SmallTag>current</SmallTag>}
              </Group>
            ),
          },
          { label: 'Saved', isShort: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
          { label: 'By', cell: ({ actor }) => actor?.name ?? '–' },
          { label: 'Contains', cell: (version) => contentText(view.partsOf(version), version) },
          {
            label: 'Actions',
            isActions: true,
            cell: (each) => (
              <Group gap="xs" wrap="nowrap" justify="flex-end">
                <RowButton onClick={() => show(each)} aria-label={`View version ${each.version}`}>
                  View
                </RowButton>
                {!isReadOnly && each.version !== destination.version && <Restore version={each.version} content={content} />}
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
        {shown !== null &&
          (view.partsOf(shown).length === 0 ? <Text size="sm">Messages are sent as they are.</Text> : <Stack>{view.content(shown)}</Stack>)}
      </Modal>
    </Stack>
  )
}

/** Asks first if there are unsaved changes. */
function Restore({ version, content }: { version: number; content: ContentState }) {
  const [isBusy, setBusy] = useState(false)
  const restore = async (): Promise<void> => {
    setBusy(true)
    try {
      const saved = await content.save({ version })
      notifications.show({ color: 'teal', message: `Version ${version} was restored as version ${saved.version}.` })
    } catch (error) {
      notifications.show({ color: 'red', title: `Could not restore version ${version}`, message: (error as ApiProblem).message })
    } finally {
      setBusy(false)
    }
  }
  return (
    <ConfirmButton
      button={(open) => (
        <RowButton
          loading={isBusy}
          disabled={content.isSaving}
          onClick={() => (content.isChanged ? open() : void restore())}
          aria-label={`Restore version ${version}`}
        >
          Restore
        </RowButton>
      )}
      title={`Restore version ${version}?`}
      verb="Discard and restore"
      onConfirm={restore}
    >
      Your unsaved changes are discarded.
    </ConfirmButton>
  )
}

/** `PUT /users/{{userId}}, mapping; transformation, 12 lines (restored from 3)` */
function contentText(parts: readonly string[], { restoredFrom }: Version): string {
  const text = parts.length === 0 ? 'messages as they are' : parts.join('; ')
  return restoredFrom === null ? text : `${text} (restored from ${restoredFrom})`
}

/** A part of what a version contains. */
export function VersionPart({ title, children }: { title: ReactNode; children: ReactNode }) {
  return (
    <Stack gap={4}>
      <Strong>{title}</Strong>
      {children}
    </Stack>
  )
}
