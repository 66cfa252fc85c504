// Measures what a subscribe expression costs in routing: CPU time per message and destination, in a batch of 50 messages. The rounds of all
// cases take turns, and the median is printed, so that other load on the machine affects all cases alike.
// Run: npm run bench:subscribe

import { webhookOf } from '../../packages/server/src/destinations/fixtures/webhook.ts'
import { routeMessages } from '../../packages/server/src/routing/route-messages.ts'
import {
  type Configuration,
  type Destination,
  NO_FILTER,
  type SegmentContent,
  type WebhookDestination,
} from '../../packages/server/src/store/store.ts'

const BATCH = 50
const ROUNDS = 15
const BATCHES_PER_ROUND = 2_000
const LIMIT_US = 2

const CASES: [title: string, about: Partial<WebhookDestination>][] = [
  ['no filter and no expression', {}],
  ['filter: deny a type', { filter: { ...NO_FILTER, types: { allow: [], deny: ['page'] } } }],
  ['type = "identify"', { subscribe: 'type = "identify"' }],
  ['type, event and one property', { subscribe: 'type = "track" and event = "Order Completed" and properties.total > 100' }],
  [
    '5 conditions on properties and the context',
    {
      subscribe:
        'properties.total > 100 and properties.currency = "EUR" and context.page.path = "/orders" and context.library.name = "x" and contains(context.page.url, "shop")',
    },
  ],
  ['12 events to exclude', { subscribe: Array.from({ length: 12 }, (_, at) => `event != "Some Other Event ${at}"`).join(' and ') }],
  [
    '20 alternatives, the last one matches',
    { subscribe: [...Array.from({ length: 19 }, (_, at) => `properties.a${at}.b = ${at}`), 'properties.total = 120'].join(' or ') },
  ],
]

const item = {
  type: 'track',
  userId: 'u-1',
  event: 'Order Completed',
  messageId: 'm-1',
  timestamp: '2026-11-14T09:00:00.000Z',
  properties: {
    total: 120,
    currency: 'EUR',
    coupon: null,
    products: Array.from({ length: 3 }, (_, at) => ({ sku: `s-${at}`, price: 40 })),
  },
  context: { page: { url: 'https://shop.example/orders', path: '/orders' } },
}
const content: SegmentContent = {
  sourceId: 's',
  receivedAtMs: Date.parse(item.timestamp),
  ip: null,
  browser: false,
  sentAt: null,
  context: { library: { name: 'x', version: '1.0.0' } },
  integrations: null,
  trace: null,
  // Parsed one by one, as ingest does.
  items: Array.from({ length: BATCH }, () => JSON.parse(JSON.stringify(item)) as typeof item),
}

function configured(about: Partial<WebhookDestination>): Configuration {
  const destination: Destination = webhookOf({ id: 'd', sourceIds: ['s'], ...about })
  const none = new Map<string, never>()
  return { sources: none, destinations: new Map([['d', destination]]), suppressions: none, oauthApps: none, tokens: none, plans: none }
}

function round(configuration: Configuration): number {
  const before = process.cpuUsage()
  for (let batch = 0; batch < BATCHES_PER_ROUND; batch++) routeMessages(configuration, 's', content)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / (BATCHES_PER_ROUND * BATCH)
}

const cases = CASES.map(([title, about]) => ({ title, configuration: configured(about), us: [] as number[] }))
for (const { configuration } of cases) round(configuration)
for (let at = 0; at < ROUNDS; at++) for (const { configuration, us } of cases) us.push(round(configuration))
console.log(`CPU time of routing per message and destination, median (min–max) of ${ROUNDS} rounds:`)
let isSlow = false
for (const { title, us } of cases) {
  us.sort((a, b) => a - b)
  const median = us[ROUNDS >> 1] as number
  isSlow ||= median > LIMIT_US
  console.log(`  ${median.toFixed(2)} µs (${us[0]?.toFixed(2)}–${us.at(-1)?.toFixed(2)})  ${title}`)
}
console.log(`Target: at most ${LIMIT_US} µs. ${isSlow ? 'Missed.' : 'Met.'}`)
process.exitCode = isSlow ? 1 : 0
