// Helpers for the conformance tests: a store that can be reopened, and the operations that ingest and delivery would make. They use only the port,
// so that they work with every adapter.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { JsonObject, Violation } from '@switchyard/protocol'
import { writeStoredBody } from '../port/stored-messages.ts'
import type {
  AcceptBatch,
  AcceptResult,
  AttemptRecord,
  Claim,
  ClaimedShipment,
  ClaimRequest,
  Destination,
  FinalState,
  FinalStateName,
  IsDeleted,
  KeptShipment,
  LedgerRow,
  NewDestination,
  Page,
  PageRequest,
  Part,
  RequestRecord,
  Routing,
  SegmentContent,
  Settlement,
  Shipment,
  ShipmentConsumer,
  ShipmentDraft,
  Source,
  Store,
} from '../store.ts'
import { CLASSIC_WEBHOOK, NO_FILTER } from '../store.ts'

/** A store under test, with its own data. */
export interface OpenStore {
  store: Store
  /** Closes it and opens it again on the same data, with another secret key if one is given. */
  reopen(secretKey?: string): Promise<Store>
  /** Closes the store and returns all bytes that it has stored. */
  closeAndRead(): Promise<Buffer>
  /** Closes it and removes the data. */
  dispose(): Promise<void>
}

export type Open = (options: { retentionDays: number; quarantineDays?: number }) => Promise<OpenStore>

/** The store of the suite, which all tests share. Each test creates its own sources and destinations. */
export interface StoreFixture {
  open: Open
  store: () => Store
  reopen: () => Promise<Store>
}

export const NOW_MS = 1_800_000_000_000
export const DAY_MS = 86_400_000

export async function newSource(store: Store, change: Partial<Source> = {}): Promise<Source> {
  return store.resources.createSource({ name: 'a source', enabled: true, writeKeys: [randomUUID()], requireOAuth: false, ...change })
}

export function destinationOf(change: Partial<NewDestination> = {}): NewDestination {
  const destination = {
    ...CLASSIC_WEBHOOK,
    type: 'webhook',
    name: 'a destination',
    enabled: true,
    paused: false,
    sourceIds: [],
    urls: ['https://example.com/hook'],
    headers: {},
    sharedSecret: null,
    signingSecrets: [],
    batch: { size: 1, bytes: 500_000, lingerMs: 0 },
    timeoutMs: 5_000,
    retryWindowMs: 14_400_000,
    maxInFlight: 10,
    historical: true,
    filter: NO_FILTER,
    ...change,
  }
  return destination as NewDestination
}

export async function newDestination(store: Store, sourceId: string, change: Partial<NewDestination> = {}): Promise<Destination> {
  return store.resources.createDestination(destinationOf({ sourceIds: [sourceId], ...change }))
}

/** A source with one destination. */
export async function newSourceAndDestination(store: Store): Promise<{ sourceId: string; destinationId: string }> {
  const { id: sourceId } = await newSource(store)
  const { id: destinationId } = await newDestination(store, sourceId)
  return { sourceId, destinationId }
}

export function track(messageId: string, more: JsonObject = {}): JsonObject {
  return { type: 'track', event: 'tested', userId: 'a user', messageId, ...more }
}

/** Messages with ids `prefix-0` and so on. */
export function tracks(count: number, prefix: string = randomUUID()): JsonObject[] {
  return Array.from({ length: count }, (_, index) => track(`${prefix}-${index}`))
}

export function contentOf(sourceId: string, items: readonly JsonObject[], more: Partial<SegmentContent> = {}): SegmentContent {
  return {
    sourceId,
    receivedAtMs: Date.now(),
    ip: '192.0.2.7',
    browser: false,
    sentAt: null,
    context: null,
    integrations: null,
    trace: null,
    items,
    ...more,
  }
}

export async function accept(
  store: Store,
  sourceId: string,
  items: readonly JsonObject[],
  routing: Partial<Routing> | readonly string[] = {},
  { quarantined, ...more }: Partial<SegmentContent> & Pick<AcceptBatch, 'quarantined'> = {},
): Promise<AcceptResult> {
  const content = contentOf(sourceId, items, more)
  const { sentAt, context, integrations } = content
  const shipments = isList(routing) ? routing.map((destinationId) => ({ destinationId, indexes: null })) : (routing.shipments ?? [])
  const skips = isList(routing) ? [] : (routing.skips ?? [])
  return store.ingest.accept({
    content,
    body: writeStoredBody({ batch: items, sentAt, context, integrations }),
    messageIds: items.map((item) => String(item['messageId'])),
    routing: { shipments, skips },
    ...(quarantined && { quarantined }),
  })
}

export const PLAN_ID = 'pln_1'

/** What a tracking plan would add to a batch: some of its messages are in quarantine. */
export function quarantining(indexes: readonly number[], rule = 'track tested') {
  const violations: readonly Violation[] = [
    { rule, code: 'missing_property', path: 'properties.price', expected: 'a number', found: 'nothing' },
  ]
  return {
    violations: Object.fromEntries(indexes.map((index) => [index, violations])),
    quarantined: indexes.map((index) => ({ index, planId: PLAN_ID, violations })),
  }
}

export function routingTo(destinationIds: readonly string[]): Routing {
  return { shipments: destinationIds.map((destinationId) => ({ destinationId, indexes: null })), skips: [] }
}

function isList(routing: Partial<Routing> | readonly string[]): routing is readonly string[] {
  return Array.isArray(routing)
}

export async function claim(store: Store, destinationId: string, change: Partial<ClaimRequest> = {}): Promise<Claim> {
  return store.delivery.claim({ destinationId, nowMs: NOW_MS, maxFresh: 10_000, maxRetries: 10_000, maxBytes: 1e9, ...change })
}

export async function claimOne(store: Store, destinationId: string, change: Partial<ClaimRequest> = {}): Promise<ClaimedShipment> {
  const { shipments } = await claim(store, destinationId, { maxFresh: 1, maxRetries: 1, ...change })
  assert.equal(shipments.length, 1, 'one shipment must be claimed')
  return shipments[0] as ClaimedShipment
}

/** The ids of the deliveries of a shipment. */
export function deliveriesOf({ parts }: Pick<Shipment, 'parts'>): string[] {
  return parts.flatMap(({ origin, indexes }) => indexes.map((index) => `${origin}-${index}`))
}

export function messageIdsOf({ shipment, bodies }: ClaimedShipment): (string | null)[] {
  return shipment.parts.flatMap(({ segment, indexes }) =>
    indexes.map((index) => (bodies.get(segment)?.content.items[index]?.['messageId'] as string | undefined) ?? null),
  )
}

/** `kept`: still in flight, under the same claim. */
export type Fate = FinalStateName | 'retry' | 'untouched' | 'kept'

export interface SettleOptions {
  reason?: string
  dueAtMs?: number
  firstAttemptAtMs?: number
  progress?: readonly string[] | null
  unit?: boolean
  request?: Partial<RequestRecord>
}

/** The settlement of one attempt at some shipments. `fateOf` returns the result of each delivery. */
export function settlementOf(
  shipments: readonly Shipment[],
  fateOf: Fate | ((delivery: string) => Fate),
  options: SettleOptions = {},
): Settlement {
  const { reason = 'http_500', dueAtMs = NOW_MS + 5_000, firstAttemptAtMs = NOW_MS, progress = null, unit = false } = options
  const fate = typeof fateOf === 'string' ? () => fateOf : fateOf
  const remaining: ShipmentDraft[] = []
  const records: AttemptRecord[] = []
  const done: Shipment[] = []
  const kept: KeptShipment[] = []
  for (const shipment of shipments) {
    const { attempt, destinationId, replay } = shipment
    const base = { destinationId, replay, unit, progress }
    const left: Record<'retry' | 'untouched' | 'kept', Part[]> = { retry: [], untouched: [], kept: [] }
    for (const { origin, segment, indexes, keys } of shipment.parts) {
      const of = (wanted: Fate): number[] => indexes.filter((index) => fate(`${origin}-${index}`) === wanted)
      for (const kind of ['retry', 'untouched', 'kept'] as const)
        if (of(kind).length > 0)
          left[kind].push({
            origin,
            segment,
            indexes: of(kind),
            ...(keys && { keys: of(kind).map((index) => keys[indexes.indexOf(index)] as number) }),
          })
      const finals = (['delivered', 'failed', 'expired', 'cancelled'] as const)
        .map((state): FinalState => ({ state, reason: state === 'delivered' ? null : reason, indexes: of(state) }))
        .filter(({ indexes: ended }) => ended.length > 0)
      const tried = indexes.filter((index) => !['untouched', 'kept'].includes(fate(`${origin}-${index}`)))
      if (tried.length === 0) continue
      const requests = [requestRecord({ indexes: tried, ...options.request })]
      records.push({ origin, segment, attempt: attempt + 1, replay, atMs: Date.now(), requests, finals })
    }
    if (left.kept.length > 0) kept.push({ shipment, parts: left.kept })
    else done.push(shipment)
    if (left.retry.length > 0) {
      const first = shipment.firstAttemptAtMs ?? firstAttemptAtMs
      const order = shipment.order && { order: { row: 'head' as const, ord: shipment.order.ord } }
      remaining.push({ ...base, attempt: attempt + 1, firstAttemptAtMs: first, dueAtMs, parts: left.retry, ...order })
    }
    if (left.untouched.length > 0) {
      const { firstAttemptAtMs: first, dueAtMs: due } = shipment
      remaining.push({ ...base, attempt, firstAttemptAtMs: first, dueAtMs: due, parts: left.untouched })
    }
  }
  return { destinationId: (shipments[0] as Shipment).destinationId, done, kept, remaining, records }
}

export function requestRecord(change: Partial<RequestRecord> = {}): RequestRecord {
  return {
    url: 'https://example.com/hook',
    startedAtMs: 1_700_000_000_000,
    status: 200,
    reason: null,
    error: null,
    address: '203.0.113.9',
    version: 1,
    logs: null,
    dnsMs: null,
    connectMs: null,
    tlsMs: null,
    firstByteMs: 12.25,
    totalMs: 13.5,
    responseStart: null,
    indexes: [0],
    ...change,
  }
}

export async function settle(
  store: Store,
  { shipment }: ClaimedShipment,
  fateOf: Parameters<typeof settlementOf>[1],
  options: SettleOptions = {},
): Promise<void> {
  await store.delivery.settle(settlementOf([shipment], fateOf, options))
}

/** Claims everything that is due and settles it with the same result. */
export async function settleAll(store: Store, destinationId: string, fate: Fate, options: SettleOptions = {}): Promise<void> {
  const { shipments } = await claim(store, destinationId)
  for (const claimed of shipments) await settle(store, claimed, fate, options)
}

export async function ledgerOf(store: Store, destinationId: string): Promise<Omit<LedgerRow, 'destinationId'>> {
  const find = (rows: LedgerRow[]): LedgerRow | undefined => rows.find((row) => row.destinationId === destinationId)
  const [kept, counted] = [find(await store.books.ledger()), find(await store.books.recount())]
  assert.deepEqual(kept, counted, 'the ledger and its recount')
  assert.ok(kept !== undefined, 'the destination is in the ledger')
  const { destinationId: _, ...counts } = kept
  assert.equal(counts.owed, counts.delivered + counts.pending + counts.failed + counts.expired + counts.cancelled)
  return counts
}

export function counts(change: Partial<LedgerRow> = {}): Omit<LedgerRow, 'destinationId'> {
  return { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0, ...change }
}

/** Reads a whole list, page by page. `between` is called after every page. */
export async function allPages<T>(
  list: (page: PageRequest) => Promise<Page<T>>,
  limit: number,
  between: () => Promise<unknown> = async () => {},
): Promise<T[]> {
  const all: T[] = []
  let cursor: string | null = null
  do {
    const page: Page<T> = await list({ limit, cursor })
    assert.ok(page.data.length <= limit, 'a page is no longer than asked for')
    all.push(...page.data)
    cursor = page.next
    await between()
  } while (cursor !== null)
  return all
}

/** Much longer than anything takes, even on a busy machine. */
const PATIENCE_MS = 60_000

/** Calls `ask` until `isSo` accepts its result. For background work of the store, which sends no signal when it is done. */
export async function until<T>(ask: () => Promise<T>, isSo: (answer: T) => boolean, what: string): Promise<T> {
  const started = Date.now()
  for (;;) {
    const answer = await ask()
    if (isSo(answer)) return answer
    const waitedMs = Date.now() - started
    assert.ok(
      waitedMs < PATIENCE_MS,
      `timed out after ${PATIENCE_MS / 1_000} seconds waiting until ${what}. Last: ${JSON.stringify(answer)}`,
    )
    // Without a pause, asking would take the processor from the work.
    await new Promise((resolve) => setTimeout(resolve, Math.min(5 + waitedMs / 10, 100)))
  }
}

/** Returns a time after everything that happened before and before everything that happens next. The clock of the store may differ slightly from ours. */
export async function quietMoment(): Promise<number> {
  const before = Date.now()
  while (Date.now() <= before + 40) await new Promise((resolve) => setTimeout(resolve, 5))
  return before + 20
}

/** Records the calls that it receives. */
export class RecordingConsumer implements ShipmentConsumer {
  /** What `reserve` returns. */
  reserves = true
  readonly reservations: [destinationId: string, bytes: number][] = []
  readonly received: ClaimedShipment[] = []
  readonly cancelled: [destinationId: string, bytes: number][] = []
  readonly deletions: IsDeleted[] = []
  /** A poll of PostgreSQL wakes every destination with work at any time, so this may contain others, and one twice. */
  readonly woken: string[] = []
  readonly writableStates: boolean[] = []

  reserve(destinationId: string, bytes: number): boolean {
    this.reservations.push([destinationId, bytes])
    return this.reserves
  }

  deliver(claimed: ClaimedShipment): void {
    this.received.push(claimed)
  }

  cancelReservation(destinationId: string, bytes: number): void {
    this.cancelled.push([destinationId, bytes])
  }

  dropMessages(isDeleted: IsDeleted): void {
    this.deletions.push(isDeleted)
  }

  wake(destinationId: string): void {
    this.woken.push(destinationId)
  }

  writable(isWritable: boolean): void {
    this.writableStates.push(isWritable)
  }
}
