// The write keys of a source: reveal, copy, add and remove. To rotate a key, add a new one, switch the senders to it, and remove the old
// one. The steps are shown while there is more than one key.

import { Alert, Button, Group, List, Paper, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import type { ApiProblem, Schemas } from '../../api/client.ts'
import { useChange } from '../../api/queries.ts'
import { ConfirmButton } from '../../components/confirm-dialog.tsx'
import { WriteKey } from '../../components/copyable.tsx'
import { Note, SecondaryButton, SmallNote } from '../../components/styled.tsx'
import { maskedKey } from '../../text/snippets.ts'

type Source = Schemas['Source']

const STALE = ['GET /api/sources', 'GET /api/sources/{id}'] as const

export function WriteKeys({ source, isAdmin }: { source: Source; isAdmin: boolean }) {
  const { id, name, writeKeys } = source
  const add = useChange('POST /api/sources/{id}/write-keys', ...STALE)
  const rotate = (): void =>
    add.mutate(
      { params: { id }, body: {} },
      {
        onSuccess: () => notifications.show({ color: 'teal', message: 'Write key added. The old one still works.' }),
        onError: ({ message }: ApiProblem) => notifications.show({ color: 'red', title: 'Could not add a write key', message }),
      },
    )
  return (
    <Stack gap="sm">
      <Stack component="ul" gap="xs" p={0} m={0} style={{ listStyle: 'none' }} aria-label="Write keys">
        {writeKeys.map((key, at) => (
          <Paper key={key} component="li" withBorder px="sm" py={6}>
            <Group justify="space-between" gap="xs" wrap="nowrap">
              <Stack gap={0} miw={0}>
                <WriteKey writeKey={key} name={`write key ${at + 1}`} />
                {writeKeys.length > 1 && (
                  <SmallNote>{at === 0 ? 'oldest' : at === writeKeys.length - 1 ? 'newest' : `key ${at + 1}`}</SmallNote>
                )}
              </Stack>
              {isAdmin && writeKeys.length > 1 && <RemoveKey source={source} at={at} />}
            </Group>
          </Paper>
        ))}
      </Stack>
      {writeKeys.length > 1 && (
        <Alert color="blue" variant="light" title="Key rotation in progress">
          <Stack gap="xs">
            <Text size="sm">All keys work. To finish the rotation:</Text>
            <List type="ordered" size="sm">
              <List.Item>Copy the newest key and use it in everything that sends to {name}.</List.Item>
              <List.Item>
                Wait until it is deployed everywhere. Switchyard does not record which key a message was sent with, so check your own
                deployments.
              </List.Item>
              <List.Item>
                Remove the old key. Calls that still use it are rejected and are listed under rejected calls as invalid_write_key.
              </List.Item>
            </List>
          </Stack>
        </Alert>
      )}
      {isAdmin && (
        <Group gap="sm">
          <SecondaryButton onClick={rotate} loading={add.isPending}>
            {writeKeys.length === 1 ? 'Rotate key' : 'Add a key'}
          </SecondaryButton>
          {writeKeys.length === 1 && (
            <Note style={{ flex: '1 1 220px' }}>
              Adds a new key. The old one works until you remove it, so no message is lost. The last key cannot be removed.
            </Note>
          )}
        </Group>
      )}
    </Stack>
  )
}

function RemoveKey({ source: { id, name, writeKeys }, at }: { source: Source; at: number }) {
  const remove = useChange('DELETE /api/sources/{id}/write-keys/{key}', ...STALE)
  const key = writeKeys[at] ?? ''
  const others = writeKeys.length - 1
  return (
    <ConfirmButton
      button={(open) => (
        <Button size="compact-sm" variant="subtle" color="red" onClick={open} aria-label={`Remove write key ${at + 1}`}>
          Remove
        </Button>
      )}
      title="Remove this write key?"
      verb="Remove key"
      onConfirm={() => remove.mutateAsync({ params: { id, key } })}
    >
      From now on, calls with the write key {maskedKey(key)} of {name} are rejected with 401 invalid_write_key. Rejected messages are not
      stored, and clients do not retry them. {others === 1 ? 'The other key still works.' : `The other ${others} keys still work.`}
    </ConfirmButton>
  )
}
