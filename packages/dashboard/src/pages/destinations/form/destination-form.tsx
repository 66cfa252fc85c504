// The form for a destination's settings. Validates them while they are typed, by the same rules as the API (validation.ts). An error of
// the API is shown at the field that it names. Saving sends only changed fields.

import { Accordion, Alert, Button, Group, Paper, Stack, Switch, Text, TextInput, Title } from '@mantine/core'
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { ApiProblem } from '../../../api/client.ts'
import { type Draft, formFieldOf, type IntegrationForm, isChanged, messageAtField, newDraft, problemsOf } from '../draft.ts'
import { SettingsFields } from '../integration/settings-fields.tsx'
import { BAD } from '../status-view.tsx'
import { AuthFields, authNote, TlsFields, tlsNote } from './auth-fields.tsx'
import { DeliveryFields, deliveryNote } from './delivery-fields.tsx'
import type { FieldState } from './field-state.ts'
import { FilterFields, filterNote } from './filter-fields.tsx'
import { RetryFields, retryNote } from './retry-fields.tsx'
import { SecretsFields, secretsNote } from './secrets-fields.tsx'
import { Section } from './section.tsx'
import { SigningFields, signingNote } from './signing-fields.tsx'
import { SourcesField } from './sources-field.tsx'
import { HeaderFields, UrlFields } from './url-and-header-fields.tsx'

export interface FormProps {
  /** Null for a new destination. */
  id: string | null
  /** The saved settings, or the defaults for a new destination. */
  initial: Draft
  isNew: boolean
  hasSharedSecret: boolean
  signingSecretCount: number
  isReadOnly: boolean
  /** Null for a webhook. */
  integration?: IntegrationForm | null
  /** More parts of the form of an integration. */
  children?: (draft: Draft) => ReactNode
  /** Rejects with the error of the API. */
  onSave: (draft: Draft) => Promise<unknown>
}

/** The fields of each section, to open the sections with problems. */
const SECTIONS: readonly [section: string, fields: RegExp][] = [
  ['signing', /^(sharedSecret|signingSecrets)/],
  ['headers', /^headers/],
  ['auth', /^auth/],
  ['secrets', /^secrets/],
  ['tls', /^tls/],
  ['filter', /^(filter|subscribe)/],
  ['delivery', /^(batch|timeoutMs|maxInFlight)/],
  ['retries', /^(retry|deadLetter)/],
]

/** Sections that most destinations do not need are closed, unless something is set in them. */
function openSections(draft: Draft): string[] {
  const classic = newDraft()
  const isClosed: Record<string, boolean> = {
    auth: draft.auth.type === 'none',
    secrets: draft.secrets.length === 0,
    tls: tlsNote(draft) === tlsNote(classic),
    retries: retryNote(draft) === retryNote(classic) && draft.retryStatuses.length + draft.failStatuses.length === 0,
  }
  return SECTIONS.map(([section]) => section).filter((section) => isClosed[section] !== true)
}

export function DestinationForm({
  id,
  initial,
  isNew,
  hasSharedSecret,
  signingSecretCount,
  isReadOnly,
  integration = null,
  children,
  onSave,
}: FormProps) {
  const [draft, setDraft] = useState(initial)
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set())
  const [wasSubmitted, setSubmitted] = useState(false)
  const [apiError, setApiError] = useState<{ field: string | null; message: string } | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [open, setOpen] = useState<string[]>(isNew ? [] : openSections(initial))
  const form = useRef<HTMLFormElement>(null)

  const problems = problemsOf(draft, integration)
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
            {integration === null && <UrlFields draft={draft} state={state} />}
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

        {integration !== null && draft.settings !== null && (
          <Paper withBorder p="md">
            <Stack>
              <Title order={2} size="h4">
                Settings
              </Title>
              <SettingsFields
                schema={integration.schema}
                draft={draft.settings}
                onChange={(settings, ...fields) => state.set({ settings }, ...fields)}
                stored={integration.storedSecrets}
                problem={state.problem}
                isReadOnly={isReadOnly}
              />
            </Stack>
          </Paper>
        )}
        {children?.(draft)}

        <Accordion multiple value={open} onChange={setOpen} order={2} variant="separated" chevronPosition="left">
          {integration === null && (
            <>
              <Section
                value="signing"
                title="Signing"
                note={signingNote(draft, hasSharedSecret, signingSecretCount)}
                isInvalid={isInvalid('signing')}
              >
                <SigningFields draft={draft} state={state} hasSharedSecret={hasSharedSecret} signingSecretCount={signingSecretCount} />
              </Section>
              <Section
                value="headers"
                title="Headers"
                note={draft.headers.length === 0 ? 'none' : `${draft.headers.length} set`}
                isInvalid={isInvalid('headers')}
              >
                <HeaderFields draft={draft} state={state} />
              </Section>
              <Section value="auth" title="Authentication" note={authNote(draft)} isInvalid={isInvalid('auth')}>
                <AuthFields draft={draft} state={state} />
              </Section>
              <Section value="secrets" title="Secrets" note={secretsNote(draft)} isInvalid={isInvalid('secrets')}>
                <SecretsFields draft={draft} state={state} />
              </Section>
              <Section value="tls" title="TLS" note={tlsNote(draft)} isInvalid={isInvalid('tls')}>
                <TlsFields draft={draft} state={state} />
              </Section>
            </>
          )}
          <Section value="filter" title="Filter" note={filterNote(draft)} isInvalid={isInvalid('filter')}>
            <FilterFields draft={draft} state={state} />
          </Section>
          <Section value="delivery" title="Batching, timeout and concurrency" note={deliveryNote(draft)} isInvalid={isInvalid('delivery')}>
            <DeliveryFields draft={draft} state={state} isIntegration={integration !== null} />
          </Section>
          <Section value="retries" title="Retries and dead letters" note={retryNote(draft)} isInvalid={isInvalid('retries')}>
            <RetryFields draft={draft} state={state} id={id} />
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
