// The last step: a real message, followed from the tracking API to the response of the destination.

import { Alert, Group, Loader, Paper, Stack, Text, Title } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Answer, Schemas } from '../../api/client.ts'
import { useLive } from '../../api/live.ts'
import { useApi } from '../../api/queries.ts'
import { ErrorAlert, Loading } from '../../components/page.tsx'
import { Snippets } from '../../components/snippets.tsx'
import { Countdown, LinkButton, Note, SmallButton, StateBadge, Strong, ViewLink } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { duration } from '../../text/format.ts'
import { reasonAdvice, reasonSentence } from '../../text/reasons.ts'
import { useSearchState } from '../../url/url-state.ts'
import { SendFromHere } from './send-from-here.tsx'

type Source = Schemas['Source']
type Destination = Schemas['Destination']
type Story = Answer<'GET /api/messages/{id}'>
type Delivery = Story['deliveries'][number]

const isFinished = (story: Story | undefined): boolean => story !== undefined && story.deliveries.every(({ state }) => state !== 'pending')

export function ArriveStep({ source, destinations }: { source: Source; destinations: readonly Destination[] }) {
  const { mayEdit } = useSession()
  const client = useQueryClient()
  const [params, change] = useSearchState()
  const followed = params.get('message')
  const story = useApi('GET /api/messages/{id}', {
    params: { id: followed ?? '' },
    enabled: followed !== null,
    everyMs: (answer) => (isFinished(answer) ? undefined : 2_000),
  })
  const follow = (messageId: string): void => change({ message: messageId }, { replace: followed === null })
  useLive({
    query: { sourceId: source.id },
    onEvents(events) {
      for (const event of events) {
        if (event.kind === 'accepted' && !event.duplicate && event.messageId !== null && followed === null) return follow(event.messageId)
      }
      if (followed === null || !events.some(({ kind }) => kind === 'attempt')) return
      // The outcome is stored right after the attempt is reported.
      void client.invalidateQueries({ queryKey: ['GET /api/messages/{id}'] })
    },
  })
  // A settled delivery may complete this step.
  const isSettled = isFinished(story.data)
  useEffect(() => {
    if (isSettled) void client.invalidateQueries({ queryKey: ['GET /api/ledger'] })
  }, [isSettled, client])
  const fed = destinations.filter(({ sourceIds, enabled, paused }) => enabled && !paused && sourceIds.includes(source.id))
  const other = destinations[0]
  return (
    <Stack gap="lg">
      {destinations.length === 0 ? (
        <Alert color="orange" title="No destination yet">
          A message would be stored but not delivered. <ViewLink to="/start?step=webhook">Add a destination first</ViewLink>.
        </Alert>
      ) : fed.length === 0 && other !== undefined ? (
        <Alert color="orange" title={`No destination receives messages from ${source.name}`}>
          The source is not attached to it, or the destination is paused or disabled.{' '}
          <ViewLink to={`/destinations/${other.id}?tab=settings`}>View settings of {other.name}</ViewLink>
        </Alert>
      ) : null}
      {mayEdit && (
        <SendFromHere
          source={source}
          onSent={follow}
          label={followed === null ? 'Send a message from this page' : 'Send another message'}
        />
      )}
      {followed === null ? (
        <>
          <Text size="sm">{mayEdit ? 'Or send one with code:' : 'Send a message:'}</Text>
          <Snippets writeKey={source.writeKeys.at(-1) ?? ''} requireOAuth={source.requireOAuth} />
          <Group gap="sm" role="status">
            <Loader size="sm" aria-hidden="true" />
            <Note>Waiting for the next message from the source {source.name} …</Note>
          </Group>
        </>
      ) : (
        <Paper withBorder p="md" component="section" aria-label="Followed message">
          {story.data !== undefined ? (
            <Followed story={story.data} names={new Map(destinations.map(({ id, name }) => [id, name]))} />
          ) : story.error !== null ? (
            <Stack gap="sm">
              <ErrorAlert problem={story.error} onRetry={() => void story.refetch()} />
              <Group>
                <SmallButton onClick={() => change({ message: null })}>Follow another message</SmallButton>
              </Group>
            </Stack>
          ) : (
            <Loading lines={3} label="Loading the message" />
          )}
        </Paper>
      )}
    </Stack>
  )
}

function Followed({ story, names }: { story: Story; names: ReadonlyMap<string, string> }) {
  const { id, type, event, deliveries, skips } = story
  const delivered = deliveries.filter(({ state }) => state === 'delivered')
  const isDelivered = deliveries.length > 0 && delivered.length === deliveries.length
  const nameOf = (destinationId: string, name: string | null = null): string => name ?? names.get(destinationId) ?? destinationId
  return (
    <Stack gap="md">
      <Title order={3} size="h5" aria-live="polite" style={{ overflowWrap: 'anywhere' }}>
        {isDelivered
          ? 'Delivered'
          : deliveries.some(({ state }) => state === 'pending')
            ? 'Delivery pending'
            : deliveries.length === 0
              ? 'Stored, but not sent to any destination'
              : 'Not delivered to every destination'}
        : {event ?? type}
      </Title>
      <Stack component="ul" gap="sm" p={0} m={0} style={{ listStyle: 'none' }} aria-label="Destinations">
        {deliveries.map((delivery) => (
          <li key={delivery.id}>
            <DeliveryLine delivery={delivery} name={nameOf(delivery.destinationId, delivery.destinationName)} />
          </li>
        ))}
        {skips.map(({ destinationId, reason, message }) => (
          <Note key={`${destinationId}:${reason}`} component="li" style={{ overflowWrap: 'anywhere' }}>
            {destinationId !== null && `${nameOf(destinationId)}: `}
            {message}
          </Note>
        ))}
      </Stack>
      {isDelivered && (
        <Alert color="teal" variant="light" title="Setup complete" role="status">
          Every new message is delivered this way, retried for hours if a destination does not answer, and can be looked up and replayed.
        </Alert>
      )}
      <Group>
        {isDelivered && (
          <LinkButton to="/" variant="filled">
            Go to the overview
          </LinkButton>
        )}
        <LinkButton to={`/messages/${encodeURIComponent(id)}`}>View timeline</LinkButton>
      </Group>
    </Stack>
  )
}

function DeliveryLine({ delivery, name }: { delivery: Delivery; name: string }) {
  const { state, attempts, nextAttemptAt, reason } = delivery
  const last = attempts.at(-1)
  const why = reason ?? last?.reason ?? null
  return (
    <Stack gap={4}>
      <Group gap="xs">
        <StateBadge state={state} />
        <Strong style={{ overflowWrap: 'anywhere' }}>{name}</Strong>
        {last !== undefined && last.reason === null && (
          <Text size="sm" component="span">
            HTTP {last.status} in {duration(last.timings.totalMs)}
            {attempts.length > 1 && ` · attempt ${last.attempt}`}
          </Text>
        )}
      </Group>
      {state !== 'delivered' && why !== null && (
        <Text size="sm">
          {last?.error ?? reasonSentence(why)} <Note span>{reasonAdvice(why)}</Note>
        </Text>
      )}
      {state === 'pending' && (
        <Note component="div">
          {last === undefined ? 'First attempt ' : 'Next retry '}
          <Countdown at={nextAttemptAt} />
        </Note>
      )}
    </Stack>
  )
}
