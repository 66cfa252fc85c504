// The part of the replay port that is the same for both adapters: one delivery, and jobs with many.
//
// A job covers the rows with ids below a bound, which is higher than the ids of all rows that are committed when the job is created. Deliveries
// that reach the state later have higher row ids, and so have failures of the job's own replays. The rows are counted before the job is
// written, in pages that do not block writers. With several nodes, a row gets its id before its commit, so a row below the bound may be
// committed after the count. If the job finds such a row, it replays it too and its total grows, so that the number done never exceeds the
// total. If the row is committed behind the job's position, it is left to the next job. If the clocks of nodes differ, a job may find failures of
// its own replays; it never sends a message twice: see replay-judge.ts.

import { ROWS_PER_PAGE, rowCursorOf, walk } from '../history/paging.ts'
import type { Configuration, ReplayCount, ReplayJob, ReplaySelection, ReplayStore, RowId } from '../store.ts'
import {
  IS_REPLAY_OVER,
  isLimitedTo,
  newReplayJob,
  REPLAY_TRANSITIONS,
  type ReplayJobRow,
  replayJobOf,
  rowRange,
} from './replay-job-row.ts'
import type { CountedRows, ReplayJobRows, RowCount } from './replay-rows.ts'

const IDS_PER_PAGE = 200
/** Fewer than for failures, because the docs of attempts may have to be read too. */
const ATTEMPTS_PER_PAGE = 5_000

export interface ReplayStoreDeps {
  nowMs: () => number
  configuration: () => Configuration
  /** Tells delivery that the store has new work for the destination. */
  wake: (destinationId: string) => void
}

export class CommonReplayStore<Id extends RowId> implements ReplayStore {
  readonly #jobs: ReplayJobRows<Id>
  readonly #deps: ReplayStoreDeps

  constructor(jobs: ReplayJobRows<Id>, deps: ReplayStoreDeps) {
    this.#jobs = jobs
    this.#deps = deps
  }

  replay: ReplayStore['replay'] = async (deliveryId, audit, { resume = false } = {}) => {
    const reply = await this.#jobs.replay(deliveryId, resume, this.#nowMs(), audit?.({ deliveryId }, null))
    if (!reply.ok) return reply
    const { destinationId, ...result } = reply
    this.#deps.wake(destinationId)
    return result
  }

  count: ReplayStore['count'] = async (selection) => this.#count(selection, await this.#jobs.bound())

  create: ReplayStore['create'] = async (asked, audit) => {
    const { order } = this.#jobs
    const { selection } = asked
    const bound = await this.#jobs.bound()
    const counted = 'archive' in selection ? null : await this.#count(selection, bound)
    const total = counted?.total ?? asked.expected ?? 0
    const job = newReplayJob(asked, total, this.#nowMs())
    const isMatching = 'states' in selection
    const first = isMatching ? rowRange(order, selection, bound).first : order.oldest
    const ofDestinations = counted?.byDestination.map(({ destinationId }) => destinationId)
    const destinationIds = 'deliveryIds' in selection ? null : (ofDestinations ?? ['archive' in selection ? selection.destinationId : ''])
    await this.#jobs.insert({ job, bound, first, destinationIds }, audit?.(job, null))
    return job
  }

  update: ReplayStore['update'] = async (id, change, audit) => {
    for (;;) {
      const before = await this.one(id)
      if (before === undefined) return { ok: false, reason: 'not_found' }
      const state = change.state === undefined ? before.state : REPLAY_TRANSITIONS[before.state][change.state]
      const ratePerSecond = change.ratePerSecond === undefined ? before.ratePerSecond : change.ratePerSecond
      if (state === before.state && ratePerSecond === before.ratePerSecond) return { ok: true, job: before }
      if (state === null || IS_REPLAY_OVER[before.state]) return { ok: false, reason: 'over' }
      const atMs = this.#nowMs()
      const after: ReplayJob = { ...before, state, ratePerSecond, finishedAtMs: IS_REPLAY_OVER[state] ? atMs : null }
      const isChanged = await this.#jobs.change(id, before, after, atMs, audit?.(after, before))
      if (isChanged) return { ok: true, job: (await this.one(id)) ?? after }
      // A step or another change was made in between, so try again.
    }
  }

  list: ReplayStore['list'] = async ({ state, sourceIds }, { limit, cursor }) => {
    const { order } = this.#jobs
    const [start] = rowCursorOf(order, 'r', cursor, [order.newest])
    const rows = walk<ReplayJobRow<Id>, Id>(
      start,
      ({ num }) => order.before(num),
      (from, count) => this.#jobs.newest(state, from, count),
      limit + 1,
    )
    const data: ReplayJob[] = []
    for await (const row of rows) {
      const job = replayJobOf(row)
      if (sourceIds !== undefined && !isLimitedTo(sourceIds, job)) continue
      if (data.length === limit) return { data, next: JSON.stringify(['r', row.num]) }
      data.push(job)
    }
    return { data, next: null }
  }

  one: ReplayStore['one'] = async (id) => {
    const row = await this.#jobs.one(id)
    return row && replayJobOf(row)
  }

  step: ReplayStore['step'] = async (step) => {
    const reply = await this.#jobs.step(step)
    if (!reply.ok) return reply
    const { destinationIds, ...result } = reply
    for (const destinationId of destinationIds) this.#deps.wake(destinationId)
    return result
  }

  async #count(selection: ReplaySelection, bound: Id): Promise<ReplayCount> {
    if ('deliveryIds' in selection) return this.#countByIds(selection)
    // They are in the lake, not here.
    if ('archive' in selection) return summed([])
    const { order } = this.#jobs
    const { destinationId: only, states, reason, toMs, sourceIds } = selection
    const { first, last } = rowRange(order, selection, bound)
    // The state alone shows whether a later delivery belongs to the selection only if there is no filter by reason or end of the time range.
    const instead = reason === null && toMs === null ? states.filter((state) => state !== 'delivered') : []
    const counted: ReplayCount['byDestination'] = []
    for (const destinationId of only === null ? this.#deps.configuration().destinations.keys() : [only]) {
      const own = { destinationId, total: 0, alreadyReplayed: 0 }
      for (const state of states) {
        // Delivered deliveries have no reason.
        if (state === 'delivered' && reason !== null) continue
        const limit = state === 'delivered' ? ATTEMPTS_PER_PAGE : ROWS_PER_PAGE
        for (let from: Id | null = first; from !== null; ) {
          const page: CountedRows<Id> = { destinationId, sourceIds, first: from, last, limit }
          const { seen, newest, total, replayed }: RowCount<Id> = await (state === 'delivered'
            ? this.#jobs.countDelivered(page)
            : this.#jobs.countFailures({ ...page, state, reason, instead }))
          own.total += total
          own.alreadyReplayed += replayed
          from = seen < limit || newest === null ? null : order.after(newest)
        }
      }
      if (own.total > 0) counted.push(own)
    }
    return summed(counted)
  }

  /** Counts the deliveries that exist. `total` counts all ids. */
  async #countByIds({ deliveryIds, sourceIds }: Extract<ReplaySelection, { deliveryIds: unknown }>): Promise<ReplayCount> {
    const counts = new Map<string, ReplayCount['byDestination'][number]>()
    for (let at = 0; at < deliveryIds.length; at += IDS_PER_PAGE) {
      const found = await this.#jobs.countByIds(deliveryIds.slice(at, at + IDS_PER_PAGE), sourceIds)
      for (const { destinationId, replayed } of found) {
        const own = counts.get(destinationId) ?? { destinationId, total: 0, alreadyReplayed: 0 }
        counts.set(destinationId, { destinationId, total: own.total + 1, alreadyReplayed: own.alreadyReplayed + (replayed ? 1 : 0) })
      }
    }
    return { ...summed([...counts.values()]), total: deliveryIds.length }
  }

  #nowMs(): number {
    return Math.floor(this.#deps.nowMs())
  }
}

function summed(byDestination: ReplayCount['byDestination']): ReplayCount {
  const sum = (of: 'total' | 'alreadyReplayed'): number => byDestination.reduce((all, own) => all + own[of], 0)
  return { total: sum('total'), alreadyReplayed: sum('alreadyReplayed'), byDestination }
}
