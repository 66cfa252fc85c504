// Saves what was changed in both tabs. Says first what that does to the last messages.

import { Button, Group, List, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { ConfirmDialog } from '../../../components/confirm-dialog.tsx'
import { ErrorAlert, Loading } from '../../../components/query-states.tsx'
import { BAD } from '../status-view.tsx'
import { effectsOf } from './preview-rows.ts'
import { type PreviewState, type ShapeState, useCurrent } from './use-shape.ts'

export function SaveBar({
  shape,
  preview,
  part,
}: {
  shape: ShapeState
  preview: PreviewState
  part: 'request' | 'transformation' | 'subscriptions'
}) {
  const { changes, destination, isChanged, isReadOnly, problems } = shape
  const [isAsked, setAsked] = useState(false)
  const current = useCurrent(shape, isAsked)
  if (isReadOnly) {
    return (
      <Text size="sm" c="dimmed">
        Changing what is sent requires an admin token.
      </Text>
    )
  }
  if (!isChanged) return null
  const isInvalid = problems.size > 0 || preview.problem?.status === 400
  const other = part === 'subscriptions' ? part : part === 'request' ? 'transformation' : 'request'
  const isOtherChanged = other !== part && changes !== null && changes[other] !== undefined
  const wrong = [...problems.keys(), ...(preview.problem?.field == null ? [] : [preview.problem.field.replace(/^changes\./, '')])]
  const isOtherWrong = other !== part && wrong.length > 0 && wrong.every((field) => field.startsWith(`${other}.`))
  return (
    <>
      <Group>
        <Button onClick={() => setAsked(true)} disabled={changes === null || isInvalid}>
          Save
        </Button>
        <Button variant="default" onClick={shape.discard}>
          Discard changes
        </Button>
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
          const saved = await shape.save(changes)
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
          <Text size="sm" c="dimmed">
            Messages that are waiting for a retry are also sent with the new version. You can restore version {destination.version} at any
            time.
          </Text>
        </Stack>
      </ConfirmDialog>
    </>
  )
}
