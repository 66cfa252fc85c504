// The HTTP server of an ingest thread. Several threads listen on the same port, and the kernel divides the connections among them. A thread handles
// the requests that arrive most, those with messages; the main thread answers all others (forwarding.ts), because they are rare.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { type Connections, watchConnections } from '../../http/connections.ts'
import { PortStream } from '../../http/port-stream.ts'
import { hasSeveralHosts } from '../../http/proxies.ts'
import { serverTimeouts } from '../../http/server-timeouts.ts'
import { rejectUnparsed } from '../answers.ts'
import type { Route } from '../parsing/parse-request.ts'
import { DIRECT_PATHS } from '../paths.ts'
import { forward } from './forwarding.ts'
import type { FromThread, ThreadStart, ToThread } from './protocol.ts'
import { ThreadRequests } from './thread-requests.ts'

export class ThreadServer {
  readonly #start: ThreadStart
  readonly #port: MessagePort
  readonly #requests: ThreadRequests
  readonly #servers: { server: Server; connections: Connections }[] = []
  #isClosing = false

  constructor(start: ThreadStart, port: MessagePort) {
    this.#start = start
    this.#port = port
    this.#requests = new ThreadRequests(start, (packet) => this.#post({ kind: 'requests', packet }, [packet.bytes.buffer]))
    port.on('message', (message: ToThread) => this.#receive(message))
  }

  /** Reports the result to the main thread. */
  listen(): void {
    const [first = '', ...others] = this.#start.addresses
    const { server } = this.#open()
    server.once('error', (error: NodeJS.ErrnoException) => {
      this.#post({ kind: 'failed', code: error.code, message: error.message })
      this.#port.close()
    })
    server.listen({ host: first, port: this.#start.port, reusePort: true }, () => {
      const { address, family, port } = server.address() as AddressInfo
      void Promise.all(others.map((other) => this.#listenToo(other, port))).then(() =>
        this.#post({ kind: 'listening', address, family, port }),
      )
    })
  }

  /** Resolves also if the address is not available: `localhost` has two, of which a machine may lack one. */
  #listenToo(host: string, port: number): Promise<void> {
    const { server } = this.#open()
    return new Promise((resolve) => {
      server.once('error', () => resolve()).listen({ host, port, reusePort: true }, resolve)
    })
  }

  #open(): { server: Server; connections: Connections } {
    const server = createServer(serverTimeouts(this.#start.settings.bodyTimeoutMs))
    const connections = watchConnections(server)
    server.on('clientError', rejectUnparsed)
    server.on('request', (request, response) => {
      if (connections.admit(request, response)) this.#handle(request, response)
    })
    // Without this listener, Node.js sends 100 Continue by itself.
    server.on('checkContinue', (request, response) => {
      if (this.#routeOf(request) !== undefined) response.writeContinue()
      server.emit('request', request, response)
    })
    const opened = { server, connections }
    this.#servers.push(opened)
    return opened
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    // Without a listener, an error of a response would end the thread.
    response.on('error', () => {})
    if (this.#isClosing) response.setHeader('Connection', 'close')
    const route = this.#routeOf(request)
    try {
      if (route === undefined) forward(request, response, () => this.#connect(request.socket))
      else this.#requests.messages(request, response, route)
    } catch {
      // A request that node:http receives but does not send must not end the thread and all its connections.
      request.socket.destroy()
    }
  }

  /** Undefined if the main thread answers the request. */
  #routeOf(request: IncomingMessage): Route | undefined {
    const route = request.method === 'POST' ? DIRECT_PATHS.get(request.url ?? '') : undefined
    return route === undefined || hasSeveralHosts(request) || this.#requests.hasUnknownKey(request) ? undefined : route
  }

  #connect({ remoteAddress, remoteFamily, remotePort }: Socket): PortStream {
    const { port1, port2 } = new MessageChannel()
    this.#post({ kind: 'connect', port: port2, peer: { remoteAddress, remoteFamily, remotePort } }, [port2])
    return new PortStream(port1)
  }

  #receive(message: ToThread): void {
    switch (message.kind) {
      case 'answers':
        return this.#requests.answer(message.packet)
      case 'keys':
        return this.#requests.useKeys(message.writeKeys)
      case 'ping':
        return this.#post({ kind: 'pong' })
      case 'stop':
        void this.#stop(message.graceMs)
    }
  }

  async #stop(graceMs: number): Promise<void> {
    this.#isClosing = true
    const force = setTimeout(() => {
      for (const { server } of this.#servers) server.closeAllConnections()
    }, graceMs)
    const closeIdle = setInterval(() => {
      for (const { server, connections } of this.#servers) {
        server.closeIdleConnections()
        for (const socket of connections.silent) socket.destroy()
      }
    }, 50)
    await Promise.all(this.#servers.map(({ server }) => new Promise((resolve) => server.close(resolve))))
    clearTimeout(force)
    clearInterval(closeIdle)
    for (const { connections } of this.#servers) connections.close()
    // After the last messages about requests.
    setImmediate(() => setImmediate(() => this.#port.close()))
  }

  #post(message: FromThread, transfer: (MessagePort | ArrayBuffer)[] = []): void {
    this.#port.postMessage(message, transfer)
  }
}
