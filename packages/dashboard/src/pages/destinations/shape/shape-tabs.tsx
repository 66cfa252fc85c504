// The tabs Request and Transformation: the settings, saving, the preview on the last messages, and the versions.

import { Button, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import { Empty } from '../../../components/query-states.tsx'
import { messageAtField } from '../draft.ts'
import { OutdatedAlert } from './outdated-alert.tsx'
import { Preview } from './preview.tsx'
import { RequestFields } from './request-fields.tsx'
import { SaveBar } from './save-bar.tsx'
import { NEW_REQUEST, NEW_TRANSFORMATION, shapeFieldOf, shapeOf } from './shape-draft.ts'
import { TransformationFields } from './transformation-fields.tsx'
import { type ShapeState, usePreview } from './use-shape.ts'
import { Versions } from './versions.tsx'

export default function ShapeTab({ shape, part }: { shape: ShapeState; part: 'request' | 'transformation' }) {
  const { draft, destination, isReadOnly } = shape
  const preview = usePreview(shape)
  const problem = (field: string): string | null =>
    shape.problems.get(field) ??
    (preview.problem !== null && shapeFieldOf(preview.problem.field, draft) === field
      ? messageAtField(preview.problem.field, preview.problem.message)
      : null)
  const isOff = draft[part] === null
  const isUsed = draft.request !== null || draft.transformation !== null || shape.isChanged
  return (
    <Stack gap="lg">
      <OutdatedAlert shape={shape} />
      {part === 'request' ? (
        draft.request === null ? (
          <Off
            title={
              shapeOf(destination).request === null ? 'Messages are sent as they are' : 'The request settings are removed when you save'
            }
            label="Customize the request"
            onAdd={isReadOnly ? null : () => shape.setRequest(NEW_REQUEST)}
          >
            Each message is sent as JSON in a POST request to the URL. Customize the request for APIs that need another method, path,
            header, body or format.
          </Off>
        ) : (
          <RequestFields
            request={draft.request}
            onChange={shape.setRequest}
            problem={problem}
            apiProblem={preview.problem}
            isReadOnly={isReadOnly}
          />
        )
      ) : draft.transformation === null ? (
        <Off
          title={shapeOf(destination).transformation === null ? 'No transformation' : 'The transformation is removed when you save'}
          label="Add a transformation"
          onAdd={isReadOnly ? null : () => shape.setTransformation(NEW_TRANSFORMATION)}
        >
          A transformation is a JavaScript function that changes messages before they are sent, or drops them.
        </Off>
      ) : (
        <TransformationFields
          transformation={draft.transformation}
          onChange={shape.setTransformation}
          problem={problem}
          entries={preview.problem === null ? preview.entries : null}
          isReadOnly={isReadOnly}
        />
      )}
      <SaveBar shape={shape} preview={preview} part={part} />
      {(!isOff || isUsed) && <Preview shape={shape} preview={preview} />}
      {destination.version > 1 && <Versions shape={shape} />}
    </Stack>
  )
}

function Off({ title, label, onAdd, children }: { title: string; label: string; onAdd: (() => void) | null; children: ReactNode }) {
  return (
    <Empty title={title} action={onAdd === null ? null : <Button onClick={onAdd}>{label}</Button>}>
      {children}
    </Empty>
  )
}
