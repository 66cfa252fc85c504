// Converts the routes of the control API to operations of the OpenAPI document. Names come from the path of a route; parameters, bodies
// and responses come from its schemas. The errors that every route can return are added here, so that routes declare only their own.

import type { JsonSchema } from '../../api/schema.ts'
import type { ApiErrorCode } from '../../errors.ts'
import type { Method, Route } from '../routes/route.ts'
import { EXAMPLES } from './examples.ts'
import type { Answer, Operation, Parameter } from './operation.ts'
import { tagOf } from './tags.ts'

const PREFIX = '/api'
const METHODS = { GET: 'get', POST: 'post', PATCH: 'patch', DELETE: 'delete' } as const satisfies Record<Method, Operation['method']>
const STATUSES: Record<Route['status'], string> = {
  200: 'Success.',
  201: 'Created.',
  202: 'Accepted. The work continues in the background.',
  204: 'Success, without a response body.',
}

const IF_MATCH: Parameter = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The ETag of an earlier response. If the resource was changed since then, this request changes nothing and fails with `changed_since_read`.',
  schema: { type: 'string' },
}

function takesIfMatch({ tagged, method }: Route): boolean {
  return tagged === true && (method === 'PATCH' || method === 'DELETE')
}

export function controlOperations(routes: readonly Route[]): Operation[] {
  return routes.map((route) => {
    const body = bodyOf(route)
    return {
      method: METHODS[route.method],
      path: PREFIX + route.path.replaceAll(/:(\w+)/g, '{$1}'),
      id: METHODS[route.method] + nameOf(route.path),
      tag: tagOf(route.path),
      summary: route.summary,
      ...(route.description === undefined ? {} : { description: route.description }),
      ...(route.access === 'public' ? { security: 'none' as const } : { security: 'control' as const, role: route.access.role }),
      parameters: [...pathParameters(route.path), ...queryParameters(route), ...(takesIfMatch(route) ? [IF_MATCH] : [])],
      ...(body === undefined ? {} : { body }),
      answers: answersOf(route),
      errors: errorsOf(route),
    }
  })
}

/** All errors that a route can return. */
export function errorsOf(route: Route): ApiErrorCode[] {
  const takesBody = route.method !== 'GET'
  return [
    'unknown_field',
    'invalid_field',
    'invalid_request',
    ...(takesBody ? (['invalid_json', 'body_too_large'] as const) : []),
    ...(route.access === 'public' ? [] : (['unauthorized', 'cross_site_request', 'too_many_attempts'] as const)),
    ...(route.access !== 'public' && route.access.role !== 'viewer' ? (['forbidden'] as const) : []),
    ...(route.access !== 'public' && route.access.whole ? (['shared_destination'] as const) : []),
    ...(route.errors ?? []),
    ...(takesIfMatch(route) ? (['changed_since_read'] as const) : []),
    'unsupported_encoding',
    'store_unavailable',
    'internal_error',
  ]
}

function bodyOf({ method, path, body, form }: Route): Operation['body'] {
  if (body === undefined) return undefined
  const schema = body.toJsonSchema()
  const example = EXAMPLES[`${method} ${path}`]
  const required = Array.isArray(schema['required']) && schema['required'].length > 0
  return {
    type: form ? 'application/x-www-form-urlencoded' : 'application/json',
    required,
    schema,
    ...(example === undefined ? {} : { example }),
  }
}

function answersOf(route: Route): Answer[] {
  if (route.pages === undefined) return [answerOf(route)]
  return Object.entries(route.pages).map(([status, description]): Answer => {
    const answer: Answer = { status: Number(status), description }
    return status === '303' ? answer : Object.assign(answer, { type: 'text/html', schema: { type: 'string' } })
  })
}

function answerOf({ status, answer, stream, bytes }: Route): Answer {
  const description = STATUSES[status]
  if (bytes !== undefined) return { status, description, type: 'application/octet-stream', schema: { type: 'string', format: 'binary' } }
  const schema = answer?.toJsonSchema()
  if (schema === undefined) return { status, description }
  if (stream === undefined) return { status, description, type: 'application/json', schema }
  return {
    status,
    description: 'Server-sent events, until either side closes the connection.',
    type: 'text/event-stream',
    schema: { type: 'string' },
    event: schema,
  }
}

function queryParameters({ query }: Route): Parameter[] {
  const { properties = {}, required = [] } = (query?.toJsonSchema() ?? {}) as {
    properties?: Record<string, JsonSchema>
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, { description, ...schema }]) => {
    return { name, in: 'query', required: required.includes(name), description: typeof description === 'string' ? description : '', schema }
  })
}

const DISPLAY_NAMES: Readonly<Record<string, string>> = {
  'oauth app': 'OAuth application',
  replay: 'replay job',
  deletion: 'deletion request',
  'catalog integration': 'slug of the integration',
}

function pathParameters(path: string): Parameter[] {
  const parts = path.split('/')
  return parts.flatMap((part, index): Parameter[] => {
    if (!part.startsWith(':')) return []
    const thing = singular(parts[index - 1] ?? '').replaceAll('-', ' ')
    const isId = part === ':id' || part.endsWith('Id')
    const name = DISPLAY_NAMES[thing] ?? thing
    const description = isId ? `The id of the ${name}.` : `The ${name}.`
    const example = (isId ? `${thing} id` : thing).toUpperCase().replaceAll(' ', '_')
    return [{ name: part.slice(1), in: 'path', required: true, description, schema: { type: 'string' }, example }]
  })
}

/** /sources/:id/write-keys → SourceWriteKeys. A part is in the singular if a parameter follows it. */
function nameOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '')
  return parts
    .flatMap((part, index) => {
      if (part.startsWith(':')) return []
      const words = (parts[index + 1]?.startsWith(':') ? singular(part) : part).split(/[^A-Za-z0-9]+/)
      return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    })
    .join('')
}

function singular(word: string): string {
  if (word === 'catalog') return 'catalog-integration'
  return word.endsWith('ies') ? `${word.slice(0, -3)}y` : word.replace(/s$/, '')
}
