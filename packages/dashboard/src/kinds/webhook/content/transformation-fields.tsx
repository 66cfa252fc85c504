// The code of the transformation and its limits. Errors are shown at their line: syntax errors from the service, and those of the preview.

import { Group, Input, NumberInput, Paper, SimpleGrid, Stack } from '@mantine/core'
import { useMemo } from 'react'
import { CodeEditor } from '../../../components/code-editor.tsx'
import { Note, SectionTitle, SmallButton } from '../../../components/styled.tsx'
import { failuresOf, type PreviewEntry } from '../../../destination/content/preview-rows.ts'
import { codeProblem, type TransformationDraft } from './webhook-content.ts'

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
