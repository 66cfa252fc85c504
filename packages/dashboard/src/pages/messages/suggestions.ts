// Suggestions while somebody types in the search of messages: events of the event catalogue, users of messages that match, and properties. Pure.

import type { Row } from './message-row.ts'
import { pathsIn, valueAt } from './message-row.ts'

export interface Suggestion {
  kind: 'event' | 'user' | 'property'
  /** What the filter is set to. */
  value: string
}

const MAX_OF_KIND = 6

export interface Known {
  /** Names of events. */
  events: readonly string[]
  /** Messages that contain the text, and others whose properties may be suggested. */
  matching: readonly Row[]
  others: readonly Row[]
}

export function suggestionsFor(text: string, { events, matching, others }: Known): Suggestion[] {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return []
  const has = (value: string): boolean => value.toLowerCase().includes(wanted)
  const users = matching.flatMap(({ userId, anonymousId }) => [userId, anonymousId]).filter((id): id is string => id !== null && has(id))
  return [
    ...few('event', events.filter(has)),
    ...few('user', users),
    ...few('property', propertySuggestions(text.trim(), [...matching, ...others])),
  ]
}

/** Paths that contain the text; after a path and `=`, its values in messages. */
function propertySuggestions(text: string, rows: readonly Row[]): string[] {
  const messages = rows.map(({ message }) => message)
  const at = text.indexOf('=')
  if (at === -1) return pathsIn(messages).filter((path) => path.toLowerCase().includes(text.toLowerCase()))
  const path = text.slice(0, at)
  const part = text.slice(at + 1).toLowerCase()
  const values = new Set(messages.map((message) => valueAt(message, path)))
  return [...values].filter((value) => value !== '' && value.length <= 100 && value.toLowerCase().includes(part)).map((v) => `${path}=${v}`)
}

function few(kind: Suggestion['kind'], values: Iterable<string>): Suggestion[] {
  return [...new Set(values)].slice(0, MAX_OF_KIND).map((value) => ({ kind, value }))
}

const PROPERTY = /^[^\s=]+\.[^\s=]+(?:=.*)?$|^[^\s=]+=.+$/s

/** What Enter searches for: a text such as `plan=pro` or `properties.plan` is a property, anything else a part of an id or a name. */
export function searchOf(text: string): { search: string | null; property: string | null } {
  const trimmed = text.trim()
  if (trimmed === '') return { search: null, property: null }
  const isProperty = PROPERTY.test(trimmed) && (trimmed.includes('=') || /^(?:properties|traits|context)\./.test(trimmed))
  return isProperty ? { search: null, property: trimmed } : { search: trimmed, property: null }
}
