// A message as a destination's `request` shapes it: its part of the body, the path and the headers. A destination's settings are compiled once.
// Pure: the same message and settings give the same result on every attempt, replay and node.

import type { JsonObject } from '@switchyard/protocol'
import type { RequestSettings, WebhookDestination } from '../../../model/configuration.ts'
import { oncePerObject } from '../../../model/once-per-object.ts'
import { MappingFailed, type Shaper } from '../../port/kind.ts'
import { textOf } from './body-format.ts'
import { TooMuch } from './bounded-reading.ts'
import { hasDotSegment } from './dot-segments.ts'
import { headerBytes, isHeaderValue, MAX_HEADER_BYTES, MAX_HEADER_VALUE_LENGTH } from './headers.ts'
import { compileMapping } from './mapping.ts'
import { evaluate, evaluateMore } from './mapping-kit.ts'
import { fillTemplate, type Placeholder, parseTemplate, type Template } from './template.ts'

interface Compiled {
  request: RequestSettings
  secrets: WebhookDestination['secrets']
  path: Template
  headers: readonly (readonly [name: string, Template])[]
  body: { mapping: unknown; itemSize: number } | null
}

/** The longest part of a body that a mapping may give for one message. The usual limit for a message is 32 KB. */
const MAX_TEXT_LENGTH = 1_000_000
const MAX_PATH_LENGTH = 4_096

const NO_HEADERS: readonly string[] = []

/** Returns null for the classic webhook. The shaper throws MappingFailed if a message cannot be sent as `request` says. */
export function shaperOf(destination: WebhookDestination): Shaper | null {
  return destination.request === null ? null : compiledShaper(destination as WebhookDestination & { request: RequestSettings })
}

const compiledShaper = oncePerObject(({ request, secrets }: WebhookDestination & { request: RequestSettings }): Shaper => {
  const compiled = compile(request, secrets)
  return (message) => ({ text: bodyText(compiled, message), path: pathOf(compiled, message), headers: headersOf(compiled, message) })
})

function compile(request: RequestSettings, secrets: WebhookDestination['secrets']): Compiled {
  return {
    request,
    secrets,
    path: parseTemplate(request.path),
    headers: Object.entries(request.headers).map(([name, value]) => [name, parseTemplate(value)]),
    body: request.body === null ? null : compileMapping(request.body),
  }
}

function failed(place: string, problem: string): MappingFailed {
  return new MappingFailed(`${place} ${problem}.`)
}

function bodyText({ request, secrets, body }: Compiled, message: JsonObject): string {
  let written: ReturnType<typeof textOf>
  try {
    written = textOf(body === null ? message : evaluate(body.mapping, message, body.itemSize, secrets), request.format)
  } catch (error) {
    const place = body === null || error instanceof TooMuch ? 'request.body' : placeOf(body.mapping, message, 'request.body')
    throw failed(place, problemOf(error as Error))
  }
  if ('problem' in written) throw failed('request.body', written.problem)
  if (written.text.length > MAX_TEXT_LENGTH)
    throw failed('request.body', `results in more than ${MAX_TEXT_LENGTH} characters for this message`)
  return written.text
}

/** The mapping kit's errors are about the mapping. Those of JavaScript, such as about the depth of a message, say nothing to people. */
function problemOf(error: Error): string {
  if (error instanceof RangeError) return 'cannot be evaluated: the value is nested too deeply or too long'
  if (error instanceof TypeError) return 'cannot be evaluated: an object cannot be written as text'
  return error.message
}

/** Looks for the part of the mapping that cannot be evaluated, by evaluating its parts, within the limit of one evaluation. */
function placeOf(mapping: unknown, message: JsonObject, place: string): string {
  if (typeof mapping !== 'object' || mapping === null) return place
  for (const [key, inner] of Object.entries(mapping)) {
    if (key.startsWith('@')) return place
    try {
      evaluateMore(inner, message)
    } catch (error) {
      return error instanceof TooMuch ? place : placeOf(inner, message, Array.isArray(mapping) ? `${place}[${key}]` : `${place}.${key}`)
    }
  }
  return place
}

function pathOf({ path, secrets }: Compiled, message: JsonObject): string {
  const filled = fillTemplate(path, { message, secrets }, MAX_PATH_LENGTH, pathSegment) as string
  if (filled.length > MAX_PATH_LENGTH) throw failed('request.path', `is longer than ${MAX_PATH_LENGTH} characters for this message`)
  if (hasDotSegment(filled)) throw failed('request.path', 'has . or .. as a segment for this message, which would lead to another path')
  return filled
}

function pathSegment(value: unknown, { name }: Placeholder): string {
  if (value === undefined || value === null || value === '') throw failed('request.path', `has no value for {{${name}}} in this message`)
  const text = scalarText(value, name, 'request.path')
  if (/\p{Surrogate}/u.test(text)) throw failed('request.path', `needs valid Unicode for {{${name}}}`)
  return encodeURIComponent(text)
}

function headersOf({ headers, secrets }: Compiled, message: JsonObject): readonly string[] {
  if (headers.length === 0) return NO_HEADERS
  const filled: [string, string][] = []
  for (const [name, template] of headers) {
    const place = `request.headers.${name}`
    const write = (given: unknown, placeholder: Placeholder): string | null => headerText(given, placeholder, place)
    const value = fillTemplate(template, { message, secrets }, MAX_HEADER_VALUE_LENGTH, write)
    if (value === null) continue
    if (value.length > MAX_HEADER_VALUE_LENGTH) throw failed(place, `is longer than ${MAX_HEADER_VALUE_LENGTH} characters for this message`)
    if (!isHeaderValue(value)) throw failed(place, 'must consist only of visible ASCII characters, spaces and tabs')
    filled.push([name, value])
  }
  if (headerBytes(filled) > MAX_HEADER_BYTES)
    throw failed('request.headers', `have more than ${MAX_HEADER_BYTES} bytes of names and values for this message`)
  return filled.flat()
}

function headerText(value: unknown, { name }: Placeholder, place: string): string | null {
  if (value === undefined || value === null) return null
  return scalarText(value, name, place)
}

function scalarText(value: unknown, name: string, place: string): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw failed(place, `needs a string, a number, true or false for {{${name}}}`)
}
