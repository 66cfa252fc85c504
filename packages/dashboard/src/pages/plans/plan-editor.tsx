// A plan in the code editor, as the text of its file: YAML or JSON. An error of the API is shown at the field that it names. Loaded lazily,
// because the YAML library is large.

import { Alert, Button, Group, List, Stack } from '@mantine/core'
import { useMemo, useState } from 'react'
import type { ApiProblem } from '../../api/client.ts'
import { CodeEditor } from '../../components/code-editor.tsx'
import { Note, SecondaryButton } from '../../components/styled.tsx'
import { useCommand } from '../../session/session.tsx'
import type { CodeProblem } from '../../text/code-problems.ts'
import type { Plan } from './plan-text.ts'
import { type PlanContent, planYaml, readPlan } from './plan-yaml.ts'

export interface PlanEditorProps {
  /** A stored plan, or the text of a new one. */
  initial: Plan | string
  /** By id. */
  sources: ReadonlyMap<string, string>
  verb: string
  /** `sourceIds` is undefined if the text does not name sources. Rejects with an ApiProblem. */
  onSave: (plan: PlanContent, sourceIds: string[] | undefined) => Promise<unknown>
  isReadOnly?: boolean
}

export default function PlanEditor({ initial, sources, verb, onSave, isReadOnly = false }: PlanEditorProps) {
  const command = useCommand()
  const start = useMemo(() => (typeof initial === 'string' ? initial : textOf(initial, sources)), [initial])
  const [text, setText] = useState(start)
  const [refused, setRefused] = useState<{ text: string; problems: CodeProblem[] } | null>(null)
  const [isBusy, setBusy] = useState(false)
  const read = useMemo(() => readPlan(text), [text])
  const unknown = useMemo(() => sourceIdsOf(read.sources, sources), [read, sources])
  const problems = useMemo(
    () => [
      ...read.problems,
      ...unknown.wrong.map((at) =>
        read.problemAt(`sources[${at}]`, `There is no source ${JSON.stringify(read.sources?.[at])}. Use the name or the id of a source.`),
      ),
      ...(refused?.text === text ? refused.problems : []),
    ],
    [read, unknown, refused, text],
  )
  const save = async (): Promise<void> => {
    if (read.plan === null) return
    setBusy(true)
    try {
      await onSave(read.plan, unknown.ids)
    } catch (error) {
      const { field, message } = error as ApiProblem
      setRefused({ text, problems: [read.problemAt(field?.replace(/^sourceIds/, 'sources') ?? null, message)] })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Stack gap="sm">
      <CodeEditor
        label="The plan as YAML or JSON"
        description={`The same text that \`${command} plan apply\` reads, so it can be kept in git.`}
        language="yaml"
        value={text}
        onChange={setText}
        problems={problems}
        isReadOnly={isReadOnly}
      />
      {problems.length > 0 && (
        <Alert color="red" variant="light" role="alert" title="The plan has errors">
          <List size="sm">
            {problems.map(({ line, message }, at) => (
              <List.Item key={at} style={{ overflowWrap: 'anywhere' }}>
                Line {line}: {message}
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
      {!isReadOnly && (
        <Group>
          <Button onClick={() => void save()} loading={isBusy} disabled={problems.length > 0}>
            {verb}
          </Button>
          {text !== start && (
            <>
              <SecondaryButton onClick={() => setText(start)}>Discard changes</SecondaryButton>
              <Note role="status">Unsaved changes.</Note>
            </>
          )}
        </Group>
      )}
    </Stack>
  )
}

function textOf(plan: Plan, sources: ReadonlyMap<string, string>): string {
  const names = plan.sourceIds.map((id) => {
    const name = sources.get(id)
    // Two sources may have the same name.
    return name === undefined || [...sources.values()].filter((other) => other === name).length > 1 ? id : name
  })
  return planYaml({ ...plan, unplanned: plan.unplanned ?? 'allow' }, names)
}

/** The ids of the sources that the text names, and the indexes of those that do not exist. */
function sourceIdsOf(
  named: readonly string[] | undefined,
  sources: ReadonlyMap<string, string>,
): { ids: string[] | undefined; wrong: number[] } {
  if (named === undefined) return { ids: undefined, wrong: [] }
  const ids = named.map((each) => (sources.has(each) ? each : [...sources].find(([, name]) => name === each)?.[0]))
  return { ids: ids.filter((id) => id !== undefined), wrong: ids.flatMap((id, at) => (id === undefined ? [at] : [])) }
}
