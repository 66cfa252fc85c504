// Watches how this process makes requests, and attributes each to the run that made it: `http` and `https` (node-fetch, the AWS SDK), HTTP/2
// (http2.ts), and the global fetch (undici.ts). It only observes: it adds no listener, and reads no byte that the action would not
// read itself. In a preview, no connection is opened.

import http from 'node:http'
import https from 'node:https'
import { syncBuiltinESMExports } from 'node:module'
import { addAnswer } from './answer-text.ts'
import { installDialWatch } from './dial-watch.ts'
import { recordHttp2 } from './http2.ts'
import { installLogCapture } from './log-capture.ts'
import { addBody, ended, failed, type OpenRequest } from './open-request.ts'
import { previewConnection } from './preview-connection.ts'
import { type Method, replaceMethod } from './replace-method.ts'
import { type RunContext, runs } from './run-trace.ts'
import { recordUndici } from './undici.ts'

let isInstalled = false

/** For the whole process, once, before the code that makes requests is loaded: it may keep a reference to `request`. */
export function installRecorder(): void {
  if (isInstalled) return
  isInstalled = true
  recordModule(http, 'http:')
  recordModule(https, 'https:')
  recordHttp2()
  recordUndici()
  installDialWatch()
  installLogCapture()
  syncBuiltinESMExports()
}

function recordModule(module: typeof http | typeof https, protocol: string): void {
  replaceMethod(module, 'request', function (this: unknown, original, ...args: unknown[]): http.ClientRequest {
    const context = runs.getStore()
    if (context === undefined) return Reflect.apply(original, this, args)
    const { trace, positions } = context
    trace.signal.throwIfAborted()
    const made: http.ClientRequest = Reflect.apply(original, this, trace.isPreview ? withPreviewConnection(args, protocol) : args)
    const record = trace.open(positions, made.method, addressOf(made, args, protocol), () => made.destroy())
    if (record === null) return made
    if (trace.isDetailed) recordBody(made, record)
    watch(made, record, context)
    return made
  })
  // Node's own calls its own `request`.
  module.get = (...args: unknown[]) => {
    const request: http.ClientRequest = Reflect.apply(module.request as Method, module, args)
    request.end()
    return request
  }
}

/** Wraps `emit` instead of adding listeners, because Node.js behaves differently if there is a listener for `response` or `error`. */
export function watch(request: http.ClientRequest, record: OpenRequest, context: RunContext): void {
  let answer: http.IncomingMessage | undefined
  replaceMethod(request, 'emit', function (this: unknown, original, event: string, ...args: unknown[]) {
    if (event === 'response' && !context.trace.isPreview) {
      answer = args[0] as http.IncomingMessage
      recordAnswer(answer, record)
    } else if (event === 'error') failed(record, args[0])
    else if (event === 'close') {
      if (answer?.complete === false) record.error ??= 'ECONNRESET'
      ended(record)
    }
    // The events of a reused connection come in the context of the request that opened it.
    if (runs.getStore() === context) return Reflect.apply(original, this, [event, ...args])
    return runs.run(context, () => Reflect.apply(original, this, [event, ...args]))
  })
}

function recordAnswer(answer: http.IncomingMessage, record: OpenRequest): void {
  record.status = answer.statusCode ?? null
  record.retryAfter = answer.headers['retry-after'] ?? null
  record.answerEncoding = answer.headers['content-encoding']
  replaceMethod(answer, 'push', function (this: unknown, original, chunk: unknown, encoding?: unknown) {
    if (chunk === null) ended(record)
    else addAnswer(record, chunk)
    return Reflect.apply(original, this, [chunk, encoding])
  })
}

function recordBody(request: http.ClientRequest, record: OpenRequest): void {
  // `end` hands its chunk to an internal function, not to `write`.
  for (const method of ['write', 'end']) {
    replaceMethod(request, method, function (this: unknown, original, ...args: unknown[]) {
      if (args[0] !== undefined && typeof args[0] !== 'function') addBody(record, args[0], args[1])
      const result: unknown = Reflect.apply(original, this, args)
      if (method === 'end') record.headers ??= { ...request.getHeaders() }
      return result
    })
  }
}

function addressOf(request: http.ClientRequest, args: readonly unknown[], defaultProtocol: string): string {
  const [first, second] = args
  const url = first instanceof URL ? first : typeof first === 'string' && URL.canParse(first) ? new URL(first) : null
  const options = (url === null ? first : second) as { port?: string | number } | undefined
  const protocol = request.protocol ?? defaultProtocol
  const host = request.host.includes(':') && !request.host.startsWith('[') ? `[${request.host}]` : request.host
  const port = String(options?.port ?? url?.port ?? '')
  const isDefault = port === '' || port === (protocol === 'https:' ? '443' : '80')
  return `${protocol}//${host}${isDefault ? '' : `:${port}`}${request.path}`
}

function withPreviewConnection(args: readonly unknown[], protocol: string): unknown[] {
  const [first, second] = args
  // Without an agent, Node.js uses the connection that this function creates. The agent would also know the default port, which is not in the header Host.
  const override = { agent: undefined, createConnection: previewConnection, defaultPort: protocol === 'https:' ? 443 : 80 }
  if (typeof first !== 'string' && !(first instanceof URL)) return [Object.assign({}, first, override), ...args.slice(1)]
  return typeof second === 'object' ? [first, { ...second, ...override }, ...args.slice(2)] : [first, override, ...args.slice(1)]
}
