// A real HTTP server in place of the tracking API: records requests, responds as a test specifies, and lets a test wait for
// requests instead of sleeping. It does not validate messages: it accepts everything unless told otherwise.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { gunzipSync } from 'node:zlib'

export interface ReceivedRequest {
  method: string
  path: string
  headers: Record<string, string>
  /** The body as received, decompressed if necessary. */
  text: string
  body: { batch: ReceivedMessage[]; writeKey?: string; sentAt?: string }
  at: number
}

export interface ReceivedMessage {
  type: string
  messageId: string
  timestamp: string
  [field: string]: unknown
}

export interface PlannedAnswer {
  status?: number
  headers?: Record<string, string>
  body?: string
  delayMs?: number
  /** Close the connection instead of responding. */
  reset?: boolean
  /** Respond when this resolves. */
  after?: Promise<unknown>
}

type Plan = (request: ReceivedRequest, number: number) => PlannedAnswer | undefined

export interface TrackingServer extends AsyncDisposable {
  url: string
  requests: ReceivedRequest[]
  /** All messages, in the order of arrival. */
  messages(): ReceivedMessage[]
  /** The maximum number of concurrent requests, and the number of connections so far. */
  peak: { requests: number; connections: number }
  /** Resolves when this many requests have arrived. */
  arrived(count: number): Promise<void>
  /** Resolves when this many messages have arrived. */
  received(count: number): Promise<void>
  /** Closes every connection, as a server does with idle ones. */
  dropIdle(): void
  close(): Promise<void>
}

const OK = '{"success":true}'

export async function startTrackingServer(plan: Plan = () => undefined): Promise<TrackingServer> {
  const requests: ReceivedRequest[] = []
  const peak = { requests: 0, connections: 0 }
  const watchers = new Set<() => void>()
  const sockets = new Set<Socket>()
  let open = 0

  const server: Server = createServer((incoming, response) => {
    open++
    peak.requests = Math.max(peak.requests, open)
    response.on('close', () => open--)
    void serve(incoming, response)
  })
  server.on('connection', (socket) => {
    peak.connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer)
    } catch {
      return
    }
    const raw = Buffer.concat(chunks)
    const text = (incoming.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw).toString()
    const headers = incoming.headers as Record<string, string>
    const request: ReceivedRequest = {
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      headers,
      text,
      body: text.startsWith('{') ? (JSON.parse(text) as ReceivedRequest['body']) : { batch: [] },
      at: performance.now(),
    }
    requests.push(request)
    const answer = plan(request, requests.length) ?? {}
    for (const watcher of watchers) watcher()
    if (answer.after) await answer.after
    if (answer.delayMs) await new Promise((resolve) => setTimeout(resolve, answer.delayMs))
    if (answer.reset) return void incoming.socket.destroy()
    response.writeHead(answer.status ?? 200, { 'Content-Type': 'application/json', ...answer.headers })
    response.end(answer.body ?? OK)
  }

  function until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const watcher = (): void => {
        if (!condition()) return
        watchers.delete(watcher)
        resolve()
      }
      watchers.add(watcher)
      watcher()
    })
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const messages = (): ReceivedMessage[] => requests.flatMap((request) => request.body.batch ?? [])
  async function close(): Promise<void> {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    messages,
    peak,
    arrived: (count) => until(() => requests.length >= count),
    received: (count) => until(() => messages().length >= count),
    dropIdle: () => {
      for (const socket of sockets) socket.destroy()
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** A promise that a test resolves, for a server or plugin to wait for. */
export function gate(): { open: () => void; opened: Promise<void> } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}
