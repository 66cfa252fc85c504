// Requests over HTTP/2, which the clients of some AWS services make. In a preview, the connection of their session is refused.

import http2 from 'node:http2'
import { addAnswer } from './answer-text.ts'
import { ended, failed, type OpenRequest } from './open-request.ts'
import { replaceMethod } from './replace-method.ts'
import { runs } from './run-trace.ts'

type RequestHeaders = Readonly<Record<string, string | undefined>>

export function recordHttp2(): void {
  replaceMethod(http2, 'connect', function (this: unknown, original, authority: string | URL, ...rest: unknown[]) {
    const session: http2.ClientHttp2Session = Reflect.apply(original, this, [authority, ...rest])
    recordSession(session, new URL(authority).origin)
    return session
  })
}

function recordSession(session: http2.ClientHttp2Session, origin: string): void {
  replaceMethod(session, 'request', function (this: unknown, original, headers: RequestHeaders = {}, options?: object) {
    const stream: http2.ClientHttp2Stream = Reflect.apply(original, this, [headers, options])
    const context = runs.getStore()
    const url = `${origin}${headers[':path'] ?? '/'}`
    const record = context?.trace.open(context.positions, headers[':method'] ?? 'GET', url, () => stream.destroy())
    if (record != null) watch(stream, record)
    return stream
  })
}

function watch(stream: http2.ClientHttp2Stream, record: OpenRequest): void {
  replaceMethod(stream, 'emit', function (this: unknown, original, event: string, ...args: unknown[]) {
    if (event === 'response') {
      const headers = args[0] as http2.IncomingHttpHeaders
      record.status = Number(headers[':status'])
      record.retryAfter = headers['retry-after'] ?? null
      record.answerEncoding = headers['content-encoding']
    } else if (event === 'error') failed(record, args[0])
    else if (event === 'close') ended(record)
    return Reflect.apply(original, this, [event, ...args])
  })
  replaceMethod(stream, 'push', function (this: unknown, original, chunk: unknown, encoding?: unknown) {
    if (chunk !== null) addAnswer(record, chunk)
    return Reflect.apply(original, this, [chunk, encoding])
  })
}
