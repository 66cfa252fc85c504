// The first step: the write key, code to copy, and the first message when it arrives. Rejected calls are shown too, because a wrong write key
// is the most common reason why no message arrives.

import { Alert, Button, Group, List, Loader, NativeSelect, Paper, Stack, Text, VisuallyHidden } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Answer, Schemas } from '../../api/client.ts'
import { type LiveRejected, type LiveState, useLive } from '../../api/live.ts'
import { useApi } from '../../api/queries.ts'
import { Json, WriteKey } from '../../components/copyable.tsx'
import { entered } from '../../components/inputs.tsx'
import { ErrorAlert } from '../../components/page.tsx'
import { RejectedCalls } from '../../components/rejected-calls.tsx'
import { Snippets } from '../../components/snippets.tsx'
import { LinkButton, LongText, Note, SmallTitle, Time, useNow, ViewLink } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { isLoopback } from '../../text/snippets.ts'
import { recentRejections } from './progress.ts'
import { SendFromHere } from './send-from-here.tsx'

type Source = Schemas['Source']
type Message = Answer<'GET /api/messages'>['data'][number]

/** Hints are shown after this time: before, nobody could have run a snippet. */
const HINTS_AFTER_MS = 20_000
/** Rejections from before the page was opened are shown if they are this recent: the viewer has probably just tried. */
const RECENT_MS = 10 * 60_000
const MAX_REJECTED = 200

interface SendStepProps {
  source: Source
  sources: readonly Source[]
  onSource: (id: string) => void
  onNext: () => void
}

export function SendStep({ source, sources, onSource, onNext }: SendStepProps) {
  const { live, beganMs, messages, rejected, refresh } = useArrivals()
  const last = messages.data?.data[0]
  const names = new Map(sources.map(({ id, name }) => [id, name]))
  return (
    <Stack gap="lg">
      <Stack gap="sm">
        {sources.length > 1 && (
          <NativeSelect
            label="Source"
            description="The application that sends the message"
            {...entered(source.id, onSource)}
            data={sources.map(({ id, name }) => ({ value: id, label: name }))}
            maw={360}
          />
        )}
        <HowToSend source={source} onSent={refresh} />
      </Stack>

      <Paper withBorder p="md" component="section" aria-label="First message">
        <Stack gap="md">
          <VisuallyHidden role="status">{announced(last, rejected.length)}</VisuallyHidden>
          {last === undefined ? (
            messages.error !== null ? (
              <ErrorAlert problem={messages.error} onRetry={() => void messages.refetch()} />
            ) : (
              <Waiting live={live} beganMs={beganMs} />
            )
          ) : (
            <Arrived
              message={last}
              sourceName={names.get(last.sourceId) ?? last.sourceId}
              isNew={Date.parse(last.receivedAt) >= beganMs}
              onNext={onNext}
            />
          )}
          {rejected.length > 0 && (
            <Stack gap="sm">
              <SmallTitle>Recently rejected</SmallTitle>
              <RejectedCalls
                rows={rejected}
                label="Rejected calls"
                sourceName={({ sourceId }) => (sourceId === null ? 'from an unknown source' : `from ${names.get(sourceId) ?? sourceId}`)}
              />
            </Stack>
          )}
        </Stack>
      </Paper>
    </Stack>
  )
}

/** The last message and the recent rejections, as soon as they arrive. */
function useArrivals() {
  const client = useQueryClient()
  const [beganMs] = useState(() => Date.now())
  const [seen, setSeen] = useState<LiveRejected[]>([])
  const refresh = (): void => {
    for (const operation of ['GET /api/messages', 'GET /api/stats/totals']) void client.invalidateQueries({ queryKey: [operation] })
  }
  const live = useLive({
    onEvents(events) {
      if (events.some(({ kind }) => kind === 'accepted')) refresh()
      const added = events.filter((event): event is LiveRejected => event.kind === 'rejected')
      if (added.length === 0) return
      setSeen((before) => [...before, ...added].slice(-MAX_REJECTED))
      void client.invalidateQueries({ queryKey: ['GET /api/rejections'] })
    },
  })
  // Polled too, in case the live stream is not available or misses events.
  const everyMs = live.is === 'open' ? 10_000 : 3_000
  const messages = useApi('GET /api/messages', { query: { limit: 1 }, everyMs })
  const rejections = useApi('GET /api/rejections', { everyMs })
  return { live, beganMs, messages, rejected: recentRejections(rejections.data?.data ?? [], seen, beganMs - RECENT_MS), refresh }
}

function HowToSend({ source, onSent }: { source: Source; onSent: () => void }) {
  const { mayEdit } = useSession()
  const { id, name, enabled, requireOAuth, writeKeys } = source
  const newest = writeKeys.at(-1)
  return (
    <>
      {!enabled && (
        <Alert color="orange" title={`${name} is disabled`}>
          Every call with its write key is rejected. <ViewLink to={`/sources/${id}`}>Enable the source</ViewLink>.
        </Alert>
      )}
      {requireOAuth && (
        <Alert color="blue" title={`${name} requires OAuth`}>
          Calls need an access token in addition to the write key. To try things out,{' '}
          <ViewLink to={`/sources/${id}`}>turn off this requirement</ViewLink> or choose another source.
        </Alert>
      )}
      <div>
        <Text size="sm" fw={500} component="div">
          Your write key
        </Text>
        {newest !== undefined && <WriteKey writeKey={newest} />}
        <Note>Identifies messages from the source {name}. The snippets below contain it.</Note>
      </div>
      {newest !== undefined && <Snippets writeKey={newest} requireOAuth={requireOAuth} />}
      {mayEdit && <SendFromHere source={source} onSent={onSent} label="Send from this page instead" />}
    </>
  )
}

/** For screen readers: a sentence without the message itself. */
function announced(last: Message | undefined, rejections: number): string {
  const arrival = last === undefined ? '' : `A message has arrived: ${last.event ?? last.type}. `
  return rejections === 0 ? arrival : `${arrival}Calls were rejected for ${rejections} ${rejections === 1 ? 'reason' : 'reasons'}.`
}

function Waiting({ live, beganMs }: { live: LiveState; beganMs: number }) {
  const nowMs = useNow()
  return (
    <Stack gap="sm">
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <Loader size="sm" mt={4} aria-hidden="true" />
        <div>
          <SmallTitle>Waiting for the first message</SmallTitle>
          <Note>
            {live.is === 'waiting'
              ? `The live stream is not available (${live.problem.message}) Checking every few seconds instead.`
              : 'It is shown here as soon as it is stored.'}
          </Note>
        </div>
      </Group>
      {nowMs - beganMs > HINTS_AFTER_MS && (
        <div>
          <Text size="sm" fw={500}>
            Sent a message, but nothing is shown?
          </Text>
          <List size="sm">
            <List.Item>
              Check the response of your call: an error says what is wrong. Rejected calls are shown below too, with the reason.
            </List.Item>
            <List.Item>
              {isLoopback(window.location.hostname)
                ? `${window.location.origin} can be reached from this machine only. On another machine, in a container or on a phone, use the address of this machine in the network.`
                : `Check that the sender can reach ${window.location.origin}: a firewall or a proxy may block it.`}
            </List.Item>
            <List.Item>Client libraries send in the background: call closeAndFlush before your program ends.</List.Item>
          </List>
        </div>
      )}
    </Stack>
  )
}

function Arrived({ message, sourceName, isNew, onNext }: { message: Message; sourceName: string; isNew: boolean; onNext: () => void }) {
  const { id, type, event, userId, anonymousId, receivedAt } = message
  return (
    <Stack gap="sm">
      <SmallTitle>{isNew ? 'Message received and stored' : 'Last message received'}</SmallTitle>
      <LongText component="div">
        <b>{event ?? type}</b>
        {event !== null && ` · ${type}`}
        {userId === null ? anonymousId !== null && ` · anonymous user ${anonymousId}` : ` · user ${userId}`} · source {sourceName} ·{' '}
        <Time at={receivedAt} relative />
      </LongText>
      {message.message !== null && <Json value={message.message} label="the message" maxHeight={260} />}
      <Group>
        <Button onClick={onNext}>Next: add a destination</Button>
        <LinkButton to={`/messages/${encodeURIComponent(id)}`}>View timeline</LinkButton>
      </Group>
    </Stack>
  )
}
