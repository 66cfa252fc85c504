// How a message becomes an HTTP request: method, path, headers, body and format.

import { Anchor, Code, Group, Input, Paper, SegmentedControl, Select, SimpleGrid, Stack, TextInput } from '@mantine/core'
import { useMemo } from 'react'
import type { ApiProblem } from '../../../api/client.ts'
import { CodeEditor } from '../../../components/code-editor.tsx'
import { entered } from '../../../components/inputs.tsx'
import { Note, SectionTitle, SmallButton } from '../../../components/styled.tsx'
import { jsonProblem } from '../../../text/code-problems.ts'
import { HeaderRows } from '../form/url-and-header-fields.tsx'
import { EXAMPLE_MAPPING, METHODS, mappingProblem, type RequestDraft } from './webhook-content.ts'

const FORMATS = [
  { value: 'json', label: 'JSON (a batch is an array)' },
  { value: 'wrap', label: 'JSON object with a list' },
  { value: 'ndjson', label: 'One JSON value per line (NDJSON)' },
  { value: 'form', label: 'Form (URL-encoded)' },
  { value: 'text', label: 'Plain text' },
]

interface RequestFieldsProps {
  request: RequestDraft
  onChange: (request: RequestDraft | null) => void
  problem: (field: string) => string | null
  apiProblem: ApiProblem | null
  isReadOnly: boolean
}

export function RequestFields(props: RequestFieldsProps) {
  const { request, onChange, problem, isReadOnly } = props
  const { method, path, headers, format, wrap } = request
  const set = (changes: Partial<RequestDraft>): void => onChange({ ...request, ...changes })
  return (
    <Paper withBorder p="md">
      <Stack>
        <Group justify="space-between">
          <SectionTitle>Request</SectionTitle>
          {!isReadOnly && <SmallButton onClick={() => onChange(null)}>Use the default request</SmallButton>}
        </Group>
        <Note>
          In the path, headers and mapping, <Code>{'{{userId}}'}</Code> or <Code>{'{{properties.total}}'}</Code> stands for a value of the
          message.
        </Note>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <Select
            label="Method"
            data={[...METHODS]}
            value={method}
            onChange={(value) => set({ method: value as RequestDraft['method'] })}
            readOnly={isReadOnly}
            allowDeselect={false}
          />
          <TextInput
            label="Path"
            description="Appended to the URL. Optional."
            inputWrapperOrder={['label', 'input', 'description', 'error']}
            placeholder="/users/{{userId}}"
            {...entered(path, (path) => set({ path: path.trim() }))}
            error={problem('request.path')}
            readOnly={isReadOnly}
            autoComplete="off"
          />
        </SimpleGrid>
        <Stack gap="sm" role="group" aria-label="Headers of the request">
          <Input.Label labelElement="div">Headers</Input.Label>
          <HeaderRows
            headers={headers}
            onChange={(next) => set({ headers: next })}
            problem={(name) => problem(`request.${name}`)}
            isReadOnly={isReadOnly}
            examples={['X-Tenant', '{{context.tenant}}']}
          />
        </Stack>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <Select
            label="Format"
            data={FORMATS}
            value={format}
            onChange={(value) => set({ format: value as RequestDraft['format'] })}
            error={format === 'wrap' ? null : problem('request.format.wrap')}
            readOnly={isReadOnly}
            allowDeselect={false}
          />
          {format === 'wrap' && (
            <TextInput
              label="Key of the list"
              {...entered(wrap, (wrap) => set({ wrap }))}
              error={problem('request.format.wrap')}
              readOnly={isReadOnly}
              autoComplete="off"
            />
          )}
        </SimpleGrid>
        <Body {...props} />
      </Stack>
    </Paper>
  )
}

function Body({ request, onChange, problem, apiProblem, isReadOnly }: RequestFieldsProps) {
  const { body } = request
  const set = (next: string | null): void => onChange({ ...request, body: next })
  const field = apiProblem?.field ?? 'request.body'
  const bodyProblem = problem('request.body')
  const problems = useMemo(() => {
    if (body === null || bodyProblem === null) return []
    return [jsonProblem(body) ?? mappingProblem(body, field, bodyProblem)]
  }, [body, bodyProblem, field])
  return (
    <>
      <Input.Wrapper label="Body" labelElement="div">
        <SegmentedControl
          fullWidth
          maw={400}
          aria-label="Body"
          value={body === null ? 'message' : 'mapping'}
          onChange={(value) => set(value === 'message' ? null : EXAMPLE_MAPPING)}
          data={[
            { value: 'message', label: 'The message' },
            { value: 'mapping', label: 'A mapping' },
          ]}
          readOnly={isReadOnly}
        />
      </Input.Wrapper>
      {body !== null && (
        <>
          <CodeEditor
            label="Mapping"
            description="JSON. Objects with @path, @template, @if, @literal, @arrayPath, @case, @replace, @json, @flatten or @merge are replaced by values of the message."
            language="json"
            value={body}
            onChange={set}
            problems={problems}
            isReadOnly={isReadOnly}
          />
          {problems.map(({ line, message }) => (
            <Input.Error key={message} role="alert">
              Line {line}: {message}
            </Input.Error>
          ))}
          {!isReadOnly && body.trim() === '' && (
            <Anchor component="button" type="button" size="sm" onClick={() => set(EXAMPLE_MAPPING)}>
              Insert an example
            </Anchor>
          )}
        </>
      )}
    </>
  )
}
