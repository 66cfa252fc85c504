// One request with messages and its response, on its way through the stage.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ApiErrorCode } from '../errors.ts'
import { type Body, countOf, type RequestProblem, type Route, sampleOfBytes } from './parse-request.ts'

export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  route: Route
  pixel: boolean
  /** The write key from the query string, on paths that accept one there. */
  queryKey?: string | undefined
  /** Whether it has passed the rate limit before, and is received again. */
  isAdmitted?: boolean
  /** Null while the source is not known. */
  sourceId: string | null
}

export function requestProblem({ route }: Exchange, code: ApiErrorCode, body: Body): RequestProblem {
  return { ok: false, code, count: countOf(route, body), sample: sampleOfBytes(body.bytes) }
}

/** Browsers send an Origin header with every request of a script. sendBeacon sends plain text. */
export function isFromBrowser({ headers }: IncomingMessage): boolean {
  const type = headers['content-type']
  return headers.origin !== undefined || (type !== undefined && /^\s*text\/plain\b/i.test(type))
}
