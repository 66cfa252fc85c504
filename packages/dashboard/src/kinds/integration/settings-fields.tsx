// The form for the settings of an integration, made from its definition.

import { Button, Group, Input, NumberInput, PasswordInput, Select, Stack, Switch, TagsInput, TextInput } from '@mantine/core'
import { CodeArea, ticked } from '../../components/inputs.tsx'
import { LinkedText } from '../../components/integration-tile.tsx'
import { Note, RowButton, SmallNote, Tag } from '../../components/styled.tsx'
import type { EditForm } from '../../destination/form/field-state.ts'
import { type FieldSchema, isOfType, type ObjectSchema } from './definition.ts'
import {
  type Integration,
  type IntegrationDraft,
  type IntegrationSchema,
  integrationDraftOf,
  integrationFieldOf,
  integrationProblems,
  patchBodyOf,
} from './integration-draft.ts'
import { isJson, isStored, type SettingField, type SettingsDraft, settingFields, typedValues } from './settings-draft.ts'

export interface SettingsFieldsProps {
  schema: ObjectSchema
  draft: SettingsDraft
  /** `fields`: the API's names of the settings that were changed. */
  onChange: (draft: SettingsDraft, ...fields: string[]) => void
  /** The secrets that are stored, by key. */
  stored: readonly string[]
  problem: (field: string) => string | null
  isReadOnly: boolean
}

/** A password field would remove the line breaks of a key. */
const HAS_LINES = /(private|ssh)[_ ]?key|certificate|credentials|json|\bpem\b/i

export function SettingsFields(props: SettingsFieldsProps) {
  const { schema, draft } = props
  const fields = settingFields(schema, typedValues(draft))
  if (fields.length === 0) {
    return <Note>This integration has no settings.</Note>
  }
  return (
    <>
      {fields.map((field) =>
        field.schema.writeOnly === true ? (
          <Secret key={field.key} field={field} {...props} />
        ) : (
          <Setting key={field.key} field={field} {...props} />
        ),
      )}
    </>
  )
}

type FieldProps = SettingsFieldsProps & { field: SettingField }

/** What all inputs have in common. */
function inputProps({ field: { key, schema, isRequired }, problem, isReadOnly }: FieldProps) {
  return {
    label: titleOf(key, schema),
    description: help(schema),
    required: isRequired,
    error: problem(`settings.${key}`),
    readOnly: isReadOnly,
  }
}

export function help({ description }: Pick<FieldSchema, 'description'>) {
  return description === undefined || description === '' ? undefined : <LinkedText markdown={description} />
}

function titleOf(key: string, { title }: FieldSchema): string {
  return title === '' ? key : title
}

function Setting(props: FieldProps) {
  const { field, draft, onChange, isReadOnly } = props
  const { key, schema, isRequired } = field
  const value = draft.values[key]
  const set = (next: unknown): void => onChange({ ...draft, values: { ...draft.values, [key]: next } }, `settings.${key}`)
  const input = inputProps(props)
  const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
  if (schema.oneOf !== undefined) {
    return (
      <Select
        {...input}
        data={schema.oneOf.map(({ const: choice, title }) => ({ value: JSON.stringify(choice), label: title }))}
        value={value === undefined ? null : JSON.stringify(value)}
        onChange={(next) => set(next === null ? undefined : (JSON.parse(next) as unknown))}
        placeholder="Choose"
        allowDeselect={!isRequired}
        searchable={schema.oneOf.length > 8}
        openOnFocus={false}
      />
    )
  }
  if (isOfType(schema, 'boolean')) {
    return (
      <Switch
        label={input.label}
        description={input.description}
        error={input.error}
        {...ticked(value === true, set)}
        disabled={isReadOnly}
      />
    )
  }
  if (isOfType(schema, 'number', 'integer')) {
    return (
      <NumberInput
        {...input}
        value={typeof value === 'number' || typeof value === 'string' ? value : ''}
        onChange={(next) => set(next === '' ? undefined : next)}
        clampBehavior="none"
      />
    )
  }
  if (isOfType(schema, 'array') && !isJson(schema)) {
    return (
      <TagsInput
        {...input}
        value={Array.isArray(value) ? value.map(String) : []}
        onChange={(next) => set(isOfType(schema.items ?? {}, 'number', 'integer') ? next.map(Number) : next)}
        placeholder="Press Enter after each"
        acceptValueOnBlur
        openOnFocus={false}
      />
    )
  }
  if (isJson(schema) || schema.format === 'text') {
    return (
      <CodeArea
        {...input}
        value={text}
        onChange={(event) => set(event.currentTarget.value === '' ? undefined : event.currentTarget.value)}
        minRows={3}
        maxRows={14}
      />
    )
  }
  return (
    <TextInput
      {...input}
      value={text}
      onChange={(event) => set(event.currentTarget.value === '' ? undefined : event.currentTarget.value)}
      autoComplete="off"
      data-1p-ignore
      spellCheck={false}
    />
  )
}

/** Shows whether it is set, and replaces or removes it. A new value is kept only in this form until it is saved. */
function Secret(props: FieldProps) {
  const { field, draft, onChange, stored, isReadOnly } = props
  const { key, schema, isRequired } = field
  const change = draft.secrets[key]
  const wasStored = isStored(stored, key)
  const set = (next: string | null | undefined): void => {
    const { [key]: _, ...others } = draft.secrets
    onChange({ ...draft, secrets: next === undefined ? others : { ...others, [key]: next } }, `settings.${key}`)
  }
  const input = inputProps(props)
  const typed = {
    ...input,
    value: change ?? '',
    onChange: (event: { currentTarget: { value: string } }) => {
      const next = event.currentTarget.value
      set(next === '' && !wasStored ? undefined : next)
    },
    autoComplete: 'new-password',
    'data-1p-ignore': true,
  }
  const entry = HAS_LINES.test(`${key} ${schema.title}`) ? (
    <CodeArea {...typed} minRows={2} maxRows={8} />
  ) : (
    // Mantine leaves aria-invalid out here; the form finds the first wrong field by it.
    <PasswordInput
      {...typed}
      aria-invalid={typed.error !== null}
      visibilityToggleButtonProps={{ 'aria-label': `Show or hide ${input.label}` }}
    />
  )
  if (!wasStored) return entry
  const name = input.label
  return (
    <Stack gap={6} role="group" aria-label={name}>
      {change === undefined || change === null ? (
        <Input.Wrapper label={name} description={input.description} error={input.error} labelElement="div" required={isRequired}>
          <Group gap="xs" mt={4}>
            <Tag color={change === null ? 'red' : 'teal'}>{change === null ? 'removed when you save' : 'set'}</Tag>
            {!isReadOnly && change === undefined && (
              <>
                <RowButton onClick={() => set('')} aria-label={`Replace ${name}`}>
                  Replace
                </RowButton>
                {!isRequired && (
                  <RowButton onClick={() => set(null)} aria-label={`Remove ${name}`}>
                    Remove
                  </RowButton>
                )}
              </>
            )}
            {change === null && <Keep name={name} onClick={() => set(undefined)} />}
          </Group>
        </Input.Wrapper>
      ) : (
        <>
          {entry}
          <Group gap="xs">
            <SmallNote>Replaces the stored value when you save. It is not shown again.</SmallNote>
            <Keep name={name} onClick={() => set(undefined)} />
          </Group>
        </>
      )}
    </Stack>
  )
}

function Keep({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <Button size="compact-sm" variant="subtle" onClick={onClick} aria-label={`Keep the current ${name}`}>
      Keep current
    </Button>
  )
}

export function integrationForm(of: IntegrationSchema): EditForm<Integration, IntegrationDraft> {
  return {
    draftOf: (saved) => integrationDraftOf(of, saved),
    patchOf: (saved, draft) => patchBodyOf(of, saved, draft),
    editedElsewhere: ['subscriptions'],
    problemsOf: (draft) => integrationProblems(of, draft),
    fieldOf: integrationFieldOf,
    settings: ({ draft, state }) => (
      <SettingsFields
        schema={of.schema}
        draft={draft.settings}
        onChange={(settings, ...fields) => state.set({ settings }, ...fields)}
        stored={of.storedSecrets}
        problem={state.problem}
        isReadOnly={state.isReadOnly}
      />
    ),
    sections: [],
    descriptions: {
      batchSize: '1 to 5,000 messages at a time, for actions that send batches.',
      timeout: '100 ms to 30 s for an attempt, including all requests of the integration.',
    },
  }
}
