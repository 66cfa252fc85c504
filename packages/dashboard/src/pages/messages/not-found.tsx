// Shown for a message that is not stored: the possible reasons, and where to check each of them. The page keeps looking for it.

import { Alert, Group, List, Stack, Text } from '@mantine/core'
import type { ApiProblem } from '../../api/client.ts'
import { Copyable } from '../../components/copyable.tsx'
import { LinkButton, Note, SmallButton, ViewLink } from '../../components/styled.tsx'

/** The API's message about a rejection that is stored. */
const REJECTED_OF = /^A message with this messageId, from the source (\S+), was rejected/

export function MessageNotFound({ id, problem, onRetry }: { id: string; problem: ApiProblem; onRetry: () => void }) {
  const sourceId = REJECTED_OF.exec(problem.message)?.[1]
  return (
    <Stack gap="md" maw={720}>
      <Alert color="yellow" variant="light" title="No message with this id is stored" role="status">
        <Stack gap="xs" align="flex-start">
          <Copyable text={id} label="the id" />
          {sourceId !== undefined && (
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              {problem.message}
            </Text>
          )}
          <Group gap="xs">
            {sourceId !== undefined && (
              <LinkButton to={`/sources/${encodeURIComponent(sourceId)}`} variant="filled" size="xs">
                View rejected calls
              </LinkButton>
            )}
            <SmallButton onClick={onRetry}>Check again</SmallButton>
          </Group>
        </Stack>
      </Alert>
      <Text fw={600} component="h2" size="lg">
        Possible reasons
      </Text>
      <List spacing="sm" size="sm">
        <List.Item>
          <b>It was never received.</b> The sender has not sent it yet, used a wrong write key, or sent it to another installation. Check
          the errors that the sender reports, and <ViewLink to={`/live?messageId=${encodeURIComponent(id)}`}>watch the live page</ViewLink>{' '}
          while you send it again.
        </List.Item>
        <List.Item>
          <b>It was rejected.</b> Rejected calls are listed by code, with a sample, on the page of the{' '}
          <ViewLink to="/sources">source</ViewLink>; those with an unknown write key are below the list of sources.
        </List.Item>
        <List.Item>
          <b>It was dropped because its user is suppressed.</b> <ViewLink to="/deletions">Deletions</ViewLink> lists the suppressed users.
        </List.Item>
        <List.Item>
          <b>It is older than the retention period.</b> SWITCHYARD_RETENTION_DAYS sets how long messages are kept; the default is 7 days.
        </List.Item>
        <List.Item>
          <b>The id is different.</b> Enter the full messageId that the sender set or the full id of the stored message, or{' '}
          <ViewLink to="/messages">search by user, type or time</ViewLink>.
        </List.Item>
      </List>
      <Note>This page checks again every 5 seconds.</Note>
    </Stack>
  )
}
