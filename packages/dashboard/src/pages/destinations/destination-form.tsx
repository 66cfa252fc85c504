// The form for a destination's settings. Validates them while they are typed, by the same rules as the API (validation.ts). An error of
// the API is shown at the field that it names. Saving sends only changed fields.

import {
  Accordion,
  Alert,
  Badge,
  Button,
  Group,
  MultiSelect,
  NumberInput,
  Paper,
  SimpleGrid,
  Stack,
  Switch,
  TagsInput,
  Text,
  TextInput,
  Title,
} from '@mantine/core'
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { ApiProblem } from '../../api/client.ts'
import { useList } from '../../api/queries.ts'
import { type Draft, formFieldOf, isChanged, messageAtField, problemsOf } from './draft.ts'
import type { FieldState } from './field-state.ts'
import { SecretField } from './secret-field.tsx'
import { BAD } from './status-view.tsx'
import { HeaderFields, UrlFields } from './url-and-header-fields.tsx'
import { LIMITS, MESSAGE_TYPES } from './validation.ts'

export interface FormProps {
  /** The saved settings, or the defaults for a new destination. */
  initial: Draft
  isNew: boolean
  hasSharedSecret: boolean
  signingSecretCount: number
  isReadOnly: boolean
  /** Rejects with the error of the API. */
  onSave: (draft: Draft) => Promise<unknown>
}

/** The fields of each section, to open the sections with problems. */
const SECTIONS: readonly [section: string, fields: RegExp][] = [
  ['signing', /^(sharedSecret|signingSecrets)/],
  ['headers', /^headers/],
  ['filter', /^filter/],
  ['delivery', /^(batch|timeoutMs|retryWindowMs|maxInFlight)/],
]

export function DestinationForm({ initial, isNew, hasSharedSecret, signingSecretCount, isReadOnly, onSave }: FormProps) {
  const [draft, setDraft] = useState(initial)
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set())
  const [wasSubmitted, setSubmitted] = useState(false)
  const [apiError, setApiError] = useState<{ field: string | null; message: string } | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [open, setOpen] = useState<string[]>(isNew ? [] : SECTIONS.map(([section]) => section))
  const form = useRef<HTMLFormElement>(null)

  const problems = problemsOf(draft)
  const isDirty = isChanged(initial, draft)
  const state: FieldState = {
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

  useEffect(() => {
    if (!isDirty) return
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault()
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [isDirty])

  /** Opens the sections of these fields and focuses the first invalid one. */
  const reveal = (fields: Iterable<string>): void => {
    const sections = [...fields].flatMap((field) => SECTIONS.filter(([, pattern]) => pattern.test(field)).map(([section]) => section))
    setOpen((before) => [...new Set([...before, ...sections])])
    // Waits until the fields and their problems are rendered.
    setTimeout(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), 250)
  }

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setSubmitted(true)
    if (problems.size > 0) return reveal(problems.keys())
    setBusy(true)
    setApiError(null)
    try {
      await onSave(draft)
      setSubmitted(false)
      setTouched(new Set())
    } catch (error) {
      const { message, field } = error instanceof ApiProblem ? error : { message: (error as Error).message, field: null }
      const formField = formFieldOf(field, draft)
      setApiError({ field: formField, message: formField === null ? message : messageAtField(field, message) })
      if (formField !== null) reveal([formField])
    } finally {
      setBusy(false)
    }
  }

  const isInvalid = (section: string): boolean => {
    const pattern = SECTIONS.find(([name]) => name === section)?.[1]
    return pattern !== undefined && [...problems.keys(), apiError?.field ?? ''].some((field) => pattern.test(field))
  }

  return (
    <form ref={form} onSubmit={(event) => void submit(event)} noValidate aria-label={isNew ? 'New destination' : 'Settings'}>
      <Stack gap="lg" maw={860}>
        <Paper withBorder p="md">
          <Stack>
            <Title order={2} size="h4">
              General
            </Title>
            <TextInput
              label="Name"
              description="Shown in the dashboard. Messages can also refer to the destination by this name in their integrations object."
              value={draft.name}
              onChange={(event) => state.set({ name: event.currentTarget.value }, 'name')}
              error={state.problem('name')}
              readOnly={isReadOnly}
              required
              autoComplete="off"
              data-1p-ignore
            />
            <UrlFields draft={draft} state={state} />
            <SourcesField draft={draft} state={state} />
            {isNew && (
              <>
                <Switch
                  label="Enabled"
                  description="If off, the destination is created disabled. It can be tested, but messages skip it until it is enabled and are not sent to it later."
                  checked={draft.enabled}
                  onChange={(event) => state.set({ enabled: event.currentTarget.checked })}
                />
                <Switch
                  label="Paused"
                  description="If on, the destination is created paused. It can be tested. Messages are queued and sent when it is resumed."
                  checked={draft.paused}
                  onChange={(event) => state.set({ paused: event.currentTarget.checked })}
                />
              </>
            )}
          </Stack>
        </Paper>

        <Accordion multiple value={open} onChange={setOpen} order={2} variant="separated" chevronPosition="left">
          <Section
            value="signing"
            title="Signing"
            note={signingNote(draft, hasSharedSecret, signingSecretCount)}
            isInvalid={isInvalid('signing')}
          >
            <Text size="sm" c="dimmed">
              A signature lets the receiver verify that a request comes from this service and was not changed. Secrets are write-only: they
              are not shown again after you save.
            </Text>
            <SecretField
              title="Signing secrets"
              description="For the Standard Webhooks header webhook-signature. One secret is enough. To rotate it without downtime: set the old and the new secret together, switch the receiver to the new one, then set only the new one."
              field="signingSecrets"
              setCount={signingSecretCount}
              maxCount={LIMITS.signingSecrets}
              canGenerate
              change={draft.signingSecrets}
              onChange={(signingSecrets, ...fields) => state.set({ signingSecrets }, ...fields)}
              state={state}
            />
            <SecretField
              title="Shared secret"
              description="For the older X-Signature header. Only needed by receivers that verify that header."
              field="sharedSecret"
              setCount={hasSharedSecret ? 1 : 0}
              maxCount={1}
              change={draft.sharedSecret}
              onChange={(sharedSecret, ...fields) => state.set({ sharedSecret }, ...fields)}
              state={state}
            />
          </Section>
          <Section
            value="headers"
            title="Headers"
            note={draft.headers.length === 0 ? 'none' : `${draft.headers.length} set`}
            isInvalid={isInvalid('headers')}
          >
            <HeaderFields draft={draft} state={state} />
          </Section>
          <Section value="filter" title="Filter" note={filterNote(draft)} isInvalid={isInvalid('filter')}>
            <FilterFields draft={draft} state={state} />
          </Section>
          <Section value="delivery" title="Batching, timeouts and concurrency" note={deliveryNote(draft)} isInvalid={isInvalid('delivery')}>
            <DeliveryFields draft={draft} state={state} />
          </Section>
        </Accordion>

        {apiError !== null && apiError.field === null && (
          <Alert color="red" role="alert" title="Not saved">
            {apiError.message}
          </Alert>
        )}
        {isReadOnly ? (
          <Text size="sm" c="dimmed">
            Changing these settings requires an admin token.
          </Text>
        ) : (
          <Group>
            <Button type="submit" loading={isBusy} disabled={!isNew && !isDirty}>
              {isNew ? 'Create destination' : 'Save changes'}
            </Button>
            {!isNew && isDirty && (
              <Button
                variant="default"
                onClick={() => {
                  setDraft(initial)
                  setTouched(new Set())
                  setSubmitted(false)
                  setApiError(null)
                }}
              >
                Discard changes
              </Button>
            )}
            <Text size="sm" c={wasSubmitted && problems.size > 0 ? BAD : 'dimmed'} role="status">
              {wasSubmitted && problems.size > 0
                ? `${problems.size === 1 ? '1 field has an error' : `${problems.size} fields have errors`}.`
                : !isNew && isDirty
                  ? 'Unsaved changes.'
                  : ''}
            </Text>
          </Group>
        )}
      </Stack>
    </form>
  )
}

function Section({
  value,
  title,
  note,
  isInvalid,
  children,
}: {
  value: string
  title: string
  note: string
  isInvalid: boolean
  children: ReactNode
}) {
  return (
    <Accordion.Item value={value}>
      <Accordion.Control>
        <Group gap="sm" style={{ rowGap: 0 }}>
          <Text span fw={600}>
            {title}
          </Text>
          <Text span size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            {note}
          </Text>
          {isInvalid && (
            <Badge color="red" variant="light" tt="none" size="sm">
              has errors
            </Badge>
          )}
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack>{children}</Stack>
      </Accordion.Panel>
    </Accordion.Item>
  )
}

interface FieldsProps {
  draft: Draft
  state: FieldState
}

function SourcesField({ draft, state }: FieldsProps) {
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

function FilterFields({ draft, state }: FieldsProps) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <MultiSelect
          openOnFocus={false}
          label="Allowed types"
          description="Leave empty to allow all."
          data={[...MESSAGE_TYPES]}
          value={draft.typesAllow}
          onChange={(values) => state.set({ typesAllow: values }, 'filter.types.allow')}
          error={state.problem('filter.types.allow')}
          readOnly={state.isReadOnly}
        />
        <MultiSelect
          openOnFocus={false}
          label="Denied types"
          description="Takes precedence over allowed types."
          data={[...MESSAGE_TYPES]}
          value={draft.typesDeny}
          onChange={(values) => state.set({ typesDeny: values }, 'filter.types.deny')}
          error={state.problem('filter.types.deny')}
          readOnly={state.isReadOnly}
        />
        <TagsInput
          openOnFocus={false}
          label="Allowed events"
          description="Exact names; press Enter after each. Leave empty to allow all."
          value={draft.eventsAllow}
          onChange={(eventsAllow) => state.set({ eventsAllow }, 'filter.events.allow')}
          error={state.problem('filter.events.allow')}
          readOnly={state.isReadOnly}
          splitChars={[]}
          acceptValueOnBlur
        />
        <TagsInput
          openOnFocus={false}
          label="Denied events"
          description="Takes precedence over allowed events."
          value={draft.eventsDeny}
          onChange={(eventsDeny) => state.set({ eventsDeny }, 'filter.events.deny')}
          error={state.problem('filter.events.deny')}
          readOnly={state.isReadOnly}
          splitChars={[]}
          acceptValueOnBlur
        />
      </SimpleGrid>
      <Switch
        label="Send historical messages"
        description="Messages with a timestamp more than 24 h before they were received, for example from an import."
        checked={draft.historical}
        onChange={(event) => state.set({ historical: event.currentTarget.checked }, 'historical')}
        disabled={state.isReadOnly}
      />
    </>
  )
}

function DeliveryFields({ draft, state }: FieldsProps) {
  const isBatch = (draft.batchSize ?? 1) > 1
  const number = (field: string, value: number | null, set: (value: number | null) => Partial<Draft>) => ({
    value: value ?? '',
    onChange: (next: number | string) => state.set(set(typeof next === 'number' ? next : null), field),
    error: state.problem(field),
    readOnly: state.isReadOnly,
    thousandSeparator: ',',
    allowDecimal: false,
    clampBehavior: 'none' as const,
  })
  const time = (field: string, value: string, set: (value: string) => Partial<Draft>) => ({
    value,
    onChange: (event: { currentTarget: { value: string } }) => state.set(set(event.currentTarget.value), field),
    error: state.problem(field),
    readOnly: state.isReadOnly,
    autoComplete: 'off',
  })
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <NumberInput
        label="Batch size"
        description="1 to 1,000 messages per request. If above 1, the body is a JSON array."
        {...number('batch.size', draft.batchSize, (batchSize) => ({ batchSize }))}
      />
      <TextInput
        label="Batch wait"
        description={isBatch ? 'How long to wait for more messages, up to 60 s.' : 'Up to 60 s. No effect with a batch size of 1.'}
        {...time('batch.lingerMs', draft.linger, (linger) => ({ linger }))}
      />
      <NumberInput
        label="Batch bytes"
        description={
          isBatch
            ? 'Up to 5,242,880 bytes per request. A larger message is sent alone.'
            : 'Up to 5,242,880. No effect with a batch size of 1.'
        }
        {...number('batch.bytes', draft.batchBytes, (batchBytes) => ({ batchBytes }))}
      />
      <NumberInput
        label="Concurrent requests"
        description="1 to 1,000 requests in flight at the same time."
        {...number('maxInFlight', draft.maxInFlight, (maxInFlight) => ({ maxInFlight }))}
      />
      <TextInput
        label="Timeout"
        description="100 ms to 5 s for an attempt, including the full response."
        {...time('timeoutMs', draft.timeout, (timeout) => ({ timeout }))}
      />
      <TextInput
        label="Retry window"
        description="Retries continue for 1 s to 4 h after the first attempt."
        {...time('retryWindowMs', draft.retryWindow, (retryWindow) => ({ retryWindow }))}
      />
    </SimpleGrid>
  )
}

function signingNote({ sharedSecret, signingSecrets }: Draft, hasSharedSecret: boolean, signingSecretCount: number): string {
  const isSet = (change: Draft['sharedSecret'], before: boolean): boolean => (change.kind === 'keep' ? before : change.kind === 'set')
  const set = [
    ...(isSet(signingSecrets, signingSecretCount > 0) ? ['signing secrets'] : []),
    ...(isSet(sharedSecret, hasSharedSecret) ? ['shared secret'] : []),
  ]
  return set.length === 0 ? 'not signed' : `with ${set.join(' and ')}`
}

function filterNote({ typesAllow, typesDeny, eventsAllow, eventsDeny, historical }: Draft): string {
  const parts = [
    ...(typesAllow.length > 0 ? [`only ${typesAllow.join(', ')}`] : []),
    ...(typesDeny.length > 0 ? [`no ${typesDeny.join(', ')}`] : []),
    ...(eventsAllow.length > 0 ? [`${eventsAllow.length} allowed ${eventsAllow.length === 1 ? 'event' : 'events'}`] : []),
    ...(eventsDeny.length > 0 ? [`${eventsDeny.length} denied ${eventsDeny.length === 1 ? 'event' : 'events'}`] : []),
    ...(historical ? [] : ['no historical messages']),
  ]
  return parts.length === 0 ? 'all messages' : parts.join('; ')
}

function deliveryNote({ batchSize, timeout, retryWindow, maxInFlight }: Draft): string {
  return `${(batchSize ?? 1) > 1 ? `batches of ${batchSize}` : 'one message per request'}, timeout ${timeout}, retries for ${retryWindow}, ${maxInFlight ?? '?'} concurrent`
}
