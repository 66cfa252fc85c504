// How events of the event catalogue and their properties are written on the page. Pure.

import { share } from '../../text/format.ts'

/** The name of a track event, otherwise the type. Events beyond the limits of the event catalogue have neither. */
export function eventTitle({ type, event }: { type: string | null; event: string | null }): string {
  if (type === null) return 'Other events'
  // A name of spaces would be an empty link.
  return event === null ? type : event.trim() === '' ? JSON.stringify(event) : event
}

/** `string`, or `number 98 %, string 2 %` if there are several. */
export function typesText(types: readonly { type: string; share: number }[]): string {
  const [only] = types
  return types.length === 1 && only !== undefined
    ? only.type
    : types.map(({ type, share: part }) => `${type} ${shareText(part)}`).join(', ')
}

/** Never rounded to `0 %` or `100 %` if that is not exact: `always` and `nearly always` are different. */
export function shareText(value: number): string {
  if (value > 0 && value < 0.001) return `< ${share(0.001)}`
  return value < 1 && value > 0.999 ? `> ${share(0.999)}` : share(value)
}

/** The address of the list of messages of an event. */
export function messagesAddress({ sourceId, type, event }: { sourceId: string; type: string | null; event: string | null }): string {
  const search = new URLSearchParams({ sourceId, ...(type === null ? {} : { type }), ...(event === null ? {} : { event }) })
  return `/messages?${search.toString()}`
}

export interface Receiver {
  sent: number
  skips: readonly { message: string; count: number }[]
}

/** What a destination gets of the recent messages: `Gets all of the last 50 messages`, `Gets none …`, `Gets 31 of …`. */
export function receiverSummary({ sent }: Receiver, recent: number): string {
  const all = recent === 1 ? 'the last message' : `the last ${recent.toLocaleString()} messages`
  if (sent === 0) return recent === 1 ? `Does not get ${all}` : `Gets none of ${all}`
  if (sent >= recent) return recent === 1 ? `Gets ${all}` : `Gets all of ${all}`
  return `Gets ${sent.toLocaleString()} of ${all}`
}

interface PlannedSources {
  sourceIds: readonly string[]
  rules: readonly { type: string; event?: string | undefined }[]
}

/** Whether the plan of the source has a rule for the event. */
export function plannedText(
  { sourceId, type, event }: { sourceId: string; type: string | null; event: string | null },
  plans: readonly PlannedSources[] | undefined,
): string {
  const plan = plans?.find(({ sourceIds }) => sourceIds.includes(sourceId))
  if (plan === undefined) return plans === undefined ? '' : 'no plan'
  return plan.rules.some((rule) => rule.type === type && (rule.event ?? null) === event) ? 'planned' : 'not planned'
}
