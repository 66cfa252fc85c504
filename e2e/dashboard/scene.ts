// The installation that the tests of the dashboard use: a real service in its own process that serves a real build, receivers that work,
// fail or do not answer, and traffic from the client library.
//
//   await using scene = await startScene()                a shop: sources, destinations, messages, failures, a replay, a deletion
//   await using scene = await startScene({ empty: true }) an installation after its first start
//   scene.views                                           a URL per page, with existing ids
//   scene.receivers.refusing.answer = () => undefined     the receiver is fixed

import { generateKeyPairSync } from 'node:crypto'
import { Analytics } from '@switchyard/node'
import { PAGE_PATHS } from '../../packages/server/src/pages/paths.ts'
import { buildDashboard } from '../../scripts/build-dashboard.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { type Service, type ServiceOptions, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

export type ReceiverName = 'warehouse' | 'crm' | 'refusing' | 'dead' | 'slow'

export interface Scene extends AsyncDisposable {
  service: Service
  receivers: Record<ReceiverName, Receiver>
  /** The ids of the destinations, by receiver; empty in an empty scene. */
  destinations: Partial<Record<ReceiverName, string>>
  /** By path pattern: a URL with an existing id (an unknown id in an empty scene). */
  views: Record<string, string>
}

export interface SceneOptions extends ServiceOptions {
  empty?: boolean
}

/** The tabs of the settings, which have URLs of their own. */
export const TABS = ['tokens', 'people', 'oauth', 'audit', 'configuration', 'nodes', 'about'] as const

const NOWHERE: Record<string, string> = Object.fromEntries(PAGE_PATHS.map((path) => [path, path.replace(/:\w+/, 'nothing-of-this-id')]))

export async function startScene({ empty = false, ...options }: SceneOptions = {}): Promise<Scene> {
  if (!buildDashboard()) throw new Error('the dashboard could not be built: see above')
  const stack = new AsyncDisposableStack()
  try {
    const service = stack.use(await startService(options))
    const receivers = {
      warehouse: stack.use(await startReceiver()),
      // Every fourth request fails and succeeds on a retry.
      crm: stack.use(await startReceiver(({ number }) => (number % 4 === 1 ? { status: 503, body: 'upstream is restarting' } : undefined))),
      refusing: stack.use(
        await startReceiver(() => ({
          status: 400,
          headers: { 'content-type': 'application/json' },
          body: '{"error":"unknown field: total"}',
        })),
      ),
      dead: stack.use(await startReceiver()),
      slow: stack.use(
        await startReceiver(() => ({
          script: (response) => void setTimeout(() => response.writeHead(204).end(), 400),
        })),
      ),
    }
    await receivers.dead.goAway()
    const scene: Scene = {
      service,
      receivers,
      destinations: {},
      views: NOWHERE,
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    }
    if (!empty) await fill(scene)
    return scene
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

/** Closes all of them, even if closing one throws. */
export async function end(...all: (AsyncDisposable | undefined)[]): Promise<void> {
  const stack = new AsyncDisposableStack()
  for (const each of all) if (each !== undefined) stack.use(each)
  await stack.disposeAsync()
}

async function fill(scene: Scene): Promise<void> {
  const { service, receivers } = scene
  await service.api(`/sources/${service.sourceId}`, { method: 'PATCH', body: { name: 'Web shop' } })
  const pos = await service.api<{ id: string }>('/sources', { method: 'POST', body: { name: 'Point of sale, Lisbon' } })
  const sourceIds = [service.sourceId, pos.id]
  const add = (name: string, receiver: Receiver, more: object = {}): Promise<string> =>
    service.destination({ name, urls: [`${receiver.url}hooks/switchyard`], sourceIds, ...more })
  scene.destinations = {
    warehouse: await add('Warehouse', receivers.warehouse, { sharedSecret: 'not-a-real-secret' }),
    crm: await add('CRM', receivers.crm, { headers: { 'x-team': 'growth' } }),
    refusing: await add('Loyalty programme', receivers.refusing),
    dead: await add('Old reporting', receivers.dead, { retryWindowMs: 1_000 }),
    slow: await add('Newsletter', receivers.slow, { filter: { types: { allow: ['identify'] } } }),
  }
  await shopTraffic(service, 60)
  await service.post('/v1/track', '{"userId":"u-1"}', { 'content-type': 'application/json' })
  await service.post('/v1/batch', '{"broken', { 'content-type': 'application/json' })

  // Rejected deliveries are settled immediately; those without an answer when their retry window of one second ends.
  const { refusing } = scene.destinations as Record<ReceiverName, string>
  const failed = await eventually(
    () => service.deliveries(`destinationId=${refusing}&state=failed`),
    (rows) => rows.length >= 20,
    { what: 'refused deliveries' },
  )
  const { publicKey } = generateKeyPairSync('ed25519')
  await service.api('/oauth-apps', {
    method: 'POST',
    body: { name: 'Till software', sourceIds: [pos.id], keys: [{ publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }) }] },
  })
  await service.api('/tokens', { method: 'POST', body: { name: 'on call', role: 'viewer' } })
  const replay = await service.api<{ id: string }>('/replays', {
    method: 'POST',
    body: { deliveryIds: failed.slice(0, 5).map(({ id }) => id) },
  })
  const deletion = await service.api<{ id: string }>('/deletions', { method: 'POST', body: { userIds: ['u-3'], suppress: true } })
  const { data: messages } = await service.api<{ data: { messageId: string; userId: string }[] }>('/messages?limit=20')
  const message = messages.find(({ userId }) => userId !== 'u-3') as { messageId: string }
  const plan = await service.api<{ id: string }>('/plans', {
    method: 'POST',
    body: {
      name: 'Shop events',
      rules: [{ type: 'track', event: 'Order Completed', schema: { properties: { total: { type: 'number' } }, required: ['total'] } }],
      sourceIds: [service.sourceId],
    },
  })
  const { data: events } = await service.api<{ data: { id: string; event: string | null }[] }>('/events')
  const ids: Record<string, string> = {
    sources: service.sourceId,
    destinations: refusing,
    catalog: 'actions-slack',
    plans: plan.id,
    events: (events.find(({ event }) => event === 'Order Completed') as { id: string }).id,
    messages: message.messageId,
    deliveries: (failed.at(-1) as { id: string }).id,
    replays: replay.id,
    deletions: deletion.id,
    settings: 'tokens',
  }
  scene.views = Object.fromEntries(
    PAGE_PATHS.map((path) => [path, path.replace(/:\w+/, encodeURIComponent(ids[path.split('/')[1] as string] ?? ''))]),
  )
}

const PRODUCTS = ['Espresso cups', 'Olive oil, 0.5 l', 'Linen towel', 'Cork tray', 'Sardines in tomato', 'Blue tiles, set of 4']

/** The traffic of a shop: visitors come, look at products, and some of them buy. */
export async function shopTraffic(service: Pick<Service, 'url' | 'writeKey'>, messages: number): Promise<void> {
  const analytics = new Analytics({ writeKey: service.writeKey, host: service.url, flushAt: 50 })
  for (let at = 0; at < messages; at++) {
    const user = 1 + (at % 17)
    const product = PRODUCTS[at % PRODUCTS.length]
    const who = { userId: `u-${user}`, context: { ip: '203.0.113.7', locale: 'pt-PT' } }
    switch (at % 6) {
      case 0:
        analytics.identify({ ...who, traits: { email: `person${user}@example.com`, plan: user % 2 === 0 ? 'member' : 'guest' } })
        break
      case 1:
        analytics.page({ ...who, name: 'Product', properties: { url: 'https://shop.example/p/12', title: product } })
        break
      case 2:
        analytics.track({ ...who, event: 'Product Viewed', properties: { product, price: 4.5 + (at % 40) } })
        break
      case 3:
        analytics.track({ ...who, event: 'Product Added', properties: { product, quantity: 1 + (at % 3) } })
        break
      case 4:
        analytics.group({ ...who, groupId: 'lisbon', traits: { name: 'Friends of Lisbon' } })
        break
      default:
        analytics.track({
          ...who,
          event: 'Order Completed',
          properties: { orderId: `o-${1000 + at}`, total: 19.9 + (at % 80), currency: 'EUR' },
        })
    }
  }
  const { failed } = await analytics.closeAndFlush()
  if (failed > 0) throw new Error(`${failed} messages were not taken`)
}
