// One message: its state, its deliveries, its timeline and its content. If it is not stored: the possible reasons, and where to check each of them.

import { Alert, Badge, Card, Group, List, Stack, Text } from '@mantine/core'
import type { ApiProblem } from '../../api/client.ts'
import { useApi, usePersistentProblem } from '../../api/queries.ts'
import { Copyable, Json } from '../../components/copyable.tsx'
import { ErrorAlert, Facts, Loaded, Page } from '../../components/page.tsx'
import {
  AlertLink,
  Countdown,
  Expiry,
  LinkButton,
  LongText,
  Note,
  SectionTitle,
  SmallButton,
  StateBadge,
  Time,
  ViewLink,
} from '../../components/styled.tsx'
import { refreshMs, replayObstacle } from '../../delivery/delivery-state.ts'
import { useSession } from '../../session/session.tsx'
import { count } from '../../text/format.ts'
import { reasonSentence } from '../../text/reasons.ts'
import { usePathPart } from '../../url/url-state.ts'
import { ReplayButton } from '../deliveries/replay-button.tsx'
import { EndButtons, Reasons } from '../plans/end-buttons.tsx'
import { type MessageStory, outcomes, routingSentence, type StoryDelivery, summaryOf, titleOf, waitingOf } from './story.ts'
import { StoryTimeline } from './timeline.tsx'

const RETRY_NOT_FOUND_MS = 5_000

export default function Message() {
  const id = usePathPart(1)
  const query = useApi('GET /api/messages/{id}', {
    params: { id },
    // A message that is not stored yet may arrive soon.
    everyMs: (story) => (story === undefined ? RETRY_NOT_FOUND_MS : refreshMs(story.deliveries, Date.now())),
  })
  const { data } = query
  const error = usePersistentProblem(query, id)
  if (error?.code === 'message_not_found' && data === undefined) {
    return (
      <Page title="Message not found">
        <MessageNotFound id={id} problem={error} onRetry={() => void query.refetch()} />
      </Page>
    )
  }
  return (
    <Page title={data === undefined ? 'Message' : titleOf(data)} about={data === undefined ? undefined : summaryOf(data)}>
      {data !== undefined && error !== null && <ErrorAlert problem={error} onRetry={() => void query.refetch()} />}
      <Loaded query={query} lines={8}>
        {(story) => <Story story={story} />}
      </Loaded>
    </Page>
  )
}

function Story({ story }: { story: MessageStory }) {
  const { id, messageId, sourceId, sourceName, userId, anonymousId, receivedAt, timestamp, ip, browser, traceId } = story
  const { message, purged, deliveries, duplicates, quarantine, violations, others } = story
  return (
    <Stack gap="lg">
      {purged && (
        <Alert color="gray" variant="light" title="The content of this message was deleted">
          A deletion was requested for its user. Only the routing and delivery history is kept.{' '}
          <ViewLink to="/deletions">View deletions</ViewLink>
        </Alert>
      )}
      {(violations.length > 0 || quarantine?.state === 'held') && (
        <Violations id={id} sourceId={sourceId} isHeld={quarantine?.state === 'held'} violations={violations} />
      )}
      <Card withBorder>
        <Facts
          facts={[
            ['messageId', messageId === null ? null : <Copyable text={messageId} label="the messageId" />],
            ['Stored id', <Copyable text={id} label="the id" />],
            ['Source', <ViewLink to={`/sources/${encodeURIComponent(sourceId)}`}>{sourceName ?? `${sourceId} (deleted)`}</ViewLink>],
            ['User', userId === null ? null : <ViewLink to={`/messages?userId=${encodeURIComponent(userId)}`}>{userId}</ViewLink>],
            ['Anonymous id', anonymousId],
            ['Received', <Time at={receivedAt} precise />],
            ['Timestamp', timestamp === null || Number.isNaN(Date.parse(timestamp)) ? timestamp : <Time at={timestamp} precise />],
            ['Sent from', ip === null ? null : `${ip}${browser ? ' (browser)' : ''}`],
            ['Trace', traceId === null ? null : <Copyable text={traceId} label="the trace id" />],
            [
              'Duplicates',
              duplicates === null ? null : (
                <>
                  {count(duplicates.count)} ignored, last <Time at={duplicates.lastAt} relative />
                </>
              ),
            ],
          ]}
        />
      </Card>
      <Stack gap="sm" component="section" aria-labelledby="deliveries">
        <SectionTitle id="deliveries">Deliveries</SectionTitle>
        {deliveries.length === 0 && <Note>None. The timeline below shows why.</Note>}
        {deliveries.map((delivery) => (
          <DeliveryCard key={delivery.id} delivery={delivery} isMessageGone={purged} waiting={waitingOf(story.story, delivery)} />
        ))}
      </Stack>
      <Stack gap="md" component="section" aria-labelledby="story">
        <SectionTitle id="story">Timeline</SectionTitle>
        <StoryTimeline story={story.story} deliveries={deliveries} routing={routingSentence(story)} />
      </Stack>
      <Stack gap="sm" component="section" aria-labelledby="content">
        <SectionTitle id="content">Message</SectionTitle>
        {message === null ? <Text size="sm">The content was deleted.</Text> : <Json value={message} label="the message" />}
      </Stack>
      {others.length > 0 && <Others others={others} />}
    </Stack>
  )
}

interface ViolationsProps {
  id: string
  sourceId: string
  isHeld: boolean
  violations: MessageStory['violations']
}

function Violations({ id, sourceId, isHeld, violations }: ViolationsProps) {
  const { mayEdit } = useSession()
  return (
    <Alert color="orange" variant="light" title={isHeld ? 'This message is in quarantine' : 'This message violates the tracking plan'}>
      <Stack gap="sm">
        {isHeld && (
          <Text size="sm">
            It violates the tracking plan of its source, so it is not sent to any destination until somebody releases it.
          </Text>
        )}
        <Reasons violations={violations} />
        {/* The usual colour of links has too little contrast here. */}
        <AlertLink to={`/plans?tab=violations&source=${encodeURIComponent(sourceId)}`}>View all violations of this source</AlertLink>
        {isHeld && mayEdit && (
          <Group gap="xs">
            <EndButtons selection={{ ids: [id] }} />
          </Group>
        )}
      </Stack>
    </Alert>
  )
}

function DeliveryCard({ delivery, isMessageGone, waiting }: { delivery: StoryDelivery; isMessageGone: boolean; waiting: string | null }) {
  const {
    id,
    destinationId,
    destinationName,
    state,
    reason,
    lastReason,
    attemptCount,
    replay,
    replayOf,
    nextAttemptAt,
    expiresAt,
    settledAt,
  } = delivery
  const name = destinationName ?? `${destinationId} (deleted)`
  return (
    <Card withBorder padding="sm" data-delivery={id}>
      <Group justify="space-between" align="flex-start" gap="sm">
        <Stack gap={4} miw={0} style={{ flex: '1 1 260px' }}>
          <Group gap="xs">
            <StateBadge state={state} />
            <ViewLink to={`/destinations/${encodeURIComponent(destinationId)}`} fw={600} style={{ overflowWrap: 'anywhere' }}>
              {name}
            </ViewLink>
            {replay && (
              <Badge variant="outline" color="gray" size="sm" tt="none">
                replay
              </Badge>
            )}
          </Group>
          <Note component="div">
            {attemptCount === 0 ? 'Not attempted yet' : attemptCount === 1 ? '1 attempt' : `${count(attemptCount)} attempts`}
            {state === 'pending'
              ? // If the attempt is overdue, the sentence below says what it waits for.
                nextAttemptAt !== null &&
                Date.parse(nextAttemptAt) > Date.now() && (
                  <>
                    , next retry <Countdown at={nextAttemptAt} />
                  </>
                )
              : settledAt !== null && (
                  <>
                    , {state} <Time at={settledAt} relative />
                  </>
                )}
            {expiresAt !== null && (
              <>
                , <Expiry at={expiresAt} />
              </>
            )}
            {replayOf !== null && (
              <>
                , replay of <ViewLink to={`/deliveries/${encodeURIComponent(replayOf)}`}>{replayOf}</ViewLink>
              </>
            )}
          </Note>
          {waiting !== null && <Text size="sm">{waiting}</Text>}
          {reason !== null && state !== 'delivered' && <Text size="sm">{reasonSentence(reason)}</Text>}
          {lastReason !== null && <Text size="sm">Last attempt: {reasonSentence(lastReason)}</Text>}
        </Stack>
        <Group gap="xs">
          <ViewLink
            to={`/deliveries/${encodeURIComponent(id)}`}
            aria-label={`View the request and curl command of the delivery to ${name}`}
          >
            View request
          </ViewLink>
          <ReplayButton
            delivery={delivery}
            destination={name}
            obstacle={replayObstacle(delivery, isMessageGone, destinationName === null)}
          />
        </Group>
      </Group>
    </Card>
  )
}

/** Messages with the same messageId from another source, or from before the deduplication window. */
function Others({ others }: { others: MessageStory['others'] }) {
  return (
    <Stack gap="sm" component="section" aria-labelledby="others">
      <SectionTitle id="others">Older messages with the same messageId</SectionTitle>
      <Note>They came from another source, or were too old for the new message to be a duplicate.</Note>
      {others.map((other) => (
        <Card key={other.id} withBorder padding="sm">
          <Stack gap="sm">
            <Group gap="xs">
              <ViewLink to={`/messages/${encodeURIComponent(other.id)}`}>{other.id}</ViewLink>
              <Note component="div">
                from {other.sourceName ?? `${other.sourceId} (deleted)`}, <Time at={other.receivedAt} precise />
              </Note>
            </Group>
            <Stack gap={2} component="ul" m={0} pl="md">
              {outcomes(other.story).map(({ sentence }, at) => (
                <Text key={at} component="li" size="sm" style={{ overflowWrap: 'anywhere' }}>
                  {sentence}
                </Text>
              ))}
            </Stack>
          </Stack>
        </Card>
      ))}
    </Stack>
  )
}

function MessageNotFound({ id, problem, onRetry }: { id: string; problem: ApiProblem; onRetry: () => void }) {
  const { rejection, message } = problem
  return (
    <Stack gap="md" maw={720}>
      <Alert color="yellow" variant="light" title="No message with this id is stored" role="status">
        <Stack gap="xs" align="flex-start">
          <Copyable text={id} label="the id" />
          {rejection !== null && <LongText>{message}</LongText>}
          <Group gap="xs">
            {rejection !== null && (
              <LinkButton
                to={rejection.sourceId === null ? '/sources' : `/sources/${encodeURIComponent(rejection.sourceId)}`}
                variant="filled"
                size="xs"
              >
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
