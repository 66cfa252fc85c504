// The tabs Request and Transformation of a webhook. Errors in code are shown at their line: syntax errors from the service, and those of the preview.

import { Button, Group, Input, NumberInput, Paper, SimpleGrid, Stack } from '@mantine/core'
import { type ReactNode, useMemo } from 'react'
import { CodeEditor } from '../../../components/code-editor.tsx'
import { CodeBlock, Json } from '../../../components/copyable.tsx'
import { Empty } from '../../../components/page.tsx'
import { Note, SectionTitle, SmallButton } from '../../../components/styled.tsx'
import { ContentTab } from '../../../destination/content/content-tab.tsx'
import { failuresOf, type PreviewEntry } from '../../../destination/content/preview-rows.ts'
import type { ContentEditor } from '../../../destination/content/use-content.ts'
import { VersionPart, type VersionView } from '../../../destination/content/versions.tsx'
import { plural } from '../../../text/format.ts'
import type { Webhook } from '../form/webhook-draft.ts'
import { RequestFields } from './request-fields.tsx'
import { codeProblem, NEW_REQUEST, NEW_TRANSFORMATION, type TransformationDraft, type WebhookContentDraft } from './webhook-content.ts'

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

interface TransformationFieldsProps {
  transformation: TransformationDraft
  onChange: (transformation: TransformationDraft | null) => void
  problem: (field: string) => string | null
  /** The preview of this code; null if there is none. */
  entries: readonly PreviewEntry[] | null
  isReadOnly: boolean
}

export function TransformationFields({ transformation, onChange, problem, entries, isReadOnly }: TransformationFieldsProps) {
  const { code, timeoutMs, memoryMb } = transformation
  const set = (changes: Partial<TransformationDraft>): void => onChange({ ...transformation, ...changes })
  const syntax = problem('transformation.code')
  const errors = useMemo(() => (syntax === null ? failuresOf(entries ?? []) : [{ message: syntax, count: null }]), [syntax, entries])
  const problems = useMemo(() => errors.map(({ message }) => codeProblem(message)), [errors])
  const number = (field: 'timeoutMs' | 'memoryMb', value: number | null) => ({
    value: value ?? '',
    onChange: (next: number | string) => set({ [field]: typeof next === 'number' ? next : null }),
    error: problem(`transformation.${field}`),
    readOnly: isReadOnly,
    allowDecimal: false,
    thousandSeparator: ',',
    clampBehavior: 'none' as const,
  })
  return (
    <Paper withBorder p="md">
      <Stack>
        <Group justify="space-between">
          <SectionTitle>Transformation</SectionTitle>
          {!isReadOnly && <SmallButton onClick={() => onChange(null)}>Remove the transformation</SmallButton>}
        </Group>
        <Note>The function runs in a sandbox without network, files and timers. The same message always gives the same result.</Note>
        <CodeEditor
          label="Code"
          language="javascript"
          value={code}
          onChange={(value) => set({ code: value })}
          problems={problems}
          isReadOnly={isReadOnly}
        />
        {errors.map(({ message, count }) => (
          <Input.Error key={message} role="alert" style={{ overflowWrap: 'anywhere' }}>
            {message}
            {count !== null && ` (${count === 1 ? '1 message fails' : `${count} messages fail`})`}
          </Input.Error>
        ))}
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <NumberInput label="Timeout in ms" description="1 to 1,000 for each message." {...number('timeoutMs', timeoutMs)} />
          <NumberInput label="Memory in MB" description="1 to 64." {...number('memoryMb', memoryMb)} />
        </SimpleGrid>
      </Stack>
    </Paper>
  )
}
