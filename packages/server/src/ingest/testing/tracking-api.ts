// A tracking API on a real port whose store only remembers: what ingest hands over is what these tests are about, and what
// a store does with it has tests of its own.

import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { TestContext } from 'node:test'
import Fastify from 'fastify'
import type { Clock } from '../../clock.ts'
import { createProxies } from '../../proxies.ts'
import type { AcceptBatch, AcceptResult, Configuration, Plan, Rejection, Source } from '../../store/store.ts'
import { type IngestDeps, type IngestSettings, MAX_BODIES_BYTES, refuseUnparsed, registerIngest, rewriteTrackingUrl } from '../ingest.ts'

export const NOW = Date.parse('2026-11-14T09:00:00.200Z')
export const BASIC = { Authorization: `Basic ${Buffer.from('key-1:').toString('base64')}` }
export const PLAN: Plan = { shipments: [{ destinationId: 'd', indexes: null }], skips: [] }

export interface Answer {
  status: number
  headers: { [name: string]: string | string[] | undefined }
  text: string
  body: { [key: string]: unknown }
}

export interface TrackingApi {
  url: string
  port: number
  accepted: AcceptBatch[]
  rejections: Rejection[]
  suppressed: [sourceId: string, count: number][]
  /** What the store does with a batch; by default it takes it. */
  store: { accept: (batch: AcceptBatch) => Promise<AcceptResult>; configuration: Configuration }
  clock: { wallMs: number; scheduleMs: number }
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  send(method: string, path: string, headers?: Record<string, string>, body?: string | Uint8Array): Promise<Answer>
  /** Writes to a bare connection, and resolves with all that came back when the other side has closed it. */
  exchange(...parts: (string | Uint8Array)[]): Promise<string>
}

export function source(id: string, about: Partial<Source> = {}): Source {
  return { id, name: id, enabled: true, writeKeys: [`key-${id}`], requireOAuth: false, createdAtMs: 0, ...about }
}

export function configuration(sources: Source[], suppressions: Record<string, string[]> = {}): Configuration {
  const sets = Object.entries(suppressions).map(([sourceId, users]): [string, Set<string>] => [sourceId, new Set(users)])
  return {
    sources: new Map(sources.map((each) => [each.id, each])),
    destinations: new Map(),
    suppressions: new Map(sets),
    oauthApps: new Map(),
    tokens: new Map(),
  }
}

export async function trackingApi(
  t: TestContext,
  { trustedProxies = [], ...settings }: Partial<IngestSettings> & { trustedProxies?: readonly string[] } = {},
  hooks: Pick<IngestDeps, 'oauth' | 'onAccepted' | 'onRejected' | 'plan'> | Record<string, never> = {},
): Promise<TrackingApi> {
  const accepted: AcceptBatch[] = []
  const rejections: Rejection[] = []
  const suppressed: [string, number][] = []
  const clock = { wallMs: NOW, scheduleMs: NOW }
  const store: TrackingApi['store'] = {
    configuration: configuration([
      source('1'),
      source('off', { enabled: false }),
      source('oauth', { requireOAuth: true }),
      source('two', { writeKeys: ['first', 'second'] }),
    ]),
    accept: () => Promise.resolve({ segment: accepted.length, duplicates: [] }),
  }
  const app = Fastify({
    return503OnClosing: false,
    clientErrorHandler: refuseUnparsed,
    rewriteUrl: rewriteTrackingUrl,
    forceCloseConnections: true,
  })
  const ticking: Clock = { wallMs: () => clock.wallMs, scheduleMs: () => clock.scheduleMs }
  registerIngest(app, {
    plan: () => PLAN,
    ...hooks,
    clock: ticking,
    proxies: createProxies(trustedProxies),
    settings: { lenientKeys: false, rateLimitPerSecond: null, bodyTimeoutMs: 10_000, maxBodiesBytes: MAX_BODIES_BYTES, ...settings },
    store: {
      configuration: () => store.configuration,
      ingest: {
        async accept(batch) {
          const result = await store.accept(batch)
          accepted.push(batch)
          return result
        },
        reject: (rejection) => void rejections.push(rejection),
        suppressed: (sourceId, count) => void suppressed.push([sourceId, count]),
      },
    },
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as AddressInfo

  const send: TrackingApi['send'] = (method, path, headers = {}, body) =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, method, path, headers, agent: false } as const
      httpRequest(options, (response) => void answerOf(response).then(resolve, reject))
        .on('error', reject)
        .end(body)
    })
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    accepted,
    rejections,
    suppressed,
    store,
    clock,
    send,
    post: (path, body, headers = BASIC) =>
      send('POST', path, headers, typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)),
    exchange: (...parts) =>
      new Promise((resolve, reject) => {
        const chunks: Buffer[] = []
        const socket = connect(port, '127.0.0.1', () => {
          for (const part of parts) socket.write(part)
        })
        socket.on('data', (chunk) => chunks.push(chunk))
        socket.on('error', reject).on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
      }),
  }
}

export interface Deferred<T> {
  promise: Promise<T>
  resolve: (value: T) => void
}

export function deferred<T = void>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = () => {}
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** A request whose body is written by the test, piece by piece. */
export function openRequest(
  api: TrackingApi,
  path: string,
  headers: Record<string, string>,
): { request: ClientRequest; answer: Promise<Answer> } {
  const request = httpRequest({ host: '127.0.0.1', port: api.port, method: 'POST', path, headers, agent: false })
  const answer = new Promise<Answer>((resolve, reject) => {
    request.on('response', (response) => void answerOf(response).then(resolve, reject)).on('error', reject)
  })
  request.flushHeaders()
  return { request, answer }
}

async function answerOf(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('latin1')
  const isJson = response.headers['content-type'] === 'application/json' && text !== ''
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text,
    body: isJson ? (JSON.parse(Buffer.concat(chunks).toString('utf8')) as Answer['body']) : {},
  }
}
