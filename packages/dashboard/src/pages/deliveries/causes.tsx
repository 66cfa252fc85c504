// Failed, expired and cancelled deliveries grouped by cause: their number, times, meaning and advice, with links to the list and to a replay.

import { Badge, Button, Card, Group, Stack, Text, Title } from '@mantine/core'
import { type Answer, type Schemas, useApi } from '../../api/queries.ts'
import { ReplayIcon } from '../../components/icons.tsx'
import { Empty, Loaded } from '../../components/page.tsx'
import { LinkButton, LongCode, LongText, Note, StateBadge, Time, ViewLink } from '../../components/styled.tsx'
import { deliveriesAddress, type Filters, isFailure, type ReplayBody, timesOf } from '../../delivery/filters.ts'
import { WhatDiffers } from '../../delivery/what-differs.tsx'
import { exactCount } from '../../text/format.ts'
import { expiredTitle, reasonAdvice } from '../../text/reasons.ts'

type Cause = Schemas['FailureCause']

const SHOWN_ANSWERS = 5

export interface CausesProps {
  filters: Filters
  asOf: number
  nameOf: (destinationId: string) => string
  isKnown: (destinationId: string) => boolean
  /** Undefined if the viewer may not replay. */
  onReplay: ((body: ReplayBody) => void) | undefined
}

export function Causes({ filters, asOf, nameOf, isKnown, onReplay }: CausesProps) {
  const { destinationId, state, reason } = filters
  const times = timesOf(filters, asOf)
  const query = useApi('GET /api/deliveries/causes', {
    query: { destinationId, state: isFailure(state) ? state : undefined, ...times },
    everyMs: 5_000,
    keep: true,
  })
  return (
    <Loaded query={query} lines={6}>
      {({ data }) => {
        const causes = reason === undefined ? data : data.filter((cause) => cause.reason === reason)
        if (causes.length === 0) return <NoCauses filters={filters} />
        const isPartial = causes.some(({ partial }) => partial)
        const sum = causes.reduce((total, { count }) => total + count, 0)
        return (
          <Stack gap="sm">
            <Note role="status">
              {exactCount(sum)}
              {isPartial && '+'} {sum === 1 ? 'delivery' : 'deliveries'}, {exactCount(causes.length)}{' '}
              {causes.length === 1 ? 'cause' : 'causes'}, most recent first
              {isPartial && '. A + means that only the newest deliveries were counted. Choose a time range to count older ones.'}
            </Note>
            <Stack gap="sm" component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
              {causes.map((cause) => (
                <li key={`${cause.destinationId} ${cause.state} ${cause.reason}`}>
                  <CauseCard cause={cause} filters={filters} times={times} nameOf={nameOf} isKnown={isKnown} onReplay={onReplay} />
                </li>
              ))}
            </Stack>
          </Stack>
        )
      }}
    </Loaded>
  )
}

function CauseCard({
  cause,
  filters,
  times,
  nameOf,
  isKnown,
  onReplay,
}: Omit<CausesProps, 'asOf'> & { cause: Cause; times: { from: string | undefined; to: string | undefined } }) {
  const { destinationId, state, reason, sentence, count, firstAt, lastAt, deliveryId, partial } = cause
  const { within, from, to } = filters
  const list = deliveriesAddress({ destinationId, state, reason: reason ?? undefined, within, from, to, view: 'list' })
  const advice = reason === null ? '' : reasonAdvice(reason)
  const isExisting = isKnown(destinationId)
  const answers = useAnswers(cause, times)
  return (
    <Card withBorder padding="md">
      <Stack gap={8}>
        <Group justify="space-between" align="flex-start" gap="xs" wrap="nowrap">
          <Stack gap={2} miw={0}>
            <Title order={2} size="h5" style={{ overflowWrap: 'anywhere' }}>
              {state === 'expired' ? expiredTitle(sentence, answers?.data ?? []) : sentence}
            </Title>
            {advice !== '' && <Note>{advice}</Note>}
          </Stack>
          <Text
            fw={700}
            size="xl"
            lh={1.1}
            style={{ whiteSpace: 'nowrap' }}
            aria-label={`${exactCount(count)} deliveries${partial ? ' or more' : ''}`}
          >
            {exactCount(count)}
            {partial && '+'}
          </Text>
        </Group>
        {answers !== undefined && <Answers answers={answers} />}
        {isExisting && (state === 'failed' || state === 'expired') && (
          <WhatDiffers destinationId={destinationId} state={state} reason={reason ?? undefined} {...times} />
        )}
        <Group gap="xs">
          <StateBadge state={state} />
          {reason !== null && (
            <Badge variant="default" tt="none" ff="monospace" fw={500}>
              {reason}
            </Badge>
          )}
          <LongText>
            {isExisting ? (
              <ViewLink to={`/destinations/${encodeURIComponent(destinationId)}`}>{nameOf(destinationId)}</ViewLink>
            ) : (
              `${destinationId} (deleted)`
            )}
          </LongText>
          <Note component="div">
            latest: <Time at={lastAt} relative /> · first: <Time at={firstAt} relative />
          </Note>
        </Group>
        <Group gap="xs">
          <LinkButton to={list} size="xs" aria-label={`View deliveries: ${sentence}`}>
            View deliveries
          </LinkButton>
          <LinkButton to={`/deliveries/${encodeURIComponent(deliveryId)}`} size="xs" aria-label={`View newest: ${sentence}`}>
            View newest
          </LinkButton>
          {onReplay && isExisting && reason !== 'message_deleted' && reason !== 'message_unreadable' && (
            <Button
              size="xs"
              variant="light"
              leftSection={<ReplayIcon size={14} />}
              onClick={() => onReplay({ destinationId, states: [state], ...(reason === null ? {} : { reason }), ...times })}
              aria-label={`Replay all: ${sentence}`}
            >
              Replay all
            </Button>
          )}
        </Group>
      </Stack>
    </Card>
  )
}

type AnswerOfGroup = Answer<'GET /api/deliveries/answers'>

/** Expired deliveries by the cause of their last attempts, and the answers of a receiver that rejects messages. */
function useAnswers({ destinationId, state, reason, status }: Cause, times: { from: string | undefined; to: string | undefined }) {
  const isWanted = state === 'expired' || (state === 'failed' && status !== null)
  const { data } = useApi('GET /api/deliveries/answers', {
    query: { destinationId, state: state === 'expired' ? 'expired' : 'failed', reason: reason ?? undefined, ...times },
    enabled: isWanted,
    keep: true,
  })
  return isWanted ? data : undefined
}

function Answers({ answers: { data, examined } }: { answers: AnswerOfGroup }) {
  if (data.length === 0) return null
  return (
    <Stack gap={4}>
      <Note>Last attempts of the newest {exactCount(examined)}:</Note>
      <Stack gap={4} component="ul" m={0} pl="lg">
        {data.slice(0, SHOWN_ANSWERS).map(({ deliveryId, count, sentence, responseStart }) => (
          <li key={deliveryId}>
            <LongText component="div">
              <b>{exactCount(count)}</b> · <ViewLink to={`/deliveries/${encodeURIComponent(deliveryId)}`}>{sentence}</ViewLink>
              {responseStart !== null && responseStart.trim() !== '' && (
                <>
                  {' '}
                  <LongCode>{responseStart}</LongCode>
                </>
              )}
            </LongText>
          </li>
        ))}
      </Stack>
      {data.length > SHOWN_ANSWERS && <Note>and {exactCount(data.length - SHOWN_ANSWERS)} more kinds of answers</Note>}
    </Stack>
  )
}

function NoCauses({ filters }: { filters: Filters }) {
  const { state, destinationId, within, from, to, reason } = filters
  const isNarrowed = [destinationId, within, from, to, reason].some((value) => value !== undefined)
  return (
    <Empty
      title={isNarrowed ? 'No failures match the filters' : `No ${state ?? 'failed'} deliveries`}
      link={{ to: '/deliveries?view=list', label: 'Show all deliveries', isLight: true }}
    >
      {isNarrowed
        ? 'Choose another time range or destination.'
        : 'Deliveries that fail permanently, or whose retry window ends, are shown here by cause.'}
    </Empty>
  )
}
