// The tabs Request and Transformation of a webhook.

import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import { CodeBlock, Json } from '../../../components/copyable.tsx'
import { Empty } from '../../../components/page.tsx'
import { ContentTab } from '../../../destination/content/content-tab.tsx'
import type { ContentEditor } from '../../../destination/content/use-content.ts'
import { VersionPart, type VersionView } from '../../../destination/content/versions.tsx'
import { plural } from '../../../text/format.ts'
import type { Webhook } from '../form/webhook-draft.ts'
import { RequestFields } from './request-fields.tsx'
import { TransformationFields } from './transformation-fields.tsx'
import { NEW_REQUEST, NEW_TRANSFORMATION, type WebhookContentDraft } from './webhook-content.ts'

type Part = 'request' | 'transformation'

export default function WebhookContentTab({ content, part }: { content: ContentEditor<Webhook, WebhookContentDraft>; part: Part }) {
  const { draft, destination, isReadOnly, isChanged, edit } = content
  const isUsed = draft.request !== null || draft.transformation !== null || isChanged
  return (
    <ContentTab content={content} other={part === 'request' ? 'transformation' : 'request'} isPreviewed={isUsed} versions={VERSIONS}>
      {({ problem, preview }) =>
        part === 'request' ? (
          draft.request === null ? (
            <Off
              title={destination.request === null ? 'Messages are sent as they are' : 'The request settings are removed when you save'}
              label="Customize the request"
              onAdd={isReadOnly ? null : () => edit({ request: NEW_REQUEST })}
            >
              Each message is sent as JSON in a POST request to the URL. Customize the request for APIs that need another method, path,
              header, body or format.
            </Off>
          ) : (
            <RequestFields
              request={draft.request}
              onChange={(request) => edit({ request })}
              problem={problem}
              apiProblem={preview.problem}
              isReadOnly={isReadOnly}
            />
          )
        ) : draft.transformation === null ? (
          <Off
            title={destination.transformation === null ? 'No transformation' : 'The transformation is removed when you save'}
            label="Add a transformation"
            onAdd={isReadOnly ? null : () => edit({ transformation: NEW_TRANSFORMATION })}
          >
            A transformation is a JavaScript function that changes messages before they are sent, or drops them.
          </Off>
        ) : (
          <TransformationFields
            transformation={draft.transformation}
            onChange={(transformation) => edit({ transformation })}
            problem={problem}
            entries={preview.problem === null ? preview.entries : null}
            isReadOnly={isReadOnly}
          />
        )
      }
    </ContentTab>
  )
}

function Off({ title, label, onAdd, children }: { title: string; label: string; onAdd: (() => void) | null; children: ReactNode }) {
  return (
    <Empty title={title} action={onAdd === null ? null : <Button onClick={onAdd}>{label}</Button>}>
      {children}
    </Empty>
  )
}

const VERSIONS: VersionView = {
  partsOf: ({ request, transformation }) => [
    ...(request === null
      ? []
      : [`${request.method ?? 'POST'}${request.path ? ` ${request.path}` : ''}${request.body == null ? '' : ', mapping'}`]),
    ...(transformation === null ? [] : [`transformation of ${linesText(transformation.code)}`]),
  ],
  content: ({ request, transformation }) => (
    <>
      {request !== null && (
        <VersionPart title="Request">
          <Json value={request} label="the request settings" />
        </VersionPart>
      )}
      {transformation !== null && (
        <VersionPart title={`Transformation (${transformation.timeoutMs} ms, ${transformation.memoryMb} MB)`}>
          <CodeBlock text={transformation.code} label="the code" maxHeight={480} />
        </VersionPart>
      )}
    </>
  ),
}

function linesText(code: string): string {
  const lines = code.trimEnd().split('\n').length
  return plural(lines, 'line')
}
