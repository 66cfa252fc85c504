// What a webhook sends, while it is edited: the request and the transformation. Pure.

import { FIELDS } from '../../../api/rules.ts'
import type { ContentChanges, ContentForm } from '../../../destination/content/use-content.ts'
import { type Noted, problemsIn } from '../../../destination/form/draft.ts'
import { numberProblem } from '../../../destination/form/validation.ts'
import { type CodeProblem, jsonProblem, placeIn, placeOfPath } from '../../../text/code-problems.ts'
import { type HeaderDraft, headerDrafts, headerProblems, headersOf } from '../form/validation.ts'
import type { Webhook } from '../form/webhook-draft.ts'

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
export interface WebhookContentDraft {
  request: RequestDraft | null
  transformation: TransformationDraft | null
}

type Saved = Pick<Webhook, 'request' | 'transformation'>

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
  timeoutMs: FIELDS['transformation.timeoutMs'].default,
  memoryMb: FIELDS['transformation.memoryMb'].default,
}

export function contentDraftOf({ request, transformation }: Saved): WebhookContentDraft {
  return {
    request: request === null ? null : requestDraftOf(request),
    transformation: transformation === null ? null : { ...transformation },
  }
}

function requestDraftOf({
  method = 'POST',
  path = '',
  headers,
  body = null,
  format = 'json',
}: NonNullable<Saved['request']>): RequestDraft {
  return {
    method,
    path,
    headers: headerDrafts(headers),
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
    headers: headersOf(headers),
    body: body === null ? null : (JSON.parse(body) as Record<string, unknown>),
    format: format === 'wrap' ? { wrap } : format,
  }
}

function transformationOf({ code, timeoutMs, memoryMb }: TransformationDraft) {
  return { code, timeoutMs: timeoutMs ?? 1, memoryMb: memoryMb ?? 1 }
}

export function contentChangesOf(saved: Saved, draft: WebhookContentDraft): ContentChanges | null {
  const before = contentDraftOf(saved)
  const changes: ContentChanges = {}
  if (differs(before.request, draft.request, requestOf)) changes.request = draft.request === null ? null : requestOf(draft.request)
  if (differs(before.transformation, draft.transformation, transformationOf))
    changes.transformation = draft.transformation === null ? null : transformationOf(draft.transformation)
  return Object.keys(changes).length === 0 ? null : changes
}

function differs<T>(before: T | null, after: T | null, settingsOf: (draft: T) => unknown): boolean {
  if (before === null || after === null) return before !== after
  return JSON.stringify(settingsOf(before)) !== JSON.stringify(settingsOf(after))
}

export function contentProblems({ request, transformation }: WebhookContentDraft): ReadonlyMap<string, string> {
  return problemsIn([
    ...(request === null ? [] : requestProblems(request)),
    ...(transformation === null ? [] : transformationProblems(transformation)),
  ])
}

function requestProblems({ path, headers, body, format, wrap }: RequestDraft): Noted[] {
  return [
    ['request.path', path !== '' && !path.startsWith('/') ? 'Start the path with a slash.' : null],
    ...headerProblems(headers, 'request.headers'),
    ['request.body', body === null ? null : (jsonProblem(body)?.message ?? objectProblem(body))],
    ['request.format.wrap', format === 'wrap' && wrap === '' ? 'Enter the key of the list.' : null],
  ]
}

function transformationProblems({ code, timeoutMs, memoryMb }: TransformationDraft): Noted[] {
  return [
    ['transformation.code', code.trim() === '' ? 'Enter a function, or remove the transformation.' : null],
    ['transformation.timeoutMs', numberProblem(timeoutMs, FIELDS['transformation.timeoutMs'])],
    ['transformation.memoryMb', numberProblem(memoryMb, FIELDS['transformation.memoryMb'])],
  ]
}

function objectProblem(body: string): string | null {
  const value: unknown = JSON.parse(body)
  return typeof value === 'object' && value !== null ? null : 'Must be an object or an array.'
}

export function contentFieldOf(field: string, { request }: WebhookContentDraft): string | null {
  if (field.startsWith('request.body')) return 'request.body'
  if (field.startsWith('request.format')) return 'request.format.wrap'
  if (field.startsWith('request.headers.')) {
    const at = request?.headers.findIndex((header) => header.name === field.slice('request.headers.'.length)) ?? -1
    return at === -1 ? 'request.headers' : `request.headers[${at}].value`
  }
  return /^(request\.(path|headers)|transformation\.(code|timeoutMs|memoryMb))$/.test(field) ? field : null
}

export const WEBHOOK_CONTENT: ContentForm<Webhook, WebhookContentDraft> = {
  draftOf: contentDraftOf,
  problemsOf: contentProblems,
  changesOf: contentChangesOf,
  fieldOf: contentFieldOf,
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
