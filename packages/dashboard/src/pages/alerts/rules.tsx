// The rules for alerts: what is noticed, whether it is, and after how long.

import { Alert, Button, Group, NumberInput, Paper, Stack, Switch, Text } from '@mantine/core'
import { useState } from 'react'
import { useApi, useChange } from '../../api/queries.ts'
import { ErrorAlert, Loaded } from '../../components/page.tsx'
import { Note, SmallButton, SmallTitle, Tag } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { type AlertRule, settingLabel } from './incident-text.ts'

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
        <Group align="flex-start" gap="md">
          {Object.entries(rule.options).map(([name, option]) => (
            <NumberInput
              key={name}
              label={settingLabel(name)}
              description={`${option.description} Default: ${option.default}.`}
              value={values[name] ?? option.default}
              min={option.min}
              max={option.max}
              allowDecimal={false}
              disabled={!isAdmin || !rule.enabled}
              onChange={(value) => setDraft({ ...values, [name]: Number(value) })}
              style={{ flex: '1 1 240px' }}
              maw={420}
            />
          ))}
        </Group>
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
