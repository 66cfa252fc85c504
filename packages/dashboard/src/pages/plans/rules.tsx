// The rules of a plan: each with its mode, and on demand its properties as a table and its schema.

import { Group, NativeSelect, Paper, Stack, Text, TextInput, UnstyledButton } from '@mantine/core'
import { useId, useState } from 'react'
import { Json } from '../../components/copyable.tsx'
import { entered } from '../../components/inputs.tsx'
import { type Column, FirstRows, ResponsiveTable } from '../../components/responsive-table.tsx'
import { LongCode, LongNote, Note, SmallButton, SmallTag, Tag } from '../../components/styled.tsx'
import { exactCount } from '../../text/format.ts'
import { keyOfRule, MODES, type Mode, matchesRule, type Rule, ruleTitle } from './plan-text.ts'
import { type SchemaRow, schemaNotes, schemaRows } from './schema-rows.ts'

const MIN_FOR_FILTER = 8

/** `onMode`: undefined if the viewer may not change modes. */
export function Rules({ rules, onMode }: { rules: readonly Rule[]; onMode?: ((rule: Rule, mode: Mode) => void) | undefined }) {
  const [text, setText] = useState('')
  const found = rules.filter((rule) => matchesRule(rule, text))
  return (
    <Stack gap="sm">
      {rules.length >= MIN_FOR_FILTER && (
        <TextInput label="Find a rule" placeholder="Event, type, owner or description" {...entered(text, setText)} maw={420} />
      )}
      {text.trim() !== '' && (
        <Note role="status">
          {exactCount(found.length)} of {exactCount(rules.length)} rules
        </Note>
      )}
      <FirstRows rows={found}>
        {(shown) => (
          <Stack gap="xs" component="ul" p={0} m={0} style={{ listStyle: 'none' }} aria-label="Rules">
            {shown.map((rule) => (
              <RuleCard key={keyOfRule(rule)} rule={rule} onMode={onMode} />
            ))}
          </Stack>
        )}
      </FirstRows>
    </Stack>
  )
}

function RuleCard({ rule, onMode }: { rule: Rule; onMode: ((rule: Rule, mode: Mode) => void) | undefined }) {
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const { type, description, owner, mode = 'observe', schema } = rule
  const title = ruleTitle(keyOfRule(rule))
  return (
    <Paper withBorder component="li" p="sm" miw={0}>
      <Group justify="space-between" gap="sm">
        <UnstyledButton
          onClick={() => setOpen(!isOpen)}
          aria-expanded={isOpen}
          aria-controls={id}
          style={{ flex: '1 1 240px', minWidth: 0 }}
        >
          <Group gap="xs">
            <Note span aria-hidden="true">
              {isOpen ? '▾' : '▸'}
            </Note>
            <Text span fw={600} style={{ overflowWrap: 'anywhere' }}>
              {title}
            </Text>
            <SmallTag color="gray">{type}</SmallTag>
            {owner !== undefined && <LongNote span>{owner}</LongNote>}
          </Group>
        </UnstyledButton>
        {onMode === undefined ? (
          <Tag color={MODES[mode].color}>{MODES[mode].label}</Tag>
        ) : (
          <NativeSelect
            size="xs"
            aria-label={`Mode of ${title}`}
            {...entered(mode, (next) => onMode(rule, next as Mode))}
            data={Object.entries(MODES).map(([value, { label }]) => ({ value, label }))}
          />
        )}
      </Group>
      {description !== undefined && (
        <Note mt={4} style={{ overflowWrap: 'anywhere' }}>
          {description}
        </Note>
      )}
      <div id={id}>{isOpen && <RuleDetails type={type} mode={mode} schema={schema} />}</div>
    </Paper>
  )
}

const COLUMNS: readonly Column<SchemaRow>[] = [
  { label: 'Property', cell: ({ path }) => <LongCode>{path}</LongCode> },
  { label: 'Type', cell: ({ type }) => type },
  { label: 'Required', isShort: true, cell: ({ isRequired }) => (isRequired ? 'yes' : 'no') },
  { label: 'Limits', cell: ({ limits }) => (limits.length === 0 ? '–' : limits.join(', ')) },
  { label: 'Description', cell: ({ description }) => (description === '' ? '–' : description) },
]

function RuleDetails({ type, mode, schema }: { type: string; mode: Mode; schema: Record<string, unknown> }) {
  const [isJson, setJson] = useState(false)
  const rows = schemaRows(schema)
  const field = type === 'identify' || type === 'group' ? 'Traits' : 'Properties'
  const columns = COLUMNS.filter(({ label }) => label !== 'Description' || rows.some(({ description }) => description !== ''))
  return (
    <Stack gap="xs" mt="sm">
      <Text size="sm">{MODES[mode].about}</Text>
      {rows.length > 0 && <ResponsiveTable rows={rows} columns={columns} keyOf={({ path }) => path} label={`${field} of the rule`} />}
      <Note>
        {rows.length === 0 && `The rule names no ${field.toLowerCase()}. `}
        {schemaNotes(schema).join(' ')}
      </Note>
      {isJson ? (
        <Json value={schema} label="the JSON Schema" maxHeight={320} />
      ) : (
        <Group>
          <SmallButton onClick={() => setJson(true)}>Show JSON Schema</SmallButton>
        </Group>
      )}
    </Stack>
  )
}
