// Saves what was changed, also in other tabs. Says first what that does to the last messages.

import { Button, Group, List, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { ErrorAlert, Loading } from '../../components/page.tsx'
import { Note, SecondaryButton } from '../../components/styled.tsx'
import { BAD } from '../status-view.tsx'
import { effectsOf } from './preview-rows.ts'
import { type ContentChanges, type ContentState, type PreviewState, useCurrent } from './use-content.ts'

/** `other`: another part of the content that is edited in another tab and saved together. */
export function SaveBar({ content, preview, other }: { content: ContentState; preview: PreviewState; other?: keyof ContentChanges }) {
  const { changes, destination, isChanged, isReadOnly, problems } = content
  const [isAsked, setAsked] = useState(false)
  const current = useCurrent(content, isAsked)
  if (isReadOnly) {
    return <Note>Changing what is sent requires the editor or admin role, and access to all sources of the destination.</Note>
  }
  if (!isChanged) return null
  const isInvalid = problems.size > 0 || preview.problem?.status === 400
  const isOtherChanged = other !== undefined && changes !== null && changes[other] !== undefined
  const wrong = [...problems.keys(), ...(preview.problem?.field == null ? [] : [preview.problem.field.replace(/^changes\./, '')])]
  const isOtherWrong = other !== undefined && wrong.length > 0 && wrong.every((field) => field.startsWith(`${other}.`))
  return (
    <>
      <Group>
        <Button onClick={() => setAsked(true)} disabled={changes === null || isInvalid}>
          Save
        </Button>
        <SecondaryButton onClick={content.discard}>Discard changes</SecondaryButton>
        <Text size="sm" c={isInvalid ? BAD : 'dimmed'} role="status">
          {isInvalid
            ? `Correct the errors${isOtherWrong ? ` in the ${other}` : ''} to save.`
            : changes === null
              ? 'Nothing to save: the settings are the same.'
              : `Unsaved changes${isOtherChanged ? `, also of the ${other}` : ''}.`}
        </Text>
      </Group>
      <ConfirmDialog
        opened={isAsked}
        onClose={() => setAsked(false)}
        title={`Save version ${destination.version + 1}?`}
        verb="Save"
        color="blue"
        onConfirm={async () => {
          if (changes === null) return
          const saved = await content.save(changes)
          notifications.show({ color: 'teal', message: `Saved as version ${saved.version}.` })
        }}
      >
        <Stack gap="xs">
          {preview.problem !== null ? (
            <ErrorAlert problem={preview.problem} />
          ) : current.error !== null ? (
            <ErrorAlert problem={current.error} onRetry={() => void current.refetch()} />
          ) : current.data === undefined || preview.entries === null || preview.isLoading ? (
            <Loading lines={2} label="Comparing with what is sent now" />
          ) : (
            <List size="sm" spacing={4}>
              {effectsOf(current.data.data, preview.entries).map((effect) => (
                <List.Item key={effect}>{effect}</List.Item>
              ))}
            </List>
          )}
          <Note>
            Messages that are waiting for a retry are also sent with the new version. You can restore version {destination.version} at any
            time.
          </Note>
        </Stack>
      </ConfirmDialog>
    </>
  )
}
