// The rules for alerts: what is noticed, whether it is, and after how long.

import { Alert, Button, Group, NumberInput, Paper, Stack, Switch, Text } from '@mantine/core'
import { useState } from 'react'
import { useApi, useChange } from '../../api/queries.ts'
import { ErrorAlert, Loaded } from '../../components/page.tsx'
import { Note, SmallButton, SmallTitle, Tag } from '../../components/styled.tsx'
import { type AlertRule, sentenceParts, settingLabel } from '../../incidents/incident-text.ts'
import { useSession } from '../../session/session.tsx'

export function Rules() {
  const alerts = useApi('GET /api/alerts', {})
  return (
    <Loaded query={alerts}>
      {({ rules }) => (
        <Stack>
          {rules.map((rule) => (
            <RuleForm key={rule.rule} rule={rule} />
          ))}
        </Stack>
      )}
    </Loaded>
  )
}

function RuleForm({ rule }: { rule: AlertRule }) {
  const { isAdmin } = useSession()
  const save = useChange('PATCH /api/alerts', 'GET /api/alerts')
  const [draft, setDraft] = useState<Readonly<Record<string, number>> | null>(null)
  const values = draft ?? rule.settings
  const isChanged = Object.keys(values).some((name) => values[name] !== rule.settings[name])
  const isDefault = rule.enabled && Object.entries(rule.options).every(([name, option]) => rule.settings[name] === option.default)
  const change = (to: Readonly<Record<string, number | boolean | null>> | null): void =>
    save.mutate({ body: { rules: { [rule.rule]: to } } }, { onSuccess: () => setDraft(null) })
  return (
    <Paper withBorder p="md" component="section" aria-label={rule.event}>
      <Stack gap="sm">
        <Group justify="space-between" align="flex-start">
          <SmallTitle>
            {rule.event}
            {rule.closedEvent !== rule.event && ` and ${rule.closedEvent}`}
          </SmallTitle>
          <Switch
            label={rule.enabled ? 'on' : 'off'}
            aria-label={`${rule.event}: ${rule.enabled ? 'on' : 'off'}`}
            checked={rule.enabled}
            disabled={!isAdmin || save.isPending}
            onChange={({ currentTarget }) => change({ enabled: currentTarget.checked })}
          />
        </Group>
        <Note>{rule.description}</Note>
        <Sentences rule={rule} values={values} disabled={!isAdmin || !rule.enabled} onChange={setDraft} />
        <Switch
          size="xs"
          label="Send alerts about it"
          aria-label={`${rule.event}: send alerts`}
          checked={rule.notify}
          disabled={!isAdmin || !rule.enabled || save.isPending}
          onChange={({ currentTarget }) => change({ notify: currentTarget.checked })}
        />
        {rule.exceptions.length > 0 && (
          <Stack gap={4}>
            {rule.exceptions.map(({ subjectId, subjectName, enabled, settings }) => (
              <Group key={subjectId} gap="xs">
                <Tag color="gray">{subjectName ?? subjectId}</Tag>
                <Text size="sm">
                  {enabled
                    ? Object.entries(settings)
                        .map(([name, value]) => `${settingLabel(name).toLowerCase()}: ${value}`)
                        .join(', ')
                    : 'off'}
                </Text>
              </Group>
            ))}
          </Stack>
        )}
        {save.error !== null && <ErrorAlert problem={save.error} />}
        {isAdmin && (isChanged || !isDefault) && (
          <Group>
            {isChanged && (
              <Button size="xs" loading={save.isPending} onClick={() => change(values)}>
                Save
              </Button>
            )}
            {!isDefault && (
              <SmallButton disabled={save.isPending} onClick={() => change(null)}>
                Use the defaults
              </SmallButton>
            )}
          </Group>
        )}
        {!rule.enabled && <Alert color="gray">This rule is off: it opens no incidents.</Alert>}
      </Stack>
    </Paper>
  )
}

interface SentencesProps {
  rule: AlertRule
  values: Readonly<Record<string, number>>
  disabled: boolean
  onChange: (values: Readonly<Record<string, number>>) => void
}

/** The rule in words, with a field where a setting is named. */
function Sentences({ rule, values, disabled, onChange }: SentencesProps) {
  return (
    <>
      {rule.sentences.map((sentence) => (
        <Text key={sentence} size="sm" component="div" style={{ lineHeight: 2.1 }}>
          {sentenceParts(sentence).map((part, at) => {
            const option = part.name === undefined ? undefined : rule.options[part.name]
            if (part.name === undefined || option === undefined) return part.text
            const { name } = part
            return (
              <NumberInput
                key={`${name} ${at}`}
                aria-label={`${rule.event}: ${settingLabel(name).toLowerCase()}`}
                title={`${option.description} Default: ${option.default}.`}
                size="xs"
                value={values[name] ?? option.default}
                min={option.min}
                max={option.max}
                allowDecimal={false}
                hideControls
                disabled={disabled}
                onChange={(value) => onChange({ ...values, [name]: Number(value) })}
                w={`${Math.max(3, String(values[name] ?? option.default).length) + 3}ch`}
                display="inline-block"
                mx={4}
              />
            )
          })}
        </Text>
      ))}
    </>
  )
}
