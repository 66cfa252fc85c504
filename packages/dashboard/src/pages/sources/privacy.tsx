// The privacy rules of a source: a list that can be edited and saved, and a preview of what they do.

import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import type { Schemas } from '../../api/client.ts'
import { useChange } from '../../api/queries.ts'
import { PlusIcon } from '../../components/icons.tsx'
import { entered, Form, RemoveButton } from '../../components/inputs.tsx'
import { ErrorAlert } from '../../components/page.tsx'
import { Note, SecondaryButton } from '../../components/styled.tsx'
import { ACTION_TEXTS, ACTIONS, filledRules, MAX_RULES, type Rule, rowProblem, sameRules } from './privacy-draft.ts'
import { PrivacyPreview, usePreview } from './privacy-preview.tsx'

export function Privacy({ source: { id, privacy }, mayEdit }: { source: Schemas['Source']; mayEdit: boolean }) {
  if (!mayEdit) return <RuleList rules={privacy} />
  return <RuleEditor id={id} saved={privacy} />
}

function RuleList({ rules }: { rules: readonly Rule[] }) {
  if (rules.length === 0) return <Text size="sm">No privacy rules. Messages are stored as they are sent.</Text>
  return (
    <Stack component="ul" gap={4} p={0} m={0} style={{ listStyle: 'none' }} aria-label="Privacy rules">
      {rules.map(({ path, action }) => (
        <Text key={path} component="li" size="sm" style={{ overflowWrap: 'anywhere' }}>
          <Text span ff="monospace" size="sm">
            {path}
          </Text>{' '}
          <Note span>{ACTION_TEXTS[action]}</Note>
        </Text>
      ))}
    </Stack>
  )
}

function RuleEditor({ id, saved }: { id: string; saved: readonly Rule[] }) {
  const [edited, setEdited] = useState<readonly Rule[] | null>(null)
  const draft = edited ?? saved
  const { rules, rows } = filledRules(draft)
  // Typing must not send a request for every character.
  const [previewed] = useDebouncedValue(JSON.stringify(rules), 300)
  const preview = usePreview(id, JSON.parse(previewed) as Rule[])
  const change = useChange('PATCH /api/sources/{id}', 'GET /api/sources', 'GET /api/sources/{id}')
  const isChanged = edited !== null && !sameRules(edited, saved)
  const problem = rowProblem(change.error ?? preview.query.error, rows)
  const edit = (next: readonly Rule[]): void => {
    setEdited(next)
    change.reset()
  }
  const save = (): void =>
    change.mutate(
      { params: { id }, body: { privacy: rules } },
      {
        onSuccess: () => {
          setEdited(null)
          notifications.show({ color: 'teal', message: rules.length === 0 ? 'Privacy rules removed.' : 'Privacy rules saved.' })
        },
      },
    )
  return (
    <Stack gap="md">
      <Form aria-label="Privacy rules" onSubmit={save}>
        <Stack gap="sm">
          {draft.length === 0 && <Text size="sm">No privacy rules. Messages are stored and sent as they are received.</Text>}
          {draft.map((rule, at) => (
            <RuleFields
              key={at}
              at={at}
              rule={rule}
              matches={matchesText(preview.query.data, rows.indexOf(at), rule.path)}
              problem={problem?.row === at ? problem.message : null}
              onChange={(changes) => edit(draft.map((each, other) => (other === at ? { ...each, ...changes } : each)))}
              onRemove={() => edit(draft.filter((_, other) => other !== at))}
            />
          ))}
          {change.error !== null && problem === null && <ErrorAlert problem={change.error} />}
          <Group gap="sm">
            {draft.length < MAX_RULES && (
              <SecondaryButton leftSection={<PlusIcon size={14} />} onClick={() => edit([...draft, { path: '', action: 'hash' }])}>
                Add a rule
              </SecondaryButton>
            )}
            {isChanged && (
              <>
                <Button type="submit" loading={change.isPending}>
                  Save rules
                </Button>
                <Button variant="subtle" onClick={() => edit(saved)}>
                  Discard changes
                </Button>
                <Note role="status">Saved rules apply to new messages only.</Note>
              </>
            )}
          </Group>
        </Stack>
      </Form>
      {rules.length > 0 && <PrivacyPreview preview={preview} isShownAtRule={problem !== null} />}
    </Stack>
  )
}

interface RuleFieldsProps {
  at: number
  rule: Rule
  /** How many messages of the preview it changes. */
  matches: string | null
  problem: string | null
  onChange: (changes: Partial<Rule>) => void
  onRemove: () => void
}

function RuleFields({ at, rule: { path, action }, matches, problem, onChange, onRemove }: RuleFieldsProps) {
  return (
    <Group gap="xs" align="flex-start">
      <TextInput
        label={`Path ${at + 1}`}
        placeholder="traits.email"
        description={matches}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        {...entered(path, (path) => onChange({ path }))}
        error={problem}
        autoComplete="off"
        spellCheck={false}
        autoCapitalize="none"
        style={{ flex: '3 1 200px' }}
      />
      <Select
        label={`Action ${at + 1}`}
        data={ACTIONS}
        value={action}
        onChange={(value) => onChange({ action: value as Rule['action'] })}
        allowDeselect={false}
        description={ACTION_TEXTS[action]}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        style={{ flex: '2 1 140px' }}
      />
      <RemoveButton label={`Remove rule ${at + 1}`} onClick={onRemove} />
    </Group>
  )
}

/** How many messages of the preview the rule changes; nothing while the preview is for other rules. */
function matchesText(
  preview: { rules: { path: string; messages: number }[]; data: unknown[] } | undefined,
  nth: number,
  path: string,
): string | null {
  const rule = preview?.rules[nth]
  if (preview === undefined || rule === undefined || rule.path !== path.trim() || preview.data.length === 0) return null
  if (preview.data.length === 1) return rule.messages === 1 ? 'Changes the message below.' : 'Changes nothing in the message below.'
  return `Changes ${rule.messages} of the ${preview.data.length} messages below.`
}
