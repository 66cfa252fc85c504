// What the preview shows about each message. And what a change does to the last messages, in words. Pure.

import type { Answer } from '../../api/client.ts'

export type PreviewEntry = Answer<'POST /api/destinations/{id}/preview'>['data'][number]

export type PreviewRequest = Omit<NonNullable<PreviewEntry['request']>, 'body'> & { subscription?: string; body: string | null }

/** A webhook makes one request for a message; an integration any number. */
export function requestsOf({ request, requests }: PreviewEntry): PreviewRequest[] {
  return requests ?? (request === null ? [] : [request])
}

/** `not run`: the preview did not reach the message in time, which says nothing about the message. */
export type PreviewKind = 'sent' | 'dropped' | 'skipped' | 'failed' | 'not run'

export const KIND_COLORS = { sent: 'teal', dropped: 'orange', skipped: 'gray', failed: 'red', 'not run': 'gray' } as const

export function kindOf({ error, dropped, skipped }: PreviewEntry): PreviewKind {
  if (error !== undefined) return error.reason === 'not_run' ? 'not run' : 'failed'
  if (dropped === true) return 'dropped'
  return skipped === undefined ? 'sent' : 'skipped'
}

/** The title of a message in the list. */
export function titleOf({ type, event, message }: Pick<PreviewEntry, 'type' | 'event' | 'message'>): string {
  const { name, userId, anonymousId } = message
  const what = event ?? (type === 'page' || type === 'screen' ? name : null)
  const who = userId ?? anonymousId
  return `${type ?? 'message'}${typeof what === 'string' ? `: ${what}` : ''}${typeof who === 'string' ? ` (${who})` : ''}`
}

export type Counts = Record<PreviewKind, number>

export function countsOf(entries: readonly PreviewEntry[]): Counts {
  const counts: Counts = { sent: 0, dropped: 0, skipped: 0, failed: 0, 'not run': 0 }
  for (const entry of entries) counts[kindOf(entry)]++
  return counts
}

/** `Of the last 50 messages: 36 sent, 12 dropped, 2 failed.` */
export function countsText(entries: readonly PreviewEntry[]): string {
  const counts = countsOf(entries)
  const parts = (Object.keys(counts) as PreviewKind[]).filter((kind) => counts[kind] > 0).map((kind) => `${counts[kind]} ${kind}`)
  return entries.length === 1
    ? `The last message: ${kindOf(entries[0] as PreviewEntry)}.`
    : `Of the last ${entries.length} messages: ${parts.join(', ')}.`
}

/** What saving changes, a sentence each: for the messages that both previews contain. */
export function effectsOf(now: readonly PreviewEntry[], next: readonly PreviewEntry[]): string[] {
  const before = new Map(now.map((entry) => [entry.messageId, entry]))
  const pairs = next.flatMap((after) => {
    const entry = before.get(after.messageId)
    // What was not run says nothing about the change.
    const isKnown = entry !== undefined && kindOf(entry) !== 'not run' && kindOf(after) !== 'not run'
    return isKnown ? [{ current: entry, next: after }] : []
  })
  const of = (count: number): string => (pairs.length === 1 ? 'The last message' : `${count} of the last ${pairs.length} messages`)
  if (pairs.length === 0)
    return [next.length === 0 ? 'No message is stored yet, so there is nothing to compare.' : 'No message could be compared yet.']
  const effects: string[] = []
  const tell = (kind: PreviewKind, would: string, is: string): void => {
    const after = pairs.filter((pair) => kindOf(pair.next) === kind).length
    const current = pairs.filter((pair) => kindOf(pair.current) === kind).length
    if (after === 0 && current === 0) return
    const currently = after === current ? 'as now' : `now: ${current}`
    effects.push(after === 0 ? `None of the last messages would ${is} (${currently}).` : `${of(after)} would ${would} (${currently}).`)
  }
  tell('dropped', 'be dropped', 'be dropped')
  tell('failed', 'fail', 'fail')
  tell('skipped', 'be skipped', 'be skipped')
  const reshaped = pairs.filter(
    (pair) => kindOf(pair.current) === 'sent' && kindOf(pair.next) === 'sent' && requestText(pair.current) !== requestText(pair.next),
  ).length
  if (reshaped > 0) effects.push(`${of(reshaped)} would be sent differently.`)
  const isSame = pairs.every((pair) => kindOf(pair.current) === kindOf(pair.next)) && reshaped === 0
  return isSame ? [`Nothing would change for the last ${pairs.length === 1 ? 'message' : `${pairs.length} messages`}.`] : effects
}

/** Without what differs each time although the request is the same: the signature, and the time that it is computed over. */
function requestText(entry: PreviewEntry): string {
  const texts = requestsOf(entry).map(({ method, url, headers, body }) => {
    const kept = Object.entries(headers).filter(([name]) => !/^(webhook-|x-signature)/i.test(name))
    return [method, url, kept, body]
  })
  return JSON.stringify(texts)
}

/** Why a message is not sent. */
export function detailOf({ error, dropped, skipped }: PreviewEntry): string {
  if (error !== undefined) return error.sentence
  if (dropped === true) return 'The transformation returns null, so the message is not sent.'
  return skipped?.sentence ?? ''
}

/** The different errors of the transformation, most frequent first, at most three. */
export function failuresOf(entries: readonly PreviewEntry[]): { message: string; count: number }[] {
  const counts = new Map<string, number>()
  for (const { error } of entries)
    if (error?.reason === 'transformation_failed') counts.set(error.sentence, (counts.get(error.sentence) ?? 0) + 1)
  return [...counts]
    .map(([message, count]) => ({ message, count }))
    .sort((a, b) => b.count - a.count)
    .slice(0, 3)
}
