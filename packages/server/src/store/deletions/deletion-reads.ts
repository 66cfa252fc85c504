// Lists and details of deletion requests, with their state per user, source and destination, and the list of suppressed users.

import { groupBy } from '../encoding/group-by.ts'
import { cursorOf, ROWS_PER_PAGE, rowCursorOf, walk } from '../history/paging.ts'
import type { DeletionDetail, DeletionState, DeletionSummary, DeletionTarget, Suppression, SuppressionFilter } from '../port/deletions.ts'
import { InvalidCursor, type Page, type PageRequest, type RowId } from '../store.ts'
import type { DeletionRow, DeletionRows, TargetRow } from './deletion-rows.ts'
import { countTargets, type StateCounts, stateOf, targetState } from './deletion-state.ts'

/** One page looks at no more than this many users of requests before it returns what it has found. */
const USERS_PER_PAGE = 200_000
/** Requests that are read at once. Each may have thousands of users. */
const REQUESTS_AT_ONCE = 20
/** The number of targets that are returned with a request. A request may have many more. */
const TARGETS_SHOWN = 1_000
/** Users whose targets are read at once. */
const USERS_AT_ONCE = 250

/** A filter with both the user's id and pseudonym, because requests that ended long ago contain only the pseudonym. */
export interface DeletionQuery {
  state?: DeletionState | undefined
  sourceIds?: readonly string[] | undefined
  user?: { userId: string; pseudonym: string } | undefined
}

/** The methods of DeletionReads, which may run in another thread. */
export type DeletionAnswers = Pick<DeletionReads<RowId>, keyof DeletionReads<RowId>>

export class DeletionReads<Id extends RowId> {
  readonly #rows: DeletionRows<Id>

  constructor(rows: DeletionRows<Id>) {
    this.#rows = rows
  }

  async list({ state, user, sourceIds }: DeletionQuery, { limit, cursor }: PageRequest): Promise<Page<DeletionSummary>> {
    const { order } = this.#rows
    const [start] = rowCursorOf(order, 'd', cursor, [order.newest])
    const rows = walk<DeletionRow<Id>, Id>(
      start,
      ({ num }) => order.before(num),
      (from, count) => this.#rows.newest(from, count),
      REQUESTS_AT_ONCE,
    )
    const data: DeletionSummary[] = []
    let users = 0
    for await (const row of rows) {
      if (data.length === limit || users > USERS_PER_PAGE) return { data, next: JSON.stringify(['d', row.num]) }
      const userIds = JSON.parse(row.userIds) as string[]
      users += userIds.length
      if (user !== undefined && indexOf(userIds, user) === -1) continue
      const summary = await this.#summary(row, userIds)
      if (sourceIds !== undefined && !summary.sourceIds.every((id) => sourceIds.includes(id))) continue
      if (state === undefined || summary.state === state) data.push(summary)
    }
    return { data, next: null }
  }

  async one(id: string): Promise<DeletionDetail | undefined> {
    const row = await this.#rows.byId(id)
    if (row === undefined) return undefined
    const userIds = JSON.parse(row.userIds) as string[]
    const targetCounts = await countTargets(this.#rows, row, userIds.length)
    return {
      ...(await this.#summary(row, userIds, targetCounts)),
      targetCounts,
      firstTargets: await this.#targets(row, {}, { limit: TARGETS_SHOWN, cursor: null }),
    }
  }

  async targets(id: string, query: DeletionQuery, page: PageRequest): Promise<Page<DeletionTarget>> {
    const row = await this.#rows.byId(id)
    return row === undefined ? { data: [], next: null } : this.#targets(row, query, page)
  }

  async suppressions(filter: SuppressionFilter, { limit, cursor }: PageRequest): Promise<Page<Suppression>> {
    const { order } = this.#rows
    const [source, user] = cursorOf('u', cursor, [order.oldest, ''])
    if (!order.isRowId(source)) throw new InvalidCursor()
    const rows = await this.#rows.suppressions(filter, source, user, limit + 1)
    const next = rows[limit]
    return {
      data: rows.slice(0, limit).map(({ userId, sourceId, since }) => ({ userId, sourceId, since })),
      next: next === undefined ? null : JSON.stringify(['u', next.source, next.userId]),
    }
  }

  async hasUserIds(): Promise<boolean> {
    return this.#rows.hasUserIds()
  }

  async #summary(row: DeletionRow<Id>, userIds: readonly string[], counts?: StateCounts): Promise<DeletionSummary> {
    return {
      id: row.id,
      createdAtMs: row.createdAtMs,
      suppress: row.suppress,
      userCount: userIds.length,
      sourceIds: await this.#rows.sourceIds(JSON.parse(row.sources) as Id[]),
      state: row.ended ?? stateOf(counts ?? (await countTargets(this.#rows, row, userIds.length)), row.isPurged),
      purged: row.purged,
    }
  }

  /** In the order of the request's users and sources. A cursor holds the user, the source and the target at which the page begins. */
  async #targets(row: DeletionRow<Id>, { state, user }: DeletionQuery, { limit, cursor }: PageRequest): Promise<Page<DeletionTarget>> {
    const start = cursorOf('t', cursor, [0, 0, 0])
    const userIds = JSON.parse(row.userIds) as string[]
    const only = user === undefined ? undefined : indexOf(userIds, user)
    if (only === -1) return { data: [], next: null }
    const [first, end] = only === undefined ? [start[0], userIds.length] : [Math.max(only, start[0]), only + 1]
    const sources = JSON.parse(row.sources) as Id[]
    const sourceIds = await this.#rows.sourceIds(sources)
    const users = walk<{ at: number; userId: string; targets: ReadonlyMap<string, TargetRow<Id>[]> }, number>(
      first,
      ({ at }) => at + 1,
      async (from, count) => {
        const asked = userIds.slice(from, Math.min(from + count, end))
        const targets = groupBy(await this.#rows.targets(row.num, asked), (target) => `${target.source} ${target.userId}`)
        return asked.map((userId, nth) => ({ at: from + nth, userId, targets }))
      },
      USERS_AT_ONCE,
    )
    const data: DeletionTarget[] = []
    /** The sources with delete messages. Read only if a user of a source has none. */
    let told: Set<Id> | undefined
    let seen = 0
    for await (const { at, userId, targets } of users) {
      const isFirst = at === start[0]
      for (let sourceAt = isFirst ? start[1] : 0; sourceAt < sources.length; sourceAt++) {
        const source = sources[sourceAt] as Id
        const found = targets.get(`${source} ${userId}`)
        if (found === undefined) told ??= new Set((await this.#rows.progress(row.num)).map((each) => each.source))
        // If a source hashes user ids, its destinations know a user by the hash alone.
        const shown = found ?? (told?.has(source) ? [] : [null])
        for (let nth = isFirst && sourceAt === start[1] ? start[2] : 0; nth < shown.length; nth++) {
          if (data.length === limit || ++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify(['t', at, sourceAt, nth]) }
          const target = shown[nth] ?? null
          const own = targetState(target, row.isPurged)
          if (state !== undefined && own !== state) continue
          data.push({
            userId,
            sourceId: sourceIds[sourceAt] as string,
            destinationId: target?.destinationId ?? null,
            deliveryId: target && `${target.origin}-0`,
            state: own,
          })
        }
      }
    }
    return { data, next: null }
  }
}

function indexOf(userIds: readonly string[], { userId, pseudonym }: NonNullable<DeletionQuery['user']>): number {
  const at = userIds.indexOf(userId)
  return at === -1 ? userIds.indexOf(pseudonym) : at
}
