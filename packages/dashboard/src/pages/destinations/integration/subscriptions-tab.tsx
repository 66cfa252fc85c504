// The tab Subscriptions: what runs when, saving, the preview on the last messages, and the versions.

import { Stack, Text } from '@mantine/core'
import { messageAtField } from '../draft.ts'
import { OutdatedAlert } from '../shape/outdated-alert.tsx'
import { Preview } from '../shape/preview.tsx'
import { SaveBar } from '../shape/save-bar.tsx'
import { shapeFieldOf } from '../shape/shape-draft.ts'
import { type ShapeState, usePreview } from '../shape/use-shape.ts'
import { Versions } from '../shape/versions.tsx'
import type { Definition } from './definition.ts'
import { Subscriptions } from './subscriptions.tsx'

export default function SubscriptionsTab({ shape, definition }: { shape: ShapeState; definition: Definition }) {
  const { draft, destination, isReadOnly } = shape
  const preview = usePreview(shape)
  const apiField = preview.problem === null ? null : shapeFieldOf(preview.problem.field, draft)
  const problem = (field: string): string | null =>
    shape.problems.get(field) ??
    (preview.problem !== null && apiField === field ? messageAtField(preview.problem.field, preview.problem.message) : null)
  return (
    <Stack gap="lg">
      <OutdatedAlert shape={shape} />
      <Stack gap="sm" maw={860}>
        <Text size="sm" c="dimmed">
          Each subscription runs an action for the messages that match. A message that no subscription matches is skipped.
        </Text>
        <Subscriptions
          definition={definition}
          subscriptions={draft.subscriptions ?? []}
          onChange={shape.setSubscriptions}
          sourceIds={destination.sourceIds}
          problem={problem}
          wrong={[...shape.problems.keys(), ...(apiField === null ? [] : [apiField])]}
          isReadOnly={isReadOnly}
        />
      </Stack>
      <SaveBar shape={shape} preview={preview} part="subscriptions" />
      <Preview shape={shape} preview={preview} />
      {destination.version > 1 && <Versions shape={shape} />}
    </Stack>
  )
}
