// Sends the events of each case through the whole service and through the library, and compares the requests that arrive. All destinations share
// one service; each has a source of its own, so that it gets its own events only. Requests do not say which destination made them, so the
// comparison looks for each request of the library among all requests of the service.

import { startService } from '../system/service.ts'
import { type Delivery, type Reachable, type Wiring, wire } from '../system/wiring.ts'
import { answerFor } from './answers.ts'
import type { IntegrationCase } from './cases.ts'
import type { GatewayRequest } from './gateway/recording-gateway.ts'
import { startGateway } from './gateway/recording-gateway.ts'
import { type Library, startLibrary } from './library-process.ts'
import { normalizedRequest } from './normalized-request.ts'

export interface Comparison {
  slug: string
  /** Why it does not count as covered; null if it does. */
  notCovered: string | null
  /** Where the service and the library differ. Empty unless something is wrong. */
  differences: string[]
  requestCount: number
  /** The actions whose requests both the library and the service made without an error. Empty if something differs. */
  actions: string[]
}

interface Expected {
  integration: IntegrationCase
  requests: string[]
  /** For each event, in order; null if that is not known. */
  isDelivered: (boolean | null)[]
  notCovered: string | null
  actions: string[]
}

/** No retries: the first one would come after the window has ended. */
const RETRY = { windowMs: 1_000, initialMs: 3_600_000, maxMs: 3_600_000 }
/** Requests for a token or a schema that the code of an integration keeps in memory, so that how many there are depends on the process. */
const CACHED = /^(POST mapi\.fbot\.me\/v1\/authorization|\w+ api\.hubapi\.com\/(crm\/v3\/properties|events\/v3\/event-definitions)\S*)\n/
const METADATA_ADDRESS = '169.254.169.254'
/** So long that a batch which goes out was full. */
const LINGER_MS = 60_000
const GROUP = 40
export const STARVED: ReadonlySet<string> = new Set(['sender_lost', 'integration_crashed', 'timeout'])
/** How often a group is repeated if it got too little CPU time. */
const MOST_REPEATS = 4

/** `copies`: how many of each event are sent. With more than one, they are delivered in batches of that size. */
export async function compareRequests(cases: readonly IntegrationCase[], { copies = 1 } = {}): Promise<Comparison[]> {
  const expected: Expected[] = []
  {
    await using library = await startLibrary(answerFor)
    for (const integration of cases) expected.push(await expectedOf(integration, library, copies))
  }
  const comparisons = new Map(
    expected.map(({ integration: { slug }, notCovered, requests, actions }) => [
      slug,
      { slug, notCovered, differences: [] as string[], requestCount: requests.length, actions },
    ]),
  )
  await using gateway = await startGateway(answerFor)
  await using service = await startService({ env: { ...gateway.env } })
  for (let start = 0; start < expected.length; start += GROUP) {
    const group = expected.slice(start, start + GROUP)
    let first = gateway.arrivals.length
    let delivered = await deliverAll(service, group, copies)
    for (let repeats = 0; repeats < MOST_REPEATS && isStarved(group, delivered); repeats++) {
      first = gateway.arrivals.length
      delivered = await deliverAll(service, group, copies)
    }
    for (const [at, { integration, isDelivered }] of group.entries())
      comparisons.get(integration.slug)?.differences.push(...outcomesThatDiffer(integration, isDelivered, delivered[at] ?? []))
    differ(group, gateway.requests().slice(first), comparisons)
  }
  const all = [...comparisons.values()]
  for (const comparison of all) if (comparison.differences.length > 0) comparison.actions = []
  return all
}

/** The deliveries of each case, or the error if there are none. */
async function deliverAll(service: Reachable, group: readonly Expected[], copies: number): Promise<(Delivery[] | Error)[]> {
  const deliveries = await Promise.allSettled(group.map(({ integration }) => deliver(service, integration, copies)))
  return deliveries.map((each) => (each.status === 'fulfilled' ? each.value : new Error(String(each.reason))))
}

/** On a busy machine, a host may get no CPU time for so long that the service replaces it, or that a request misses its deadline. */
function isStarved(group: readonly Expected[], delivered: readonly (Delivery[] | Error)[]): boolean {
  return group.some(({ isDelivered }, at) => {
    const deliveries = delivered[at] ?? []
    if (deliveries instanceof Error) return false
    return deliveries.some(({ reason }, index) => isDelivered[index] === true && STARVED.has(reason ?? ''))
  })
}

function outcomesThatDiffer(
  { events, subscriptions }: IntegrationCase,
  isDelivered: Expected['isDelivered'],
  deliveries: Delivery[] | Error,
): string[] {
  if (deliveries instanceof Error) return [String(deliveries)]
  return deliveries.flatMap(({ state, reason, attempts }, index) => {
    if (isDelivered[index] === null || (state === 'delivered') === isDelivered[index]) return []
    const wanted = isDelivered[index] === true ? 'delivered' : 'not delivered'
    const { position = 0 } = events[index] ?? {}
    return [`${subscriptions[position]?.name}: ${state} (${reason}: ${attempts.at(-1)?.error ?? ''}) instead of ${wanted}`]
  })
}

async function expectedOf(integration: IntegrationCase, library: Library, copies: number): Promise<Expected> {
  const expected: Expected = { integration, requests: [], isDelivered: [], notCovered: null, actions: [] }
  if (integration.events.length === 0) expected.notCovered = 'no event matches its subscriptions'
  for (const { position, event } of integration.events) {
    const receivedAt = new Date().toISOString()
    // Where the mapping reads sentAt, the event has one, as old as its timestamp: it happened just now by the clock of the service.
    const timestamp = event['sentAt'] === undefined ? event['timestamp'] : receivedAt
    const integrations = event['integrations'] ?? {}
    const whole = { ...event, integrations, timestamp, originalTimestamp: event['timestamp'], receivedAt }
    const { results, requests, rawConnections } = await library.call({ ...integration, events: copiesOf(whole, copies) })
    const own = results?.[position]
    const dialled = requests.filter(({ host }) => host !== METADATA_ADDRESS)
    const problem =
      results === null
        ? 'does not end'
        : dialled.length < requests.length
          ? 'asks the metadata service of a cloud for credentials, which the address guard refuses'
          : (own?.error ?? (rawConnections > 0 ? 'connects without HTTP' : requests.length === 0 ? 'makes no request' : null))
    if (problem === null) expected.actions.push(integration.subscriptions[position]?.action ?? '')
    else expected.notCovered ??= `${integration.subscriptions[position]?.name}: ${problem}`
    expected.requests.push(...dialled.map(normalizedRequest).filter((text) => !CACHED.test(text)))
    expected.isDelivered.push(results?.every(({ error }) => error === null) ?? null)
  }
  return expected
}

/** The deliveries of its events, in order, when they have ended. */
async function deliver(service: Reachable, integration: IntegrationCase, copies: number): Promise<Delivery[]> {
  const { created, events } = integration
  const batch = copies === 1 ? {} : { batch: { size: copies, lingerMs: LINGER_MS } }
  const wiring: Wiring = await wire(service, { ...created, retry: RETRY, ...batch })
  await wiring.send(events.flatMap(({ event }) => copiesOf(event, copies)))
  return await Promise.all(events.map(({ event }) => wiring.settled(event['messageId'] as string)))
}

/** They differ in their ids; the first keeps its own. */
function copiesOf(event: Record<string, unknown>, count: number): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, index) =>
    index === 0 ? event : { ...event, messageId: `${String(event['messageId'])}-${index}`, userId: `${String(event['userId'])}-${index}` },
  )
}

function differ(group: readonly Expected[], arrived: readonly GatewayRequest[], comparisons: Map<string, Comparison>): void {
  const left = new Map<string, number>()
  for (const request of arrived) {
    const text = normalizedRequest(request)
    if (!CACHED.test(text)) left.set(text, (left.get(text) ?? 0) + 1)
  }
  for (const { integration, requests } of group) {
    for (const text of requests) {
      const count = left.get(text) ?? 0
      if (count === 0) comparisons.get(integration.slug)?.differences.push(`missing: ${text}`)
      else if (count === 1) left.delete(text)
      else left.set(text, count - 1)
    }
  }
  for (const text of left.keys()) {
    const host = hostOf(text)
    const owner = group.find(({ requests }) => requests.some((request) => hostOf(request) === host))?.integration.slug ?? 'unknown'
    const comparison = comparisons.get(owner) ?? { slug: owner, notCovered: null, differences: [], requestCount: 0, actions: [] }
    comparison.differences.push(`unexpected: ${text}`)
    comparisons.set(owner, comparison)
  }
}

function hostOf(text: string): string {
  return text.slice(0, text.indexOf('\n')).split(/[ /]/)[1] ?? ''
}
