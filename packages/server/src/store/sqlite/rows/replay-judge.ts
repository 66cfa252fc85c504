// Whether a delivery can be sent again, and which of a message's deliveries speaks for all. Asked inside the transaction that
// acts on the answer. What a job is made for is not here: see write-replays.ts.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import { unpackBody } from '../../encoding/body-bytes.ts'
import { readStoredBody } from '../../port/stored-messages.ts'
import { ReplayBudget } from '../../replays/replay-budget.ts'
import { STANDS } from '../../replays/replay-job-row.ts'
import type { FinalStateName, ReplaySkipReason } from '../../store.ts'
import { resolveOrigin } from '../messages/origins.ts'
import { absentIndexes } from '../messages/read-claims.ts'
import { rowAndIndex } from '../schema/ids.ts'
import type { Retention } from './retention.ts'

export interface ReplayCandidate {
  destination: number
  segment: number
  origin: number
  index: number
  state: FinalStateName
  /** By its id, and not by what became of it. */
  named: boolean
}

/** What a step has read already. */
export class StepBudget extends ReplayBudget<number> {
  readonly job: number
  readonly bound: number

  constructor({ num, bound }: { num: number; bound: number }, limit: number) {
    super(limit)
    this.job = num
    this.bound = bound
  }

  mayBePurged: boolean | undefined
  readonly bodies = new Map<number, { has(index: number): boolean }>()
  readonly finals = new Map<number, ReadonlyMap<number, FinalStateName>>()
}

export class ReplayJudge {
  readonly #database: DatabaseSync
  readonly #retention: Retention
  readonly #standing: StatementSync
  readonly #newest: StatementSync
  readonly #ofJob: StatementSync
  readonly #parent: StatementSync
  readonly #docs: StatementSync
  readonly #segment: StatementSync
  readonly #body: StatementSync
  readonly #destination: StatementSync

  constructor(database: DatabaseSync, retention: Retention) {
    this.#database = database
    this.#retention = retention
    const same = 'FROM replays WHERE segment = ? AND idx = ? AND destination = ?'
    this.#standing = database.prepare(`SELECT 1 ${same} AND ${STANDS} AND origin <> ? AND (state IS NOT 'delivered' OR origin > ?) LIMIT 1`)
    this.#newest = database.prepare(`SELECT origin ${same} ORDER BY origin DESC LIMIT 1`)
    this.#ofJob = database.prepare(`SELECT 1 ${same} AND origin >= ? AND job = ? LIMIT 1`)
    this.#parent = database.prepare('SELECT replay_of AS parent FROM replays WHERE origin = ? AND idx = ?')
    this.#docs = database.prepare('SELECT doc FROM attempts WHERE origin = ? AND delivered + failed + expired + cancelled > 0 ORDER BY id')
    this.#segment = database.prepare('SELECT 1 FROM segments WHERE seq = ?')
    this.#body = database.prepare('SELECT absent, body FROM segments WHERE seq = ?')
    this.#destination = database.prepare("SELECT deleted, json_extract(doc, '$.enabled') AS enabled FROM destinations WHERE num = ?")
  }

  /** What a delivery's name stands for, if it has come to an end. */
  named(deliveryId: string, budget: StepBudget): ReplayCandidate | ReplaySkipReason {
    const named = rowAndIndex(deliveryId)
    const origin = named && resolveOrigin(this.#database, named.row)
    if (!named || !origin || (origin.indexes !== 0 && !origin.indexes.includes(named.index))) return 'not_found'
    const { destination, segment } = origin
    const state = this.#finalsOf(named.row, budget).get(named.index)
    // A place of the segment that was a duplicate is owed to nobody, and never ends either.
    if (state === undefined) return this.bodyOf(segment, budget).has(named.index) ? 'still_pending' : 'not_found'
    return { destination, segment, origin: named.row, index: named.index, state, named: true }
  }

  /**
   * Of the deliveries of one message to one destination, at most one is pending, and one that was delivered later speaks for
   * all before it. Where all have failed the newest is the one that is repeated, whichever of them was come upon first.
   */
  obstacle(
    { destination, segment, origin, index, state, named }: ReplayCandidate,
    budget: StepBudget,
  ): ReplaySkipReason | { newest: number } {
    if (!this.isLive(destination)) return 'destination_gone'
    if (this.#standing.get(segment, index, destination, origin, origin) !== undefined) return 'already_replayed'
    // However it has ended since: a job sends a message once.
    if (this.#ofJob.get(segment, index, destination, budget.bound, budget.job) !== undefined) return 'already_replayed'
    // Delivered once more though it had been before: to send all of those again is not what "all that was delivered" means.
    if (state === 'delivered' && !named && this.#repeatsDelivered(origin, index, budget)) return 'already_replayed'
    if (!this.#isStored(segment, index, budget)) return 'message_gone'
    const newest = this.#newest.get(segment, index, destination) as { origin: number } | undefined
    return { newest: Math.max(origin, newest?.origin ?? 0) }
  }

  #repeatsDelivered(origin: number, index: number, budget: StepBudget): boolean {
    const { parent } = (this.#parent.get(origin, index) ?? {}) as { parent?: string }
    const named = parent === undefined ? undefined : rowAndIndex(parent)
    return named !== undefined && this.#finalsOf(named.row, budget).get(named.index) === 'delivered'
  }

  #isStored(segment: number, index: number, budget: StepBudget): boolean {
    if (this.#retention.isDropping(segment)) return false
    budget.mayBePurged ??= this.#database.prepare('SELECT 1 FROM deletions LIMIT 1').get() !== undefined
    if (!budget.mayBePurged) return this.#segment.get(segment) !== undefined
    let body = budget.bodies.get(segment)
    if (body === undefined) {
      body = this.bodyOf(segment, budget)
      budget.bodies.set(segment, body)
    }
    return body.has(index)
  }

  bodyOf(segment: number, budget?: StepBudget): { has(index: number): boolean } {
    const row = this.#body.get(segment) as { absent: string | null; body: Uint8Array } | undefined
    if (row === undefined) return { has: () => false }
    const bytes = unpackBody(row.body)
    if (budget) budget.bytes -= bytes.length
    const about = { sourceId: '', receivedAtMs: 0, ip: null, browser: false, trace: null }
    const { items } = readStoredBody(bytes, about, absentIndexes(row.absent))
    return { has: (index) => items[index] != null }
  }

  #finalsOf(origin: number, budget: StepBudget): ReadonlyMap<number, FinalStateName> {
    const known = budget.finals.get(origin)
    if (known !== undefined) return known
    const finals = new Map<number, FinalStateName>()
    for (const { doc } of this.#docs.all(origin) as { doc: string }[]) {
      budget.bytes -= doc.length
      for (const [state, , indexes] of (JSON.parse(doc) as AttemptDoc).f) for (const index of indexes) finals.set(index, state)
    }
    budget.finals.set(origin, finals)
    return finals
  }

  isLive(destination: number): boolean {
    return (this.#destination.get(destination) as { deleted: number } | undefined)?.deleted === 0
  }

  /** A disabled destination is owed nothing more; its part of the job waits until it is enabled. A paused one is owed as ever. */
  isHeld(destination: number): boolean {
    if (destination === 0) return false
    const row = this.#destination.get(destination) as { deleted: number; enabled: number }
    return row.deleted === 0 && row.enabled === 0
  }
}
