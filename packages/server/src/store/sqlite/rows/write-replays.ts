// Replays, inside the group's transaction: one delivery, or a step of a job. A step looks at the next of the job's
// deliveries, owes again those that are not yet, counts the rest as skipped, and moves on, all or nothing: killed anywhere,
// a job goes on where it stood, and what was owed is owed once. Which job is stepped when is the runner's knowledge.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import { LOOKS_PER_STEP, MESSAGES_PER_SHIPMENT, REPLAYED_PER_STEP } from '../../replays/replay-budget.ts'
import { progressOf, type ReplayDoc, type ReplayJobRow, replayDoc, replayJobOf } from '../../replays/replay-job-row.ts'
import { type AskedReplayState, IS_REPLAY_OVER, REPLAY_TRANSITIONS } from '../../replays/replay-states.ts'
import type { FinalStateName, ReplayJobState, ReplayResult, ReplayStep, ReplayStepResult } from '../../store.ts'
import type { Ledger } from '../messages/ledger.ts'
import { resolveOrigin, stateOf } from '../messages/origins.ts'
import type { SettleWriter } from '../messages/write-settle.ts'
import { type RowIds, rowAndIndex } from '../schema/ids.ts'
import type { Names } from '../schema/names.ts'
import { type ReplayCandidate, ReplayJudge, StepBudget } from './replay-judge.ts'
import { rowRange } from './replay-rows.ts'
import type { Retention } from './retention.ts'
import { DeletionEnds } from './write-deletion-ends.ts'

export interface CreateReplayCommand {
  id: string
  doc: ReplayDoc
  ratePerSecond: number | null
  /** Rows from here on are not part of it. */
  bound: number
  total: number
  destinationIds: readonly string[]
  atMs: number
}

export interface UpdateReplayCommand {
  id: string
  /** How it is believed to stand. */
  from: { state: ReplayJobState; ratePerSecond: number | null }
  state: AskedReplayState
  ratePerSecond: number | null
  atMs: number
}

export type ReplayStepReply =
  | (Extract<ReplayStepResult, { ok: true }> & { destinationIds: string[] })
  | Extract<ReplayStepResult, { ok: false }>

interface Parts {
  database: DatabaseSync
  ids: RowIds
  destinations: Names
  ledger: Ledger
  settler: SettleWriter
  retention: Retention
}

interface PartRow {
  destination: number
  state: number
  next: number
  place: number
  over: number
  waiting: number
}

const JOBS_PER_STEP = 100

export class ReplayWriter {
  readonly #parts: Parts
  readonly #judge: ReplayJudge
  readonly #deletions: DeletionEnds
  readonly #insert: StatementSync
  readonly #job: StatementSync
  readonly #failures: StatementSync
  readonly #attempts: StatementSync

  constructor(parts: Parts) {
    this.#parts = parts
    const { database } = parts
    this.#judge = new ReplayJudge(database, parts.retention)
    this.#deletions = new DeletionEnds(database)
    this.#insert = database.prepare(
      'INSERT INTO replays (origin, idx, destination, segment, replay_of, at, job) VALUES (?, ?, ?, ?, ?, ?, ?)',
    )
    this.#job = database.prepare('SELECT * FROM replay_jobs WHERE id = ?')
    this.#failures = database.prepare(
      'SELECT id, origin, idx, segment, reason FROM failures WHERE destination = ? AND state = ? AND id >= ? AND id <= ? ORDER BY id',
    )
    this.#attempts = database.prepare(
      'SELECT id, origin, segment, delivered, doc FROM attempts WHERE destination = ? AND id >= ? AND id <= ? ORDER BY id',
    )
  }

  /** One delivery, whatever was replayed before: somebody asks for just that. */
  replay(deliveryId: string, atMs: number): ReplayResult & { destinationId?: string } {
    const { database, destinations } = this.#parts
    const named = rowAndIndex(deliveryId)
    const origin = named && resolveOrigin(database, named.row)
    if (!named || !origin || (origin.indexes !== 0 && !origin.indexes.includes(named.index))) return { ok: false, reason: 'not_found' }
    const { row, index } = named
    const isIn = this.#judge.bodyOf(origin.segment).has(index)
    if (stateOf(database, row, index).final === undefined) return { ok: false, reason: isIn ? 'still_pending' : 'not_found' }
    if (!isIn || this.#parts.retention.isDropping(origin.segment)) return { ok: false, reason: 'message_gone' }
    if (!this.#judge.isLive(origin.destination)) return { ok: false, reason: 'destination_gone' }
    const id = this.#owe(origin.destination, origin.segment, [{ index, replayOf: deliveryId }], null, atMs)
    return { ok: true, deliveryId: `${id}-${index}`, destinationId: destinations.id(origin.destination) }
  }

  create({ id, doc, ratePerSecond, bound, total, destinationIds, atMs }: CreateReplayCommand): void {
    const { database, destinations } = this.#parts
    const { lastInsertRowid } = database
      .prepare('INSERT INTO replay_jobs (id, created_at, state, rate, doc, bound, total) VALUES (?, ?, ?, ?, ?, ?, ?)')
      .run(id, atMs, 'running', ratePerSecond, JSON.stringify(doc), bound, total)
    const insert = database.prepare('INSERT INTO replay_parts (job, destination, next) VALUES (?, ?, ?)')
    const first = 'deliveryIds' in doc.selection ? 0 : rowRange(doc.selection.fromMs, doc.selection.toMs, bound).first
    const nums = 'deliveryIds' in doc.selection ? [0] : destinationIds.map((of) => destinations.num(of) as number)
    for (const num of nums) insert.run(lastInsertRowid, num, first)
  }

  /** Refuses when the job is not as it was when the change was made up. */
  update({ id, from, state, ratePerSecond, atMs }: UpdateReplayCommand): { ok: boolean } {
    const row = this.#job.get(id) as ReplayJobRow<number> | undefined
    if (row === undefined || row.state !== from.state || row.rate !== from.ratePerSecond) return { ok: false }
    const to = REPLAY_TRANSITIONS[row.state][state]
    if (to === null) return { ok: false }
    this.#parts.database
      .prepare('UPDATE replay_jobs SET state = ?, rate = ?, finished_at = ? WHERE num = ?')
      .run(to, ratePerSecond, IS_REPLAY_OVER[to] ? (row.finished_at ?? atMs) : null, row.num)
    return { ok: true }
  }

  step({ id, position, limit, maxWaiting }: ReplayStep, atMs: number): ReplayStepReply {
    const { database } = this.#parts
    const row = this.#job.get(id) as ReplayJobRow<number> | undefined
    if (row?.state !== 'running') return { ok: false, reason: 'not_running' }
    if (row.position !== position) return { ok: false, reason: 'moved' }
    const doc = replayDoc(row)
    const budget = new StepBudget(row, limit)
    const parts = database
      .prepare(
        'SELECT destination, state, next, place, over, waiting FROM replay_parts WHERE job = ? AND over = 0 ORDER BY turn, destination',
      )
      .all(row.num) as unknown as PartRow[]
    const save = database.prepare(
      'UPDATE replay_parts SET state = ?, next = ?, place = ?, over = ?, waiting = waiting + ?, turn = ? WHERE job = ? AND destination = ?',
    )
    let left = parts.length
    for (const part of parts) {
      if (budget.isSpent) break
      budget.room = part.destination === 0 ? REPLAYED_PER_STEP : maxWaiting - part.waiting
      if (budget.room <= 0 || this.#judge.isHeld(part.destination)) continue
      const before = budget.replayed
      if ('deliveryIds' in doc.selection) this.#walkNamed(doc.selection.deliveryIds, part, budget)
      else this.#walk(row, doc.selection, part, budget)
      if (part.over === 1) left--
      const waiting = part.destination === 0 ? 0 : budget.replayed - before
      save.run(part.state, part.next, part.place, part.over, waiting, position + 1, row.num, part.destination)
    }
    const destinations = this.#oweAll(budget, row.num, atMs)
    const blocked = left > 0 && !budget.isSpent
    if (budget.looks < LOOKS_PER_STEP || left < parts.length || left === 0) this.#save(row, budget, left === 0, atMs)
    const job = replayJobOf(this.#job.get(id) as unknown as ReplayJobRow<number>)
    return {
      ok: true,
      job,
      replayed: budget.replayed,
      blocked,
      destinationIds: [...destinations].map((num) => this.#parts.destinations.id(num)),
    }
  }

  /** Some of the jobs that were over by then. The newest stays: its number must not be given out again while rows may name it. */
  drop(beforeMs: number): number {
    const { database } = this.#parts
    const jobs = database
      .prepare(
        `SELECT num FROM replay_jobs WHERE finished_at < ? AND num < (SELECT max(num) FROM replay_jobs) ORDER BY num LIMIT ${JOBS_PER_STEP}`,
      )
      .all(beforeMs) as { num: number }[]
    for (const { num } of jobs) {
      database.prepare('DELETE FROM replay_parts WHERE job = ?').run(num)
      database.prepare('DELETE FROM replay_jobs WHERE num = ?').run(num)
    }
    return jobs.length
  }

  #save(row: ReplayJobRow<number>, budget: StepBudget, isOver: boolean, atMs: number): void {
    const { replayed, skipped } = progressOf(row, budget, isOver, atMs)
    this.#parts.database
      .prepare('UPDATE replay_jobs SET position = ?, replayed = ?, skipped = ?, state = ?, finished_at = ? WHERE num = ?')
      .run(row.position + 1, replayed, skipped, isOver ? 'finished' : row.state, isOver ? atMs : null, row.num)
  }

  // ── The job's deliveries, from where it stands ──

  #walk(
    row: ReplayJobRow<number>,
    selection: Exclude<ReplayDoc['selection'], { deliveryIds: unknown }>,
    part: PartRow,
    budget: StepBudget,
  ): void {
    const { first, last } = rowRange(selection.fromMs, selection.toMs, row.bound)
    for (; part.state < selection.states.length; part.state++, part.next = first, part.place = 0) {
      const state = selection.states[part.state] as FinalStateName
      const isThrough =
        state === 'delivered'
          ? selection.reason !== null || this.#walkDelivered(part, last, budget)
          : this.#walkFailures(part, state, selection.reason, last, budget)
      if (!isThrough) return
    }
    part.over = 1
  }

  /** False: the step has done what it may before the end. */
  #walkFailures(part: PartRow, state: FinalStateName, reason: string | null, last: number, budget: StepBudget): boolean {
    const rows = this.#failures.iterate(part.destination, state, part.next, last) as unknown as Iterable<{
      id: number
      origin: number
      idx: number
      segment: number
      reason: string | null
    }>
    for (const { id, origin, idx: index, segment, reason: why } of rows) {
      if (budget.isSpent) return false
      budget.looks--
      if (reason === null || why === reason) {
        if (!this.#consider({ destination: part.destination, segment, origin, index, state, named: false }, budget)) return false
      }
      part.next = id + 1
    }
    return true
  }

  #walkDelivered(part: PartRow, last: number, budget: StepBudget): boolean {
    const { destination } = part
    const rows = this.#attempts.iterate(destination, part.next, last) as unknown as Iterable<{
      id: number
      origin: number
      segment: number
      delivered: number
      doc: string
    }>
    for (const { id, origin, segment, delivered, doc } of rows) {
      if (budget.isSpent) return false
      budget.looks--
      if (delivered > 0) {
        const indexes = (JSON.parse(doc) as AttemptDoc).f.flatMap(([state, , of]) => (state === 'delivered' ? of : []))
        for (let place = id === part.next ? part.place : 0; place < indexes.length; place++) {
          part.next = id
          part.place = place
          const index = indexes[place] as number
          if (budget.isSpent || !this.#consider({ destination, segment, origin, index, state: 'delivered', named: false }, budget))
            return false
          budget.looks--
        }
      }
      part.next = id + 1
      part.place = 0
    }
    return true
  }

  #walkNamed(deliveryIds: readonly string[], part: PartRow, budget: StepBudget): void {
    for (; part.next < deliveryIds.length; part.next++) {
      if (budget.isSpent) return
      budget.looks--
      const candidate = this.#judge.named(deliveryIds[part.next] as string, budget)
      if (typeof candidate === 'string') budget.skip(candidate)
      else if (!this.#consider(candidate, budget)) return
    }
    part.over = 1
  }

  /** Owes it again or skips it. False: it would be owed again, and there is no room for it now. */
  #consider(candidate: ReplayCandidate, budget: StepBudget): boolean {
    const found = budget.hasQueued(candidate) ? 'already_replayed' : this.#judge.obstacle(candidate, budget)
    if (typeof found === 'object') return budget.owe({ ...candidate, ...found })
    budget.skip(found)
    return true
  }

  // ── Owing ──

  #oweAll(budget: StepBudget, job: number, atMs: number): Set<number> {
    const destinations = new Set<number>()
    for (const { destination, segment, entries } of budget.owed.values()) {
      destinations.add(destination)
      entries.sort((a, b) => a.index - b.index)
      for (let at = 0; at < entries.length; at += MESSAGES_PER_SHIPMENT) {
        this.#owe(destination, segment, entries.slice(at, at + MESSAGES_PER_SHIPMENT), job, atMs)
      }
    }
    return destinations
  }

  /** As one shipment, in which each delivery has its own name. */
  #owe(
    destination: number,
    segment: number,
    entries: readonly { index: number; replayOf: string }[],
    job: number | null,
    atMs: number,
  ): number {
    const { ids, destinations, ledger, settler } = this.#parts
    const origin = ids.next()
    for (const { index, replayOf } of entries) {
      this.#insert.run(origin, index, destination, segment, replayOf, atMs, job)
      this.#deletions.replayed(Number.parseInt(replayOf, 10), origin, segment, index, destination)
    }
    settler.insertShipment(destination, {
      destinationId: destinations.id(destination),
      attempt: 0,
      firstAttemptAtMs: null,
      dueAtMs: 0,
      unit: false,
      urls: null,
      replay: true,
      parts: [{ origin, segment, indexes: entries.map(({ index }) => index) }],
    })
    ledger.owe(destination, entries.length)
    return origin
  }
}
