// The form for a destination's settings: those that every destination has, and those of its kind. Validates them while they are typed, by the
// same rules as the API. An error of the API is shown at the field that it names. Saving sends only changed fields.

import { Accordion, Alert, Button, Group, MultiSelect, Paper, Stack, Switch, TagsInput, Text, TextInput } from '@mantine/core'
import { useWindowEvent } from '@mantine/hooks'
import { type ReactNode, useRef, useState } from 'react'
import { ApiProblem } from '../../api/client.ts'
import { useList } from '../../api/queries.ts'
import { entered, Form, ticked } from '../../components/inputs.tsx'
import { LongNote, Note, SecondaryButton, SectionTitle, SmallTag } from '../../components/styled.tsx'
import { BAD } from '../status-view.tsx'
import { type Draft, isChanged, messageAtField, type Problems } from './draft.ts'
import type { FieldState, FieldsProps, FormSection, KindForm } from './field-state.ts'
import { FilterFields, filterNote } from './filter-fields.tsx'
import { isOrderUsed, OrderFields, orderNote } from './order-fields.tsx'
import { DeliveryFields, deliveryNote, isRetryUsed, RetryFields, retryNote } from './retry-fields.tsx'

export interface FormProps<Edited extends Draft> {
  form: KindForm<Edited>
  /** Null for a new destination. */
  id: string | null
  /** The saved settings, or the defaults for a new destination. */
  initial: Edited
  isReadOnly: boolean
  /** More parts of the form, above its sections. `attempt` runs something with a draft that has no problems, and shows its errors as those of saving. */
  children?: (draft: Edited, attempt: (run: () => Promise<unknown>) => Promise<void>) => ReactNode
  /** Rejects with the error of the API. */
  onSave: (draft: Edited) => Promise<unknown>
}

/** The sections that every kind has, below its own. */
function commonSections({ descriptions }: Pick<KindForm<Draft>, 'descriptions'>, id: string | null): FormSection<Draft>[] {
  return [
    { name: 'filter', title: 'Filter', fields: /^(filter|conditionalFilters|subscribe)/, note: filterNote, Fields: FilterFields },
    {
      name: 'delivery',
      title: 'Batching, timeout and concurrency',
      fields: /^(batch|timeoutMs|maxInFlight)/,
      note: deliveryNote,
      Fields: (props) => <DeliveryFields {...props} descriptions={descriptions} />,
    },
    { name: 'order', title: 'Order', fields: /^order/, note: orderNote, isUsed: isOrderUsed, Fields: OrderFields },
    {
      name: 'retries',
      title: 'Retries and dead letters',
      fields: /^(retry|deadLetter)/,
      note: retryNote,
      isUsed: isRetryUsed,
      Fields: (props) => <RetryFields {...props} id={id} />,
    },
  ]
}

export function DestinationForm<Edited extends Draft>(props: FormProps<Edited>) {
  const { form, id, isReadOnly, children } = props
  const isNew = id === null
  const { draft, state, problems, isDirty, wasSubmitted, apiError, isBusy, open, setOpen, isInvalid, element, sections, attempt, discard } =
    useForm(props)
  const fields = { draft, state }
  return (
    <Form ref={element} onSubmit={() => attempt(() => props.onSave(draft))} aria-label={isNew ? 'New destination' : 'Settings'}>
      <Stack gap="lg" maw={860}>
        <Paper withBorder p="md">
          <Stack>
            <SectionTitle>General</SectionTitle>
            <TextInput
              label="Name"
              description="Shown in the dashboard. Messages can also refer to the destination by this name in their integrations object."
              {...entered(draft.name, (name) => state.set({ name } as Partial<Edited>, 'name'))}
              error={state.problem('name')}
              readOnly={isReadOnly}
              required
              autoComplete="off"
              data-1p-ignore
            />
            <AliasesField {...(fields as unknown as FieldsProps)} />
            {form.general?.(fields)}
            <SourcesField {...(fields as unknown as FieldsProps)} />
            {isNew && <FirstState {...(fields as unknown as FieldsProps)} />}
          </Stack>
        </Paper>
        {form.settings && (
          <Paper withBorder p="md">
            <Stack>
              <SectionTitle>Settings</SectionTitle>
              {form.settings(fields)}
            </Stack>
          </Paper>
        )}
        {children?.(draft, attempt)}
        <Accordion multiple value={open} onChange={setOpen} order={2} variant="separated" chevronPosition="left">
          {sections.map(({ name, title, note, Fields }) => (
            <Section key={name} value={name} title={title} note={note(draft)} isInvalid={isInvalid(name)}>
              <Fields {...fields} />
            </Section>
          ))}
        </Accordion>
        {apiError !== null && apiError.field === null && (
          <Alert color="red" role="alert" title="Not saved">
            {apiError.message}
          </Alert>
        )}
        <SaveBar {...{ isNew, isReadOnly, isBusy, isDirty, discard }} problemCount={wasSubmitted ? problems.size : 0} />
      </Stack>
    </Form>
  )
}

interface SaveBarProps {
  isNew: boolean
  isReadOnly: boolean
  isBusy: boolean
  isDirty: boolean
  /** Of the fields with problems that are shown. */
  problemCount: number
  discard: () => void
}

function SaveBar({ isNew, isReadOnly, isBusy, isDirty, problemCount, discard }: SaveBarProps) {
  if (isReadOnly)
    return <Note>Changing these settings requires the editor or admin role, and access to all sources of the destination.</Note>
  return (
    <Group>
      <Button type="submit" loading={isBusy} disabled={!isNew && !isDirty}>
        {isNew ? 'Create destination' : 'Save changes'}
      </Button>
      {!isNew && isDirty && <SecondaryButton onClick={discard}>Discard changes</SecondaryButton>}
      <Text size="sm" c={problemCount > 0 ? BAD : 'dimmed'} role="status">
        {problemCount > 0
          ? `${problemCount === 1 ? '1 field has an error' : `${problemCount} fields have errors`}.`
          : !isNew && isDirty
            ? 'Unsaved changes.'
            : ''}
      </Text>
    </Group>
  )
}

/** The draft, what is wrong with it and which sections are open. */
function useForm<Edited extends Draft>({ form, id, initial, isReadOnly }: FormProps<Edited>) {
  const [draft, setDraft] = useState(initial)
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set())
  const [wasSubmitted, setSubmitted] = useState(false)
  const [apiError, setApiError] = useState<ShownError | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [sections] = useState(() => [...form.sections, ...(commonSections(form, id) as unknown as FormSection<Edited>[])])
  const [open, setOpen] = useState<string[]>(() =>
    id === null ? [] : sections.filter(({ isUsed }) => isUsed?.(initial) ?? true).map(({ name }) => name),
  )
  const element = useRef<HTMLFormElement>(null)
  // Values that are hidden from the user would be invalid if they were sent.
  const problems: Problems = isReadOnly ? new Map() : form.problemsOf(draft)
  const isDirty = isChanged(initial, draft)
  // The browser asks before unsaved changes are lost.
  useWindowEvent('beforeunload', (event) => isDirty && event.preventDefault())
  const state: FieldState<Edited> = {
    problem(field) {
      if (apiError?.field === field) return apiError.message
      return wasSubmitted || touched.has(field) ? (problems.get(field) ?? null) : null
    },
    set(changes, ...fields) {
      setDraft((before) => ({ ...before, ...changes }))
      setTouched((before) => new Set([...before, ...fields]))
      setApiError(null)
    },
    isReadOnly,
  }
  const untouched = (): void => {
    setTouched(new Set())
    setSubmitted(false)
  }
  /** Opens the sections of these fields and focuses the first invalid one. */
  const reveal = (fields: readonly string[]): void => {
    const wrong = sections.filter((section) => fields.some((field) => section.fields.test(field))).map(({ name }) => name)
    setOpen((before) => [...new Set([...before, ...wrong])])
    // Waits until the fields and their problems are rendered.
    setTimeout(() => element.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), 250)
  }
  const attempt = async (run: () => Promise<unknown>): Promise<void> => {
    setSubmitted(true)
    if (problems.size > 0) return reveal([...problems.keys()])
    setBusy(true)
    setApiError(null)
    try {
      await run()
      untouched()
    } catch (error) {
      const shown = shownError(form, draft, error)
      setApiError(shown)
      if (shown.field !== null) reveal([shown.field])
    } finally {
      setBusy(false)
    }
  }
  const discard = (): void => {
    setDraft(initial)
    untouched()
    setApiError(null)
  }
  const wrong = [...problems.keys(), apiError?.field ?? '']
  const isInvalid = (name: string): boolean => sections.some((each) => each.name === name && wrong.some((field) => each.fields.test(field)))
  return { draft, state, problems, isDirty, wasSubmitted, apiError, isBusy, open, setOpen, isInvalid, element, sections, attempt, discard }
}

interface ShownError {
  /** The field of the form at which it is shown; null for none. */
  field: string | null
  message: string
}

function shownError<Edited extends Draft>(form: KindForm<Edited>, draft: Edited, error: unknown): ShownError {
  const { message, field } = error instanceof ApiProblem ? error : { message: (error as Error).message, field: null }
  const formField = field === null ? null : form.fieldOf(field, draft)
  return { field: formField, message: formField === null ? message : messageAtField(field, message) }
}

/** Whether a new destination is enabled and paused. */
function FirstState({ draft: { enabled, paused }, state }: FieldsProps) {
  return (
    <>
      <Switch
        label="Enabled"
        description="If off, the destination is created disabled. It can be tested, but messages skip it until it is enabled and are not sent to it later."
        {...ticked(enabled, (enabled) => state.set({ enabled }))}
      />
      <Switch
        label="Paused"
        description="If on, the destination is created paused. It can be tested. Messages are queued and sent when it is resumed."
        {...ticked(paused, (paused) => state.set({ paused }))}
      />
    </>
  )
}

interface SectionProps {
  value: string
  title: string
  note: string
  isInvalid: boolean
  children: ReactNode
}

export function Section({ value, title, note, isInvalid, children }: SectionProps) {
  return (
    <Accordion.Item value={value}>
      <Accordion.Control>
        <Group gap="sm" style={{ rowGap: 0 }}>
          <Text span fw={600}>
            {title}
          </Text>
          <LongNote span>{note}</LongNote>
          {isInvalid && <SmallTag color="red">has errors</SmallTag>}
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack>{children}</Stack>
      </Accordion.Panel>
    </Accordion.Item>
  )
}

function AliasesField({ draft, state }: FieldsProps) {
  return (
    <TagsInput
      openOnFocus={false}
      label="Other names in integrations objects"
      description="If a message sets one of these names to false, it is not sent to the destination. Exact names; press Enter after each."
      value={draft.aliases}
      onChange={(aliases) => state.set({ aliases }, 'aliases')}
      splitChars={[]}
      acceptValueOnBlur
      error={state.problem('aliases')}
      readOnly={state.isReadOnly}
    />
  )
}

export function SourcesField({ draft, state }: FieldsProps) {
  const sources = useList('GET /api/sources', { query: { limit: 1_000 } })
  const known = sources.rows.map(({ id, name }) => ({ value: id, label: name }))
  // A source that is not in the list (yet) is shown by its id and kept.
  const others = draft.sourceIds.filter((id) => !known.some(({ value }) => value === id)).map((id) => ({ value: id, label: id }))
  return (
    <MultiSelect
      openOnFocus={false}
      label="Sources"
      description="Messages from these sources are sent to this destination. Without a source, it receives nothing."
      placeholder={draft.sourceIds.length === 0 ? 'Choose sources' : ''}
      data={distinct([...known, ...others])}
      value={draft.sourceIds}
      onChange={(sourceIds) => state.set({ sourceIds }, 'sourceIds')}
      error={state.problem('sourceIds') ?? (sources.problem ? `Could not load sources: ${sources.problem.message}` : null)}
      readOnly={state.isReadOnly}
      searchable
      nothingFoundMessage="No matching source"
    />
  )
}

/** Adds the id to the labels of sources that have the same name. */
function distinct(options: readonly { value: string; label: string }[]): { value: string; label: string }[] {
  const times = new Map<string, number>()
  for (const { label } of options) times.set(label, (times.get(label) ?? 0) + 1)
  return options.map(({ value, label }) => ({ value, label: (times.get(label) ?? 0) > 1 ? `${label} (${value})` : label }))
}
