// Texts about incidents, rules and mutes. Pure.

import type { Schemas } from '../api/client.ts'
import { capitalized, duration } from '../text/format.ts'
import { reasonSentence } from '../text/reasons.ts'
import { responseText } from '../text/response-text.ts'

export type Incident = Schemas['Incident']
export type AlertRule = Schemas['AlertRule']
export type Mute = Schemas['Mute']

/** How long it has lasted, or had lasted when it was closed. */
export function lasted({ since, closedAt }: Pick<Incident, 'since' | 'closedAt'>, nowMs: number): string {
  return duration(Math.max(0, (closedAt === null ? nowMs : Date.parse(closedAt)) - Date.parse(since)))
}

/** `openAfterMinutes` as `Open after minutes`. */
export function settingLabel(name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return capitalized(words)
}

/** What a mute is about: `Destination Failing, destination CRM`. */
export function muteScope(
  { rule, sourceId, destinationId }: Mute,
  events: ReadonlyMap<string, string>,
  nameOf: (id: string) => string,
): string {
  const about = sourceId !== null ? `source ${nameOf(sourceId)}` : destinationId !== null ? `destination ${nameOf(destinationId)}` : null
  const event = rule === null ? null : (events.get(rule) ?? rule)
  return [event, about].filter((part) => part !== null).join(', ') || 'All alerts'
}

export const MUTE_MINUTES = [
  [60, '1 hour'],
  [4 * 60, '4 hours'],
  [24 * 60, '1 day'],
  [7 * 24 * 60, '1 week'],
  [30 * 24 * 60, '30 days'],
] as const

export const SEVERITY_LOOKS: Readonly<Record<Incident['severity'], { color: string; word: string }>> = {
  critical: { color: 'red', word: 'Critical' },
  warning: { color: 'orange', word: 'Warning' },
  notice: { color: 'blue', word: 'Info' },
}

const ORDER: Readonly<Record<Incident['severity'], number>> = { critical: 0, warning: 1, notice: 2 }

/** What nobody takes care of first, then the most severe, then what affects the most messages. */
export function mostUrgentFirst(incidents: readonly Incident[]): Incident[] {
  return [...incidents].sort(
    (a, b) =>
      Number(a.acknowledged !== null) - Number(b.acknowledged !== null) ||
      ORDER[a.severity] - ORDER[b.severity] ||
      (b.measure?.value ?? 0) - (a.measure?.value ?? 0) ||
      Date.parse(a.since) - Date.parse(b.since),
  )
}

/** Those about the same thing follow the most urgent one of them, because they often have the same cause. Keeps the order otherwise. */
export function groupedBySubject(incidents: readonly Incident[]): Incident[] {
  const groups = new Map<string, Incident[]>()
  for (const incident of incidents) {
    const key = `${incident.subject.kind} ${incident.subject.id}`
    groups.set(key, [...(groups.get(key) ?? []), incident])
  }
  return [...groups.values()].flat()
}

interface Failures {
  destinationId: string
  failure: { reason: string; error: string } | null
  mostFrequentFailure: { reason: string; error: string; responseStart: string | null } | null
}

/**
 * The cause of an incident in the words of the receiver or tool, with the start of its response, if the destination still fails for this reason.
 * The incident has only the usual sentence of the reason, because errors and responses may quote messages.
 */
export function causeInFull({ subject, cause }: Pick<Incident, 'subject' | 'cause'>, health: readonly Failures[]): string[] {
  if (cause === null) return []
  const found = subject.kind === 'destination' ? health.find(({ destinationId }) => destinationId === subject.id) : undefined
  const isMeant = (failure: { reason: string } | null | undefined): boolean => failure != null && reasonSentence(failure.reason) === cause
  const frequent = found?.mostFrequentFailure
  if (frequent != null && isMeant(frequent)) return [frequent.error, responseText(frequent.responseStart)].filter((text) => text !== '')
  return found?.failure != null && isMeant(found.failure) ? [found.failure.error] : [cause]
}

/** Whether the list says the cause already, right above and about the same thing. */
export function repeatsCause({ subject, cause }: Incident, above: Incident | undefined): boolean {
  return cause !== null && above?.cause === cause && above.subject.kind === subject.kind && above.subject.id === subject.id
}

/** Zero says nothing beside the message: nothing waits for a receiver that rejects every message for good. */
export function hasCount({ measure }: Pick<Incident, 'measure'>): boolean {
  return measure !== null && measure.value !== null && measure.value !== 0
}

/** The incidents that need attention: not acknowledged, not muted, and more severe than a notice. The badges count them. */
export function unattended(incidents: readonly Incident[]): Incident[] {
  return incidents.filter(({ severity, acknowledged, muted }) => severity !== 'notice' && acknowledged === null && !muted)
}

/** How many incidents the badges do not count, and why: `1 for information, 2 acknowledged`. Empty if there are none. */
export function uncountedText(incidents: readonly Incident[]): string {
  const acknowledged = incidents.filter((each) => each.acknowledged !== null)
  const muted = incidents.filter((each) => each.acknowledged === null && each.muted)
  const notices = incidents.filter((each) => each.acknowledged === null && !each.muted && each.severity === 'notice')
  return [
    [notices.length, 'for information'],
    [acknowledged.length, 'acknowledged'],
    [muted.length, 'muted'],
  ]
    .filter(([count]) => count !== 0)
    .map(([count, words]) => `${count} ${words}`)
    .join(', ')
}

/** Where the cause is shown, and the deliveries that can be replayed. */
export function causeLinks({ link, actions }: Pick<Incident, 'link' | 'actions'>): string[] {
  const replayed = actions.flatMap((action) =>
    action.action === 'replay' && action.states.length === 1
      ? [`/deliveries?destinationId=${action.destinationId}&state=${action.states[0]}`]
      : [],
  )
  return [...new Set([link, ...replayed])]
}

/** The text of a link to the page that shows the cause. */
export function causeLinkText(link: string): string {
  const [, state] = /[?&]state=(\w+)/.exec(link) ?? []
  if (link.startsWith('/deliveries')) return `View ${state ?? ''} deliveries`.replace('  ', ' ')
  if (link.includes('tab=quarantine')) return 'View quarantine'
  if (link.startsWith('/destinations')) return 'View destination'
  if (link.startsWith('/sources')) return 'View source'
  if (link.startsWith('/plans')) return 'View plan'
  if (link === '/settings/nodes') return 'View nodes'
  if (link.endsWith('#ledger')) return 'View ledger'
  return 'Show the cause'
}

/** Without an id: about any of this kind. */
export function isAbout({ subject }: Pick<Incident, 'subject'>, kind: Incident['subject']['kind'], id?: string): boolean {
  return subject.kind === kind && (id === undefined || subject.id === id)
}

/** `Ada: restarting the receiver`. */
export function acknowledgedText({ name, note }: NonNullable<Incident['acknowledged']>): string {
  return note === null ? name : `${name}: ${note}`
}

/** A sentence of a rule, divided where it names a setting: `Open when {leastPending} …`. */
export function sentenceParts(sentence: string): { text: string; name?: string }[] {
  return sentence
    .split(/(\{\w+\})/)
    .filter((part) => part !== '')
    .map((part) => (/^\{\w+\}$/.test(part) ? { text: part, name: part.slice(1, -1) } : { text: part }))
}
