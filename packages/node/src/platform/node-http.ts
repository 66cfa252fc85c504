// The default transport on Node.js: node:http with keep-alive, because a request costs a fraction of one with global fetch
// (npm run bench:transport prints both). If global fetch was replaced, that is used instead. Mocks such as nock replace
// http.request, and their request objects lack some features, so nothing here relies on those.

import type * as Http from 'node:http'
import type * as Https from 'node:https'
import { customTransport, FetchHTTPClient } from '../http/http-client.ts'
import { type Answer, MAX_ANSWER_BYTES, type OutgoingRequest, TimeoutError, type Transport } from '../http/transport.ts'
import { isFetchChanged, usesEnvProxy } from './node-fetch.ts'
import { hostOf, type Proxy, proxyFor, refused, throughProxy, tunnelAgent } from './node-proxy.ts'

/** How the requests for a URL are made. */
interface Route {
  module: typeof Http | typeof Https
  options: Http.RequestOptions
  headers: Record<string, string>
  proxy: Proxy | undefined
}

export function httpTransport(maxConnections: number): Transport {
  const agents = new Map<string, Http.Agent>()
  let routedUrl = ''
  let route: Route | undefined
  let fetchTransport: Transport | undefined
  let closed = false

  function agent(name: string, create: (options: Http.AgentOptions) => Http.Agent): Http.Agent {
    if (closed) throw new Error('the client is closed')
    const existing = agents.get(name)
    if (existing) return existing
    const created = create({ keepAlive: true, maxSockets: maxConnections, maxFreeSockets: maxConnections, scheduling: 'lifo' })
    agents.set(name, created)
    return created
  }

  async function routeTo(url: URL): Promise<Route> {
    const proxy = usesEnvProxy() ? proxyFor(await import('node:net'), url, process.env) : undefined
    // The default exports, because mocks replace functions of that object, and named imports do not see the replacement.
    const { default: http } = await import('node:http')
    if (url.protocol === 'http:' && !proxy?.isSecure) return plainRoute(http, 'http:', url, proxy)
    const { default: https } = await import('node:https')
    if (url.protocol === 'http:' || !proxy) return plainRoute(https, 'https:', url, proxy)
    const tunnels = agent(`tunnel ${proxy.name}`, (options) => tunnelAgent({ http, https }, proxy, options))
    return { module: https, options: { ...directTo(url), agent: tunnels }, headers: {}, proxy }
  }

  /** Sends directly, or to a proxy that forwards plain HTTP. */
  function plainRoute(module: typeof Http | typeof Https, scheme: string, url: URL, proxy: Proxy | undefined): Route {
    const shared = agent(scheme, (options) => new module.Agent(options))
    if (!proxy) return { module, options: { ...directTo(url), agent: shared }, headers: {}, proxy }
    const path = `${url.origin}${url.pathname}${url.search}`
    return {
      module,
      options: { method: 'POST', ...proxy.address, path, agent: shared },
      headers: { ...proxy.headers, Host: url.host },
      proxy,
    }
  }

  async function send(request: OutgoingRequest): Promise<Answer> {
    if (closed) throw new Error('the client is closed')
    if (isFetchChanged()) {
      fetchTransport ??= customTransport(new FetchHTTPClient())
      return fetchTransport.send(request)
    }
    const deadline = performance.now() + request.timeoutMs
    if (route === undefined || routedUrl !== request.url) {
      const found = await routeTo(new URL(request.url))
      routedUrl = request.url
      route = found
    }
    const current = route
    try {
      return await exchangeAgain(current, request, deadline)
    } catch (error) {
      throw current.proxy ? throughProxy(error as Error, current.proxy) : error
    }
  }

  async function exchangeAgain(route: Route, request: OutgoingRequest, deadline: number): Promise<Answer> {
    try {
      return await exchange(route, request, deadline)
    } catch (error) {
      // A server may close an idle connection just as it is reused: send the request once more. If the server has read the
      // first request after all, it drops the second one, which has the same messageIds.
      if (error instanceof StaleSocketError && !closed) return exchange(route, request, deadline)
      throw error
    }
  }

  return {
    send,
    close() {
      closed = true
      fetchTransport?.close()
      for (const agent of agents.values()) agent.destroy()
    },
  }
}

function directTo(url: URL): Http.RequestOptions & { autoSelectFamily: boolean } {
  // By default, Node.js 18 does not try both the IPv4 and the IPv6 address of `localhost`.
  return { method: 'POST', host: hostOf(url), port: url.port, autoSelectFamily: true, path: url.pathname + url.search }
}

class StaleSocketError extends Error {}

/** `deadline` is a time of performance.now(), so that a request that is sent again has only the remaining time. */
function exchange(route: Route, request: OutgoingRequest, deadline: number): Promise<Answer> {
  const { timeoutMs } = request
  const headers = { ...request.headers, ...route.headers, 'Content-Length': request.body.length }
  const options = { ...route.options, headers, ...(route.proxy ? { deadline, timeoutMs } : {}) }
  return new Promise((resolve, reject) => {
    const outgoing = route.module.request(options)
    // Rejects directly instead of waiting for an event, because the events of a destroyed request depend on its state.
    let isOver = false
    const end = (reason: Error): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      reject(reason)
      outgoing.destroy(reason)
    }
    const timer = setTimeout(() => end(new TimeoutError(timeoutMs)), deadline - performance.now())
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
        // Only a proxy responds with this status, so it says nothing about the messages.
        if (route.proxy && incoming.statusCode === 407) return reject(refused('the request', incoming))
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
