// What can be done about an incident: retry or replay deliveries, resume a destination, acknowledge, and mute.

import { Text, TextInput, Tooltip } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { useChange } from '../api/queries.ts'
import { useDestinationNames } from '../api/use-names.ts'
import { FormDialog } from '../components/confirm-dialog.tsx'
import { entered } from '../components/inputs.tsx'
import { RowButton } from '../components/styled.tsx'
import type { ReplayBody } from '../delivery/filters.ts'
import { EDITOR_ONLY } from '../session/needs-role.tsx'
import { useSession } from '../session/session.tsx'
import { plural } from '../text/format.ts'
import type { Incident } from './incident-text.ts'
import { MuteDialog } from './mute-dialog.tsx'

const ReplayDialog = lazy(() => import('../pages/replays/replay-dialog.tsx').then(({ ReplayDialog }) => ({ default: ReplayDialog })))

type Action = Incident['actions'][number]

const REFRESHED = ['GET /api/incidents', 'GET /api/incidents/{id}', 'GET /api/alerts'] as const

/** What each button does, on hover and on focus. */
const ABOUT = {
  Acknowledge: 'Tells others that you are taking care of it. It stays listed, and alerts about it are still sent.',
  Mute: 'Sends no alerts about it for a time that you choose. It stays listed.',
  'Replay these': 'Sends failed deliveries again. You choose which ones first.',
  'Retry now': 'Attempts the pending deliveries at once, without waiting for the next attempt.',
  Resume: 'Sends the pending deliveries of the paused destination.',
  'Not mine': 'Removes the acknowledgement.',
} as const

function Explained({ label, children }: { label: keyof typeof ABOUT; children: ReactNode }) {
  return (
    <Tooltip label={ABOUT[label]} multiline maw={280} openDelay={300} events={{ hover: true, focus: true, touch: false }}>
      {children}
    </Tooltip>
  )
}

export function IncidentActions({ incident, children }: { incident: Incident; children?: ReactNode }) {
  const { mayEdit } = useSession()
  const { nameOf } = useDestinationNames()
  const [asked, setAsked] = useState<'acknowledge' | 'mute' | null>(null)
  const [replay, setReplay] = useState<ReplayBody | null>(null)
  const about = `${incident.event}: ${incident.subject.name}`
  const isClosed = incident.state === 'closed'
  const why = mayEdit ? undefined : EDITOR_ONLY
  const button = (label: keyof typeof ABOUT, onClick: () => void) => (
    <Explained key={label} label={label}>
      <RowButton disabled={!mayEdit} title={why} aria-label={`${label}, ${about}`} onClick={onClick}>
        {label}
      </RowButton>
    </Explained>
  )
  return (
    <>
      {children}
      {incident.actions.map((action) =>
        action.action === 'replay' ? (
          button('Replay these', () => setReplay({ destinationId: action.destinationId, states: [...action.states], from: incident.since }))
        ) : (
          <SendNow key={action.action} action={action} name={nameOf(action.destinationId)} about={about} />
        ),
      )}
      {!isClosed && (incident.acknowledged === null ? button('Acknowledge', () => setAsked('acknowledge')) : <Undo incident={incident} />)}
      {!isClosed && !incident.muted && button('Mute', () => setAsked('mute'))}
      <AcknowledgeDialog opened={asked === 'acknowledge'} onClose={() => setAsked(null)} incident={incident} />
      <MuteDialog opened={asked === 'mute'} onClose={() => setAsked(null)} incident={incident} />
      {replay !== null && (
        <Suspense fallback={null}>
          <ReplayDialog body={replay} onClose={() => setReplay(null)} nameOf={nameOf} />
        </Suspense>
      )}
    </>
  )
}

/** Retries what is pending, or resumes a paused destination. */
function SendNow({ action: { action, destinationId }, name, about }: { action: Action; name: string; about: string }) {
  const { mayEdit } = useSession()
  const retry = useChange('POST /api/destinations/{id}/retry', ...REFRESHED, 'GET /api/destinations/health')
  const resume = useChange('PATCH /api/destinations/{id}', ...REFRESHED, 'GET /api/destinations', 'GET /api/destinations/health')
  const label = action === 'retry' ? 'Retry now' : 'Resume'
  const onError = ({ message }: { message: string }): void => void notifications.show({ color: 'red', title: `${label}: ${name}`, message })
  const onSuccess = (message: string): void => void notifications.show({ color: 'teal', message })
  const run = (): void => {
    if (action === 'resume')
      return resume.mutate(
        { params: { id: destinationId }, body: { paused: false } },
        { onError, onSuccess: () => onSuccess(`${name} was resumed. Pending deliveries are being sent.`) },
      )
    retry.mutate(
      { params: { id: destinationId } },
      { onError, onSuccess: ({ pending }) => onSuccess(`Trying to send ${plural(pending, 'pending delivery')} to ${name} now.`) },
    )
  }
  return (
    <Explained label={label}>
      <RowButton
        disabled={!mayEdit}
        title={mayEdit ? undefined : EDITOR_ONLY}
        aria-label={`${label}, ${about}`}
        loading={retry.isPending || resume.isPending}
        onClick={run}
      >
        {label}
      </RowButton>
    </Explained>
  )
}

function Undo({ incident }: { incident: Incident }) {
  const { mayEdit } = useSession()
  const undo = useChange('DELETE /api/incidents/{id}/acknowledge', ...REFRESHED)
  return (
    <Explained label="Not mine">
      <RowButton
        disabled={!mayEdit}
        loading={undo.isPending}
        aria-label={`Take back the acknowledgement, ${incident.event}: ${incident.subject.name}`}
        onClick={() => undo.mutate({ params: { id: incident.id } })}
      >
        Not mine
      </RowButton>
    </Explained>
  )
}

function AcknowledgeDialog({ opened, onClose, incident }: { opened: boolean; onClose: () => void; incident: Incident }) {
  const { actor } = useSession()
  const acknowledge = useChange('POST /api/incidents/{id}/acknowledge', ...REFRESHED)
  const [name, setName] = useState('')
  const [note, setNote] = useState('')
  const body = { ...(name.trim() === '' ? {} : { name: name.trim() }), ...(note.trim() === '' ? {} : { note: note.trim() }) }
  return (
    <FormDialog
      opened={opened}
      onClose={onClose}
      title="Acknowledge the incident"
      verb="Acknowledge"
      onSubmit={() => acknowledge.mutateAsync({ params: { id: incident.id }, body })}
      centered
    >
      <Text size="sm">Others see that you take care of it. Alerts about it are still sent.</Text>
      <TextInput label="Your name" placeholder={actor.name} maxLength={100} {...entered(name, setName)} data-autofocus />
      <TextInput label="Note" description="For other people. Optional." maxLength={500} {...entered(note, setNote)} />
    </FormDialog>
  )
}
