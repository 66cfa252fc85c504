// Watches how this process makes requests, and attributes each to the run that made it: `http` and `https` (node-fetch, the AWS SDK), HTTP/2, and
// undici (the global fetch). It observes without taking part: no listener is added and no byte is read that the action would not read itself.
// In a preview nothing is dialled.

import { subscribe } from 'node:diagnostics_channel'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { syncBuiltinESMExports } from 'node:module'
import { addAnswer } from './answer-start.ts'
import { installDialWatch } from './dial-watch.ts'
import { codeOf } from './failures.ts'
import { installLogCapture } from './log-capture.ts'
import { ANSWER_IN_PREVIEW, previewConnection } from './preview-connection.ts'
import { addBody, type OpenRequest, type RunContext, runs } from './run-trace.ts'

type RequestFunction = (...args: unknown[]) => http.ClientRequest

let isInstalled = false

/** For the whole process, once. Code that is loaded later cannot get around it by keeping a reference. */
export function installRecorder(): void {
  if (isInstalled) return
  isInstalled = true
  for (const [module, protocol] of [
    [http, 'http:'],
    [https, 'https:'],
  ] as const) {
    const request = recordingRequest(module.request as RequestFunction, protocol)
    const get: RequestFunction = (...args) => {
      const made = request(...args)
      made.end()
      return made
    }
    Object.assign(module, { request, get })
  }
  http2.connect = recordingConnect(http2.connect)
  globalThis.fetch = previewingFetch(globalThis.fetch)
  recordUndici()
  installDialWatch()
  installLogCapture()
  syncBuiltinESMExports()
}

function recordingRequest(original: RequestFunction, protocol: string): RequestFunction {
  return function request(this: unknown, ...args) {
    const context = runs.getStore()
    if (context === undefined) return Reflect.apply(original, this, args)
    context.trace.signal.throwIfAborted()
    const made: http.ClientRequest = Reflect.apply(original, this, context.trace.isPreview ? withPreviewConnection(args) : args)
    const record = context.trace.open(context.positions, made.method, addressOf(made, args, protocol), () => made.destroy())
    if (record === null) return made
    if (context.trace.isDetailed) recordBody(made, record)
    watch(made, record, context)
    return made
  }
}

/** Takes part in what the request emits instead of listening: a listener for `response` or `error` would change what Node.js does without one. */
function watch(request: http.ClientRequest, record: OpenRequest, context: RunContext): void {
  const emit = request.emit
  request.emit = function (this: http.ClientRequest, event: string, ...args: unknown[]) {
    if (event === 'response' && !context.trace.isPreview) recordAnswer(args[0] as http.IncomingMessage, record)
    else if (event === 'error') failed(record, args[0])
    else if (event === 'close') ended(record)
    // A connection that is reused belongs to the context of the request that opened it.
    return runs.getStore() === context
      ? Reflect.apply(emit, this, [event, ...args])
      : runs.run(context, () => Reflect.apply(emit, this, [event, ...args]))
  } as typeof request.emit
}

function recordAnswer(answer: http.IncomingMessage, record: OpenRequest): void {
  record.status = answer.statusCode ?? null
  record.retryAfter = answer.headers['retry-after'] ?? null
  record.answerEncoding = answer.headers['content-encoding']
  const push = answer.push
  answer.push = function (this: http.IncomingMessage, chunk: unknown, encoding?: BufferEncoding) {
    if (chunk === null) ended(record)
    else addAnswer(record, chunk)
    return Reflect.apply(push, this, [chunk, encoding])
  }
}

function recordBody(request: http.ClientRequest, record: OpenRequest): void {
  const { write, end } = request
  const add = (chunk: unknown, encoding: unknown): void => {
    if (chunk !== undefined && typeof chunk !== 'function') addBody(record, chunk, typeof encoding === 'string' ? encoding : 'utf8')
  }
  request.write = function (this: http.ClientRequest, ...args: unknown[]) {
    add(args[0], args[1])
    return Reflect.apply(write, this, args)
  } as typeof request.write
  // `end` hands its chunk to an internal function, not to `write`.
  request.end = function (this: http.ClientRequest, ...args: unknown[]) {
    add(args[0], args[1])
    const result = Reflect.apply(end, this, args)
    record.headers ??= { ...this.getHeaders() }
    return result
  } as typeof request.end
}

function failed(record: OpenRequest, error: unknown): void {
  record.error ??= codeOf(error)
  ended(record)
}

function ended(record: OpenRequest): void {
  record.totalMs ??= performance.now() - record.startedAt
}

interface RequestOptions {
  hostname?: string
  host?: string
  port?: string | number
  protocol?: string
}

/** The options of a call, which may come after a URL. */
function optionsOf(args: readonly unknown[]): RequestOptions {
  const [first, second] = args
  if (typeof first === 'string' || first instanceof URL)
    return second !== null && typeof second === 'object' ? (second as RequestOptions) : {}
  return (first ?? {}) as RequestOptions
}

function addressOf(request: http.ClientRequest, args: readonly unknown[], defaultProtocol: string): string {
  const options = optionsOf(args)
  const url = typeof args[0] === 'string' && URL.canParse(args[0]) ? new URL(args[0]) : args[0] instanceof URL ? args[0] : null
  const protocol = request.protocol ?? defaultProtocol
  const host = request.host.includes(':') && !request.host.startsWith('[') ? `[${request.host}]` : request.host
  const port = String(options.port ?? url?.port ?? '')
  const isDefault = port === '' || port === (protocol === 'https:' ? '443' : '80')
  return `${protocol}//${host}${isDefault ? '' : `:${port}`}${request.path}`
}

function withPreviewConnection(args: readonly unknown[]): unknown[] {
  const [first, second] = args
  // Without an agent, Node.js uses the connection that this function creates.
  const override = { agent: undefined, createConnection: previewConnection }
  if (typeof first !== 'string' && !(first instanceof URL)) return [{ ...(first as object), ...override }, ...args.slice(1)]
  return typeof second === 'object' ? [first, { ...second, ...override }, ...args.slice(2)] : [first, override, ...args.slice(1)]
}

function recordingConnect(original: typeof http2.connect): typeof http2.connect {
  return function connect(this: unknown, authority: string | URL, ...rest: unknown[]) {
    const session: http2.ClientHttp2Session = Reflect.apply(original, this, [authority, ...rest])
    const request = session.request
    session.request = function (
      this: http2.ClientHttp2Session,
      headers?: http2.OutgoingHttpHeaders,
      options?: http2.ClientSessionRequestOptions,
    ) {
      const stream: http2.ClientHttp2Stream = Reflect.apply(request, this, [headers, options])
      const context = runs.getStore()
      const { origin } = new URL(authority)
      const record = context?.trace.open(
        context.positions,
        String(headers?.[':method'] ?? 'GET'),
        `${origin}${headers?.[':path'] ?? '/'}`,
        () => stream.destroy(),
      )
      if (record != null) watchStream(stream, record)
      return stream
    }
    return session
  } as typeof http2.connect
}

function watchStream(stream: http2.ClientHttp2Stream, record: OpenRequest): void {
  const { emit, push } = stream
  stream.emit = function (this: http2.ClientHttp2Stream, event: string, ...args: unknown[]) {
    if (event === 'response') {
      const headers = args[0] as http2.IncomingHttpHeaders
      record.status = Number(headers[':status'])
      record.retryAfter = headers['retry-after'] ?? null
      record.answerEncoding = headers['content-encoding']
    } else if (event === 'error') failed(record, args[0])
    else if (event === 'close') ended(record)
    return Reflect.apply(emit, this, [event, ...args])
  } as typeof stream.emit
  stream.push = function (this: http2.ClientHttp2Stream, chunk: unknown, encoding?: BufferEncoding) {
    if (chunk !== null) addAnswer(record, chunk)
    return Reflect.apply(push, this, [chunk, encoding])
  }
}

interface UndiciMessage {
  request: { origin: string | URL; path: string; method: string; headers?: unknown }
  response?: { statusCode: number; headers: Buffer[] }
  chunk?: Buffer
  error?: unknown
}

/** Also each hop of a redirect, which a wrapper around fetch would not see. */
function recordUndici(): void {
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
    const record = context?.trace.open(context.positions, request.method, `${request.origin}${request.path}`, () => {})
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
}

/** Ends a fetch when the deadline of the run is over, and answers it in a preview. */
function previewingFetch(original: typeof fetch): typeof fetch {
  return async function recordedFetch(input, init) {
    const context = runs.getStore()
    if (context === undefined) return await original(input, init)
    const { trace, positions } = context
    trace.signal.throwIfAborted()
    if (!trace.isPreview) {
      const signal = init?.signal ?? (input instanceof Request ? input.signal : null)
      return await original(input, { ...init, signal: signal == null ? trace.signal : AbortSignal.any([signal, trace.signal]) })
    }
    const request = new Request(input, init)
    const record = trace.open(positions, request.method, request.url, () => {})
    if (record !== null) {
      record.headers = Object.fromEntries(request.headers)
      addBody(record, new Uint8Array(await request.arrayBuffer()), undefined)
      ended(record)
    }
    return new Response(ANSWER_IN_PREVIEW, { status: 200, headers: { 'content-type': 'application/json' } })
  }
}
