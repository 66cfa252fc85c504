// Settles shipments. Settlements of the same moment are written by one statement. It deletes the claimed shipments or updates them to what is
// left of them, inserts shipments for deliveries that need another attempt, and appends the attempts. The whole statement fails if a shipment
// is not held under the claim that it is settled with, or if the numbers of deliveries do not add up: this is the last place that could lose
// a delivery, so it is checked here. A settlement records what has already happened, so it is retried until its outcome is known. Each group
// inserts a marker, so that a group whose answer was lost is not applied twice.

import { writeProgress } from '../../encoding/attempt-doc.ts'
import { assertBalanced, countOf, type RecordRow, recordRow } from '../../encoding/settlement.ts'
import { storedParts } from '../../encoding/stored-parts.ts'
import { INTEGRATION_STATE, stateDocuments } from '../../port/integration-state.ts'
import { hasUserData } from '../../port/without-deleted.ts'
import { ClaimLost, type Part, type Settlement, type ShipmentDraft, StoreUnavailable } from '../../store.ts'
import type { MessageContext } from '../cluster/store-context.ts'
import { writeOutcomes } from '../replays/replay-outcomes.ts'
import { PostgresUnavailable, type Value } from '../session/connection.ts'
import type { Ask } from '../session/database.ts'
import { Columns, plainColumns, statement } from '../session/row-parameters.ts'
import { writeText } from '../session/text-columns.ts'
import type { FailingSettlements } from '../session/write-state.ts'
import type { RowIds } from '../tables/ids.ts'
import { LEDGER, MARKER } from '../tables/ledger-deltas.ts'
import { PUT_DOCUMENTS } from '../tables/put-documents.ts'
import type { Claiming } from './claiming.ts'
import { Grouping } from './grouping.ts'
import { INSERT_LETTERS, letterValues } from './letters.ts'
import { changeKeys, hasKeyChanges, type LockedKeys, lockKeys, withoutSkippedHeads } from './order-keys.ts'
import { orderColumns } from './ordered-claiming.ts'

interface Tools {
  claiming: Claiming
  onCommit: (commitMs: number, settlements: number) => void
  /** Leaves out the data of users who were deleted before the end of the transaction. */
  withoutUsers: (ask: Ask, settlements: readonly Settlement[]) => Promise<Settlement[]>
}

interface Item {
  settlement: Settlement
  /** The destination's `num`. */
  destination: string
  records: RecordRow<string>[]
}

const GROUP_SETTLEMENTS = 500
/**
 * Nothing waits for a settlement, so many can share a commit. Messages delivered in this interval may be sent again after a crash, like
 * those in flight.
 */
const LINGER_MS = 4
const RETRY_MS = 250
/** The approximate size of a row of `failures` in a statement. One settlement of a large batch can have thousands. */
const FAILURE_BYTES = 100
/** After this many statement timeouts, the settlements of a group are written one by one. */
const GROUP_TRIES = 2
const QUERY_CANCELED = '57014'

interface RestRow {
  id: string
  /** The destination's `num`. */
  destination: string
  draft: ShipmentDraft
  /** The stored size of the segments that it refers to. */
  bytes: number
}

const DONE = plainColumns({ id: 'bigint', claim: 'integer', ord: 'integer' })

const KEPT = new Columns<Settlement['kept'][number]>({
  id: ['bigint', ({ shipment }) => shipment.id],
  claim: ['integer', ({ shipment }) => shipment.claim],
  before: ['integer', ({ shipment }) => countOf(shipment)],
  count: ['integer', (kept) => countOf(kept)],
  parts: ['text', ({ parts }) => storedParts(parts)],
})

const REST = new Columns<RestRow>({
  id: ['bigint', ({ id }) => id],
  destination: ['bigint', ({ destination }) => destination],
  // Rounded up, so that it is never early: backoff computes fractions of milliseconds, and the column holds integers.
  due: ['bigint', ({ draft }) => (draft.attempt > 0 ? Math.ceil(draft.dueAtMs) : 0)],
  first_attempt: ['bigint', ({ draft }) => (draft.firstAttemptAtMs === null ? null : Math.floor(draft.firstAttemptAtMs))],
  count: ['integer', ({ draft }) => countOf(draft)],
  attempt: ['integer', ({ draft }) => orderColumns(draft).attempt],
  ord: ['bigint', ({ draft }) => orderColumns(draft).ord],
  partition: ['bigint', ({ draft }) => orderColumns(draft).part],
  bytes: ['integer', ({ bytes }) => bytes],
  unit: ['boolean', ({ draft }) => draft.unit],
  replay: ['boolean', ({ draft }) => draft.replay],
  urls: ['text', ({ draft }) => writeProgress(draft.progress)],
  parts: ['text', ({ draft }) => storedParts(draft.parts)],
})

// The rows that settling and cancelling append: one in `attempts` for each record, and one in `failures` for each delivery that failed, expired
// or was cancelled.

export interface AttemptRow {
  id: string
  /** The destination's `num`. */
  destination: string
  record: RecordRow<string>
}

interface FailureRow extends AttemptRow {
  failure: RecordRow<string>['failures'][number]
}

export const ATTEMPTS = new Columns<AttemptRow>({
  id: ['bigint', ({ id }) => id],
  origin: ['bigint', ({ record }) => record.origin],
  destination: ['bigint', ({ destination }) => destination],
  segment: ['bigint', ({ record }) => record.segment],
  at: ['bigint', ({ record }) => Math.floor(record.atMs)],
  attempt: ['integer', ({ record }) => record.attempt],
  delivered: ['integer', ({ record }) => record.delivered],
  failed: ['integer', ({ record }) => record.failed],
  expired: ['integer', ({ record }) => record.expired],
  cancelled: ['integer', ({ record }) => record.cancelled],
  replay: ['boolean', ({ record }) => record.replay],
  doc: ['text', ({ record }) => record.doc],
})

export const FAILURES = new Columns<FailureRow>({
  id: ['bigint', ({ id }) => id],
  destination: ['bigint', ({ destination }) => destination],
  origin: ['bigint', ({ record }) => record.origin],
  segment: ['bigint', ({ record }) => record.segment],
  at: ['bigint', ({ record }) => Math.floor(record.atMs)],
  idx: ['integer', ({ failure }) => failure.index],
  attempts: ['integer', ({ record }) => record.attempt],
  replay: ['boolean', ({ record }) => record.replay],
  state: ['text', ({ failure }) => failure.state],
  reason: ['text', ({ failure }) => (failure.reason === null ? null : writeText(failure.reason))],
})

const DELTAS = plainColumns({
  id: 'bigint',
  subject: 'bigint',
  delivered: 'bigint',
  failed: 'bigint',
  expired: 'bigint',
  cancelled: 'bigint',
})

const EXPECTED = plainColumns({ ord: 'integer', owed: 'bigint' })

const SETTLE = statement({
  name: 'settle',
  parameters: {
    holder: 'value',
    done: DONE,
    kept: KEPT,
    rest: REST,
    attempts: ATTEMPTS,
    failures: FAILURES,
    deltas: DELTAS,
    marker: 'value',
    expected: EXPECTED,
  },
  text: ({ holder, done, kept, rest, attempts, failures, deltas, marker, expected }) => `
WITH d AS MATERIALIZED (
  SELECT * FROM ${done.as('d')}
), gone AS (
  DELETE FROM shipments WHERE holder = ${holder} AND id = ANY (${done.array('id')}) RETURNING id, claim, count
), k AS MATERIALIZED (
  SELECT * FROM ${kept.as('k')}
), kept AS (
  UPDATE shipments s SET count = k.count, parts = k.parts FROM k
  WHERE s.holder = ${holder} AND s.id = ANY (${kept.array('id')}) AND s.id = k.id AND s.claim = k.claim RETURNING s.id
), rest AS (
  INSERT INTO shipments (${rest.names}) SELECT * FROM ${rest.unnest}
), att AS (
  INSERT INTO attempts (${attempts.names}) SELECT * FROM ${attempts.unnest}
), fail AS (
  INSERT INTO failures (${failures.names}) SELECT * FROM ${failures.unnest}
), delta AS (
  INSERT INTO deltas (id, kind, subject, counts)
  SELECT b.id, ${LEDGER}, b.subject, ARRAY[0, b.delivered, -(b.delivered + b.failed + b.expired + b.cancelled), b.failed, b.expired, b.cancelled]
  FROM ${deltas.as('b')}
  UNION ALL SELECT ${marker}::bigint, ${MARKER}, 0, '{}'::bigint[]
)
SELECT CASE WHEN (SELECT count(*) FROM gone) <> cardinality(${done.array('id')}) THEN refuse('not held')
  WHEN (SELECT count(*) FROM kept) <> cardinality(${kept.array('id')}) THEN refuse('not held')
  WHEN EXISTS (SELECT FROM d JOIN gone g ON g.id = d.id WHERE g.claim <> d.claim) THEN refuse('not held')
  WHEN EXISTS (SELECT FROM k JOIN shipments s ON s.holder = ${holder} AND s.id = k.id WHERE s.count <> k.before) THEN refuse('does not add up')
  WHEN EXISTS (SELECT FROM ${expected.as('e')}
    LEFT JOIN (SELECT d.ord, sum(g.count) AS owed FROM d JOIN gone g ON g.id = d.id GROUP BY d.ord) g ON g.ord = e.ord WHERE coalesce(g.owed, 0) <> e.owed)
  THEN refuse('does not add up') END AS refused`,
})

export class Settling {
  readonly #context: MessageContext
  readonly #tools: Tools
  readonly #grouping: Grouping<Item, null>

  constructor(context: MessageContext, tools: Tools) {
    this.#context = context
    this.#tools = tools
    this.#grouping = new Grouping({
      run: (items) => this.#run(items),
      depth: 2,
      early: 64,
      maxItems: GROUP_SETTLEMENTS,
      maxBytes: 4 * 1024 * 1024,
      lingerMs: LINGER_MS,
      bytesOf: ({ records, settlement }) =>
        records.reduce((sum, { doc, failures }) => sum + doc.length + failures.length * FAILURE_BYTES, 500) +
        (settlement.letters ?? []).reduce((sum, { bytes }) => sum + bytes, 0),
    })
  }

  async settle(settlement: Settlement): Promise<void> {
    assertBalanced(settlement)
    const { destinationId, done } = settlement
    const held = [...done, ...settlement.kept.map(({ shipment }) => shipment)]
    const destination = this.#context.idMap.num('destinations', destinationId)
    if (destination === undefined) throw new Error(`unknown destination ${destinationId}`)
    for (const { id, claim } of held) {
      if (!this.#tools.claiming.holds(id as string, claim)) throw new ClaimLost(`shipment ${id} is not held under claim ${claim}`)
    }
    try {
      await this.#grouping.push({ settlement, destination, records: settlement.records.map(recordRow<string>) })
    } catch (error) {
      // This node may still hold some of these shipments, but nothing in this process will settle them.
      if (error instanceof ClaimLost) this.#context.run(this.#tools.claiming.release(held))
      throw error
    }
    for (const { id } of done) this.#tools.claiming.ended(id as string)
  }

  async close(): Promise<void> {
    await this.#grouping.close()
  }

  async #run(items: readonly Item[]): Promise<null[]> {
    const failing = this.#context.writes.settling()
    try {
      return await this.#runUntilKnown(items, failing)
    } finally {
      failing.ended()
    }
  }

  async #runUntilKnown(items: readonly Item[], failing: FailingSettlements): Promise<null[]> {
    const { membership, ids } = this.#context
    const { holder } = membership
    const marker = ids.next()
    let mayBeCommitted = false
    for (let nth = 1; ; nth++) {
      try {
        if (mayBeCommitted && (await this.#isCommitted(marker))) return items.map(() => null)
        const started = performance.now()
        await this.#write(items, holder, marker)
        this.#tools.onCommit(performance.now() - started, items.length)
        this.#context.writes.wrote(true)
        return items.map(() => null)
      } catch (error) {
        const refused = (error as { code?: string }).code === 'SY001'
        // The statement whose answer was lost may have committed after this was last checked.
        const isCommitted = refused && mayBeCommitted ? await this.#isCommitted(marker).catch(() => null) : false
        if (isCommitted === true) return items.map(() => null)
        // Null if the check itself failed, so the refusal is not certain either.
        if (isCommitted === false && !(error instanceof StoreUnavailable)) throw refused ? refusal(error as Error, items) : error
        if (items.length > 1 && nth >= GROUP_TRIES && !mayBeCommitted && isStatementTimeout(error)) throw (error as Error).cause
        // A statement that took too long may be slow for a reason of its own. Only its lanes wait then, because their outcomes are late.
        if (!isStatementTimeout(error)) failing.failed()
        mayBeCommitted ||= error instanceof PostgresUnavailable && error.mayHaveCommitted
        // Other nodes take over what this node held under the old holder id.
        if (holder !== membership.holder) throw new ClaimLost('this node was declared dead', { cause: error })
        if (this.#context.isClosed()) throw error
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }

  async #isCommitted(marker: string): Promise<boolean> {
    const { count } = await this.#context.fast.query('SELECT 1 FROM deltas WHERE id = $1', [marker])
    return count > 0
  }

  async #withoutUsers(ask: Ask, items: readonly Item[]): Promise<Item[]> {
    const settlements = await this.#tools.withoutUsers(
      ask,
      items.map(({ settlement }) => settlement),
    )
    return items.map((item, at) => {
      const settlement = settlements[at] as Settlement
      return settlement === item.settlement ? item : { ...item, settlement, records: settlement.records.map(recordRow<string>) }
    })
  }

  async #letterValues(items: readonly Item[]): Promise<Value[] | null> {
    const letters = items.flatMap(({ settlement }) => settlement.letters ?? [])
    return letters.length === 0 ? null : letterValues(letters, this.#context, await this.#context.seed())
  }

  async #write(items: readonly Item[], holder: string, marker: string): Promise<void> {
    const { fast } = this.#context
    const replayed = items.filter(({ records }) => records.some(({ replay }) => replay))
    const isPlain = !items.some(({ settlement }) => hasUserData(settlement))
    const hasState = items.some(({ settlement: { state = [] } }) => state.length > 0)
    const keyed = items.filter(({ settlement }) => hasKeyChanges(settlement))
    if (replayed.length === 0 && isPlain && !hasState && keyed.length === 0) {
      await fast.query(SETTLE, this.#values(items, holder, marker))
      return
    }
    await fast.transaction(async (ask) => {
      const left = isPlain ? items : await this.#withoutUsers(ask, items)
      const keys = keyed.length === 0 ? null : await lockKeys(ask, keyed)
      const written = keys === null ? left : left.map((item) => withoutSkippedItem(item, keys))
      const letters = await this.#letterValues(written)
      await ask(SETTLE, this.#values(written, holder, marker))
      if (keys !== null) await changeKeys(ask, keyed, keys)
      if (letters !== null) await ask(INSERT_LETTERS, letters)
      if (hasState) await putState(ask, written)
      if (replayed.length > 0) for (const { destination, records } of written) await writeOutcomes(ask, destination, records)
    })
  }

  #values(items: readonly Item[], holder: string, marker: string): Value[] {
    const { ids } = this.#context
    const done = items.flatMap(({ settlement }, ord) => settlement.done.map(({ id, claim }) => ({ id, claim, ord })))
    const kept = items.flatMap(({ settlement }) => changedOf(settlement))
    const rest = items.flatMap(({ settlement, destination }) =>
      settlement.remaining.map((draft) => ({ id: ids.next(), destination, draft, bytes: this.#bytesOf(settlement, draft) })),
    )
    const attempts = items.flatMap(({ destination, records }) => attemptRows(destination, records, ids))
    const failures = failureRows(attempts, ids)
    const deltas = new Map<string, { id: string; subject: string; delivered: number; failed: number; expired: number; cancelled: number }>()
    for (const { destination, record } of attempts) {
      const delta = deltas.get(destination) ?? { id: ids.next(), subject: destination, delivered: 0, failed: 0, expired: 0, cancelled: 0 }
      delta.delivered += record.delivered
      delta.failed += record.failed
      delta.expired += record.expired
      delta.cancelled += record.cancelled
      deltas.set(destination, delta)
    }
    return SETTLE.values({
      holder,
      done,
      kept,
      rest,
      attempts,
      failures,
      deltas: [...deltas.values()].filter(({ delivered, failed, expired, cancelled }) => delivered + failed + expired + cancelled > 0),
      marker,
      expected: items.map((item, ord) => ({ ord, owed: owedOf(item) })),
    })
  }

  /** Estimates the size of a draft's segments from the sizes of the shipments that were held. Several of these may have messages of the same request. */
  #bytesOf({ done, kept }: Settlement, draft: ShipmentDraft): number {
    const most = new Map(draft.parts.map(({ origin }) => [origin, 0]))
    for (const { id, parts } of [...done, ...kept.map(({ shipment }) => shipment)]) {
      const share = this.#tools.claiming.bytesOf(id as string) / Math.max(1, parts.length)
      const own = new Map<Part['origin'], number>()
      for (const { origin } of parts) own.set(origin, (own.get(origin) ?? 0) + share)
      for (const [origin, bytes] of own) if ((most.get(origin) ?? bytes) < bytes) most.set(origin, bytes)
    }
    return [...most.values()].reduce((sum, bytes) => sum + Math.ceil(bytes), 0)
  }
}

/**
 * The shipments whose rows change. The ordered messages of a request have a shipment for each partition, and many of these are kept as they are. Rows that
 * do not change need no fence, but at least one row of the settlement must be fenced.
 */
function changedOf({ done, kept }: Settlement): Settlement['kept'] {
  const changed = kept.filter((one) => one.shipment.order === undefined || countOf(one) !== countOf(one.shipment))
  return done.length + changed.length === 0 ? kept : changed
}

function withoutSkippedItem(item: Item, keys: LockedKeys): Item {
  const settlement = withoutSkippedHeads(item.settlement, item.destination, keys)
  return settlement === item.settlement ? item : { ...item, settlement, records: settlement.records.map(recordRow<string>) }
}

/** In the order of the keys, and the last of the same key, as they were settled. */
async function putState(ask: Ask, items: readonly Item[]): Promise<void> {
  const all = items.flatMap(({ settlement: { destinationId, state = [] } }) => stateDocuments(destinationId, state))
  const documents = [...new Map(all.map((document) => [document.key, document])).values()].sort((one, other) =>
    one.key < other.key ? -1 : 1,
  )
  if (documents.length > 0) await ask(PUT_DOCUMENTS, PUT_DOCUMENTS.values({ kind: INTEGRATION_STATE, documents }))
}

function isStatementTimeout(error: unknown): boolean {
  return ((error as Error).cause as { code?: string } | undefined)?.code === QUERY_CANCELED
}

/** How many deliveries the deleted shipments must have had for the settlement to add up. */
function owedOf({ settlement, records }: Item): number {
  let left = 0
  for (const draft of settlement.remaining) left += countOf(draft)
  for (const { shipment, parts } of settlement.kept) left -= countOf(shipment) - countOf({ parts })
  return records.reduce((sum, { delivered, failed, expired, cancelled }) => sum + delivered + failed + expired + cancelled, left)
}

function refusal(error: Error, items: readonly Item[]): Error {
  const destinations = items.map(({ settlement }) => settlement.destinationId).join(', ')
  return error.message === 'not held'
    ? new ClaimLost(`this node no longer holds the shipments of ${destinations} that it tried to settle`, { cause: error })
    : new Error(`a settlement for ${destinations} does not add up: some deliveries would be left without a state`, { cause: error })
}

export function attemptRows(destination: string, records: readonly RecordRow<string>[], ids: RowIds): AttemptRow[] {
  return records.map((record) => ({ id: ids.next(), destination, record }))
}

export function failureRows(attempts: readonly AttemptRow[], ids: RowIds): FailureRow[] {
  return attempts.flatMap(({ destination, record }) => record.failures.map((failure) => ({ id: ids.next(), destination, record, failure })))
}
