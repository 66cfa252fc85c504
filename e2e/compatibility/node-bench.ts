// The environment for a client on a server: the service in a separate process, a receiver, and a proxy in front of the service that records
// what a client sends and can fail once, before or after the service has the batch.
//
//   const { host, writeKey, books } = await bench.source()          a source with a webhook, for one test; host is that of the proxy
//   await books(6)                                                  all six are delivered once, and nothing else is pending
//   bench.proxy.refuse(mark)                                        answers 503 to the first request with that message, and does not forward it
//   bench.proxy.lose(mark)                                          answers 503, but forwards the request: the answer is lost
//
// Messages are identified by a mark in their context, because not every client accepts a messageId.

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
  /** The parsed body, decompressed if necessary. */
  body: { batch: ({ messageId: string } & Record<string, unknown>)[]; writeKey?: string }
  /** The status of the answer. */
  status: number
}

export interface FailingProxy {
  url: string
  requests: SentRequest[]
  /** The requests with that message, in the order of arrival. */
  requestsWith: (mark: string) => SentRequest[]
  refuse(mark: string): void
  lose(mark: string): void
  close(): Promise<void>
}

export interface NodeBench extends AsyncDisposable {
  service: Service
  receiver: Receiver
  proxy: FailingProxy
  /** Destinations are named by their order: `first`, `second`. Each is a path of the receiver. */
  source: (destinations?: readonly object[]) => Promise<TriedSource>
  /** A source of another service, where each source can send LIMIT messages a second. */
  limitedSource: () => Promise<TriedSource>
}

export interface TriedSource extends Wiring {
  host: string
  /** The requests to the host. */
  requestsWith: FailingProxy['requestsWith']
  /** Waits until the destination (by default the first) has got so many messages. Fails if there are more. */
  books(delivered: number, destination?: number): Promise<void>
  /** The message that the webhook got. Fails if it arrived more than once. */
  arrived(mark: string): Promise<ReceivedMessage>
  /** The paths at which a message arrived, sorted. */
  pathsOf(mark: string): string[]
  /** The message in the API of the service, found by the messageId that the client gave it. */
  view(mark: string): Promise<MessageView>
  stats(): Promise<{ accepted: number; duplicates: number }>
  /** Waits for rejected messages, and returns their codes. */
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
        // As the service answers while its store is unavailable.
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
