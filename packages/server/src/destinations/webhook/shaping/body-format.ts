// How the values of messages become the body of a request: each message gives one text, and the texts are joined.

import type { BodyFormat } from '../../../model/configuration.ts'

export const FORMATS = ['json', 'form', 'text', 'ndjson'] as const

type Name = (typeof FORMATS)[number] | 'wrap'

const CONTENT_TYPES: Record<Name, string> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  text: 'text/plain; charset=utf-8',
  ndjson: 'application/x-ndjson',
  wrap: 'application/json',
}

function nameOf(format: BodyFormat): Name {
  return typeof format === 'string' ? format : 'wrap'
}

export function contentType(format: BodyFormat): string {
  return CONTENT_TYPES[nameOf(format)]
}

/** Returns a message's part of the body, or why the value cannot be written in this format. `value` is a JSON value. */
export function textOf(value: unknown, format: BodyFormat): { text: string } | { problem: string } {
  if (value === undefined) return { problem: 'has no result for this message' }
  switch (nameOf(format)) {
    case 'form':
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return { problem: 'must result in an object for this message, because the format is form' }
      return { text: formText(value) }
    case 'text':
      return { text: typeof value === 'string' ? value : JSON.stringify(value) }
    case 'ndjson':
      // An array is several lines, because APIs such as Elasticsearch's _bulk want two for each document.
      if (!Array.isArray(value)) return { text: `${JSON.stringify(value)}\n` }
      if (value.length === 0) return { problem: 'results in an empty array for this message, so there is no line to send' }
      return { text: value.map((line) => `${JSON.stringify(line) ?? 'null'}\n`).join('') }
    default:
      return { text: JSON.stringify(value) }
  }
}

/** A batch is an array in JSON, even if it has one message. */
export function joined(texts: readonly string[], format: BodyFormat, batch: boolean): string {
  if (typeof format === 'object') return `{${JSON.stringify(format.wrap)}:[${texts.join(',')}]}`
  switch (format) {
    case 'json':
      return batch ? `[${texts.join(',')}]` : (texts[0] as string)
    case 'ndjson':
      return texts.join('')
    case 'text':
      return texts.join('\n')
    // Forms are not batched: request-settings.ts refuses it.
    case 'form':
      return texts.join('&')
  }
}

/** Nested values as `a[b]=c`, arrays as `a[]=1`, and null as an empty value. */
function formText(value: object): string {
  const pairs: string[] = []
  const add = (name: string, inner: unknown): void => {
    if (Array.isArray(inner)) for (const item of inner) add(`${name}[]`, item)
    else if (typeof inner === 'object' && inner !== null)
      for (const [key, item] of Object.entries(inner)) add(`${name}[${encoded(key)}]`, item)
    else pairs.push(`${name}=${inner == null ? '' : encoded(typeof inner === 'string' ? inner : JSON.stringify(inner))}`)
  }
  for (const [key, inner] of Object.entries(value)) add(encoded(key), inner)
  return pairs.join('&')
}

function encoded(text: string): string {
  return encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, '\ufffd')).replaceAll('%20', '+')
}
