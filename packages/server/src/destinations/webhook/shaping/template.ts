// Templates: text with placeholders such as {{properties.total}}. A value is inserted once and never read as a template itself.

import type { JsonObject } from '@switchyard/protocol'
import { readValue, segmentsOf } from './bounded-reading.ts'

export interface Template {
  /** One more than there are placeholders: the text before, between and after them. */
  texts: readonly string[]
  placeholders: readonly Placeholder[]
}

export interface Placeholder {
  /** As written, for error messages. */
  name: string
  segments: readonly string[]
}

export function templateProblem(text: string): string | null {
  if (text.includes('{{{')) return 'must not contain {{{; a placeholder has two braces, such as {{userId}}'
  const [, ...rest] = text.split('{{')
  for (const part of rest) {
    const end = part.indexOf('}}')
    if (end < 0) return 'contains {{ without }}; a placeholder is written as {{userId}}'
    const name = part.slice(0, end).trim()
    if (name === '' || name.includes('}')) return 'contains a placeholder without a path; write for example {{userId}}'
  }
  return null
}

/** Of a text that `templateProblem` accepts. */
export function parseTemplate(text: string): Template {
  const [first = '', ...rest] = text.split('{{')
  const texts = [first]
  const placeholders: Placeholder[] = []
  for (const part of rest) {
    const end = part.indexOf('}}')
    const name = part.slice(0, end).trim()
    placeholders.push({ name, segments: segmentsOf(name) })
    texts.push(part.slice(end + 2))
  }
  return { texts, placeholders }
}

/**
 * `write` returns the text for a value; null leaves the whole template without a result. A text that is longer than `most` characters is not
 * needed to its end: with a long value and many placeholders, it could have megabytes.
 */
export function fillTemplate(
  { texts, placeholders }: Template,
  { message, secrets }: { message: JsonObject; secrets: Readonly<Record<string, string>> },
  most: number,
  write: (value: unknown, placeholder: Placeholder) => string | null,
): string | null {
  let filled = texts[0] as string
  for (const [at, placeholder] of placeholders.entries()) {
    const text = write(readValue(message, placeholder.segments, secrets), placeholder)
    if (text === null) return null
    filled += text + (texts[at + 1] as string)
    if (filled.length > most) break
  }
  return filled
}
