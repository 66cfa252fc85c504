// A message that is not here: what that can mean, and where to look for each of it. The page goes on looking meanwhile.

import { Alert, Button, Group, List, Stack, Text } from '@mantine/core'
import { Link } from 'wouter'
import type { ApiProblem } from '../../api/client.ts'
import { Copyable } from '../../components/copyable.tsx'
import { ViewLink } from '../../components/link.tsx'

/** As the API says it of a rejection that it remembers. */
const REJECTED_OF = /^A message with this messageId, from the source (\S+), was rejected/

export function MessageNotFound({ id, problem, onRetry }: { id: string; problem: ApiProblem; onRetry: () => void }) {
  const sourceId = REJECTED_OF.exec(problem.message)?.[1]
  return (
    <Stack gap="md" maw={720}>
      <Alert color="yellow" variant="light" title="No message of this id is stored" role="status">
        <Stack gap="xs" align="flex-start">
          <Copyable text={id} label="the id" />
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            {problem.message}
          </Text>
          <Group gap="xs">
            {sourceId !== undefined && (
              <Button component={Link} href={`/sources/${encodeURIComponent(sourceId)}`} size="xs">
                The source's rejected calls
              </Button>
            )}
            <Button size="xs" variant="default" onClick={onRetry}>
              Look again
            </Button>
          </Group>
        </Stack>
      </Alert>
      <Text fw={600} component="h2" size="lg">
        What that can mean
      </Text>
      <List spacing="sm" size="sm">
        <List.Item>
          <b>It never arrived.</b> The sender still holds it, its write key was wrong, or it went to another installation.{' '}
          <ViewLink to={`/live?messageId=${encodeURIComponent(id)}`}>Watch live</ViewLink> while it is sent again, and look at the sender's
          errors.
        </List.Item>
        <List.Item>
          <b>It was rejected.</b> What was refused at the door is counted by code, with a sample, on the page of its{' '}
          <ViewLink to="/sources">source</ViewLink>; calls without a known write key on the list of sources.
        </List.Item>
        <List.Item>
          <b>It was dropped, because its user is suppressed.</b> <ViewLink to="/deletions">Deletions</ViewLink> tell whose messages are.
        </List.Item>
        <List.Item>
          <b>It is older than messages are kept.</b> SWITCHYARD_RETENTION_DAYS says how long that is; 7 days unless it was set.
        </List.Item>
        <List.Item>
          <b>The id is another one.</b> Here it is found by the sender's messageId or by the id in the store, in whole.{' '}
          <ViewLink to="/messages">Search by user, type or time</ViewLink> instead.
        </List.Item>
      </List>
      <Text size="sm" c="dimmed">
        This page looks again every 5 seconds.
      </Text>
    </Stack>
  )
}
