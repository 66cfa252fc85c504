// A receiver of webhooks: a real HTTP server on a free port of 127.0.0.1 that answers as a test tells it to and records every request. It
// checks nothing.
//
//   await using receiver = await startReceiver()                             answers 200 to everything
//   await using receiver = await startReceiver(({ number }) => (number === 1 ? { status: 500 } : undefined))
//   receiver.answer = () => ({ hang: true })                                 another behaviour from now on
//   receiver.answer = () => ({ script: (response, socket) => … })            anything at all
//   await receiver.until(() => receiver.byMessageId.size === 10)             as soon as ten different messages have arrived
//   receiver.byMessageId.get('m-1')                                          the requests that carried it, in order
//   receiver.url                                                             http://127.0.0.1:PORT/, for a destination's urls

import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { Signals, type Waiting } from './signals.ts'

export interface ReceivedMessage {
  type: string
  messageId?: string
  [field: string]: unknown
}

/** A request that was received completely. */
export interface Arrival {
  /** From 1, in the order of arrival, also after goAway and comeBack. */
  number: number
  /** performance.now() when its last byte arrived. */
  atMs: number
  /** Date.now() at the same moment. */
  wallMs: number
  method: string
  path: string
  headers: Record<string, string>
  bytes: Buffer
  /** The messages in the body; none if it is not JSON. */
  messages: ReceivedMessage[]
  isBatch: boolean
  socket: Socket
  /** The state of the answer: `written` when all of it was passed to the connection. */
  answer: 'awaited' | 'written' | 'cut'
  /** The status of the answer; null while there is none. */
  status: number | null
  /** performance.now() when the answer was written or cut; null while it is awaited. */
  endMs: number | null
}

/** How to answer. The default is 200 and an empty body. */
export interface Answer {
  status?: number
  headers?: Record<string, string>
  body?: string | Buffer
  /** Answers when this resolves. */
  after?: Promise<unknown>
  /** Never answers. */
  hang?: boolean
  /** Cuts the connection with a reset. */
  reset?: boolean
  /** Writes anything, at any time. */
  script?: (response: ServerResponse, socket: Socket) => void
}

export type Behaviour = (arrival: Arrival) => Answer | undefined

export interface ReceiverOptions {
  /** HTTPS with this certificate. */
  tls?: { key: string; cert: string }
  /** Another kind of server, which passes requests to the listener. */
  server?: (listener: RequestListener) => Server
  host?: string
  /** Default: a free one. */
  port?: number
  /** Does not record requests, for long runs. */
  forgets?: boolean
  /** Called for each request, before it is answered. */
  arrived?: (arrival: Arrival) => void
  /** Called when all of an answer was passed to the connection. */
  answered?: (arrival: Arrival) => void
}

export interface Receiver extends AsyncDisposable {
  url: string
  port: number
  /** How it answers from now on. */
  answer: Behaviour
  arrivals: Arrival[]
  /** Which requests carried a message, by its messageId. */
  byMessageId: Map<string, Arrival[]>
  /** All messages in the order of arrival, including repeated ones. */
  messages(): ReceivedMessage[]
  /** The number of requests that have no answer yet. */
  open(): number
  /** The number of connections opened so far. */
  connections: number
  /** The number of open connections. */
  standing(): number
  /** Resolves as soon as the condition holds. It is checked whenever a request arrives, is answered or is aborted. */
  until(condition: () => boolean, waiting?: Waiting): Promise<void>
  /** Refuses connections from now on, and closes those that are open. comeBack uses the same port. */
  goAway(): Promise<void>
  /** Listens again on the same port. */
  comeBack(): Promise<void>
  close(): Promise<void>
}

export async function startReceiver(answer: Behaviour = () => undefined, options: ReceiverOptions = {}): Promise<Receiver> {
  const { tls, server: serverWith = plainOrSecure(tls), host = '127.0.0.1', port: wanted = 0, forgets = false, arrived, answered } = options
  let number = 0
  const signals = new Signals()
  const sockets = new Set<Socket>()
  const arrivals: Arrival[] = []
  const byMessageId = new Map<string, Arrival[]>()

  const listener: RequestListener = (request, response) => void serve(request, response)
  const server = serverWith(listener)
  server.on('connection', (socket: Socket) => {
    receiver.connections++
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      signals.notify()
    })
    socket.on('error', () => {})
  })

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      return
    }
    const bytes = Buffer.concat(chunks)
    const body = parsed(bytes)
    const arrival: Arrival = {
      number: ++number,
      atMs: performance.now(),
      wallMs: Date.now(),
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers as Record<string, string>,
      bytes,
      messages: [body].flat().filter((value) => typeof value === 'object' && value !== null) as ReceivedMessage[],
      isBatch: Array.isArray(body),
      socket: request.socket,
      answer: 'awaited',
      status: null,
      endMs: null,
    }
    if (!forgets) arrivals.push(arrival)
    for (const { messageId } of arrival.messages) {
      if (messageId === undefined || forgets) continue
      const before = byMessageId.get(messageId)
      if (before) before.push(arrival)
      else byMessageId.set(messageId, [arrival])
    }
    response.on('finish', () => {
      arrival.answer = 'written'
      arrival.status = response.statusCode
      arrival.endMs = performance.now()
      answered?.(arrival)
      signals.notify()
    })
    response.on('close', () => {
      if (arrival.answer === 'awaited') arrival.answer = 'cut'
      arrival.endMs ??= performance.now()
      signals.notify()
    })
    arrived?.(arrival)
    const how = receiver.answer(arrival) ?? {}
    signals.notify()
    if (how.after) await how.after
    if (how.hang) return
    if (how.reset) {
      // The TCP connection: a TLS socket has no reset.
      for (const socket of sockets) if (socket.remotePort === request.socket.remotePort) socket.resetAndDestroy()
      return
    }
    if (how.script) return how.script(response, request.socket)
    response.writeHead(how.status ?? 200, how.headers)
    response.end(how.body)
  }

  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, host, () => {
        server.off('error', reject)
        resolve()
      })
    })
  const close = async (): Promise<void> => {
    await comingBack?.()
    comingBack = undefined
    const closed = server.listening ? new Promise((resolve) => server.close(resolve)) : undefined
    for (const socket of sockets) socket.destroy()
    await closed
  }
  let comingBack: (() => Promise<void>) | undefined

  await listen(wanted)
  const { port } = server.address() as AddressInfo
  const receiver: Receiver = {
    url: `${tls === undefined ? 'http' : 'https'}://${host}:${port}/`,
    port,
    answer,
    arrivals,
    byMessageId,
    messages: () => arrivals.flatMap((arrival) => arrival.messages),
    open: () => arrivals.filter((arrival) => arrival.answer === 'awaited').length,
    connections: 0,
    standing: () => sockets.size,
    until: (condition, waiting = {}) =>
      signals.until(condition, { state: () => `${arrivals.length} requests, ${byMessageId.size} different messages`, ...waiting }),
    async goAway() {
      await close()
      comingBack = await occupy(port, host)
    },
    async comeBack() {
      await comingBack?.()
      comingBack = undefined
      await listen(port)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
  return receiver
}

/**
 * Keeps a port from being given to another server while nobody listens on it: a connection from it uses it, and connections to it are refused.
 * Returns a function that ends this.
 */
async function occupy(port: number, host: string): Promise<() => Promise<void>> {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, host, resolve))
  const held = connect({ host, port: (other.address() as AddressInfo).port, localAddress: host, localPort: port })
  held.on('error', () => {})
  await Promise.race([once(held, 'connect'), once(held, 'close')])
  return async () => {
    const ended = once(held, 'close')
    held.resetAndDestroy()
    if (!held.closed) await ended
    await new Promise((resolve) => other.close(resolve))
  }
}

function plainOrSecure(tls: ReceiverOptions['tls']): (listener: RequestListener) => Server {
  return (listener) => (tls === undefined ? createServer(listener) : createTlsServer(tls, listener))
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString()) as unknown
  } catch {
    return undefined
  }
}
