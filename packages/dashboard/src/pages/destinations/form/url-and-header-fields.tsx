// The lists of URLs and headers in the form. Each entry shows its own error.

import { ActionIcon, Alert, Button, Group, Input, Stack, Text, TextInput, Tooltip } from '@mantine/core'
import { DeletionIcon, PlusIcon } from '../../../components/icons.tsx'
import { isMoved, replaceAt } from '../draft.ts'
import { type HeaderDraft, LIMITS, urlAdvice } from '../validation.ts'
import type { FieldsProps } from './field-state.ts'

export function UrlFields({ draft, state }: FieldsProps) {
  const { urls } = draft
  const set = (next: string[], ...fields: string[]): void => state.set({ urls: next }, ...fields)
  return (
    <Stack gap="xs" role="group" aria-label="URLs">
      {urls.length > 1 && (
        <Text size="xs" c="dimmed">
          Each request is sent to all URLs at the same time. It succeeds if at least one of them accepts it.
        </Text>
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
              value={url}
              onChange={(event) => set(replaceAt(urls, at, event.currentTarget.value.trim()), `urls[${at}]`)}
              error={state.problem(`urls[${at}]`)}
              readOnly={state.isReadOnly}
              required
            />
            {urlAdvice(url) !== null && (
              <Text size="xs" c="dimmed">
                {urlAdvice(url)}
              </Text>
            )}
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
      {!state.isReadOnly && urls.length < LIMITS.urls && (
        <Group>
          <Button variant="default" size="xs" leftSection={<PlusIcon size={14} />} onClick={() => set([...urls, ''])}>
            Add a URL
          </Button>
        </Group>
      )}
    </Stack>
  )
}

export function HeaderFields({ draft: { headers }, state }: FieldsProps) {
  return (
    <Stack gap="sm" role="group" aria-label="Headers">
      <Text size="sm" c="dimmed">
        Sent with every request, for example an Authorization header.{' '}
        {state.isReadOnly ? 'Header values are hidden from viewers.' : 'Anyone with an admin token can read the values.'}
      </Text>
      <HeaderRows headers={headers} onChange={(next, ...fields) => state.set({ headers: next }, ...fields)} {...state} />
    </Stack>
  )
}

/** `problem` gets `headers`, `headers[0].name` and so on. */
export function HeaderRows({
  headers,
  onChange,
  problem,
  isReadOnly,
  examples = ['Authorization', ''],
}: {
  headers: readonly HeaderDraft[]
  onChange: (headers: HeaderDraft[], ...fields: string[]) => void
  problem: (field: string) => string | null
  isReadOnly: boolean
  examples?: readonly [name: string, value: string]
}) {
  return (
    <>
      {headers.map(({ name, value }, at) => (
        <Group key={at} gap="xs" align="flex-start">
          <TextInput
            label={`Header ${at + 1} name`}
            placeholder={examples[0]}
            value={name}
            onChange={(event) => onChange(replaceAt(headers, at, { name: event.currentTarget.value.trim(), value }), `headers[${at}].name`)}
            error={problem(`headers[${at}].name`)}
            readOnly={isReadOnly}
            autoComplete="off"
            style={{ flex: '1 1 150px' }}
          />
          <TextInput
            label={`Header ${at + 1} value`}
            placeholder={examples[1]}
            value={value}
            onChange={(event) => onChange(replaceAt(headers, at, { name, value: event.currentTarget.value }), `headers[${at}].value`)}
            error={problem(`headers[${at}].value`)}
            readOnly={isReadOnly}
            autoComplete="off"
            style={{ flex: '2 1 180px' }}
          />
          {!isReadOnly && (
            <RemoveButton label={`Remove header ${at + 1}`} onClick={() => onChange(headers.filter((_, other) => other !== at))} />
          )}
        </Group>
      ))}
      {problem('headers') !== null && <Input.Error>{problem('headers')}</Input.Error>}
      {!isReadOnly && headers.length < LIMITS.headers && (
        <Group>
          <Button
            variant="default"
            size="xs"
            leftSection={<PlusIcon size={14} />}
            onClick={() => onChange([...headers, { name: '', value: '' }])}
          >
            Add a header
          </Button>
        </Group>
      )}
    </>
  )
}

/** Aligned with a field's input box, below the label. */
function RemoveButton({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" size={36} mt={25} onClick={onClick} aria-label={label}>
        <DeletionIcon size={16} />
      </ActionIcon>
    </Tooltip>
  )
}
