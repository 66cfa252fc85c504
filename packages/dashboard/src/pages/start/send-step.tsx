// The first step: the write key, lines to copy, and the wait for the first message. What comes is shown as it was stored, and what is refused
// is shown, too, because a wrong key is the usual reason why nothing comes.

import { Alert, Button, Group, List, Loader, NativeSelect, Paper, Stack, Text, Title, VisuallyHidden } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { Answer, Schemas } from '../../api/client.ts'
import { type LiveRejected, type LiveState, useLive } from '../../api/live.ts'
import { useApi } from '../../api/queries.ts'
import { useNow } from '../../components/countdown.tsx'
import { Json } from '../../components/json.tsx'
import { ViewLink } from '../../components/link.tsx'
import { ErrorAlert } from '../../components/query-states.tsx'
import { RejectedCalls } from '../../components/rejected-calls.tsx'
import { Snippets } from '../../components/snippets.tsx'
import { Time } from '../../components/time.tsx'
import { WriteKey } from '../../components/write-key.tsx'
import { useSession } from '../../session.tsx'
import { isLoopback } from '../../text/snippets.ts'
import { newsOfRefusals } from './progress.ts'
import { SendFromHere } from './send-from-here.tsx'

type Source = Schemas['Source']
type Message = Answer<'GET /api/messages'>['data'][number]

/** Before it, nobody could have pasted anything. */
const HINTS_AFTER_MS = 20_000
/** Somebody who comes here because nothing arrives has just tried. */
const RECENT_MS = 10 * 60_000
const MAX_TOLD = 200

export function SendStep({
  source,
  sources,
  onSource,
  onNext,
}: {
  source: Source
  sources: readonly Source[]
  onSource: (id: string) => void
  onNext: () => void
}) {
  const { isAdmin } = useSession()
  const newest = source.writeKeys.at(-1)
  const client = useQueryClient()
  const [beganMs] = useState(() => Date.now())
  const [told, setTold] = useState<LiveRejected[]>([])
  const look = (): void => {
    for (const operation of ['GET /api/messages', 'GET /api/stats/totals']) void client.invalidateQueries({ queryKey: [operation] })
  }
  const live = useLive({
    onEvents(events) {
      if (events.some(({ kind }) => kind === 'accepted')) look()
      const rejected = events.filter((event): event is LiveRejected => event.kind === 'rejected')
      if (rejected.length === 0) return
      setTold((before) => [...before, ...rejected].slice(-MAX_TOLD))
      void client.invalidateQueries({ queryKey: ['GET /api/rejections'] })
    },
  })
  // Where the stream cannot be had, and for what it missed.
  const messages = useApi('GET /api/messages', { query: { limit: 1 }, everyMs: live.is === 'open' ? 10_000 : 3_000 })
  const rejections = useApi('GET /api/rejections', { everyMs: live.is === 'open' ? 10_000 : 3_000 })
  const last = messages.data?.data[0]
  const refused = newsOfRefusals(rejections.data?.data ?? [], told, beganMs - RECENT_MS)
  const names = new Map(sources.map(({ id, name }) => [id, name]))

  return (
    <Stack gap="lg">
      <Stack gap="sm">
        {sources.length > 1 && (
          <NativeSelect
            label="Source"
            description="Which application sends"
            value={source.id}
            onChange={(event) => onSource(event.currentTarget.value)}
            data={sources.map(({ id, name }) => ({ value: id, label: name }))}
            maw={360}
          />
        )}
        {!source.enabled && (
          <Alert color="orange" title={`${source.name} is disabled`}>
            Every call with its key is refused. <ViewLink to={`/sources/${source.id}`}>Enable it on its page</ViewLink>.
          </Alert>
        )}
        {source.requireOAuth && (
          <Alert color="blue" title={`${source.name} requires OAuth`}>
            The write key alone is refused: an access token is needed, too. To try things out,{' '}
            <ViewLink to={`/sources/${source.id}`}>turn that off</ViewLink> or choose another source.
          </Alert>
        )}
        <div>
          <Text size="sm" fw={500} component="div">
            Your write key
          </Text>
          {newest !== undefined && <WriteKey writeKey={newest} />}
          <Text size="sm" c="dimmed">
            It says that a message is from the source {source.name}. It is filled in below.
          </Text>
        </div>
        {newest !== undefined && <Snippets writeKey={newest} requireOAuth={source.requireOAuth} />}
        {isAdmin && <SendFromHere source={source} onSent={look} label="Or send one from this page" />}
      </Stack>

      <Paper withBorder p="md" component="section" aria-label="The first message">
        <Stack gap="md">
          <VisuallyHidden role="status">{announced(last, refused.length)}</VisuallyHidden>
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
          {refused.length > 0 && (
            <Stack gap="sm">
              <Title order={3} size="h5">
                Refused in the last minutes
              </Title>
              <RejectedCalls
                rows={refused}
                label="Calls that were refused"
                sourceName={({ sourceId }) => (sourceId === null ? 'of no source' : `from ${names.get(sourceId) ?? sourceId}`)}
              />
            </Stack>
          )}
        </Stack>
      </Paper>
    </Stack>
  )
}

/** For those who hear the page: in a sentence, without the message itself. */
function announced(last: Message | undefined, refused: number): string {
  const arrival = last === undefined ? '' : `A message has arrived: ${last.event ?? last.type}. `
  return refused === 0 ? arrival : `${arrival}Calls were refused, for ${refused} ${refused === 1 ? 'reason' : 'reasons'}.`
}

function Waiting({ live, beganMs }: { live: LiveState; beganMs: number }) {
  const nowMs = useNow()
  return (
    <Stack gap="sm">
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <Loader size="sm" mt={4} aria-hidden="true" />
        <div>
          <Title order={3} size="h5">
            Waiting for the first message
          </Title>
          <Text size="sm" c="dimmed">
            {live.is === 'waiting'
              ? `The live stream is not there (${live.problem.message}), so it is looked for every few seconds.`
              : 'It shows here as soon as it is stored.'}
          </Text>
        </div>
      </Group>
      {nowMs - beganMs > HINTS_AFTER_MS && (
        <div>
          <Text size="sm" fw={500}>
            Sent something, and nothing shows?
          </Text>
          <List size="sm">
            <List.Item>
              Look at the answer of the call: an error says what is wrong. A call that is refused shows below, too, with the reason.
            </List.Item>
            <List.Item>
              {isLoopback(window.location.hostname)
                ? `${window.location.origin} is reached from this machine only. From another machine, a container or a phone, use the address that the service has there.`
                : `Can the sender reach ${window.location.origin}? A firewall or a proxy may stand between.`}
            </List.Item>
            <List.Item>Clients send in the background: let the program run until its queue is empty (closeAndFlush).</List.Item>
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
      <Title order={3} size="h5">
        {isNew ? 'It is here, and stored' : 'Messages arrive. The last one:'}
      </Title>
      <Text size="sm" component="div" style={{ overflowWrap: 'anywhere' }}>
        <b>{event ?? type}</b>
        {event !== null && `, a ${type} call`}
        {userId === null ? anonymousId !== null && ` of visitor ${anonymousId}` : ` of user ${userId}`}, from the source {sourceName},
        received <Time at={receivedAt} relative />
      </Text>
      {message.message !== null && <Json value={message.message} label="the message" maxHeight={260} />}
      <Group>
        <Button onClick={onNext}>Next: add a webhook</Button>
        <Button component={Link} href={`/messages/${encodeURIComponent(id)}`} variant="default">
          Its story
        </Button>
      </Group>
    </Stack>
  )
}
