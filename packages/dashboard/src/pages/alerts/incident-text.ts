// Texts about incidents, rules and mutes. Pure.

import type { Schemas } from '../../api/client.ts'
import { capitalized, duration } from '../../text/format.ts'

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
