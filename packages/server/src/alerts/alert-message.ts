// The message about an incident: a track message of the source `system`. Its messageId is made from the incident, so a message that is sent
// again after a crash is dropped as a duplicate.

import { isoTime, type JsonObject } from '@switchyard/protocol'
import { writeStoredBody } from '../store/port/stored-messages.ts'
import { type AcceptBatch, type Configuration, type Routing, type SegmentContent, SYSTEM_SOURCE } from '../store/store.ts'
import type { Incident } from './incidents.ts'
import type { Rule } from './rules/rule.ts'

export interface MessageContext {
  configuration: Configuration
  route: (configuration: Configuration, sourceId: string, content: SegmentContent) => Routing
  /** The address of the dashboard, without a slash at the end. */
  baseUrl: string
  version: string
  nowMs: number
}

export const TEST_EVENT = 'Alert Test'

/** Every message has a user, so that tools that need one accept it. */
const USER_ID = 'system'

export function incidentMessage(
  incident: Incident,
  { event, closedEvent, severity }: Rule<never>,
  state: Incident['state'],
  about: MessageContext,
): AcceptBatch {
  const { id, rule, subject, sinceMs, openedAtMs, closedAtMs, details, message, closedMessage, link } = incident
  const isOpen = state === 'open'
  const cause = typeof details['cause'] === 'string' ? details['cause'] : null
  const properties = {
    incidentId: id,
    rule,
    state,
    subject: { kind: subject.kind, id: subject.id, name: subject.name },
    since: isoTime(sinceMs),
    openedAt: isoTime(openedAtMs),
    closedAt: isOpen || closedAtMs === null ? null : isoTime(closedAtMs),
    // Most receivers show only the message. In lists of incidents, the cause is shown beside it.
    message: isOpen ? `${message}${cause === null ? '' : ` Last error: ${cause}`}` : (closedMessage ?? message),
    link: about.baseUrl + link,
    incidentLink: `${about.baseUrl}/alerts/${id}`,
    severity: incident.severity ?? severity(details),
    cause,
    details: { ...details },
  }
  const atMs = isOpen ? openedAtMs : (closedAtMs ?? about.nowMs)
  const batch = batchOf(`${id}-${isOpen ? 'opened' : 'closed'}`, isOpen ? event : closedEvent, properties, atMs, about)
  return subject.kind === 'destination' ? { ...batch, routing: withoutDestination(batch.routing, subject.id) } : batch
}

export function testMessage(messageId: string, sender: string, about: MessageContext): AcceptBatch {
  const properties = {
    incidentId: null,
    rule: 'test',
    state: 'open',
    subject: { kind: 'service', id: 'service', name: 'Switchyard' },
    since: isoTime(about.nowMs),
    openedAt: isoTime(about.nowMs),
    closedAt: null,
    message: `This is a test alert, sent by ${sender}. Nothing is wrong.`,
    link: `${about.baseUrl}/alerts`,
    incidentLink: null,
    severity: 'notice',
    cause: null,
    details: {},
  }
  return batchOf(messageId, TEST_EVENT, properties, about.nowMs, about)
}

function batchOf(messageId: string, event: string, properties: JsonObject, atMs: number, about: MessageContext): AcceptBatch {
  const { configuration, route, version, nowMs } = about
  const context = { library: { name: 'switchyard', version } }
  const item: JsonObject = { type: 'track', event, userId: USER_ID, messageId, timestamp: isoTime(atMs), context, properties }
  const content: SegmentContent = {
    sourceId: SYSTEM_SOURCE,
    receivedAtMs: nowMs,
    ip: null,
    browser: false,
    sentAt: null,
    context: null,
    integrations: null,
    trace: null,
    items: [item],
  }
  return {
    content,
    body: writeStoredBody({ batch: [item] }),
    messageIds: [messageId],
    routing: route(configuration, SYSTEM_SOURCE, content),
  }
}

/** A message about a destination is not sent to that destination. */
function withoutDestination({ shipments, skips }: Routing, destinationId: string): Routing {
  const others = shipments.filter((shipment) => shipment.destinationId !== destinationId)
  if (others.length === shipments.length) return { shipments, skips }
  return { shipments: others, skips: [...skips, { destinationId, reason: 'about_destination', indexes: null }] }
}
