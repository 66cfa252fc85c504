// The page of one incident: what happened, when, and which messages were sent about it.

import { Group, Stack, Table, Timeline } from '@mantine/core'
import { type Answer, useApi } from '../../api/queries.ts'
import { Copyable } from '../../components/copyable.tsx'
import { Facts, Loaded, Page, Section } from '../../components/page.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { LinkButton, LongStrong, Note, Time, ViewLink } from '../../components/styled.tsx'
import { IncidentActions } from '../../incidents/incident-actions.tsx'
import { acknowledgedText, lasted, SEVERITY_LOOKS, settingLabel } from '../../incidents/incident-text.ts'
import { useCause } from '../../incidents/use-cause.ts'
import { capitalized, exactCount } from '../../text/format.ts'
import { usePathPart } from '../../url/url-state.ts'
import { IncidentState } from './incidents.tsx'

type IncidentDetail = Answer<'GET /api/incidents/{id}'>

export default function IncidentPage() {
  const id = usePathPart(1)
  const incident = useApi('GET /api/incidents/{id}', { params: { id }, everyMs: 5_000 })
  return (
    <Page
      title={incident.data === undefined ? 'Incident' : `${incident.data.event}: ${incident.data.subject.name}`}
      back={{ to: '/alerts', label: 'All incidents' }}
    >
      <Loaded query={incident}>{(data) => <Details incident={data} />}</Loaded>
    </Page>
  )
}

function Details({ incident }: { incident: IncidentDetail }) {
  const { measure, acknowledged } = incident
  const cause = useCause(incident)
  const details = Object.entries(incident.details).filter(
    ([name, value]) => name !== 'cause' && (typeof value === 'number' || typeof value === 'string'),
  )
  return (
    <Stack gap="lg">
      <Section
        title={incident.closedMessage ?? incident.message}
        actions={
          <>
            <LinkButton to={incident.link} variant="filled" size="xs">
              Show the cause
            </LinkButton>
            <IncidentActions incident={incident} />
          </>
        }
      >
        <Facts
          facts={[
            ...(cause.length === 0 ? [] : [['Cause', <LongStrong key="cause">{cause.join(' ')}</LongStrong>] as const]),
            ['State', <IncidentState key="state" incident={incident} />],
            ['Severity', SEVERITY_LOOKS[incident.severity].word],
            ...(acknowledged === null ? [] : [['Acknowledged', acknowledgedText(acknowledged)] as const]),
            ['Began', <Time key="since" at={incident.since} relative="with clock" />],
            [incident.state === 'open' ? 'Duration so far' : 'Duration', lasted(incident, Date.now())],
            ['About', `${incident.subject.kind} ${incident.subject.name}`],
            ...details.map(([name, value]) => [settingLabel(name), String(value)] as const),
            ['Id', <Copyable key="id" text={incident.id} label="the incident id" />],
          ]}
        />
      </Section>
      {measure !== null && measure.readings.length > 2 && (
        <Section title={capitalized(measure.label)}>
          <Sparkline
            values={measure.readings.map(({ value }) => value)}
            color={SEVERITY_LOOKS[incident.severity].color}
            height={64}
            isWide
          />
          <Table.ScrollContainer minWidth={240} mah={220}>
            <Table aria-label={capitalized(measure.label)}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Time</Table.Th>
                  <Table.Th>Number</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {measure.readings.toReversed().map(({ at, value }) => (
                  <Table.Tr key={at}>
                    <Table.Td>
                      <Time at={at} />
                    </Table.Td>
                    <Table.Td>{exactCount(value)}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </Section>
      )}
      <Section title="Timeline">
        <Timeline bulletSize={14} lineWidth={2} active={incident.timeline.length}>
          {incident.timeline.map(({ at, what, sentence, messageId }) => (
            <Timeline.Item key={`${what} ${at}`} title={sentence}>
              <Group gap="sm">
                <Time at={at} />
                {messageId !== null && <ViewLink to={`/messages/${encodeURIComponent(messageId)}`}>Show the message</ViewLink>}
              </Group>
            </Timeline.Item>
          ))}
        </Timeline>
        {incident.openedMessageId === null && <Note>No alert was sent{incident.muted ? ', because this incident is muted' : ''}.</Note>}
      </Section>
    </Stack>
  )
}
