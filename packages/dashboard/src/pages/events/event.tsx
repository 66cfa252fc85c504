// The page of one event of the event catalogue: counts over time, properties, the destinations that receive it, its rule in the tracking
// plan, and the last messages.

import { Card, Code, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { Fragment, lazy, type ReactNode, Suspense } from 'react'
import type { Answer } from '../../api/client.ts'
import { useApi } from '../../api/queries.ts'
import { Facts, Loaded, Loading, Page, ResourcePage, Section } from '../../components/page.tsx'
import { type Column, FirstRows, ResponsiveTable } from '../../components/responsive-table.tsx'
import { LongCode, Note, SecondaryButton, SmallTag, Time, ViewLink } from '../../components/styled.tsx'
import { count, exactCount, plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { keyOfRule, violationSentence } from '../plans/plan-text.ts'
import { eventTitle, messagesAddress, receiverSummary, shareText, typesText } from './event-text.ts'

const EventChart = lazy(() => import('./event-chart.tsx'))

type EventDetail = Answer<'GET /api/events/{id}'>
type Property = EventDetail['properties'][number]

const LAST_MESSAGES = 10
const VIOLATIONS_SHOWN = 10
/** The page has a list of all destinations of a source, which may be hundreds. */
const RECEIVERS_SHOWN = 20

export default function EventPage() {
  const reasons = 'It was not seen for 90 days, its source was deleted, or the URL is incomplete.'
  return (
    <ResourcePage name="Event" reasons={reasons} lines={8}>
      {(event) => (
        <Page title={eventTitle(event)} about={event.type === null ? OTHERS : undefined} back={{ to: '/events', label: 'All events' }}>
          <EventDetails event={event} />
        </Page>
      )}
    </ResourcePage>
  )
}

const OTHERS = 'Messages whose event is beyond the limit of 10,000 events per source, or has a name of more than 200 characters.'

function EventDetails({ event }: { event: EventDetail }) {
  const { sourceId, sourceName, type, firstSeen, lastSeen, lastDay, lastWeek, total, hours, days } = event
  const number = (value: number): ReactNode => <span title={exactCount(value)}>{count(value)}</span>
  return (
    <Stack gap="lg">
      <Card withBorder>
        <Facts
          cols={4}
          facts={[
            ['Source', <ViewLink to={`/sources/${encodeURIComponent(sourceId)}`}>{sourceName}</ViewLink>],
            ['Type', type],
            ['First seen', <Time at={firstSeen} />],
            ['Last seen', <Time at={lastSeen} relative />],
            ['Last 24 hours', number(lastDay)],
            ['Last 7 days', number(lastWeek)],
            ['Since first seen', number(total)],
          ]}
        />
      </Card>
      <Suspense fallback={<Loading lines={6} label="Loading chart" />}>
        <EventChart sourceId={sourceId} hours={hours} days={days} />
      </Suspense>
      {type !== null && (
        <>
          <Properties event={event} />
          <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
            <Receivers event={event} />
            <PlanSection event={event} />
          </SimpleGrid>
          <LastMessages event={event} />
        </>
      )}
    </Stack>
  )
}

const LONG_NAME = 24

const PROPERTY_COLUMNS: readonly Column<Property>[] = [
  { label: 'Property', cell: ({ path }) => <PropertyPath path={path} /> },
  { label: 'Types', cell: ({ types }) => typesText(types) },
  { label: 'Present in', isNumber: true, cell: ({ presence }) => shareText(presence) },
  { label: 'Sample values', cell: ({ samples }) => <Samples samples={samples} /> },
  { label: 'Last seen', isShort: true, cell: ({ lastSeen }) => <Time at={lastSeen} relative /> },
]

/** Breaks between the names in it: in a name only if it is very long. */
function PropertyPath({ path }: { path: string }) {
  const names = path.split(/(?<=\.)/)
  const isLong = names.some((name) => name.length > LONG_NAME)
  return (
    <Code style={{ overflowWrap: isLong ? 'anywhere' : 'break-word' }}>
      {names.map((name, at) => (
        <Fragment key={at}>
          {at > 0 && <wbr />}
          {name}
        </Fragment>
      ))}
    </Code>
  )
}

function Samples({ samples }: { samples: readonly string[] }) {
  if (samples.length === 0) return <Note span>–</Note>
  return (
    <Group gap={4}>
      {samples.map((sample) => (
        <Code key={sample} style={{ overflowWrap: 'anywhere' }}>
          {sample}
        </Code>
      ))}
    </Group>
  )
}

function Properties({ event: { type, properties, examined, otherProperties, recentMessages } }: { event: EventDetail }) {
  const field = type === 'identify' || type === 'group' ? 'traits' : 'properties'
  return (
    <Section
      title={field === 'traits' ? 'Traits' : 'Properties'}
      about={
        examined === 0
          ? undefined
          : `Types and presence are from a sample of ${plural(examined, 'message')}. Sample values are from the ${recentMessages === 1 ? 'last message' : `last ${exactCount(recentMessages)} messages`} that ${recentMessages === 1 ? 'is' : 'are'} retained, after the privacy rules of the source.`
      }
    >
      {properties.length === 0 ? (
        <Text size="sm">{examined === 0 ? 'No message was examined yet.' : `The examined messages have no ${field}.`}</Text>
      ) : (
        <ResponsiveTable
          rows={properties}
          columns={PROPERTY_COLUMNS}
          keyOf={({ path }) => path}
          label={field === 'traits' ? 'Traits of the event' : 'Properties of the event'}
        />
      )}
      {otherProperties > 0 && (
        <Note>
          {exactCount(otherProperties)} more values are not listed, because the event has more than 200 {field} or their names are too long.
        </Note>
      )}
    </Section>
  )
}

function Receivers({ event: { destinations, recentMessages } }: { event: EventDetail }) {
  return (
    <Section title="Destinations" about="Who would receive the last retained messages of this event with the current settings.">
      {recentMessages === 0 ? (
        <Text size="sm">No message of this event is retained any more, so it is not known who would receive it.</Text>
      ) : destinations.length === 0 ? (
        <Text size="sm">
          No destination is attached to the source. <ViewLink to="/destinations">View destinations</ViewLink>
        </Text>
      ) : (
        <FirstRows rows={destinations} first={RECEIVERS_SHOWN}>
          {(shown) => (
            <Stack component="ul" gap="sm" p={0} m={0} style={{ listStyle: 'none' }} aria-label="Destinations of this event">
              {shown.map((receiver) => (
                <Stack key={receiver.destinationId} component="li" gap={2}>
                  <Group gap="xs">
                    <ViewLink
                      to={`/destinations/${encodeURIComponent(receiver.destinationId)}`}
                      fw={600}
                      style={{ overflowWrap: 'anywhere' }}
                    >
                      {receiver.destinationName}
                    </ViewLink>
                    <SmallTag color={receiver.sent === 0 ? 'gray' : 'teal'}>
                      {receiver.sent === 0 ? 'skipped' : receiver.skips.length === 0 ? 'receives it' : 'receives some'}
                    </SmallTag>
                  </Group>
                  <Note>{receiverSummary(receiver, recentMessages)}.</Note>
                  {receiver.skips.map(({ message, count: skipped }) => (
                    <Text key={message} size="sm" style={{ overflowWrap: 'anywhere' }}>
                      {receiver.sent === 0 && receiver.skips.length === 1 ? message : `${exactCount(skipped)} skipped: ${message}`}
                    </Text>
                  ))}
                </Stack>
              ))}
            </Stack>
          )}
        </FirstRows>
      )}
    </Section>
  )
}

function PlanSection({ event: { sourceId, plan, event, type } }: { event: EventDetail }) {
  return (
    <Section title="Tracking plan">
      {plan === null ? (
        <Text size="sm">
          The source has no tracking plan. <ViewLink to={`/plans/new?source=${encodeURIComponent(sourceId)}`}>Learn a plan</ViewLink>
        </Text>
      ) : plan.rule === null ? (
        <Text size="sm">
          The plan <ViewLink to={`/plans/${encodeURIComponent(plan.id)}`}>{plan.name}</ViewLink> has no rule for {event ?? type}.
        </Text>
      ) : (
        <Facts
          cols={2}
          facts={[
            ['Plan', <ViewLink to={`/plans/${encodeURIComponent(plan.id)}`}>{plan.name}</ViewLink>],
            ['Mode', plan.rule.mode],
            ['Owner', plan.rule.owner],
            ['Description', plan.rule.description],
          ]}
        />
      )}
      {plan !== null && <EventViolations planId={plan.id} sourceId={sourceId} rule={keyOfRule({ type, event })} />}
    </Section>
  )
}

/** The violations of one rule, newest first. */
function EventViolations({ planId, sourceId, rule }: { planId: string; sourceId: string; rule: string }) {
  const violations = useApi('GET /api/violations', { query: { plan: planId, sourceId, limit: 1_000 }, everyMs: 15_000 })
  return (
    <Loaded query={violations} lines={2}>
      {({ data }) => {
        const own = data.filter(({ violation }) => violation?.rule === rule)
        if (own.length === 0) return <Text size="sm">No violations are recorded.</Text>
        return (
          <Stack component="ul" gap="xs" p={0} m={0} style={{ listStyle: 'none' }} aria-label="Violations of the tracking plan">
            {own.slice(0, VIOLATIONS_SHOWN).map(({ violation, total, lastSeen }) => (
              <Text key={`${violation?.code} ${violation?.path}`} component="li" size="sm" style={{ overflowWrap: 'anywhere' }}>
                {violation !== null && violationSentence(violation)}{' '}
                <Note span>
                  {plural(total, 'message')}, last <Time at={lastSeen} relative />
                </Note>
              </Text>
            ))}
            <li>
              <ViewLink to={`/plans/${encodeURIComponent(planId)}?tab=violations`}>View all violations of the plan</ViewLink>
            </li>
          </Stack>
        )
      }}
    </Loaded>
  )
}

function LastMessages({ event }: { event: EventDetail }) {
  const [params, change] = useSearchState()
  const isShown = params.get('messages') === 'yes'
  const { sourceId, type, event: name } = event
  const messages = useApi('GET /api/messages', {
    query: { sourceId, type: type ?? undefined, event: name ?? undefined, limit: LAST_MESSAGES },
    enabled: isShown,
    everyMs: 5_000,
  })
  return (
    <Section title="Last messages" actions={<ViewLink to={messagesAddress(event)}>View all messages</ViewLink>}>
      {!isShown ? (
        <Group>
          <SecondaryButton onClick={() => change({ messages: 'yes' }, { replace: true })}>Show the last ten</SecondaryButton>
        </Group>
      ) : (
        <Loaded query={messages} lines={5}>
          {({ data }) =>
            data.length === 0 ? (
              <Text size="sm">No message of this event is retained any more.</Text>
            ) : (
              <ResponsiveTable rows={data} columns={MESSAGE_COLUMNS} keyOf={({ id }) => id} label="The last ten messages, newest first" />
            )
          }
        </Loaded>
      )}
    </Section>
  )
}

type MessageRow = Answer<'GET /api/messages'>['data'][number]

const MESSAGE_COLUMNS: readonly Column<MessageRow>[] = [
  {
    label: 'Message',
    cell: ({ id, messageId }) => <ViewLink to={`/messages/${encodeURIComponent(id)}`}>{messageId ?? id}</ViewLink>,
  },
  { label: 'Received', isShort: true, cell: ({ receivedAt }) => <Time at={receivedAt} precise /> },
  { label: 'User', cell: ({ userId, anonymousId }) => userId ?? (anonymousId === null ? 'no user' : `anonymous ${anonymousId}`) },
  {
    label: 'Content',
    cell: ({ message }) => <LongCode>{contentStart(message?.['properties'] ?? message?.['traits'] ?? null)}</LongCode>,
  },
]

const CONTENT_CHARACTERS = 160

function contentStart(content: unknown): string {
  const json = JSON.stringify(content)
  return json.length > CONTENT_CHARACTERS ? `${json.slice(0, CONTENT_CHARACTERS)}…` : json
}
