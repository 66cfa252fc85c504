// The write keys of a source: shown when asked, copied, added and removed. To rotate is to add one, move the senders over, and remove the old
// one; the steps are written out while there are two.

import { Alert, Button, Group, List, Paper, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import type { ApiProblem, Schemas } from '../../api/client.ts'
import { useChange } from '../../api/queries.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { WriteKey } from '../../components/write-key.tsx'
import { maskedKey } from '../../text/snippets.ts'

const STALE = ['GET /api/sources', 'GET /api/sources/{id}'] as const

export function WriteKeys({ source: { id, name, writeKeys }, isAdmin }: { source: Schemas['Source']; isAdmin: boolean }) {
  const add = useChange('POST /api/sources/{id}/write-keys', ...STALE)
  const remove = useChange('DELETE /api/sources/{id}/write-keys/{key}', ...STALE)
  const [removing, setRemoving] = useState<string | null>(null)
  const rotate = (): void =>
    add.mutate(
      { params: { id }, body: {} },
      {
        onSuccess: () => notifications.show({ color: 'teal', message: 'A write key was added. The old one still works.' }),
        onError: ({ message }: ApiProblem) => notifications.show({ color: 'red', title: 'No key was added', message }),
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
                  <Text size="xs" c="dimmed">
                    {at === 0 ? 'the oldest' : at === writeKeys.length - 1 ? 'the newest' : `key ${at + 1}`}
                  </Text>
                )}
              </Stack>
              {isAdmin && writeKeys.length > 1 && (
                <Button
                  size="compact-sm"
                  variant="subtle"
                  color="red"
                  onClick={() => setRemoving(key)}
                  aria-label={`Remove write key ${at + 1}`}
                >
                  Remove
                </Button>
              )}
            </Group>
          </Paper>
        ))}
      </Stack>
      {writeKeys.length > 1 && (
        <Alert color="blue" variant="light" title="While there is more than one key">
          <Stack gap="xs">
            <Text size="sm">All of them work. To finish changing from an old key to a new one:</Text>
            <List type="ordered" size="sm">
              <List.Item>Copy the newest key and give it to everything that sends to {name}.</List.Item>
              <List.Item>
                Wait until all of it is rolled out. Which key a message came with is not recorded: your own releases tell.
              </List.Item>
              <List.Item>
                Remove the old key. Whoever still sends with it is refused, and shows up under refused calls as invalid_write_key.
              </List.Item>
            </List>
          </Stack>
        </Alert>
      )}
      {isAdmin && (
        <Group gap="sm">
          <Button variant="default" onClick={rotate} loading={add.isPending}>
            {writeKeys.length === 1 ? 'Rotate: add a new key' : 'Add another key'}
          </Button>
          {writeKeys.length === 1 && (
            <Text size="sm" c="dimmed" style={{ flex: '1 1 220px' }}>
              The old one keeps working until you remove it, so nothing is lost in between. The last key cannot be removed.
            </Text>
          )}
        </Group>
      )}
      <ConfirmDialog
        opened={removing !== null}
        onClose={() => setRemoving(null)}
        title="Remove this write key?"
        verb="Remove the key"
        onConfirm={() => remove.mutateAsync({ params: { id, key: removing ?? '' } })}
      >
        <Text size="sm">
          {removing !== null && maskedKey(removing)} of {name} is refused at once, with 401 invalid_write_key. What is sent with it from
          then on is not stored, and clients do not send it again. {restOf(writeKeys.length - 1)}
        </Text>
      </ConfirmDialog>
    </Stack>
  )
}

function restOf(count: number): string {
  return count === 1 ? 'The other key keeps working.' : `The other ${count} keys keep working.`
}
