// The settings of a destination, judged while they are typed by the same rules as the API's (rules.ts). What the API still refuses is
// shown at the field that it names. Saving sends what was changed and nothing else.

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
  /** As it is saved, or as a new one begins. */
  initial: Draft
  isNew: boolean
  hasSharedSecret: boolean
  signingSecretCount: number
  isReadOnly: boolean
  /** Rejects with what the API refused. */
  onSave: (draft: Draft) => Promise<unknown>
}

/** Which fields are in which part, to open the one that has a problem. */
const PARTS: readonly [part: string, fields: RegExp][] = [
  ['signing', /^(sharedSecret|signingSecrets)/],
  ['headers', /^headers/],
  ['filter', /^filter/],
  ['delivery', /^(batch|timeoutMs|retryWindowMs|maxInFlight)/],
]

export function DestinationForm({ initial, isNew, hasSharedSecret, signingSecretCount, isReadOnly, onSave }: FormProps) {
  const [draft, setDraft] = useState(initial)
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set())
  const [isTried, setTried] = useState(false)
  const [refusal, setRefusal] = useState<{ place: string | null; message: string } | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [open, setOpen] = useState<string[]>(isNew ? [] : PARTS.map(([part]) => part))
  const form = useRef<HTMLFormElement>(null)

  const problems = problemsOf(draft)
  const isDirty = isChanged(initial, draft)
  const state: FieldState = {
    problem(field) {
      if (refusal?.place === field) return refusal.message
      return isTried || touched.has(field) ? (problems.get(field) ?? null) : null
    },
    set(changes, ...fields) {
      setDraft((before) => ({ ...before, ...changes }))
      setTouched((before) => new Set([...before, ...fields]))
      setRefusal(null)
    },
    isReadOnly,
  }

  useEffect(() => {
    if (!isDirty) return
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault()
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [isDirty])

  /** Opens what holds it and goes there. */
  const lead = (fields: Iterable<string>): void => {
    const parts = [...fields].flatMap((field) => PARTS.filter(([, pattern]) => pattern.test(field)).map(([part]) => part))
    setOpen((before) => [...new Set([...before, ...parts])])
    // After the fields with their problems are drawn.
    setTimeout(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), 250)
  }

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setTried(true)
    if (problems.size > 0) return lead(problems.keys())
    setBusy(true)
    setRefusal(null)
    try {
      await onSave(draft)
      setTried(false)
      setTouched(new Set())
    } catch (error) {
      const { message, field } = error instanceof ApiProblem ? error : { message: (error as Error).message, field: null }
      const place = formFieldOf(field, draft)
      setRefusal({ place, message: place === null ? message : messageAtField(field, message) })
      if (place !== null) lead([place])
    } finally {
      setBusy(false)
    }
  }

  const isBad = (part: string): boolean => {
    const pattern = PARTS.find(([name]) => name === part)?.[1]
    return pattern !== undefined && [...problems.keys(), refusal?.place ?? ''].some((field) => pattern.test(field))
  }

  return (
    <form ref={form} onSubmit={(event) => void submit(event)} noValidate aria-label={isNew ? 'New destination' : 'Settings'}>
      <Stack gap="lg" maw={860}>
        <Paper withBorder p="md">
          <Stack>
            <Title order={2} size="h4">
              Where and what
            </Title>
            <TextInput
              label="Name"
              description="For people. A message may also name it in its integrations object."
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
                  description="Off: it is created disabled. It can be tested; messages skip it until it is enabled, and are not sent to it later."
                  checked={draft.enabled}
                  onChange={(event) => state.set({ enabled: event.currentTarget.checked })}
                />
                <Switch
                  label="Paused"
                  description="On: it is created paused. It can be tested; messages are kept for it and sent when it is resumed."
                  checked={draft.paused}
                  onChange={(event) => state.set({ paused: event.currentTarget.checked })}
                />
              </>
            )}
          </Stack>
        </Paper>

        <Accordion multiple value={open} onChange={setOpen} order={2} variant="separated" chevronPosition="left">
          <Part value="signing" title="Signing" note={signingNote(draft, hasSharedSecret, signingSecretCount)} isBad={isBad('signing')}>
            <Text size="sm" c="dimmed">
              By a signature the receiver knows that a request comes from here and was not changed. Secrets go in and never come out: they
              cannot be looked at later.
            </Text>
            <SecretField
              title="Signing secrets"
              about="Of Standard Webhooks (webhook-signature). One is enough. To change it without a gap, set the old and the new one together, move the receiver over, then set the new one alone."
              field="signingSecrets"
              setCount={signingSecretCount}
              most={LIMITS.signingSecrets}
              canMake
              change={draft.signingSecrets}
              onChange={(signingSecrets, ...fields) => state.set({ signingSecrets }, ...fields)}
              state={state}
            />
            <SecretField
              title="Shared secret"
              about="Key of the older X-Signature header. For receivers that were made for it."
              field="sharedSecret"
              setCount={hasSharedSecret ? 1 : 0}
              most={1}
              change={draft.sharedSecret}
              onChange={(sharedSecret, ...fields) => state.set({ sharedSecret }, ...fields)}
              state={state}
            />
          </Part>
          <Part
            value="headers"
            title="Headers"
            note={draft.headers.length === 0 ? 'none' : `${draft.headers.length} set`}
            isBad={isBad('headers')}
          >
            <HeaderFields draft={draft} state={state} />
          </Part>
          <Part value="filter" title="Filter" note={filterNote(draft)} isBad={isBad('filter')}>
            <FilterFields draft={draft} state={state} />
          </Part>
          <Part value="delivery" title="Batches, time limits and pace" note={deliveryNote(draft)} isBad={isBad('delivery')}>
            <DeliveryFields draft={draft} state={state} />
          </Part>
        </Accordion>

        {refusal !== null && refusal.place === null && (
          <Alert color="red" role="alert" title="It was not saved">
            {refusal.message}
          </Alert>
        )}
        {isReadOnly ? (
          <Text size="sm" c="dimmed">
            Your token may only look. Somebody with an admin token can change this.
          </Text>
        ) : (
          <Group>
            <Button type="submit" loading={isBusy} disabled={!isNew && !isDirty}>
              {isNew ? 'Create the destination' : 'Save changes'}
            </Button>
            {!isNew && isDirty && (
              <Button
                variant="default"
                onClick={() => {
                  setDraft(initial)
                  setTouched(new Set())
                  setTried(false)
                  setRefusal(null)
                }}
              >
                Undo changes
              </Button>
            )}
            <Text size="sm" c={isTried && problems.size > 0 ? BAD : 'dimmed'} role="status">
              {isTried && problems.size > 0
                ? `${problems.size === 1 ? 'One field needs' : `${problems.size} fields need`} another look.`
                : !isNew && isDirty
                  ? 'Not saved yet.'
                  : ''}
            </Text>
          </Group>
        )}
      </Stack>
    </form>
  )
}

function Part({
  value,
  title,
  note,
  isBad,
  children,
}: {
  value: string
  title: string
  note: string
  isBad: boolean
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
          {isBad && (
            <Badge color="red" variant="light" tt="none" size="sm">
              needs another look
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
  // One that is not in the list (yet) is shown by its id, and kept.
  const others = draft.sourceIds.filter((id) => !known.some(({ value }) => value === id)).map((id) => ({ value: id, label: id }))
  return (
    <MultiSelect
      openOnFocus={false}
      label="Sources"
      description="Whose messages it gets. Without one it gets none."
      placeholder={draft.sourceIds.length === 0 ? 'Choose sources' : ''}
      data={distinct([...known, ...others])}
      value={draft.sourceIds}
      onChange={(sourceIds) => state.set({ sourceIds }, 'sourceIds')}
      error={state.problem('sourceIds') ?? (sources.problem ? `The sources could not be asked for: ${sources.problem.message}` : null)}
      readOnly={state.isReadOnly}
      searchable
      nothingFoundMessage="No such source"
    />
  )
}

/** Two sources may have the same name: then the id tells them apart. */
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
          label="Only these types"
          description="None chosen: all types."
          data={[...MESSAGE_TYPES]}
          value={draft.typesAllow}
          onChange={(values) => state.set({ typesAllow: values }, 'filter.types.allow')}
          error={state.problem('filter.types.allow')}
          readOnly={state.isReadOnly}
        />
        <MultiSelect
          openOnFocus={false}
          label="Never these types"
          description="Counts over what is allowed."
          data={[...MESSAGE_TYPES]}
          value={draft.typesDeny}
          onChange={(values) => state.set({ typesDeny: values }, 'filter.types.deny')}
          error={state.problem('filter.types.deny')}
          readOnly={state.isReadOnly}
        />
        <TagsInput
          openOnFocus={false}
          label="Only these events"
          description="Of track messages, by exact name; Enter after each. None: all."
          value={draft.eventsAllow}
          onChange={(eventsAllow) => state.set({ eventsAllow }, 'filter.events.allow')}
          error={state.problem('filter.events.allow')}
          readOnly={state.isReadOnly}
          splitChars={[]}
          acceptValueOnBlur
        />
        <TagsInput
          openOnFocus={false}
          label="Never these events"
          description="Counts over what is allowed."
          value={draft.eventsDeny}
          onChange={(eventsDeny) => state.set({ eventsDeny }, 'filter.events.deny')}
          error={state.problem('filter.events.deny')}
          readOnly={state.isReadOnly}
          splitChars={[]}
          acceptValueOnBlur
        />
      </SimpleGrid>
      <Switch
        label="Historical messages"
        description="Also send messages that happened more than 24 h before they were received, as of an import."
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
        label="Messages in a request"
        description="1 to 1,000. With more than 1, a list is posted."
        {...number('batch.size', draft.batchSize, (batchSize) => ({ batchSize }))}
      />
      <TextInput
        label="A batch waits for more"
        description={isBatch ? 'Up to 60 s, while it is not full.' : 'Up to 60 s. Has no effect with one message in a request.'}
        {...time('batch.lingerMs', draft.linger, (linger) => ({ linger }))}
      />
      <NumberInput
        label="Bytes in a request"
        description={
          isBatch ? 'Up to 5,242,880. A single larger message goes alone.' : 'Up to 5,242,880. Has no effect with one message in a request.'
        }
        {...number('batch.bytes', draft.batchBytes, (batchBytes) => ({ batchBytes }))}
      />
      <NumberInput
        label="Requests at once"
        description="1 to 1,000 under way at the same time."
        {...number('maxInFlight', draft.maxInFlight, (maxInFlight) => ({ maxInFlight }))}
      />
      <TextInput
        label="Timeout"
        description="100 ms to 5 s for one attempt, to the end of the answer."
        {...time('timeoutMs', draft.timeout, (timeout) => ({ timeout }))}
      />
      <TextInput
        label="Retry window"
        description="1 s to 4 h: how long retries go on from the first attempt."
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
  return set.length === 0 ? 'not signed' : `by ${set.join(' and ')}`
}

function filterNote({ typesAllow, typesDeny, eventsAllow, eventsDeny, historical }: Draft): string {
  const parts = [
    ...(typesAllow.length > 0 ? [`only ${typesAllow.join(', ')}`] : []),
    ...(typesDeny.length > 0 ? [`no ${typesDeny.join(', ')}`] : []),
    ...(eventsAllow.length > 0 ? [`${eventsAllow.length} event ${eventsAllow.length === 1 ? 'name' : 'names'} only`] : []),
    ...(eventsDeny.length > 0 ? [`${eventsDeny.length} event ${eventsDeny.length === 1 ? 'name' : 'names'} never`] : []),
    ...(historical ? [] : ['nothing historical']),
  ]
  return parts.length === 0 ? 'everything' : parts.join('; ')
}

function deliveryNote({ batchSize, timeout, retryWindow, maxInFlight }: Draft): string {
  return `${(batchSize ?? 1) > 1 ? `batches of ${batchSize}` : 'one message each'}, timeout ${timeout}, retries for ${retryWindow}, ${maxInFlight ?? '?'} at once`
}
