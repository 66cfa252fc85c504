// The page of one incident: what happened, when, and which messages were sent about it.

import { Group, Stack, Timeline } from '@mantine/core'
import { useState } from 'react'
import { type Answer, useApi } from '../../api/queries.ts'
import { Copyable } from '../../components/copyable.tsx'
import { Facts, Loaded, Page, Section } from '../../components/page.tsx'
import { LinkButton, Note, SmallButton, Time, ViewLink } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { usePathPart } from '../../url/url-state.ts'
import { lasted, settingLabel } from './incident-text.ts'
import { IncidentState } from './incidents.tsx'
import { MuteDialog } from './mutes.tsx'

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
  const { mayEdit } = useSession()
  const [isMuting, setMuting] = useState(false)
  const details = Object.entries(incident.details).filter(([, value]) => typeof value === 'number' || typeof value === 'string')
  return (
    <Stack gap="lg">
      <Section
        title={incident.closedMessage ?? incident.message}
        actions={
          <>
            <LinkButton to={incident.link} variant="filled" size="xs">
              Show the cause
            </LinkButton>
            <SmallButton
              disabled={!mayEdit}
              title={mayEdit ? undefined : 'Requires the editor or admin role.'}
              onClick={() => setMuting(true)}
            >
              Mute
            </SmallButton>
          </>
        }
      >
        <Facts
          facts={[
            ['State', <IncidentState key="state" incident={incident} />],
            ['Began', <Time key="since" at={incident.since} />],
            [incident.state === 'open' ? 'Duration so far' : 'Duration', lasted(incident, Date.now())],
            ['About', `${incident.subject.kind} ${incident.subject.name}`],
            ...details.map(([name, value]) => [settingLabel(name), String(value)] as const),
            ['Id', <Copyable key="id" text={incident.id} label="the incident id" />],
          ]}
        />
      </Section>
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
      <MuteDialog opened={isMuting} onClose={() => setMuting(false)} incident={incident} />
    </Stack>
  )
}
