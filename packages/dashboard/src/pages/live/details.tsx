// One event, looked at: what it was, what has become of its message since, and the message as it is sent. What was told live is shown at once;
// the rest is asked for, which is also what a shared address has.

import { Alert, Button, Drawer, Group, Stack, Text, Title } from '@mantine/core'
import { Link } from 'wouter'
import type { Answer } from '../../api/client.ts'
import type { LiveAttempt, LiveRejected } from '../../api/live.ts'
import { useApi } from '../../api/queries.ts'
import type { Names } from '../../api/use-names.ts'
import { AttemptView } from '../../components/attempt.tsx'
import { CodeBlock } from '../../components/copyable.tsx'
import { Countdown } from '../../components/countdown.tsx'
import { Facts } from '../../components/facts.tsx'
import { Json } from '../../components/json.tsx'
import { ViewLink } from '../../components/link.tsx'
import { ErrorAlert, Loading } from '../../components/query-states.tsx'
import { StateBadge } from '../../components/state-badge.tsx'
import { Time } from '../../components/time.tsx'
import { duration, exactCount } from '../../text/format.ts'
import { reasonAdvice, reasonSentence } from '../../text/reasons.ts'
import { rejectionAdvice, rejectionSentence } from '../../text/rejections.ts'
import { subjectOf } from './entry.ts'
import type { LiveGap, Told } from './feed.ts'
import { OutcomeWord } from './list.tsx'

type Story = Answer<'GET /api/messages/{id}'>

const MAX_ATTEMPTS = 5

/** `messageId`: of the address; `told`: what was chosen in the list, if it is still known. */
export function Details({
  messageId,
  told,
  names,
  onClose,
}: {
  messageId: string | null
  told: Told | null
  names: Names
  onClose: () => void
}) {
  return (
    <Drawer
      opened={messageId !== null || told !== null}
      onClose={onClose}
      position="right"
      size="lg"
      title={
        <Text fw={650} style={{ overflowWrap: 'anywhere' }}>
          {told === null ? 'A message' : titleOf(told)}
        </Text>
      }
    >
      <Stack gap="lg">
        {told !== null && (
          <Group gap="sm">
            <span>
              <OutcomeWord told={told} />
            </span>
            <Time at={told.at} precise />
          </Group>
        )}
        {told?.kind === 'gap' && <Gap gap={told} />}
        {told?.kind === 'rejected' && <Rejected rejected={told} names={names} />}
        {told?.kind === 'attempt' && <Attempt attempt={told} names={names} />}
        {messageId !== null && <Message key={messageId} messageId={messageId} told={told} names={names} />}
      </Stack>
    </Drawer>
  )
}

function titleOf(told: Told): string {
  if (told.kind === 'rejected') return 'A rejected call'
  const subject = subjectOf(told)
  if (subject !== '' || told.kind === 'gap') return subject
  return told.type ?? 'A message'
}

function Gap({ gap: { fromMs, toMs } }: { gap: LiveGap }) {
  return (
    <Text size="sm">
      For {duration(toMs - fromMs)} this page did not listen: the tab was hidden, or the stream was broken. What happened meanwhile is not
      in this list, and it is not lost:{' '}
      <ViewLink to={`/messages?period=between&from=${iso(fromMs)}&to=${iso(toMs)}`}>look at the messages of that time</ViewLink>.
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
          ['Source', sourceId === null ? 'not known' : <SourceLink key="source" id={sourceId} names={names} />],
          ['Messages', exactCount(messages)],
        ]}
      />
      {sample !== '' && (
        <Stack gap={4}>
          <Title order={2} size="h5">
            It began with
          </Title>
          <CodeBlock text={sample} label="the start of what was rejected" />
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
          ['Attempt', `${attempt.attempt}${replay ? ', of a replay' : ''}`],
          ['URL', url],
          ['Answer', status === null ? `none, after ${duration(totalMs)}` : `${status} in ${duration(totalMs)}`],
          ['Trace', traceId],
        ]}
      />
      {reason !== null && (
        <Text size="sm">
          {error ?? reasonSentence(reason)} {verdict === 'temporary' ? 'It is tried again, as long as its time for retries lasts. ' : ''}
          <Text span size="sm" c="dimmed">
            {reasonAdvice(reason)}
          </Text>
        </Text>
      )}
      {messages > 1 && <Text size="sm">{exactCount(messages)} messages were in this request. Below is the first of them.</Text>}
      <ViewLink to={`/deliveries/${encodeURIComponent(deliveryId)}`}>The delivery, with its request</ViewLink>
    </Stack>
  )
}

function Message({ messageId, told, names }: { messageId: string; told: Told | null; names: Names }) {
  const query = useApi('GET /api/messages/{id}', {
    params: { id: messageId },
    everyMs: (story) => (story?.deliveries.some(({ state }) => state === 'pending') ? 2_000 : undefined),
  })
  const story = query.data
  const message = (told?.kind === 'accepted' ? told.message : null) ?? story?.message ?? null
  return (
    <>
      <Group>
        <Button component={Link} href={`/messages/${encodeURIComponent(messageId)}`}>
          The whole story
        </Button>
      </Group>
      {story === undefined && query.error !== null && <ErrorAlert problem={query.error} onRetry={() => void query.refetch()} />}
      {story === undefined && query.error === null && <Loading lines={3} label="Loading the message" />}
      {story !== undefined && <About story={story} names={names} />}
      {message !== null ? (
        <Stack gap="xs" component="section" aria-label="The message">
          <Title order={2} size="h5">
            The message
          </Title>
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
        <Title order={2} size="h5">
          Deliveries and attempts
        </Title>
        {deliveries.length === 0 && skips.length === 0 && <Text size="sm">There are none: no destination takes it.</Text>}
        {skips.map(({ destinationId, reason, message }) => (
          <Text key={`${destinationId}:${reason}`} size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            {destinationId !== null && `${names.destinations.get(destinationId) ?? destinationId}: `}
            {message}
          </Text>
        ))}
        {deliveries.map(({ id, state, destinationId, destinationName, attempts, nextAttemptAt }) => (
          <Stack key={id} gap="xs">
            <Group gap="xs">
              <StateBadge state={state} />
              <ViewLink to={`/deliveries/${encodeURIComponent(id)}`}>
                {destinationName ?? names.destinations.get(destinationId) ?? destinationId}
              </ViewLink>
              {state === 'pending' && (
                <Text size="sm" c="dimmed" component="span">
                  next attempt <Countdown at={nextAttemptAt} />
                </Text>
              )}
            </Group>
            {attempts.length > MAX_ATTEMPTS && (
              <Text size="xs" c="dimmed">
                The last {MAX_ATTEMPTS} of {exactCount(attempts.length)} attempts:
              </Text>
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
