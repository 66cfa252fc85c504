// The setting `request` of a webhook: which values are accepted, and the errors for all others. No error message here may quote a value.

import { invalidField, nullable, object, oneOf, record, type Schema, string, withDefault } from '../../../api/schema.ts'
import type { BatchSettings, BodyFormat, RequestSettings } from '../../../model/configuration.ts'
import { HIDDEN } from '../../../secrets/hidden-url.ts'
import type { SettingsProblem } from '../../port/kind.ts'
import { FORMATS } from './body-format.ts'
import { isSecretPath } from './bounded-reading.ts'
import { hasDotSegment } from './dot-segments.ts'
import { headerNameProblem, headersProblem, isHeaderValue, MAX_HEADER_VALUE_LENGTH, MAX_HEADERS } from './headers.ts'
import { mappingProblem } from './mapping.ts'
import { parseTemplate, templateProblem } from './template.ts'

const MAX_PATH_LENGTH = 2_048
const MAX_WRAP_LENGTH = 100

function pathProblem(path: string): string | null {
  if (path === '') return null
  if (!path.startsWith('/')) return 'must start with /'
  const problem = templateProblem(path)
  if (problem !== null) return problem
  const { texts } = parseTemplate(path)
  if (texts.some((text) => /[?#]/.test(text))) return 'must not contain ? or #; put a query string in the URL'
  if (!texts.every((text) => /^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$/.test(text)))
    return 'must consist only of characters that a URL path can have, and placeholders such as {{userId}}; percent-encode all others'
  // Also found if only the value of a message would complete the segment: no message should fail because of the template.
  if (hasDotSegment(texts.join(''))) return 'must not have . or .. as a segment'
  return null
}

function headerProblem(value: string): string | null {
  if (value === HIDDEN) return 'is the placeholder "(hidden)"; send the real value'
  const problem = templateProblem(value)
  if (problem !== null) return problem
  return parseTemplate(value).texts.every(isHeaderValue)
    ? null
    : 'must consist only of visible ASCII characters, spaces and tabs, and placeholders such as {{userId}}'
}

const MAPPING: Schema<RequestSettings['body']> = {
  parse(value, path) {
    if (value === null) return null
    if (typeof value !== 'object') throw invalidField(path, 'must be a mapping: an object, an array or null')
    const found = mappingProblem(value)
    if (found !== null) throw invalidField(`${path}${found.place}`, found.problem)
    return value
  },
  toJsonSchema: () => ({
    type: ['object', 'array', 'null'],
    additionalProperties: true,
    items: {},
    description:
      'A mapping in the language of Segment’s mapping kit, such as `{ "id": { "@path": "$.userId" } }`; null to send the message itself. With the format ndjson, each element of an array is a line.',
  }),
}

const WRAP = object({ wrap: string({ min: 1, max: MAX_WRAP_LENGTH, description: 'The key of the array that holds the messages.' }) })
const FORMAT: Schema<BodyFormat> = {
  parse(value, path) {
    if (typeof value === 'object' && value !== null) return WRAP.parse(value, path)
    const found = FORMATS.find((name) => name === value)
    if (found === undefined) throw invalidField(path, `must be one of ${FORMATS.join(', ')}, or an object such as { "wrap": "batch" }`)
    return found
  },
  toJsonSchema: () => ({
    oneOf: [{ type: 'string', enum: [...FORMATS] }, WRAP.toJsonSchema()],
    description:
      'How the body is written: JSON (a batch is an array), a form, text, one JSON value per line, or a JSON object with an array of the messages.',
  }),
}

const FIELDS = {
  method: withDefault(oneOf(['POST', 'PUT', 'PATCH', 'DELETE'], { description: 'The HTTP method.' }), 'POST'),
  path: withDefault(
    string({
      max: MAX_PATH_LENGTH,
      check: pathProblem,
      description:
        'Appended to the path of each URL. `{{userId}}` is replaced by the value in the message, percent-encoded as one segment. A message whose values would give a segment `.` or `..` fails with the reason `mapping_failed`.',
    }),
    '',
  ),
  headers: withDefault(
    record(string({ max: MAX_HEADER_VALUE_LENGTH, check: headerProblem }), {
      max: MAX_HEADERS,
      name: headerNameProblem,
      whole: headersProblem,
      description:
        'Headers with placeholders such as `{{context.tenant}}`. A header whose value is missing in a message is left out. `{{secrets.apiKey}}` is a secret of the destination.',
    }),
    {},
  ),
  body: withDefault(MAPPING, null),
  format: withDefault(FORMAT, 'json'),
}

const DESCRIPTION = 'How a message becomes an HTTP request; null for the classic webhook. An update replaces it as a whole.'

export const REQUEST_SETTING = withDefault(nullable(object(FIELDS, { description: DESCRIPTION })), null)

export const SHOWN_REQUEST = nullable(
  object(
    {
      ...FIELDS,
      headers: record(
        string({ description: 'For a viewer, each value that does not consist of placeholders only is replaced by (hidden).' }),
      ),
    },
    { description: DESCRIPTION },
  ),
)

/** Some integrations need larger batches, so the limit of all kinds is higher. */
export const MAX_WEBHOOK_BATCH = 1_000

/** Settings that do not fit together. One batch is one request, so it has one path, one set of headers and one form. */
export function batchProblem(request: RequestSettings | null, { size }: Pick<BatchSettings, 'size'>): SettingsProblem | null {
  if (size > MAX_WEBHOOK_BATCH) return { field: 'batch.size', problem: `must be an integer from 1 to ${MAX_WEBHOOK_BATCH}` }
  if (request === null || size === 1) return null
  const instead = 'set batch.size to 1'
  const hasPlaceholder = (text: string): boolean => parseTemplate(text).placeholders.some(({ segments }) => !isSecretPath(segments))
  if (hasPlaceholder(request.path))
    return { field: 'request.path', problem: `must not have placeholders, because a batch has one path; ${instead}` }
  const header = Object.entries(request.headers).find(([, value]) => hasPlaceholder(value))
  if (header !== undefined)
    return {
      field: `request.headers.${header[0]}`,
      problem: `must not have placeholders, because a batch has one set of headers; ${instead}`,
    }
  if (request.format === 'form')
    return { field: 'request.format', problem: `must not be form, because a form holds one message; ${instead}` }
  return null
}
