// The lists of URLs and headers in the form. Each entry shows its own error.

import { Alert, Group, Input, Stack, TextInput } from '@mantine/core'
import { FIELDS } from '../../../api/rules.ts'
import { PlusIcon } from '../../../components/icons.tsx'
import { entered, RemoveButton } from '../../../components/inputs.tsx'
import { Note, SmallButton, SmallNote } from '../../../components/styled.tsx'
import { replaceAt } from '../../../destination/form/draft.ts'
import type { FieldState, FieldsProps } from '../../../destination/form/field-state.ts'
import { NamedRows } from './named-rows.tsx'
import { type HeaderDraft, urlAdvice } from './validation.ts'
import { isMoved, type WebhookDraft } from './webhook-draft.ts'

export function UrlFields({ draft, state }: FieldsProps<WebhookDraft>) {
  const { urls } = draft
  const set = (next: string[], ...fields: string[]): void => state.set({ urls: next }, ...fields)
  return (
    <Stack gap="xs" role="group" aria-label="URLs">
      {urls.length > 1 && (
        <SmallNote>Each request is sent to all URLs at the same time. It succeeds if at least one of them accepts it.</SmallNote>
      )}
      {urls.map((url, at) => (
        <Group key={at} gap="xs" align="flex-start" wrap="nowrap">
          <Stack gap={2} style={{ flex: 1 }} miw={0}>
            <TextInput
              label={urls.length === 1 ? 'URL' : `URL ${at + 1}`}
              description={urls.length === 1 ? 'Messages are sent to this URL.' : null}
              placeholder="https://example.com/webhook"
              type="url"
              inputMode="url"
              autoComplete="off"
              {...entered(url, (next) => set(replaceAt(urls, at, next.trim()), `urls[${at}]`))}
              error={state.problem(`urls[${at}]`)}
              readOnly={state.isReadOnly}
              required
            />
            {urlAdvice(url) !== null && <SmallNote>{urlAdvice(url)}</SmallNote>}
          </Stack>
          {urls.length > 1 && !state.isReadOnly && (
            <RemoveButton label={`Remove URL ${at + 1}`} onClick={() => set(urls.filter((_, other) => other !== at))} />
          )}
        </Group>
      ))}
      {isMoved(draft) && (
        <Alert color="yellow" role="status">
          The URL points to another server. Stored secrets are only sent to the servers they were given for, so enter them again below.
        </Alert>
      )}
      {state.problem('urls') !== null && <Input.Error>{state.problem('urls')}</Input.Error>}
      {!state.isReadOnly && urls.length < FIELDS.urls.max && (
        <Group>
          <SmallButton leftSection={<PlusIcon size={14} />} onClick={() => set([...urls, ''])}>
            Add a URL
          </SmallButton>
        </Group>
      )}
    </Stack>
  )
}

export function HeaderFields({ draft: { headers }, state }: FieldsProps<WebhookDraft>) {
  return (
    <Stack gap="sm" role="group" aria-label="Headers">
      <Note>
        Sent with every request, for example an Authorization header.{' '}
        {state.isReadOnly ? 'Header values are hidden from viewers.' : 'Editors and admins can read the values.'}
      </Note>
      <HeaderRows headers={headers} onChange={(next, ...fields) => state.set({ headers: next }, ...fields)} {...state} />
    </Stack>
  )
}

interface HeaderRowsProps extends Pick<FieldState, 'problem' | 'isReadOnly'> {
  headers: readonly HeaderDraft[]
  onChange: (headers: HeaderDraft[], ...fields: string[]) => void
  examples?: readonly [name: string, value: string]
}

/** `problem` gets `headers`, `headers[0].name` and so on. */
export function HeaderRows({ headers, onChange, problem, isReadOnly, examples = ['Authorization', ''] }: HeaderRowsProps) {
  return (
    <NamedRows
      entries={headers}
      noun="header"
      onChange={onChange}
      problem={problem}
      isReadOnly={isReadOnly}
      max={FIELDS.headers.max}
      added={{ name: '', value: '' }}
      nameExample={examples[0]}
      valueExample={() => examples[1]}
    />
  )
}
