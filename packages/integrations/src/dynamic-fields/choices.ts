// The values that a tool offers for a field, as the library's functions return them: they are not trusted, because code of a definition made
// them from an answer of the tool.

import type { JsonObject } from '@switchyard/protocol'
import { type Failure, failureOf } from '../failures.ts'
import type { Choice } from '../integration.ts'
import type { RunTrace } from '../recording/run-trace.ts'

/** Of one page, in total. The longest list of the catalogue that is known, the properties of a HubSpot object, has some hundreds. */
const MAX_CHOICES = 1_000
const MAX_TOTAL_CHARS = 150_000
const MAX_VALUE_CHARS = 1_000
const MAX_LABEL_CHARS = 200
const MAX_DESCRIPTION_CHARS = 500

export interface Page {
  choices: Choice[]
  nextPage: string | null
}

/** The field as the library names it: `associations.[0].object_type`, and `properties.__keys__` for the names of properties. */
export function libraryField(field: string, handlers: Readonly<Record<string, unknown>> = {}): string {
  const handler = Object.hasOwn(handlers, field) ? handlers[field] : undefined
  return typeof handler === 'object' && handler !== null ? `${field}.__keys__` : field.replace('[', '.[')
}

/** What is the same for every message. Segment's app gives these functions what was chosen in its form, which are constants too. */
export function constantsIn(mapping: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(mapping).flatMap(([name, value]) => constant(value).map((kept) => [name, kept])))
}

/** One value, or none if it depends on the message. */
function constant(value: unknown): unknown[] {
  if (Array.isArray(value)) return [value.map((item) => constant(item)[0] ?? null)]
  if (typeof value !== 'object' || value === null) return [value]
  const { '@literal': literal } = value as { '@literal'?: unknown }
  if (literal !== undefined) return constant(literal)
  return Object.keys(value).some((key) => key.startsWith('@')) ? [] : [constantsIn(value)]
}

interface Answer {
  choices?: unknown
  nextPage?: unknown
  error?: { message?: unknown; code?: unknown } | null
}

/** What went wrong, although the function did not throw; null if nothing did. */
export function failureIn(answer: unknown, trace: RunTrace): Failure | null {
  const { error } = (answer ?? {}) as Answer
  if (error == null || typeof error !== 'object') return null
  const last = trace.lastRequest(0)?.status ?? null
  const code = Number(error.code)
  const status = code >= 400 && code < 600 ? code : last !== null && last >= 400 ? last : null
  const text = typeof error.message === 'string' && error.message !== '' ? error.message : 'The integration gave no reason.'
  // Only if the tool answered so is it the tool's status: some definitions make up a code.
  const name = status !== null && status === last ? 'HTTPError' : 'IntegrationError'
  return failureOf(Object.assign(new Error(text), { name, ...(status !== null && { status }) }), trace, 0)
}

/** A value is never shortened, because that would make it a different value: what is too long, or contains a secret, is left out. */
export function pageOf(answer: unknown, trace: RunTrace): Page {
  const { choices, nextPage } = (answer ?? {}) as Answer
  const found = new Map<Choice['value'], Choice>()
  let left = MAX_TOTAL_CHARS
  for (const each of Array.isArray(choices) ? (choices as unknown[]) : []) {
    const choice = choiceOf(each, trace)
    if (choice === null || found.has(choice.value)) continue
    left -= JSON.stringify(choice).length
    if (left < 0 || found.size === MAX_CHOICES) break
    found.set(choice.value, choice)
  }
  const next = typeof nextPage === 'number' ? String(nextPage) : nextPage
  return { choices: [...found.values()], nextPage: typeof next === 'string' && next !== '' && isShown(next, trace) ? next : null }
}

function choiceOf(given: unknown, trace: RunTrace): Choice | null {
  const { value, label, description } = (typeof given === 'object' && given !== null ? given : { value: given }) as Record<string, unknown>
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return null
  if (value === '' || !isShown(String(value), trace)) return null
  const text = (from: unknown, most: number): string => (typeof from === 'string' ? trace.scrub(from).slice(0, most) : '')
  const more = text(description, MAX_DESCRIPTION_CHARS)
  return {
    value,
    label: text(label, MAX_LABEL_CHARS) || String(value).slice(0, MAX_LABEL_CHARS),
    ...(more !== '' && { description: more }),
  }
}

function isShown(text: string, trace: RunTrace): boolean {
  return text.length <= MAX_VALUE_CHARS && trace.scrub(text) === text
}
