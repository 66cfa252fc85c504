// Validates the settings that every destination has while they are typed, by the same rules as the control API: the limits are generated
// (api/rules.ts). The API decides; e2e/control/destination-rules.test.ts checks that the two agree. Pure.

import { FIELDS, type MESSAGE_TYPES, RESERVED_NAMES } from '../../api/rules.ts'
import { parseDuration, writeDuration } from './durations.ts'

export type MessageType = (typeof MESSAGE_TYPES)[number]

/** A sentence about what is wrong with a value; null if it is valid. */
export type Problem = string | null

export interface Range {
  min: number
  max: number
}

/** Whether the text has half of a surrogate pair, which is not valid Unicode. */
export function hasLoneSurrogates(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}

export function lengthProblem(text: string, { max }: { max: number }): Problem {
  return text.length > max ? `Use at most ${written(max)} characters.` : null
}

export function nameProblem(name: string): Problem {
  if (name.trim() === '') return 'Enter a name.'
  if (name.length > FIELDS.name.max) return lengthProblem(name, FIELDS.name)
  if (hasLoneSurrogates(name) || /\p{Cc}/u.test(name)) return 'Use one line of text without control characters.'
  return (RESERVED_NAMES as readonly string[]).includes(name)
    ? `${RESERVED_NAMES.join(' and ')} are reserved: in a message they mean every destination. Choose another name.`
    : null
}

export function numberProblem(value: number | null, { min, max }: Range, { isWhole = true }: { isWhole?: boolean } = {}): Problem {
  const good = value !== null && (!isWhole || Number.isSafeInteger(value)) && value >= min && value <= max
  return good ? null : `Enter a ${isWhole ? 'whole number' : 'number'} from ${written(min)} to ${written(max)}.`
}

export function durationProblem(text: string, { min, max }: Range): Problem {
  const ms = parseDuration(text)
  if (ms === null) return `Enter a duration such as ${writeDuration(max)}: a number followed by ms, s, min, h or d.`
  return ms < min || ms > max ? `Must be from ${writeDuration(min)} to ${writeDuration(max)}.` : null
}

/** `others`: the statuses of the opposite list. */
export function statusesProblem(statuses: readonly string[], others: readonly string[] = []): Problem {
  const { max } = FIELDS['retry.retryStatuses']
  const range = FIELDS['retry.retryStatuses[]']
  if (statuses.length > max) return `Use at most ${max} statuses.`
  const wrong = statuses.find((status) => !/^\d{3}$/.test(status) || numberProblem(Number(status), range) !== null)
  if (wrong !== undefined) return `${wrong} is not an HTTP status from ${range.min} to ${range.max}.`
  if (new Set(statuses).size < statuses.length) return 'The list contains the same status twice.'
  const both = statuses.find((status) => others.includes(status))
  return both === undefined ? null : `${both} is in both lists. Remove it from one of them.`
}

export function eventsProblem(events: readonly string[]): Problem {
  const { max: most } = FIELDS['filter.events.allow']
  const { min, max } = FIELDS['filter.events.allow[]']
  if (events.length > most) return `Use at most ${written(most)} names.`
  if (events.some((event) => event.length < min || event.length > max || hasLoneSurrogates(event)))
    return `Event names must have ${min} to ${written(max)} characters.`
  return new Set(events).size < events.length ? 'The list contains the same name twice.' : null
}

/** Of a list as JSON. What its entries may contain is checked by the API. */
export function listProblem(text: string): Problem {
  if (text.trim() === '') return null
  try {
    return Array.isArray(JSON.parse(text)) ? null : 'Enter a JSON list, such as [].'
  } catch {
    return 'Enter valid JSON.'
  }
}

export function aliasesProblem(aliases: readonly string[]): Problem {
  const { max: most } = FIELDS.aliases
  const { max } = FIELDS['aliases[]']
  if (aliases.length > most) return `Use at most ${most} names.`
  if (aliases.some((alias) => alias.trim() === '' || alias.length > max || hasLoneSurrogates(alias) || /\p{Cc}/u.test(alias)))
    return `Names must have 1 to ${max} characters, without control characters.`
  if (aliases.some((alias) => alias.toLowerCase() === 'all')) return 'All is reserved: in a message it means every destination.'
  return new Set(aliases).size < aliases.length ? 'The list contains the same name twice.' : null
}

export function written(value: number): string {
  return value.toLocaleString('en-US')
}
