// One delivery: its state, every attempt, the request as it was sent, and a button to replay it.

import { Badge, Button, Card, Group, Stack, Text, Timeline } from '@mantine/core'
import type { Answer } from '../../api/client.ts'
import { useApi } from '../../api/queries.ts'
import { Copyable } from '../../components/copyable.tsx'
import { Empty, ErrorAlert, Facts, Loaded, Page } from '../../components/page.tsx'
import { Countdown, Expiry, LinkButton, Note, SectionTitle, SmallNote, StateBadge, Time, ViewLink } from '../../components/styled.tsx'
import { STATE_COLORS } from '../../components/theme.ts'
import { refreshMs, replayObstacle } from '../../delivery/delivery-state.ts'
import { RequestView } from '../../delivery/request.tsx'
import { type Hold, holdOf } from '../../destination/destination-status.ts'
import type { Destination } from '../../destination/kind.ts'
import { AttemptView, kindOf } from '../../kinds/kinds.tsx'
import { count } from '../../text/format.ts'
import { reasonAdvice, reasonSentence } from '../../text/reasons.ts'
import { changeSearch, usePathPart, useSearchState } from '../../url/url-state.ts'
import { ReplayButton } from './replay-button.tsx'

type DeliveryDetail = Answer<'GET /api/deliveries/{id}'>

/** If there are more attempts, only this many of the newest are shown at first. */
const SHOWN_ATTEMPTS = 20

export default function Delivery() {
  const id = usePathPart(1)
  const query = useApi('GET /api/deliveries/{id}', {
    params: { id },
    everyMs: (delivery) => (delivery === undefined ? undefined : refreshMs([delivery], Date.now())),
  })
  const { data, error } = query
  const destinationId = data?.destinationId
  const { data: destination, error: destinationError } = useApi('GET /api/destinations/{id}', {
    params: { id: destinationId ?? '' },
    enabled: destinationId !== undefined,
  })
  const isDestinationGone = destinationError?.code === 'destination_not_found'
  if (error?.code === 'delivery_not_found' && data === undefined) {
    return (
      <Page title="Delivery">
        <Empty
          title="Delivery not found"
          action={<LinkButton to={`/messages/${encodeURIComponent(id)}`}>Find a message with this id</LinkButton>}
        >
          The delivery is older than SWITCHYARD_RETENTION_DAYS, or the id is incomplete.{' '}
          <ViewLink to="/deliveries">View all deliveries</ViewLink>
        </Empty>
      </Page>
    )
  }
  const hold = destination === undefined ? null : holdOf(destination)
  const name = destination?.name ?? (isDestinationGone ? `${destinationId} (deleted)` : (destinationId ?? ''))
  return (
    <Page
      title={data === undefined ? 'Delivery' : `Delivery to ${name}`}
      actions={
        data && (
          <ReplayButton
            delivery={data}
            destination={name}
            hold={hold}
            obstacle={replayObstacle(data, isMessageGone(data), isDestinationGone)}
            size="sm"
          />
        )
      }
    >
      {data !== undefined && error !== null && <ErrorAlert problem={error} onRetry={() => void query.refetch()} />}
      <Loaded query={query} lines={8}>
        {(delivery) => <Detail delivery={delivery} destination={destination} name={name} isDestinationGone={isDestinationGone} />}
      </Loaded>
    </Page>
  )
}

interface DetailProps {
  delivery: DeliveryDetail
  destination: Destination | undefined
  name: string
  isDestinationGone: boolean
}

function Detail({ delivery, destination, name, isDestinationGone }: DetailProps) {
  const { id, messageId, storedMessageId, destinationId, state, reason, attemptCount, attempts, request } = delivery
  const { replayOf, replayJobId, replayedBy, nextAttemptAt, expiresAt, settledAt, traceId } = delivery
  const hold = destination === undefined ? null : holdOf(destination)
  const kind = destination === undefined ? undefined : kindOf(destination)
  const unsent = destination === undefined ? undefined : kind?.request?.(destination)
  const link = (to: string) => <ViewLink to={`/deliveries/${encodeURIComponent(to)}`}>{to}</ViewLink>
  return (
    <Stack gap="lg">
      <CurrentState delivery={delivery} hold={hold} advice={kind?.advice ?? reasonAdvice} />
      <Card withBorder>
        <Facts
          facts={[
            ['Delivery', <Copyable text={id} label="the delivery id" />],
            ['Message', <ViewLink to={`/messages/${encodeURIComponent(storedMessageId)}`}>{messageId ?? storedMessageId}</ViewLink>],
            [
              'Destination',
              isDestinationGone ? name : <ViewLink to={`/destinations/${encodeURIComponent(destinationId)}`}>{name}</ViewLink>,
            ],
            ['Attempts', count(attemptCount)],
            ['Next attempt', state === 'pending' && hold === null ? <Countdown at={nextAttemptAt} /> : null],
            ['Expiry', expiresAt === null ? null : <Expiry at={expiresAt} />],
            ['Settled', settledAt === null ? null : <Time at={settledAt} precise />],
            ['Replay of', replayOf === null ? null : link(replayOf)],
            [
              'Replay job',
              replayJobId === null ? null : <ViewLink to={`/replays/${encodeURIComponent(replayJobId)}`}>{replayJobId}</ViewLink>,
            ],
            ['Replayed by', replayedBy === null ? null : link(replayedBy)],
            ['Trace', traceId === null ? null : <Copyable text={traceId} label="the trace id" />],
          ]}
        />
        <Note mt="sm">
          <ViewLink to={`/messages/${encodeURIComponent(storedMessageId)}`}>View the timeline of the message</ViewLink> to see why it was
          routed here and where else it was sent.
        </Note>
      </Card>
      <Attempts attempts={attempts} reason={reason} destination={destination} />
      {kind?.request !== null && (
        <Stack gap="sm" component="section" aria-labelledby="request">
          <SectionTitle id="request">
            {attempts.length === 0 ? 'Request that will be sent' : attempts.length === 1 ? 'Request' : 'Last request'}
          </SectionTitle>
          {request === null ? (
            <Text size="sm">
              Not available:{' '}
              {isDestinationGone
                ? 'the destination was deleted'
                : isMessageGone(delivery)
                  ? 'the message is no longer stored'
                  : 'no request can be built from the message'}
              .
            </Text>
          ) : (
            <RequestView request={request} url={attempts.at(-1)?.url ?? unsent?.url ?? null} method={unsent?.method ?? 'POST'} />
          )}
        </Stack>
      )}
    </Stack>
  )
}

/** Only a message that is no longer stored has no type. */
function isMessageGone({ request, type }: Pick<DeliveryDetail, 'request' | 'type'>): boolean {
  return request === null && type === null
}

function CurrentState({ delivery, hold, advice }: { delivery: DeliveryDetail; hold: Hold | null; advice: (reason: string) => string }) {
  const isPending = delivery.state === 'pending'
  const { data: health } = useApi('GET /api/destinations/{id}/health', {
    params: { id: delivery.destinationId },
    enabled: isPending,
    everyMs: 5_000,
  })
  const isBreakerOpen = isPending && health !== undefined && health.breaker !== 'closed'
  const { state, attemptCount, nextAttemptAt, replay } = delivery
  const reason = delivery.reason ?? delivery.lastReason
  return (
    <Card
      withBorder
      padding="sm"
      role="status"
      aria-label="State of the delivery"
      style={{ borderInlineStart: `4px solid var(--mantine-color-${STATE_COLORS[state]}-6)` }}
    >
      <Stack gap={4}>
        <Group gap="xs">
          <StateBadge state={state} size="md" />
          {replay && (
            <Badge variant="outline" color="gray" tt="none">
              replay
            </Badge>
          )}
          <Text size="sm" fw={500} component="div">
            {state === 'pending' ? (
              hold !== null ? (
                `The destination is ${hold}. The delivery is sent when the destination is ${hold === 'disabled' ? 'enabled' : 'resumed'}.`
              ) : isBreakerOpen ? (
                <>
                  Waiting for attempt {attemptCount + 1}: the circuit breaker of the destination is open, and one probe is sent at a time.
                </>
              ) : nextAttemptAt !== null && Date.parse(nextAttemptAt) > Date.now() ? (
                <>
                  Attempt {attemptCount + 1} <Countdown at={nextAttemptAt} />.
                </>
              ) : (
                <>Attempt {attemptCount + 1} is due now.</>
              )
            ) : (
              ENDS[state](attemptCount)
            )}
          </Text>
        </Group>
        {reason !== null && (
          <Text size="sm">
            {isPending ? 'Last attempt: ' : ''}
            {reasonSentence(reason)} {advice(reason)}
          </Text>
        )}
      </Stack>
    </Card>
  )
}

const after = (attempts: number): string =>
  attempts === 0 ? 'without an attempt' : attempts === 1 ? 'after 1 attempt' : `after ${count(attempts)} attempts`
const on = (attempts: number): string => (attempts === 1 ? 'on the first attempt' : after(attempts))

const ENDS: Readonly<Record<'delivered' | 'failed' | 'expired' | 'cancelled', (attempts: number) => string>> = {
  delivered: (attempts) => `Delivered ${on(attempts)}.`,
  failed: (attempts) => `Failed ${on(attempts)}. It is not retried automatically.`,
  expired: (attempts) => `Expired ${after(attempts)}: the retry window ended.`,
  cancelled: (attempts) => `Cancelled ${after(attempts)}.`,
}

interface AttemptsProps extends Pick<DeliveryDetail, 'attempts' | 'reason'> {
  destination: Destination | undefined
}

function Attempts({ attempts, reason, destination }: AttemptsProps) {
  const [params] = useSearchState()
  const hidden = params.get('all') === 'yes' ? 0 : Math.max(0, attempts.length - SHOWN_ATTEMPTS)
  const shown = attempts.slice(hidden)
  return (
    <Stack gap="md" component="section" aria-labelledby="attempts">
      <SectionTitle id="attempts">Attempts</SectionTitle>
      {attempts.length === 0 && <Note>{reason === null ? 'None yet.' : 'None.'}</Note>}
      {hidden > 0 && (
        <Button
          variant="subtle"
          size="compact-sm"
          style={{ alignSelf: 'flex-start' }}
          onClick={() => changeSearch({ all: 'yes' }, { replace: true })}
        >
          Show {count(hidden)} older attempts
        </Button>
      )}
      {shown.length > 0 && (
        <Timeline bulletSize={22} lineWidth={2} active={shown.length} role="list" aria-label="Attempts, oldest first">
          {shown.map((attempt) => (
            <Timeline.Item
              key={`${attempt.attempt} ${attempt.startedAt} ${attempt.subscription} ${attempt.url}`}
              role="listitem"
              color={attempt.reason === null ? 'teal' : 'red'}
              bullet={
                <Text span size="xs">
                  {attempt.attempt}
                </Text>
              }
            >
              <Stack gap={4} miw={0}>
                <SmallNote component="div">
                  Attempt {attempt.attempt} · started <Time at={attempt.startedAt} precise size="xs" />
                </SmallNote>
                <AttemptView attempt={attempt} destination={destination} withAdvice={false} />
              </Stack>
            </Timeline.Item>
          ))}
        </Timeline>
      )}
    </Stack>
  )
}
