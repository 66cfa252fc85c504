// Settles shipments, inside the group's transaction: deletes claimed shipments or keeps them with their remaining deliveries, adds shipments for
// retries, and appends the attempts. Rejects a settlement that is not balanced, or whose claim is no longer current. This is the last place
// at which a delivery could be lost, so it is checked here.

import type { StatementSync } from 'node:sqlite'
import { type LetterContent, letterContent } from '../../delivery/dead-letters.ts'
import { keyChanges, withoutSkipped } from '../../delivery/key-changes.ts'
import { type AttemptDoc, writeProgress } from '../../encoding/attempt-doc.ts'
import type { Seed } from '../../encoding/fingerprint.ts'
import { assertBalanced, countOf, type RecordRow, recordRow } from '../../encoding/settlement.ts'
import { storedParts } from '../../encoding/stored-parts.ts'
import { INTEGRATION_STATE, stateDocuments } from '../../port/integration-state.ts'
import { hasUserData } from '../../port/without-deleted.ts'
import type { KeyChange, Settlement, Shipment, ShipmentDraft } from '../../store.ts'
import type { Duplicates } from '../keys/duplicates.ts'
import type { RowIds } from '../schema/row-ids.ts'
import type { Rows } from '../schema/rows.ts'
import type { Claims } from './claims.ts'
import type { Ledger } from './group-counts.ts'
import type { OrderKeys } from './order-keys.ts'
import { LetterWriter, type OwedShipments } from './owed-shipments.ts'
import { CLASS, placeOf } from './row-classes.ts'

export interface SettleCommand {
  destinationId: string
  done: readonly SettledRow[]
  /** `before` and `count`: the number of deliveries before and after this settlement. */
  kept: readonly (SettledRow & { before: number; count: number; parts: string })[]
  remaining: readonly ShipmentDraft[]
  records: readonly RecordRow<number>[]
  letters: readonly LetterContent[]
  /** What an integration keeps, as documents. */
  state: readonly { key: string; atMs: number; doc: string }[]
  /** What changes about keys, and when. */
  keys: readonly KeyChange[]
  /** The last deletion request that it was checked against; null if it contains no data of users. */
  deletion: number | null
}

interface SettledRow {
  id: number
  claim: number
  class: number
  due: number
}

/** Converts a settlement to a command for the writing thread. Runs on the main thread. */
export function settleCommand(settlement: Settlement, seed: Seed, deletion: number): SettleCommand {
  const { destinationId, done, kept, remaining, letters = [], state = [] } = settlement
  assertBalanced(settlement)
  return {
    destinationId,
    done: done.map(settledRow),
    kept: kept.map(({ shipment, parts }) => {
      const { id, claim, class: type, due } = settledRow(shipment)
      return { id, claim, class: type, due, before: countOf(shipment), count: countOf({ parts }), parts: storedParts(parts) }
    }),
    remaining,
    records: settlement.records.map(recordRow<number>),
    letters: letters.map((some) => letterContent(some, seed)),
    state: stateDocuments(destinationId, state),
    keys: keyChanges(settlement),
    deletion: hasUserData(settlement) ? deletion : null,
  }
}

function settledRow({ id, claim, ...shipment }: Shipment): SettledRow {
  return { id: id as number, claim, ...placeOf(shipment) }
}

/**
 * The statements for each class of rows. The class is written into the statement: if it were a parameter, SQLite would prepare the
 * statement again after every binding, because the partial index on retries might apply. That took 17 µs per shipment.
 */
type ByClass = readonly StatementSync[]

interface Parts {
  rows: Rows
  ids: RowIds
  ledger: Ledger
  owing: OwedShipments
  claims: Claims
  duplicates: Duplicates
  orderKeys: OrderKeys
}

export class SettleWriter {
  readonly #parts: Parts
  readonly #letters: LetterWriter
  readonly #delete: ByClass
  readonly #keep: ByClass
  readonly #insert: StatementSync
  readonly #insertAttempt: StatementSync
  readonly #insertFailure: StatementSync
  readonly #lastDeletion: StatementSync
  readonly #putState: StatementSync
  /** The shipments whose claims end when the transaction is committed. */
  readonly #ended: number[] = []

  constructor(parts: Parts) {
    this.#parts = parts
    this.#letters = new LetterWriter(parts)
    const { database } = parts.rows
    const byClass = (sql: (is: string) => string): ByClass => Object.values(CLASS).map((type) => database.prepare(sql(`class = ${type}`)))
    this.#delete = byClass((is) => `DELETE FROM shipments WHERE destination = ? AND ${is} AND due = ? AND id = ? RETURNING count`)
    this.#keep = byClass(
      (is) => `UPDATE shipments SET count = ?, parts = ? WHERE destination = ? AND ${is} AND due = ? AND id = ? AND count = ?`,
    )
    this.#insert = database.prepare(
      'INSERT INTO shipments (destination, class, due, id, count, attempt, first_attempt, unit, replay, urls, parts, ord) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    this.#insertAttempt = database.prepare(
      'INSERT INTO attempts (id, origin, destination, segment, at, attempt, replay, delivered, failed, expired, cancelled, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    this.#lastDeletion = database.prepare('SELECT max(num) AS num FROM deletions')
    this.#putState = database.prepare(`INSERT OR REPLACE INTO documents (kind, key, at, doc) VALUES ('${INTEGRATION_STATE}', ?, ?, ?)`)
    this.#insertFailure = database.prepare(
      'INSERT INTO failures (id, destination, state, reason, origin, idx, segment, attempts, replay, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
  }

  /**
   * Returns null, or the last deletion request if the settlement was not checked against it. Then nothing is written: this thread orders
   * deletions and settlements, so a purge covers everything that was written before its request, and nothing of its users is written later.
   */
  settle({ destinationId, done, kept, remaining, records, letters, state, keys, deletion }: SettleCommand): number | null {
    const { rows, claims, orderKeys } = this.#parts
    if (deletion !== null) {
      const { num } = this.#lastDeletion.get() as { num: number | null }
      if (num !== null && num > deletion) return num
    }
    const destination = rows.destinations.num(destinationId)
    if (destination === undefined) throw new Error(`unknown destination ${destinationId}`)
    let owed = 0
    for (const { id, claim } of [...done, ...kept]) {
      if (!claims.isCurrent(id, claim)) throw new Error(`shipment ${id} is not held under claim ${claim}`)
    }
    for (const { id, class: type, due } of done) {
      const row = this.#delete[type]?.get(destination, due, id) as { count: number } | undefined
      if (row === undefined) throw new Error(`shipment ${id} does not exist`)
      if (type === CLASS.waiting) orderKeys.left(destination, due, row.count)
      owed += row.count
      this.#ended.push(id)
    }
    for (const { id, class: type, due, before, count, parts } of kept) {
      const changes = this.#keep[type]?.run(count, parts, destination, due, id, before).changes
      if (changes !== 1) throw new Error(`shipment ${id} with ${before} deliveries does not exist`)
      if (type === CLASS.waiting) orderKeys.left(destination, due, before - count)
      owed += before - count
    }
    for (const draft of remaining) owed -= this.#insertRemaining(destination, draft, records[0]?.atMs ?? 0)
    for (const record of records) owed -= this.insertRecord(destination, record)
    if (owed !== 0) throw new Error(`unbalanced settlement for ${destinationId}: ${owed} deliveries would have no state`)
    if (keys.length > 0) orderKeys.change(destination, keys, records[0]?.atMs ?? 0)
    for (const some of letters) this.#letters.insert(some)
    for (const { key, atMs, doc } of state) this.#putState.run(key, atMs, doc)
    return null
  }

  /** Returns the number of deliveries. Those that an operator has ended meanwhile are not attempted again. */
  #insertRemaining(destination: number, draft: ShipmentDraft, atMs: number): number {
    if (draft.order?.row !== 'head') return this.insertShipment(destination, draft)
    const left = withoutSkipped(draft, atMs, (key) => this.#parts.orderKeys.isSkipped(destination, key))
    const ended = left.records.reduce((sum, record) => sum + this.insertRecord(destination, recordRow(record)), 0)
    return ended + (left.draft === null ? 0 : this.insertShipment(destination, left.draft))
  }

  /** Returns the number of deliveries in the shipment. */
  insertShipment(destination: number, draft: ShipmentDraft): number {
    const count = countOf(draft)
    const { class: type, due } = placeOf(draft)
    this.#insert.run(
      destination,
      type,
      due,
      this.#parts.ids.next(),
      count,
      draft.attempt,
      draft.firstAttemptAtMs === null ? null : Math.floor(draft.firstAttemptAtMs),
      draft.unit ? 1 : 0,
      draft.replay ? 1 : 0,
      writeProgress(draft.progress),
      storedParts(draft.parts),
      (draft.order?.ord as number | undefined) ?? null,
    )
    return count
  }

  /** Returns the number of deliveries that the attempt ended. */
  insertRecord(destination: number, record: RecordRow<number>): number {
    const { rows, ids, ledger } = this.#parts
    const { origin, segment, attempt, atMs, delivered, failed, expired, cancelled } = record
    const replay = record.replay ? 1 : 0
    this.#insertAttempt.run(
      ids.next(),
      origin,
      destination,
      segment,
      Math.floor(atMs),
      attempt,
      replay,
      delivered,
      failed,
      expired,
      cancelled,
      record.doc,
    )
    if (delivered > 0) ledger.end(destination, 'delivered', delivered)
    if (failed > 0) ledger.end(destination, 'failed', failed)
    if (expired > 0) ledger.end(destination, 'expired', expired)
    if (cancelled > 0) ledger.end(destination, 'cancelled', cancelled)
    for (const { state, reason, index } of record.failures) {
      this.#insertFailure.run(ids.next(), destination, state, reason, origin, index, segment, attempt, replay, Math.floor(atMs))
    }
    if (record.replay) recordOutcome(rows, destination, record)
    return delivered + failed + expired + cancelled
  }

  committed(): void {
    for (const id of this.#ended) this.#parts.claims.end(id)
    this.#ended.length = 0
  }

  rolledBack(): void {
    this.#ended.length = 0
  }
}

const FIRST = 'UPDATE replays SET state = ? WHERE origin = ? AND idx = ? AND state IS NULL'
const COUNT =
  'UPDATE replay_jobs SET delivered = delivered + ?, failed = failed + ?, expired = expired + ?, cancelled = cancelled + ? WHERE num = ?'

/**
 * Records the outcomes of replays: the state of each replay, and the counts of its job. PostgreSQL appends the counts instead, so that nodes
 * do not wait for each other.
 */
function recordOutcome(rows: Rows, destination: number, record: RecordRow<number>): void {
  const { origin, attempt, delivered, failed, expired, cancelled, doc } = record
  const { r, f } = JSON.parse(doc) as AttemptDoc
  let attempted = 0
  for (const [state, , indexes] of f) {
    for (const index of indexes) {
      if (rows.run(FIRST, [state, origin, index]) === 1) attempted++
      else rows.run('UPDATE replays SET state = ? WHERE origin = ? AND idx = ?', [state, origin, index])
    }
  }
  // Only the first attempt sets the state `retrying`.
  if (attempt === 1) {
    const tried = new Set(r.flatMap(([, , , , , , indexes]) => indexes))
    for (const index of tried) attempted += rows.run(FIRST, ['retrying', origin, index])
  }
  const job = rows.all<{ job: number | null }>('SELECT job FROM replays WHERE origin = ? LIMIT 1', [origin])[0]?.job ?? null
  if (job === null) return
  if (attempted > 0)
    rows.run('UPDATE replay_parts SET waiting = waiting - ? WHERE job = ? AND destination = ?', [attempted, job, destination])
  if (f.length > 0) rows.run(COUNT, [delivered, failed, expired, cancelled, job])
}
