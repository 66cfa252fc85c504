// The fields of an action and where each gets its value from: a constant, a path in the message, a template, or JSON for everything else.

import {
  Anchor,
  Autocomplete,
  Box,
  Button,
  Group,
  NativeSelect,
  NumberInput,
  Stack,
  Text,
  Textarea,
  TextInput,
  VisuallyHidden,
} from '@mantine/core'
import { type ReactNode, useId, useRef, useState } from 'react'
import { entered } from '../../components/inputs.tsx'
import { Note, SmallNote, SmallTag } from '../../components/styled.tsx'
import { type FieldSchema, isOfType, isShown, type ObjectSchema, SYNC_MODE } from './definition.ts'
import { AddProperty, ChosenConstant, useFieldTool } from './field-choices.tsx'
import classes from './integration.module.css'
import { type FieldDraft, fieldDraftOf, inMode, isBoolean, isDefault, type MappingDraft, type Mode } from './mapping-draft.ts'
import type { PathSuggestion } from './path-suggestions.ts'
import { help } from './settings-fields.tsx'

export interface MappingFieldsProps {
  schema: ObjectSchema
  mapping: MappingDraft
  /** Conditions of fields may be about it. */
  syncMode?: string | null
  onChange: (mapping: MappingDraft) => void
  suggestions: readonly PathSuggestion[]
  /** By field, such as `mapping.user_id`. */
  problem: (field: string) => string | null
  isReadOnly: boolean
  prefix?: string
}

const MODES: Readonly<Record<Mode, string>> = {
  none: 'Not set',
  constant: 'Constant',
  path: 'Path',
  template: 'Template',
  fields: 'Fields',
  json: 'JSON',
}
/** Up to this many fields, all are shown. */
const FEW_FIELDS = 8
const NONE: FieldDraft = { mode: 'none' }

export function MappingFields(props: MappingFieldsProps) {
  const { schema, mapping, syncMode, onChange, prefix = 'mapping' } = props
  const [isAll, setAll] = useState(false)
  const constants = Object.fromEntries([
    ...(syncMode == null ? [] : [[SYNC_MODE, syncMode]]),
    ...Object.entries(mapping).map(([key, field]) => [
      key,
      field.mode === 'constant' ? field.value : field.mode === 'none' ? undefined : field,
    ]),
  ]) as Record<string, unknown>
  // Fields that the definition does not have are kept and shown, so that they can be removed.
  const unknown = Object.keys(mapping).filter((key) => schema.properties[key] === undefined)
  const known = Object.keys(schema.properties).filter(
    (key) => mapping[key] !== undefined || isShown(schema.properties[key] as FieldSchema, constants),
  )
  const isNeeded = (key: string): boolean =>
    known.length <= FEW_FIELDS ||
    schema.required.includes(key) ||
    (mapping[key] !== undefined && mapping[key].mode !== 'none' && !isDefault(mapping[key], schema.properties[key]))
  // A field that was shown stays: it must not vanish while it is edited.
  const seen = useRef(new Set<string>())
  for (const key of known) if (isNeeded(key)) seen.current.add(key)
  const shown = isAll ? known : known.filter((key) => seen.current.has(key))
  const defaults = known.filter((key) => !seen.current.has(key) && mapping[key] !== undefined && mapping[key].mode !== 'none').length
  const more = known.length - known.filter((key) => seen.current.has(key)).length
  return (
    <Stack gap="md">
      {[...shown, ...unknown].map((key) => (
        <MappingField
          key={key}
          {...props}
          name={key}
          field={mapping[key] ?? NONE}
          schema={schema.properties[key]}
          isRequired={schema.required.includes(key)}
          prefix={prefix}
          onField={(field) => onChange({ ...mapping, [key]: field })}
        />
      ))}
      {shown.length + unknown.length === 0 && (
        <Note>{known.length === 0 ? 'There are no fields.' : 'All fields have their default values.'}</Note>
      )}
      {more > 0 && (
        <Button size="compact-sm" variant="subtle" style={{ alignSelf: 'flex-start' }} aria-expanded={isAll} onClick={() => setAll(!isAll)}>
          {isAll
            ? 'Show fewer fields'
            : `Show ${more} more ${more === 1 ? 'field' : 'fields'}${defaults === 0 ? '' : ` (${defaults} with ${defaults === 1 ? 'its default' : 'their defaults'})`}`}
        </Button>
      )}
    </Stack>
  )
}

interface FieldProps extends Omit<MappingFieldsProps, 'schema' | 'onChange'> {
  name: string
  field: FieldDraft
  schema: FieldSchema | undefined
  isRequired: boolean
  prefix: string
  onField: (field: FieldDraft) => void
}

function MappingField(props: FieldProps) {
  const { name, field, schema, isRequired, prefix, onField, problem, isReadOnly } = props
  const id = useId()
  const error = problem(`${prefix}.${name}`)
  const modes = (Object.keys(MODES) as Mode[]).filter(
    (mode) => mode === field.mode || mode !== 'fields' || (schema?.properties !== undefined && isOfType(schema, 'object')),
  )
  const title = schema?.title || name
  const isAsDefined = isDefault(field, schema)
  return (
    <Box role="group" aria-labelledby={id}>
      <Group gap="xs" style={{ rowGap: 2 }}>
        <Text size="sm" fw={500} id={id} style={{ overflowWrap: 'anywhere' }}>
          {title}
          {isRequired && (
            <Text span c="var(--mantine-color-error)" aria-hidden="true">
              {' *'}
            </Text>
          )}
        </Text>
        {isRequired && <VisuallyHidden>required</VisuallyHidden>}
        {schema === undefined && <SmallTag color="orange">not in the definition</SmallTag>}
        {isAsDefined ? (
          <SmallTag color="gray">default</SmallTag>
        ) : (
          schema?.default !== undefined &&
          !isReadOnly && (
            <Anchor
              component="button"
              type="button"
              size="xs"
              onClick={() => onField(fieldDraftOf(schema.default, schema))}
              aria-label={`Use the default of ${title}`}
            >
              Use default
            </Anchor>
          )
        )}
      </Group>
      {schema?.description !== undefined && schema.description !== '' && <SmallNote lineClamp={3}>{help(schema)}</SmallNote>}
      <div className={classes.field}>
        <NativeSelect
          aria-label={`Where ${title} comes from`}
          data={modes.map((mode) => ({ value: mode, label: MODES[mode] }))}
          {...entered(field.mode, (next) => onField(inMode(field, next as Mode, schema)))}
          disabled={isReadOnly}
        />
        <div className={classes.value}>
          <FieldValue {...props} title={title} error={error} />
        </div>
      </div>
    </Box>
  )
}

function FieldValue({ title, error, ...props }: FieldProps & { title: string; error: string | null }): ReactNode {
  const { field, schema, onField, isReadOnly, suggestions, prefix, name, problem } = props
  const keysTool = useFieldTool(schema, 'keys')
  const input = { 'aria-label': title, error, readOnly: isReadOnly, autoComplete: 'off', spellCheck: false }
  switch (field.mode) {
    case 'none':
      return error === null ? null : (
        <Text size="xs" c="var(--mantine-color-error)" mt={8}>
          {error}
        </Text>
      )
    case 'constant':
      return <Constant name={`${prefix}.${name}`} field={field} schema={schema} input={input} onField={onField} />
    case 'path':
      return (
        <Autocomplete
          {...input}
          value={field.text}
          onChange={(text) => onField({ mode: 'path', text })}
          data={suggestions.map(({ path }) => path)}
          limit={50}
          placeholder="$.properties.total"
          openOnFocus={!isReadOnly}
          renderOption={({ option }) => <Suggestion path={option.value} example={exampleOf(suggestions, option.value)} />}
          description={lastValue(exampleOf(suggestions, field.text))}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
        />
      )
    case 'template':
      return (
        <TextInput
          {...input}
          {...entered(field.text, (text) => onField({ mode: 'template', text }))}
          placeholder="{{event}} for {{properties.total}}"
        />
      )
    case 'fields':
      return (
        <Box className={classes.nested}>
          <MappingFields
            schema={{ properties: schema?.properties ?? {}, required: schema?.required ?? [] }}
            mapping={field.fields}
            onChange={(fields) => onField({ mode: 'fields', fields })}
            suggestions={suggestions}
            problem={problem}
            isReadOnly={isReadOnly}
            prefix={`${prefix}.${name}`}
          />
        </Box>
      )
    case 'json': {
      const onText = (text: string): void => onField({ mode: 'json', text })
      return (
        <>
          <Textarea
            {...input}
            {...entered(field.text, onText)}
            autosize
            minRows={1}
            maxRows={14}
            styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 'var(--mantine-font-size-xs)' } }}
          />
          {keysTool !== null && (
            <AddProperty name={fieldName(`${prefix}.${name}`)} title={title} text={field.text} onText={onText} tool={keysTool} />
          )}
        </>
      )
    }
  }
}

/** As the API names it. */
function fieldName(name: string): string {
  return name.replace(/^mapping\./, '')
}

interface ConstantProps {
  /** `mapping.list_id` */
  name: string
  field: Extract<FieldDraft, { mode: 'constant' }>
  schema: FieldSchema | undefined
  input: { 'aria-label': string; error: string | null; readOnly: boolean; autoComplete: string }
  onField: (field: FieldDraft) => void
}

function Constant({ name, field, schema, input, onField }: ConstantProps) {
  const { value } = field
  const tool = useFieldTool(schema, 'values')
  const set = (next: string | number | boolean): void => onField({ mode: 'constant', value: next })
  const choices = schema?.oneOf ?? (isBoolean(schema) ? YES_NO : undefined)
  if (choices?.some(({ const: choice }) => choice === value) === true) {
    return (
      <NativeSelect
        aria-label={input['aria-label']}
        error={input.error}
        disabled={input.readOnly}
        data={choices.flatMap(({ const: choice, title }) => (choice === null ? [] : [{ value: JSON.stringify(choice), label: title }]))}
        {...entered(JSON.stringify(value), (next) => set(JSON.parse(next) as string))}
      />
    )
  }
  if (tool !== null && schema !== undefined)
    return <ChosenConstant name={fieldName(name)} value={value} schema={schema} input={input} onValue={set} tool={tool} />
  // A text in a field for numbers stays a text: it is shown as it is.
  if (isOfType(schema ?? {}, 'number', 'integer') && (typeof value === 'number' || value === ''))
    return <NumberInput {...input} value={value} onChange={set} clampBehavior="none" />
  return (
    <TextInput
      {...input}
      {...entered(String(value), set)}
      {...(typeof value === 'string' ? {} : { description: `a ${typeof value}; it becomes text when you change it` })}
    />
  )
}

const YES_NO = [
  { const: true, title: 'Yes' },
  { const: false, title: 'No' },
]

function exampleOf(suggestions: readonly PathSuggestion[], path: string): string {
  return suggestions.find((suggestion) => suggestion.path === path)?.example ?? ''
}

function lastValue(example: string): string | undefined {
  return example === '' ? undefined : `Last value: ${example}`
}

function Suggestion({ path, example }: { path: string; example: string }) {
  return (
    <Group gap="sm" justify="space-between" wrap="nowrap" w="100%">
      <Text span size="sm" style={{ overflowWrap: 'anywhere' }}>
        {path}
      </Text>
      <SmallNote span truncate maw="50%">
        {example}
      </SmallNote>
    </Group>
  )
}
