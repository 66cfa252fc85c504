// A tab that edits what a destination sends: the fields of the kind, saving, the preview on the last messages, and the versions.

import { Alert, Group, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { SmallButton } from '../../components/styled.tsx'
import { messageAtField } from '../form/draft.ts'
import { Preview } from './preview.tsx'
import { SaveBar } from './save-bar.tsx'
import { type ContentChanges, type ContentState, type PreviewState, usePreview } from './use-content.ts'
import { Versions, type VersionView } from './versions.tsx'

interface ContentTabProps {
  content: ContentState
  /** Another part of the content, which is edited in another tab. */
  other?: keyof ContentChanges
  isPreviewed?: boolean
  versions: VersionView
  /** The fields. `problem` returns the error to show at a field. */
  children: (props: { problem: (field: string) => string | null; preview: PreviewState }) => ReactNode
}

export function ContentTab({ content, other, isPreviewed = true, versions, children }: ContentTabProps) {
  const preview = usePreview(content)
  const problem = (field: string): string | null =>
    content.problems.get(field) ??
    (preview.problem !== null && content.fieldOf(preview.problem.field) === field
      ? messageAtField(preview.problem.field, preview.problem.message)
      : null)
  return (
    <Stack gap="lg">
      <OutdatedAlert content={content} />
      {children({ problem, preview })}
      <SaveBar content={content} preview={preview} {...(other === undefined ? {} : { other })} />
      {isPreviewed && <Preview content={content} preview={preview} />}
      {content.destination.version > 1 && <Versions content={content} view={versions} />}
    </Stack>
  )
}

export function OutdatedAlert({ content: { isOutdated, destination, discard } }: { content: ContentState }) {
  if (!isOutdated) return null
  return (
    <Alert color="blue" variant="light" title={`Version ${destination.version} was saved elsewhere`}>
      <Group gap="sm">
        <Text size="sm">You are editing an older version. Saving replaces the newer one.</Text>
        <SmallButton onClick={discard}>Discard my changes</SmallButton>
      </Group>
    </Alert>
  )
}
