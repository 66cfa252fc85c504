// Requests of the global fetch, and of copies of undici. Its diagnostics channels report each hop of a redirect, which a wrapper around fetch would not see.

import { subscribe } from 'node:diagnostics_channel'
import { addAnswer } from './answer-text.ts'
import { addBody, ended, failed, type OpenRequest } from './open-request.ts'
import { ANSWER_IN_PREVIEW } from './preview-connection.ts'
import { type RunContext, runs } from './run-trace.ts'

interface UndiciMessage {
  request: { origin: string | URL; path: string; method: string; headers?: unknown; body?: unknown }
  response?: { statusCode: number; headers: Buffer[] }
  chunk?: Buffer
  error?: unknown
}

export function recordUndici(): void {
  const records = new WeakMap<object, OpenRequest>()
  const on = (name: string, handle: (message: UndiciMessage, record: OpenRequest) => void): void => {
    subscribe(`undici:request:${name}`, (message) => {
      const record = records.get((message as UndiciMessage).request)
      if (record !== undefined) handle(message as UndiciMessage, record)
    })
  }
  subscribe('undici:request:create', (message) => {
    const { request } = message as UndiciMessage
    const context = runs.getStore()
    const record = context?.trace.open(context.positions, request.method, `${String(request.origin)}${request.path}`, () => {})
    if (record != null) records.set(request, record)
  })
  on('headers', ({ response }, record) => {
    if (response === undefined) return
    record.status = response.statusCode
    for (let index = 0; index + 1 < response.headers.length; index += 2) {
      const name = response.headers[index]?.toString('latin1').toLowerCase()
      const value = response.headers[index + 1]?.toString('latin1')
      if (name === 'retry-after') record.retryAfter = value ?? null
      if (name === 'content-encoding') record.answerEncoding = value
    }
  })
  on('bodyChunkReceived', ({ chunk }, record) => addAnswer(record, chunk))
  on('trailers', (_, record) => ended(record))
  on('error', ({ error }, record) => failed(record, error))
  globalThis.fetch = runFetch(globalThis.fetch)
}

/** Ends a fetch when the deadline of its run is over, and answers it in a preview. */
function runFetch(original: typeof fetch): typeof fetch {
  return async (input, init) => {
    const context = runs.getStore()
    if (context === undefined) return await original(input, init)
    const { signal } = context.trace
    signal.throwIfAborted()
    if (context.trace.isPreview) return await previewFetch(new Request(input, init), context)
    const own = init?.signal ?? (input instanceof Request ? input.signal : null)
    return await original(input, { ...init, signal: own == null ? signal : AbortSignal.any([own, signal]) })
  }
}

async function previewFetch(request: Request, { trace, positions }: RunContext): Promise<Response> {
  const record = trace.open(positions, request.method, request.url, () => {})
  if (record !== null) {
    record.headers = Object.fromEntries(request.headers)
    addBody(record, new Uint8Array(await request.arrayBuffer()), undefined)
    ended(record)
  }
  return new Response(ANSWER_IN_PREVIEW, { status: 200, headers: { 'content-type': 'application/json' } })
}
