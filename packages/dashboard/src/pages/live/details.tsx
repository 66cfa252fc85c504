// The details of one event: what happened, the deliveries of its message so far, and the message as it is sent. The live event is shown
// immediately; the rest is loaded from the API, which is all that a shared URL has.

import { Alert, Drawer, Group, Stack, Text } from '@mantine/core'
import type { Answer } from '../../api/client.ts'
import type { LiveAttempt, LiveRejected } from '../../api/live.ts'
import { useApi } from '../../api/queries.ts'
import type { Names } from '../../api/use-names.ts'
import { CodeBlock, Json } from '../../components/copyable.tsx'
import { ErrorAlert, Facts, Loading } from '../../components/page.tsx'
import { Countdown, LinkButton, Note, SmallNote, SmallTitle, StateBadge, Time, ViewLink } from '../../components/styled.tsx'
import { AttemptView } from '../../kinds/kinds.tsx'
import { duration, exactCount } from '../../text/format.ts'
import { reasonAdvice, reasonSentence } from '../../text/reasons.ts'
import { rejectionAdvice, rejectionSentence } from '../../text/rejections.ts'
import { subjectOf } from './entry.ts'
import type { LiveGap, LiveItem } from './feed.ts'
import { OutcomeWord } from './list.tsx'

type Story = Answer<'GET /api/messages/{id}'>

const MAX_ATTEMPTS = 5

interface DetailsProps {
  messageId: string | null
  item: LiveItem | null
  names: Names
  onClose: () => void
}

/** `messageId` is from the URL; `item` is the row that was chosen in the list, if it is still known. */
export function Details({ messageId, item, names, onClose }: DetailsProps) {
  return (
    <Drawer
      opened={messageId !== null || item !== null}
      onClose={onClose}
      position="right"
      size="lg"
      title={
        <Text fw={650} style={{ overflowWrap: 'anywhere' }}>
          {item === null ? 'Message' : titleOf(item)}
        </Text>
      }
    >
      <Stack gap="lg">
        {item !== null && (
          <Group gap="sm">
            <span>
              <OutcomeWord item={item} />
            </span>
            <Time at={item.at} precise />
          </Group>
        )}
        {item?.kind === 'gap' && <Gap gap={item} />}
        {item?.kind === 'rejected' && <Rejected rejected={item} names={names} />}
        {item?.kind === 'attempt' && <Attempt attempt={item} names={names} />}
        {messageId !== null && <Message key={messageId} messageId={messageId} item={item} names={names} />}
      </Stack>
    </Drawer>
  )
}

function titleOf(item: LiveItem): string {
  if (item.kind === 'rejected') return 'Rejected call'
  const subject = subjectOf(item)
  if (subject !== '' || item.kind === 'gap') return subject
  return item.type ?? 'Message'
}

function Gap({ gap: { fromMs, toMs } }: { gap: LiveGap }) {
  return (
    <Text size="sm">
      This page was disconnected for {duration(toMs - fromMs)}, because the tab was hidden or the connection was lost. Events of that time
      are stored but not in this list.{' '}
      <ViewLink to={`/messages?period=between&from=${iso(fromMs)}&to=${iso(toMs)}`}>View the messages of that time</ViewLink>
    </Text>
  )
}

const iso = (ms: number): string => encodeURIComponent(new Date(ms).toISOString())

function Rejected({ rejected: { code, messages, sample, sourceId }, names }: { rejected: LiveRejected; names: Names }) {
  return (
    <Stack gap="md">
      <Alert color="red" variant="light" title={code}>
        {rejectionSentence(code)} {rejectionAdvice(code)}
      </Alert>
      <Facts
        cols={2}
        facts={[
          ['Source', sourceId === null ? 'unknown' : <SourceLink key="source" id={sourceId} names={names} />],
          ['Messages', exactCount(messages)],
        ]}
      />
      {sample !== '' && (
        <Stack gap={4}>
          <SmallTitle order={2}>Start of the rejected body</SmallTitle>
          <CodeBlock text={sample} label="start of the rejected body" />
        </Stack>
      )}
    </Stack>
  )
}

function SourceLink({ id, names }: { id: string; names: Names }) {
  return <ViewLink to={`/sources/${encodeURIComponent(id)}`}>{names.sources.get(id) ?? id}</ViewLink>
}

function Attempt({ attempt, names }: { attempt: LiveAttempt; names: Names }) {
  const { destinationId, deliveryId, messages, replay, url, verdict, status, reason, error, totalMs, traceId } = attempt
  return (
    <Stack gap="sm" component="section" aria-label="This attempt">
      <Facts
        cols={2}
        facts={[
          [
            'Destination',
            <ViewLink key="destination" to={`/destinations/${encodeURIComponent(destinationId)}`}>
              {names.destinations.get(destinationId) ?? destinationId}
            </ViewLink>,
          ],
          ['Attempt', `${attempt.attempt}${replay ? ' (replay)' : ''}`],
          ['URL', url],
          ['Response', status === null ? `none after ${duration(totalMs)}` : `${status} in ${duration(totalMs)}`],
          ['Trace', traceId],
        ]}
      />
      {reason !== null && (
        <Text size="sm">
          {error ?? reasonSentence(reason)} {verdict === 'temporary' ? 'It will be retried until its retry window ends. ' : ''}
          <Note span>{reasonAdvice(reason)}</Note>
        </Text>
      )}
      {messages > 1 && <Text size="sm">This request contained {exactCount(messages)} messages. The first one is shown below.</Text>}
      <ViewLink to={`/deliveries/${encodeURIComponent(deliveryId)}`}>View delivery and request</ViewLink>
    </Stack>
  )
}

function Message({ messageId, item, names }: { messageId: string; item: LiveItem | null; names: Names }) {
  const query = useApi('GET /api/messages/{id}', {
    params: { id: messageId },
    everyMs: (story) => (story?.deliveries.some(({ state }) => state === 'pending') ? 2_000 : undefined),
  })
  const story = query.data
  const message = (item?.kind === 'accepted' ? item.message : null) ?? story?.message ?? null
  return (
    <>
      <Group>
        <LinkButton to={`/messages/${encodeURIComponent(messageId)}`} variant="filled">
          View timeline
        </LinkButton>
      </Group>
      {story === undefined && query.error !== null && <ErrorAlert problem={query.error} onRetry={() => void query.refetch()} />}
      {story === undefined && query.error === null && <Loading lines={3} label="Loading the message" />}
      {story !== undefined && <About story={story} names={names} />}
      {message !== null ? (
        <Stack gap="xs" component="section" aria-label="Message">
          <SmallTitle order={2}>Message</SmallTitle>
          <Json value={message} label="the message" />
        </Stack>
      ) : (
        story !== undefined && <Text size="sm">The content of the message was deleted.</Text>
      )}
    </>
  )
}

function About({ story, names }: { story: Story; names: Names }) {
  const { sourceId, type, event, userId, anonymousId, receivedAt, deliveries, skips } = story
  return (
    <>
      <Facts
        cols={2}
        facts={[
          ['Source', <SourceLink key="source" id={sourceId} names={names} />],
          ['Type', type],
          ['Event', event],
          ['User', userId ?? anonymousId],
          ['messageId', story.messageId],
          ['Received', <Time key="received" at={receivedAt} precise />],
        ]}
      />
      <Stack gap="md" component="section" aria-label="Deliveries and attempts">
        <SmallTitle order={2}>Deliveries and attempts</SmallTitle>
        {deliveries.length === 0 && skips.length === 0 && <Text size="sm">None: no destination receives this message.</Text>}
        {skips.map(({ destinationId, reason, message }) => (
          <Note key={`${destinationId}:${reason}`} style={{ overflowWrap: 'anywhere' }}>
            {destinationId !== null && `${names.destinations.get(destinationId) ?? destinationId}: `}
            {message}
          </Note>
        ))}
        {deliveries.map(({ id, state, destinationId, destinationName, attempts, nextAttemptAt }) => (
          <Stack key={id} gap="xs">
            <Group gap="xs">
              <StateBadge state={state} />
              <ViewLink to={`/deliveries/${encodeURIComponent(id)}`}>
                {destinationName ?? names.destinations.get(destinationId) ?? destinationId}
              </ViewLink>
              {state === 'pending' && (
                <Note component="span">
                  next attempt <Countdown at={nextAttemptAt} />
                </Note>
              )}
            </Group>
            {attempts.length > MAX_ATTEMPTS && (
              <SmallNote>
                Last {MAX_ATTEMPTS} of {exactCount(attempts.length)} attempts:
              </SmallNote>
            )}
            {attempts.slice(-MAX_ATTEMPTS).map((attempt) => (
              <AttemptView key={`${attempt.attempt}:${attempt.url}`} attempt={attempt} />
            ))}
          </Stack>
        ))}
      </Stack>
    </>
  )
}
