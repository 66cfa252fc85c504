// What a destination sends, while it is edited: the request and the transformation of a webhook, or the subscriptions of an integration. They
// share one draft, one preview and one version, so that a change of several is saved as one. Pure.

import { type CodeProblem, jsonProblem, placeIn, placeOfPath } from '../../../text/code-problems.ts'
import type { Destination, DestinationChange, Integration, Webhook } from '../draft.ts'
import type { Definition } from '../integration/definition.ts'
import { type SubscriptionDraft, subscriptionDraftOf, subscriptionOf, subscriptionProblems } from '../integration/subscription-draft.ts'
import { type HeaderDraft, headerNameProblem, headerValueProblem, numberProblem } from '../validation.ts'

export const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as const
export const FORMATS = ['json', 'form', 'text', 'ndjson', 'wrap'] as const

export interface RequestDraft {
  method: (typeof METHODS)[number]
  path: string
  headers: HeaderDraft[]
  /** A mapping as JSON; null to send the message itself. */
  body: string | null
  format: (typeof FORMATS)[number]
  /** The key of the list, if the format is `wrap`. */
  wrap: string
}

export interface TransformationDraft {
  code: string
  timeoutMs: number | null
  memoryMb: number | null
}

/** Null: off. */
export interface ShapeDraft {
  request: RequestDraft | null
  transformation: TransformationDraft | null
  /** Null for a webhook. */
  subscriptions: readonly SubscriptionDraft[] | null
}

export interface Shape extends Pick<Webhook, 'request' | 'transformation'> {
  subscriptions: Integration['subscriptions'] | null
}

export function shapeOf(destination: Destination): Shape {
  if (destination.type === 'integration') return { request: null, transformation: null, subscriptions: destination.subscriptions }
  const { request, transformation } = destination
  return { request, transformation, subscriptions: null }
}

export const LIMITS = { timeoutMs: { min: 1, max: 1_000 }, memoryMb: { min: 1, max: 64 } } as const

export const NEW_REQUEST: RequestDraft = { method: 'POST', path: '', headers: [], body: null, format: 'json', wrap: 'batch' }

export const EXAMPLE_MAPPING = `{
  "id": { "@path": "$.userId" },
  "text": { "@template": "{{type}} {{event}} by {{userId}}" }
}
`

export const NEW_TRANSFORMATION: TransformationDraft = {
  code: `// Runs for each message before it is sent. Return the message, or null to drop it.
export default function (message, { received, seed }) {
  // if (message.event === 'Heartbeat') return null
  // delete message.context?.ip
  return message
}
`,
  timeoutMs: 50,
  memoryMb: 8,
}

/** `definition`: of the integration; its actions say which objects in a mapping have fields. */
export function shapeDraftOf({ request, transformation, subscriptions }: Shape, definition: Definition | null = null): ShapeDraft {
  return {
    request: request === null ? null : requestDraftOf(request),
    transformation: transformation === null ? null : { ...transformation },
    subscriptions: subscriptions?.map((subscription) => subscriptionDraftOf(definition, subscription)) ?? null,
  }
}

function requestDraftOf({
  method = 'POST',
  path = '',
  headers,
  body = null,
  format = 'json',
}: NonNullable<Shape['request']>): RequestDraft {
  return {
    method,
    path,
    headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
    body: body === null ? null : `${JSON.stringify(body, null, 2)}\n`,
    format: typeof format === 'string' ? format : 'wrap',
    wrap: typeof format === 'string' ? 'batch' : format.wrap,
  }
}

/** What the API gets. The draft must have no problems. */
function requestOf({ method, path, headers, body, format, wrap }: RequestDraft) {
  return {
    method,
    path,
    headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])),
    body: body === null ? null : (JSON.parse(body) as Record<string, unknown>),
    format: format === 'wrap' ? { wrap } : format,
  }
}

function transformationOf({ code, timeoutMs, memoryMb }: TransformationDraft) {
  return { code, timeoutMs: timeoutMs ?? 1, memoryMb: memoryMb ?? 1 }
}

export type ShapeChanges = Pick<DestinationChange, 'request' | 'transformation' | 'subscriptions'>

/** The settings that differ from the saved ones; null if none do. The draft must have no problems. */
export function shapeChangesOf(saved: Shape, draft: ShapeDraft): ShapeChanges | null {
  const before = shapeDraftOf(saved)
  const changes: ShapeChanges = {}
  if (differs(before.request, draft.request, requestOf)) changes.request = draft.request === null ? null : requestOf(draft.request)
  if (differs(before.transformation, draft.transformation, transformationOf))
    changes.transformation = draft.transformation === null ? null : transformationOf(draft.transformation)
  if (draft.subscriptions !== null) {
    const subscriptions = draft.subscriptions.map(subscriptionOf)
    if (JSON.stringify(saved.subscriptions?.map(ordered)) !== JSON.stringify(subscriptions.map(ordered)))
      changes.subscriptions = subscriptions
  }
  return Object.keys(changes).length === 0 ? null : changes
}

/** With its fields in a fixed order, to compare it. */
function ordered({ id, name, action, subscribe, enabled, mapping }: Omit<Integration['subscriptions'][number], 'id'> & { id?: string }) {
  return [id, name, action, subscribe.trim(), enabled, mapping]
}

function differs<T>(before: T | null, after: T | null, settingsOf: (draft: T) => unknown): boolean {
  if (before === null || after === null) return before !== after
  return JSON.stringify(settingsOf(before)) !== JSON.stringify(settingsOf(after))
}

/** Whether something was typed that is not saved, valid or not. */
export function isShapeChanged(saved: Shape, draft: ShapeDraft, definition: Definition | null = null): boolean {
  return JSON.stringify(shapeDraftOf(saved, definition)) !== JSON.stringify(draft)
}

/** The problems that need no answer of the service, by field. */
export function shapeProblems(
  { request, transformation, subscriptions }: ShapeDraft,
  definition: Definition | null = null,
): ReadonlyMap<string, string> {
  const problems = subscriptionProblems(definition, subscriptions ?? [])
  const note = (field: string, problem: string | null): void => {
    if (problem !== null) problems.set(field, problem)
  }
  if (request !== null) {
    if (request.path !== '' && !request.path.startsWith('/')) note('request.path', 'Start the path with a slash.')
    for (const [at, { name, value }] of request.headers.entries()) {
      const isTwice = request.headers.findIndex((other) => other.name.toLowerCase() === name.toLowerCase()) < at
      note(`request.headers[${at}].name`, headerNameProblem(name) ?? (isTwice ? 'This header is already in the list.' : null))
      note(`request.headers[${at}].value`, headerValueProblem(value))
    }
    if (request.body !== null) note('request.body', jsonProblem(request.body)?.message ?? objectProblem(request.body))
    if (request.format === 'wrap' && request.wrap === '') note('request.format.wrap', 'Enter the key of the list.')
  }
  if (transformation !== null) {
    if (transformation.code.trim() === '') note('transformation.code', 'Enter a function, or remove the transformation.')
    note('transformation.timeoutMs', numberProblem(transformation.timeoutMs, LIMITS.timeoutMs))
    note('transformation.memoryMb', numberProblem(transformation.memoryMb, LIMITS.memoryMb))
  }
  return problems
}

function objectProblem(body: string): string | null {
  const value: unknown = JSON.parse(body)
  return typeof value === 'object' && value !== null ? null : 'Must be an object or an array.'
}

/** An error of the API at the field of the form that shows it; null if none does. */
export function shapeFieldOf(field: string | null, { request }: ShapeDraft): string | null {
  if (field === null) return null
  const name = field.replace(/^changes\./, '')
  if (name.startsWith('request.body')) return 'request.body'
  if (name.startsWith('request.format')) return 'request.format.wrap'
  if (name.startsWith('request.headers.')) {
    const at = request?.headers.findIndex((header) => header.name === name.slice('request.headers.'.length)) ?? -1
    return at === -1 ? 'request.headers' : `request.headers[${at}].value`
  }
  if (name.startsWith('subscriptions[')) return name
  return /^(request\.(path|headers)|transformation\.(code|timeoutMs|memoryMb))$/.test(name) ? name : null
}

/** Where an error of the API is in the JSON of the mapping. */
export function mappingProblem(text: string, field: string, message: string): CodeProblem {
  const path = field
    .replace(/^(changes\.)?request\.body/, '')
    .split(/[.[\]]+/)
    .filter((part) => part !== '')
  return { ...placeOfPath(text, path), message }
}

/** Where an error in the code is: the first line if the message does not say. */
export function codeProblem(message: string): CodeProblem {
  return { ...(placeIn(message) ?? { line: 1, column: null }), message }
}
