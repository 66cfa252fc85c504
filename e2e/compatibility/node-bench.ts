// What a client on a server is tried with: the service as a process of its own, a receiver behind it, and a proxy before it
// that keeps what a client sent and can fail once in either of two ways, before the service has a batch and after.
//
//   const { host, writeKey, books } = await bench.source()          a source with a webhook, for one attempt; host is the proxy's
//   await books(6)                                                  all six are delivered, once each, and no other is owed
//   bench.proxy.refuse(mark)                                        503 to the first request with that message; not passed on
//   bench.proxy.lose(mark)                                          503 too, but the service has stored it: the answer was lost
//
// Messages are known by a mark in their context, because not every client takes a messageId.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { type ReceivedMessage, type Receiver, startReceiver } from '../system/receiver.ts'
import { type Service, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { type MessageView, type Wiring, wire } from '../system/wiring.ts'

export interface SentRequest {
  path: string
  headers: Record<string, string>
  /** As JSON, inflated where it was compressed. */
  body: { batch: ({ messageId: string } & Record<string, unknown>)[]; writeKey?: string }
  /** What the client was answered. */
  status: number
}

export interface FailingProxy {
  url: string
  requests: SentRequest[]
  /** With that message, in the order in which they came. */
  requestsWith: (mark: string) => SentRequest[]
  refuse(mark: string): void
  lose(mark: string): void
  close(): Promise<void>
}

export interface NodeBench extends AsyncDisposable {
  service: Service
  receiver: Receiver
  proxy: FailingProxy
  /** Destinations are named by their place: `first`, `second`. Each is a path of the receiver. */
  source: (destinations?: readonly object[]) => Promise<TriedSource>
  /** Of another service, where each source may send LIMIT messages a second. */
  limitedSource: () => Promise<TriedSource>
}

export interface TriedSource extends Wiring {
  host: string
  /** What came to the host. */
  requestsWith: FailingProxy['requestsWith']
  /** Waits until the destination (default: the first) is delivered so many. More than that would be owed, and fails. */
  books(delivered: number, destination?: number): Promise<void>
  /** What the webhook got. Fails when it came more than once. */
  arrived(mark: string): Promise<ReceivedMessage>
  /** The paths that a message came to, in the order of the alphabet. */
  pathsOf(mark: string): string[]
  /** What the service says of a message: the ID that the client gave it is looked up on the way. */
  view(mark: string): Promise<MessageView>
  stats(): Promise<{ accepted: number; duplicates: number }>
  /** The codes of what was refused, when there is something. */
  rejections(): Promise<string[]>
}

export const LIMIT = 5

export async function startNodeBench(): Promise<NodeBench> {
  const service = await startService()
  const receiver = await startReceiver()
  const proxy = await startFailingProxy(service.url)
  let limited: Promise<[Service, FailingProxy]> | undefined
  return {
    service,
    receiver,
    proxy,
    source: (destinations = [{}]) => newSource(service, receiver, proxy, destinations),
    async limitedSource() {
      limited ??= startService({ env: { SWITCHYARD_RATE_LIMIT: String(LIMIT) } }).then(async (started) => [
        started,
        await startFailingProxy(started.url),
      ])
      const [started, before] = await limited
      return newSource(started, receiver, before, [{}])
    },
    async [Symbol.asyncDispose]() {
      if (limited !== undefined) {
        const [started, before] = await limited
        await before.close()
        await started[Symbol.asyncDispose]()
      }
      await proxy.close()
      await service[Symbol.asyncDispose]()
      await receiver.close()
    },
  }
}

const PLACES = ['first', 'second'] as const

async function newSource(service: Service, receiver: Receiver, proxy: FailingProxy, destinations: readonly object[]): Promise<TriedSource> {
  const wiring = await wire(
    service,
    ...destinations.map((settings, at) => ({ urls: [`${receiver.url}${PLACES[at]}`], name: PLACES[at], ...settings })),
  )
  const arrivals = (mark: string): { path: string; message: ReceivedMessage }[] =>
    receiver.arrivals.flatMap(({ path, messages }) =>
      messages.filter((message) => markOf(message) === mark).map((message) => ({ path, message })),
    )
  return {
    ...wiring,
    host: proxy.url,
    requestsWith: proxy.requestsWith,
    async books(delivered, destination = 0) {
      const id = wiring.destinationIds[destination] as string
      const row = await eventually(
        async () => (await service.ledger()).find(({ destinationId }) => destinationId === id),
        (found) => (found?.delivered ?? 0) >= delivered && (found?.pending ?? 0) === 0,
        { what: `${delivered} delivered` },
      )
      const { owed = 0, delivered: counted = 0 } = row ?? {}
      assert.deepEqual({ owed, delivered: counted }, { owed: delivered, delivered })
    },
    async arrived(mark) {
      await receiver.until(() => arrivals(mark).length > 0, { what: `${mark} at the webhook` })
      const [first, ...others] = arrivals(mark)
      assert.equal(others.length, 0, `${mark} came ${others.length + 1} times`)
      return (first as { message: ReceivedMessage }).message
    },
    pathsOf: (mark) =>
      arrivals(mark)
        .map(({ path }) => path)
        .sort(),
    view(mark) {
      const messageId = proxy.requestsWith(mark)[0]?.body.batch.find((message) => markOf(message) === mark)?.messageId
      assert.ok(messageId, `${mark} was not sent`)
      return wiring.message(messageId)
    },
    async stats() {
      const { data } = await service.api<{ data: { sourceId: string; accepted: number; duplicates: number }[] }>('/stats/totals')
      const { accepted = 0, duplicates = 0 } = data.find(({ sourceId }) => sourceId === wiring.sourceId) ?? {}
      return { accepted, duplicates }
    },
    rejections: () =>
      eventually(
        async () => {
          const { data } = await service.api<{ data: { sourceId: string; code: string }[] }>('/rejections')
          return data.filter(({ sourceId }) => sourceId === wiring.sourceId).map(({ code }) => code)
        },
        (codes) => codes.length > 0,
      ),
  }
}

function markOf(message: object): string | undefined {
  return (message as { context?: { mark?: string } }).context?.mark
}

const NOT_PASSED_ON = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'accept-encoding', 'expect'])

async function startFailingProxy(target: string): Promise<FailingProxy> {
  const refused = new Set<string>()
  const lost = new Set<string>()
  const requests: SentRequest[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      void (async () => {
        const bytes = Buffer.concat(chunks)
        const headers = request.headers as Record<string, string>
        const text = headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
        const sent: SentRequest = {
          path: request.url ?? '',
          headers,
          body: JSON.parse(text.toString()) as SentRequest['body'],
          status: 503,
        }
        requests.push(sent)
        const carries = (marks: Set<string>): boolean => sent.body.batch.some((message) => marks.delete(markOf(message) ?? ''))
        const isRefused = carries(refused)
        const isLost = carries(lost)
        if (!isRefused) {
          const passedOn = Object.entries(headers).filter(([name]) => !NOT_PASSED_ON.has(name))
          const answer = await fetch(`${target}${request.url}`, { method: 'POST', headers: Object.fromEntries(passedOn), body: bytes })
          const body = await answer.text()
          if (!isLost) {
            sent.status = answer.status
            const retryAfter = answer.headers.get('retry-after')
            const also = retryAfter === null ? {} : { 'retry-after': retryAfter }
            response.writeHead(answer.status, { 'content-type': 'application/json', ...also }).end(body)
            return
          }
        }
        // As the service itself answers when its store is away.
        response.writeHead(503, { 'retry-after': '1', 'content-type': 'application/json' }).end('{"success":false}')
      })().catch((error: unknown) => response.destroy(error as Error))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    requestsWith: (mark) => requests.filter(({ body }) => body.batch.some((message) => markOf(message) === mark)),
    refuse: (mark) => void refused.add(mark),
    lose: (mark) => void lost.add(mark),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
