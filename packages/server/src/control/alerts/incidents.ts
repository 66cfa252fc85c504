// Routes for incidents: the list, one with its timeline, and acknowledgements.

import { isMuted, type Mute } from '../../alerts/alert-settings.ts'
import type { Acknowledgement, Incident } from '../../alerts/incidents.ts'
import { RULES } from '../../alerts/rules/rules.ts'
import { RULE_IDS, SEVERITIES } from '../../api/alert-rule-ids.ts'
import { anyObject, array, boolean, integer, nullable, object, oneOf, optional, string, time, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { Actor } from '../../store/store.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlAlerts, type ControlParts, type Route, route } from '../routes/route.ts'

export const RULE = oneOf(RULE_IDS, { description: 'The id of a rule, such as `destination_failing`.' })

const INCIDENT_FIELDS = {
  id: string(),
  rule: RULE,
  event: string({ description: 'The event of the message about it, such as `Destination Failing`.' }),
  state: oneOf(['starting', 'open', 'closed'], {
    description:
      '`starting`: the problem has begun, but has not lasted long enough for an alert. If it ends before, the incident is forgotten.',
  }),
  severity: oneOf(SEVERITIES),
  subject: object(
    {
      kind: oneOf(['source', 'destination', 'node', 'service']),
      id: string(),
      name: string({ description: 'The name when it was opened.' }),
    },
    { description: 'What the incident is about.' },
  ),
  since: time({ description: 'When the problem began.' }),
  openedAt: time({ description: 'When the service noticed it.' }),
  closedAt: nullable(time()),
  observedAt: time({
    description: 'When `message`, `details` and `readings` were last brought up to date: about every 15 seconds until it is closed.',
  }),
  message: string({ description: 'What is wrong, in a sentence, with the current numbers.' }),
  cause: nullable(
    string({
      description:
        'Why attempts fail, as the usual sentence of the reason, which quotes no message; null if that is not known or not what the rule is about.',
    }),
  ),
  measure: nullable(
    object(
      {
        label: string({ description: 'What is counted, such as `pending deliveries`.' }),
        value: nullable(integer()),
        readings: array(object({ at: time(), value: integer() }), { description: 'At most 60, from the beginning until now.' }),
      },
      { description: 'The number that the rule follows over time; null if it follows none.' },
    ),
  ),
  acknowledged: nullable(
    object(
      { at: time(), by: object({ id: string(), name: string() }), name: string(), note: nullable(string()) },
      { description: 'Who takes care of it; null if nobody has said so.' },
    ),
  ),
  actions: array(
    object({
      action: oneOf(['retry', 'replay', 'resume']),
      destinationId: string(),
      states: array(oneOf(['failed', 'expired']), { description: 'For `replay`: the states of the deliveries to replay.' }),
    }),
    { description: 'What can be done about it with one request; empty once it is closed.' },
  ),
  closedMessage: nullable(string({ description: 'How it ended; null while it is open.' })),
  link: string({ description: 'The path of the page of the dashboard that shows the cause.' }),
  details: anyObject({ description: 'Numbers and names, which depend on the rule.' }),
  muted: boolean({ description: 'Whether a mute applies to it now.' }),
  openedMessageId: nullable(string({ description: 'The messageId of the alert that was sent when it was opened; null if none was sent.' })),
  closedMessageId: nullable(string({ description: 'The messageId of the alert that was sent when it was closed; null if none was sent.' })),
}
const INCIDENT = object(INCIDENT_FIELDS, { title: 'Incident', description: 'A problem that the service noticed.' })
const INCIDENT_DETAIL = object(
  {
    ...INCIDENT_FIELDS,
    timeline: array(
      object({
        at: time(),
        what: oneOf(['began', 'opened', 'told', 'acknowledged', 'closed']),
        sentence: string(),
        messageId: nullable(string({ description: 'The message that was sent.' })),
      }),
    ),
  },
  { title: 'IncidentDetail' },
)

const FILTERS = {
  state: optional(
    oneOf(['active', 'starting', 'open', 'closed'], { description: 'Only incidents in this state. `active`: starting or open.' }),
  ),
  rule: optional(RULE),
  sourceId: optional(string({ min: 1, max: 100, description: 'Only incidents about this source.' })),
  destinationId: optional(string({ min: 1, max: 100, description: 'Only incidents about this destination.' })),
}

export function incidentRoutes(parts: ControlParts): Route[] {
  const { alerts } = parts
  return [
    route('GET', '/incidents', {
      summary: 'List incidents: the open ones, and then the closed ones, newest first',
      access: { role: 'viewer', sources: 'limited' },
      description: 'Closed incidents are kept for 90 days.',
      query: listQuery(FILTERS),
      answer: listAnswer(INCIDENT),
      async handle({ query }) {
        const subjectId = query.sourceId ?? query.destinationId
        const isWanted = ({ state, rule, subject }: Incident): boolean =>
          (query.state === 'active' ? state !== 'closed' : (query.state ?? state) === state) &&
          (query.rule ?? rule) === rule &&
          (subjectId ?? subject.id) === subject.id
        return pageAnswer('incidents', await running(alerts).incidents(isWanted, pageRequest('incidents', query)), await viewer(parts))
      },
    }),
    route('GET', '/incidents/:id', {
      summary: 'Retrieve an incident, with its timeline',
      access: { role: 'viewer', sources: 'limited', subject: 'incident' },
      answer: INCIDENT_DETAIL,
      errors: ['incident_not_found'],
      async handle({ params }) {
        const incident = await running(alerts).incident(params['id'] ?? '')
        if (incident === undefined) throw new ApiError('incident_not_found')
        return { ...(await viewer(parts))(incident), timeline: timelineOf(incident) }
      },
    }),
  ]
}

const NEW_ACKNOWLEDGEMENT = object({
  name: optional(string({ min: 1, max: 100, description: 'Who takes care of it. Default: the name of the token.' })),
  note: withDefault(nullable(string({ max: 500, description: 'For other people.' })), null),
})

export function acknowledgeRoutes(parts: ControlParts): Route[] {
  const { store, clock, alerts } = parts
  async function change(id: string, acknowledged: Acknowledgement | null, action: string, actor: Actor) {
    if ((await running(alerts).incident(id)) === undefined) throw new ApiError('incident_not_found')
    const changed = await running(alerts).acknowledge(id, acknowledged)
    if (changed === undefined) throw new ApiError('incident_closed')
    const { after: incident } = changed
    const [before, after] = [changed.before, incident].map(({ acknowledged }) => ({
      name: acknowledged?.name ?? null,
      note: acknowledged?.note ?? null,
    }))
    const { sources, destinations } = store.configuration()
    const own = destinations.get(incident.subject.id)?.sourceIds ?? (sources.has(incident.subject.id) ? [incident.subject.id] : null)
    await store.history.noteAudit({ actor, action, subject: id, before: before ?? null, after: after ?? null, sources: own })
    return (await viewer(parts))(incident)
  }
  return [
    route('POST', '/incidents/:id/acknowledge', {
      summary: 'Acknowledge an incident: say that somebody takes care of it',
      access: { role: 'editor', sources: 'limited', subject: 'incident' },
      description: 'It stays in the list, below those that nobody has acknowledged. An acknowledgement can be replaced.',
      body: NEW_ACKNOWLEDGEMENT,
      answer: INCIDENT,
      errors: ['incident_not_found', 'incident_closed'],
      handle: ({ params, body: { name, note }, actor }) =>
        change(
          params['id'] ?? '',
          { atMs: clock.wallMs(), by: { id: actor.id, name: actor.name }, name: name ?? actor.name, note },
          'incident.acknowledge',
          actor,
        ),
    }),
    route('DELETE', '/incidents/:id/acknowledge', {
      summary: 'Take back the acknowledgement of an incident',
      access: { role: 'editor', sources: 'limited', subject: 'incident' },
      status: 204,
      errors: ['incident_not_found', 'incident_closed'],
      async handle({ params, actor }) {
        await change(params['id'] ?? '', null, 'incident.unacknowledge', actor)
      },
    }),
  ]
}

export function running(alerts: ControlAlerts | undefined): ControlAlerts {
  if (alerts === undefined) throw new Error('alerts are not running')
  return alerts
}

async function viewer({ clock, alerts }: ControlParts) {
  const nowMs = clock.wallMs()
  const mutes = await running(alerts).mutesInForce(nowMs)
  return (incident: Incident) => incidentView(incident, mutes, nowMs)
}

function incidentView(incident: Incident, mutes: readonly Mute[], nowMs: number) {
  const { id, rule: ruleId, state, subject, details, openingToldAtMs, closingToldAtMs, observedAtMs, openedAtMs, readings = [] } = incident
  const rule = RULES.find((known) => known.id === ruleId)
  const value = rule?.measure == null ? undefined : details[rule.measure.name]
  const { cause } = details
  return {
    ...incident,
    event: rule?.event ?? ruleId,
    severity: incident.severity ?? rule?.severity(details) ?? 'warning',
    observedAtMs: observedAtMs ?? openedAtMs,
    cause: typeof cause === 'string' ? cause : null,
    measure:
      rule?.measure == null
        ? null
        : {
            label: rule.measure.label,
            value: typeof value === 'number' ? value : null,
            readings: readings.map(([atMs, value]) => ({ atMs, value })),
          },
    acknowledged: acknowledgementView(incident),
    actions: state === 'closed' ? [] : (rule?.actions(subject.id, details) ?? []),
    muted: isMuted(mutes, ruleId, subject, nowMs),
    openedMessageId: openingToldAtMs === null ? null : `${id}-opened`,
    closedMessageId: closingToldAtMs === null ? null : `${id}-closed`,
  }
}

function acknowledgementView({ acknowledged }: Incident) {
  return acknowledged == null ? null : { ...acknowledged, by: { id: acknowledged.by.id, name: acknowledged.by.name } }
}

function timelineOf(incident: Incident) {
  const { id, state, sinceMs, openedAtMs, closedAtMs, message, closedMessage, openingToldAtMs, closingToldAtMs, acknowledged } = incident
  const entry = (
    atMs: number | null,
    what: 'began' | 'opened' | 'told' | 'acknowledged' | 'closed',
    sentence: string,
    messageId: string | null = null,
  ) => (atMs === null ? [] : [{ atMs, what, sentence, messageId }])
  return [
    ...entry(sinceMs, 'began', 'The problem began.'),
    ...entry(state === 'starting' ? null : openedAtMs, 'opened', incident.openedMessage ?? message),
    ...entry(
      acknowledged?.atMs ?? null,
      'acknowledged',
      `${acknowledged?.name ?? ''} acknowledged it${acknowledged?.note == null ? '.' : `: ${acknowledged.note}`}`,
    ),
    ...entry(openingToldAtMs, 'told', 'An alert was sent to the destinations of the source system.', `${id}-opened`),
    ...entry(closedAtMs, 'closed', closedMessage ?? 'The incident was closed.'),
    ...entry(
      closingToldAtMs,
      'told',
      'An alert that the incident is closed was sent to the destinations of the source system.',
      `${id}-closed`,
    ),
  ]
}
