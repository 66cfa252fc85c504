// The default transport on Node.js: node:http with keep-alive, because a request costs a fraction of one with global fetch
// (npm run bench:transport prints both). If global fetch was replaced, that is used instead. Mocks such as nock replace
// http.request, and their request objects lack some features, so nothing here relies on those.

import type * as Http from 'node:http'
import type * as Https from 'node:https'
import { customTransport, FetchHTTPClient } from '../send/http-client.ts'
import { type Answer, MAX_ANSWER_BYTES, type OutgoingRequest, TimeoutError, type Transport } from '../send/transport.ts'
import { isFetchChanged, warnOfUnusedProxy } from './node-fetch.ts'

export function httpTransport(maxConnections: number): Transport {
  let secure: { module: typeof Https; agent: Https.Agent } | undefined
  let plain: { module: typeof Http; agent: Http.Agent } | undefined
  let targetUrl = ''
  let target: Http.RequestOptions = {}
  let fetchTransport: Transport | undefined
  let closed = false

  async function connection(url: URL): Promise<{ module: typeof Http | typeof Https; agent: Http.Agent }> {
    warnOfUnusedProxy()
    const options = { keepAlive: true, maxSockets: maxConnections, maxFreeSockets: maxConnections, scheduling: 'lifo' } as const
    if (url.protocol === 'https:') {
      if (secure) return secure
      const { default: module } = await import('node:https')
      secure ??= { module, agent: new module.Agent(options) }
      return secure
    }
    if (plain) return plain
    // The default export, because mocks replace functions of that object, and named imports do not see the replacement.
    const { default: module } = await import('node:http')
    plain ??= { module, agent: new module.Agent(options) }
    return plain
  }

  async function send(request: OutgoingRequest): Promise<Answer> {
    if (closed) throw new Error('the client is closed')
    if (isFetchChanged()) {
      fetchTransport ??= customTransport(new FetchHTTPClient())
      return fetchTransport.send(request)
    }
    const deadline = performance.now() + request.timeoutMs
    const url = new URL(request.url)
    const { module, agent } = await connection(url)
    if (targetUrl !== request.url) {
      targetUrl = request.url
      // By default, Node.js 18 does not try both the IPv4 and the IPv6 address of `localhost`.
      const address = { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port, autoSelectFamily: true }
      target = { method: 'POST', ...address, path: url.pathname + url.search, agent }
    }
    const options = {
      ...target,
      headers: { ...request.headers, 'Content-Length': request.body.length },
    }
    try {
      return await exchange(module, options, request, deadline)
    } catch (error) {
      // A server may close an idle connection just as it is reused: send the request once more. If the server has read the
      // first request after all, it drops the second one, which has the same messageIds.
      if (error instanceof StaleSocketError && !closed) return exchange(module, options, request, deadline)
      throw error
    }
  }

  return {
    send,
    close() {
      closed = true
      fetchTransport?.close()
      plain?.agent.destroy()
      secure?.agent.destroy()
    },
  }
}

class StaleSocketError extends Error {}

/** `deadline` is a time of performance.now(), so that a request that is sent again has only the remaining time. */
function exchange(
  module: typeof Http | typeof Https,
  options: Http.RequestOptions,
  request: OutgoingRequest,
  deadline: number,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = module.request(options)
    // Rejects directly instead of waiting for an event, because the events of a destroyed request depend on its state.
    let isOver = false
    const end = (reason: Error): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      reject(reason)
      outgoing.destroy(reason)
    }
    const timer = setTimeout(() => end(new TimeoutError(request.timeoutMs)), deadline - performance.now())
    const fail = (error: Error): void => {
      const code = (error as NodeJS.ErrnoException).code
      const stale = outgoing.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE')
      end(stale ? new StaleSocketError(error.message, { cause: error }) : error)
    }
    outgoing.on('error', fail)
    // The server responds with an upgrade that was not requested.
    outgoing.on('upgrade', (_answer, socket) => {
      socket.on('error', () => {})
      end(new Error('the tracking API responded with a protocol upgrade'))
    })
    let hasResponse = false
    const closedEarly = (): void => end(new Error('the connection was closed before a complete response arrived'))
    // After a response has started, only its own close event counts: nock and msw close the request before the response is read.
    outgoing.on('close', () => {
      if (!hasResponse) closedEarly()
    })
    outgoing.on('response', (incoming) => {
      hasResponse = true
      const chunks: Buffer[] = []
      let bytes = 0
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= MAX_ANSWER_BYTES) chunks.push(chunk)
        else end(new Error(`the response is larger than ${MAX_ANSWER_BYTES} bytes`))
      })
      incoming.on('error', fail)
      incoming.on('close', closedEarly)
      incoming.on('end', () => {
        if (isOver) return
        isOver = true
        clearTimeout(timer)
        resolve({
          status: incoming.statusCode ?? 0,
          statusText: incoming.statusMessage ?? '',
          headers: incoming.headers as Record<string, string>,
          text: chunks.length === 1 ? (chunks[0] as Buffer).toString() : Buffer.concat(chunks).toString(),
          // A server may respond before it has read the body, which is then still being written.
          isBodyFree: outgoing.writableFinished,
        })
      })
    })
    outgoing.end(request.body)
  })
}
