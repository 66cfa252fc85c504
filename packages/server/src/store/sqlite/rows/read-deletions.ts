// Deletion requests as they are asked for, with their state per user, source and destination, and who is suppressed.

import type { DeletionQuestion, NamedUser } from '../../deletions/deletion-question.ts'
import { cursorOf, NEWEST, ROWS_PER_PAGE } from '../../history/paging.ts'
import type {
  DeletionDetail,
  DeletionState,
  DeletionSummary,
  DeletionTarget,
  FinalStateName,
  Page,
  PageRequest,
  Suppression,
  SuppressionFilter,
} from '../../store.ts'
import type { Rows } from './rows.ts'

interface DeletionRow {
  num: number
  id: string
  created_at: number
  suppress: number
  user_ids: string
  sources: string
  purged: number
  purge_cursor: number
  purge_end: number
  ended: 'finished' | 'failed' | null
}

interface TargetRow {
  destination: number
  origin: number
  final: FinalStateName | null
  attempts: number
  delivered: number
  failed: number
}

/** Users of the requests that one page may look through before it answers with what it has. */
const USERS_PER_PAGE = 200_000

/** With a request itself; a request may have many more. */
const TARGETS_SHOWN = 1_000

/** A delete message is alone in its segment, so that the counts of its attempts say how it ended. */
const TARGETS = `
  SELECT t.destination, t.origin, t.final, ifnull(max(a.attempt), 0) AS attempts,
         ifnull(sum(a.delivered), 0) AS delivered, ifnull(sum(a.failed + a.expired + a.cancelled), 0) AS failed
  FROM deletion_targets t LEFT JOIN attempts a ON a.origin = t.origin`

export class DeletionReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  list({ state, user }: DeletionQuestion, { limit, cursor }: PageRequest): Page<DeletionSummary> {
    const [start] = cursorOf('d', cursor, [NEWEST])
    const rows = this.#rows.database
      .prepare('SELECT * FROM deletions WHERE num <= ? ORDER BY num DESC')
      .iterate(start) as unknown as Iterable<DeletionRow>
    const data: DeletionSummary[] = []
    let users = 0
    for (const row of rows) {
      if (data.length === limit || users > USERS_PER_PAGE) return { data, next: JSON.stringify(['d', row.num]) }
      const userIds = JSON.parse(row.user_ids) as string[]
      users += userIds.length
      if (user !== undefined && indexOf(userIds, user) === -1) continue
      const summary = this.#summary(row, userIds)
      if (state === undefined || summary.state === state) data.push(summary)
    }
    return { data, next: null }
  }

  /** Whether any has users by their ids. */
  areNamed(): boolean {
    return this.#rows.get('SELECT 1 FROM deletions WHERE pseudonyms = 0 LIMIT 1') !== undefined
  }

  one(id: string): DeletionDetail | undefined {
    const row = this.#row(id)
    if (row === undefined) return undefined
    const userIds = JSON.parse(row.user_ids) as string[]
    return {
      ...this.#summary(row, userIds),
      targetCounts: this.#counts(row, userIds.length),
      firstTargets: this.targets(id, {}, { limit: TARGETS_SHOWN, cursor: null }),
    }
  }

  /** In the order of the request's users and sources, by where in them each page begins. */
  targets(id: string, { state, user }: DeletionQuestion, { limit, cursor }: PageRequest): Page<DeletionTarget> {
    const row = this.#row(id)
    if (row === undefined) return { data: [], next: null }
    const start = cursorOf('t', cursor, [0, 0, 0])
    const userIds = JSON.parse(row.user_ids) as string[]
    const only = user === undefined ? undefined : indexOf(userIds, user)
    if (only === -1) return { data: [], next: null }
    const [first, last] = only === undefined ? [start[0], userIds.length - 1] : [Math.max(only, start[0]), only]
    const sources = JSON.parse(row.sources) as number[]
    const purged = isPurged(row)
    const data: DeletionTarget[] = []
    let seen = 0
    for (let at = first; at <= last; at++) {
      const userId = userIds[at] as string
      for (let sourceAt = at === start[0] ? start[1] : 0; sourceAt < sources.length; sourceAt++) {
        const source = sources[sourceAt] as number
        const from = at === start[0] && sourceAt === start[1] ? start[2] : 0
        for (const target of this.#targetsOf(row.num, userId, source, purged)) {
          const { destination, ...rest } = target
          if (destination < from) continue
          if (data.length === limit || ++seen > ROWS_PER_PAGE) {
            return { data, next: JSON.stringify(['t', at, sourceAt, destination]) }
          }
          if (state === undefined || target.state === state) data.push({ userId, sourceId: this.#rows.sources.id(source), ...rest })
        }
      }
    }
    return { data, next: null }
  }

  suppressions({ userId, sourceId }: SuppressionFilter, { limit, cursor }: PageRequest): Page<Suppression> {
    const [source, user] = cursorOf('u', cursor, [0, ''])
    const only = sourceId === undefined ? undefined : this.#rows.sources.num(sourceId)
    if (sourceId !== undefined && only === undefined) return { data: [], next: null }
    const conditions = ['(p.source, p.user_id) >= (?, ?)']
    const values: (number | string)[] = [source, user]
    if (only !== undefined) {
      conditions.push('p.source = ?')
      values.push(only)
    }
    if (userId !== undefined) {
      conditions.push('p.user_id = ?')
      values.push(userId)
    }
    // One user is looked up source by source: there is no index by user, and there are few sources.
    const from = userId === undefined ? 'suppressions p' : 'sources s CROSS JOIN suppressions p ON p.source = s.num'
    const rows = this.#rows.all(
      `SELECT p.source, p.user_id AS userId, p.since FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY p.source, p.user_id LIMIT ?`,
      ...values,
      limit + 1,
    ) as { source: number; userId: string; since: number }[]
    const next = rows[limit]
    const data = rows.slice(0, limit).map((row) => ({ userId: row.userId, sourceId: this.#rows.sources.id(row.source), since: row.since }))
    return { data, next: next ? JSON.stringify(['u', next.source, next.userId]) : null }
  }

  #row(id: string): DeletionRow | undefined {
    return this.#rows.get('SELECT * FROM deletions WHERE id = ?', id) as DeletionRow | undefined
  }

  #summary(row: DeletionRow, userIds: readonly string[]): DeletionSummary {
    return {
      id: row.id,
      createdAtMs: row.created_at,
      suppress: row.suppress === 1,
      userCount: userIds.length,
      sourceIds: (JSON.parse(row.sources) as number[]).map((source) => this.#rows.sources.id(source)),
      state: row.ended ?? overall(this.#counts(row, userIds.length), isPurged(row)),
      purged: row.purged,
    }
  }

  #counts(row: DeletionRow, users: number): Record<DeletionState, number> {
    const purged = isPurged(row)
    const counts: Record<DeletionState, number> = { pending: 0, running: 0, finished: 0, failed: 0 }
    const sent = this.#rows.database
      .prepare(`${TARGETS} WHERE t.deletion = ? GROUP BY t.user_id, t.source, t.destination`)
      .iterate(row.num) as unknown as Iterable<TargetRow>
    for (const target of sent) counts[targetState(target, purged)] += 1
    const told = this.#rows.get('SELECT count(DISTINCT source) AS count FROM deletion_targets WHERE deletion = ?', row.num)
    const quiet = (JSON.parse(row.sources) as number[]).length - (told as { count: number }).count
    counts[purged ? 'finished' : 'running'] += quiet * users
    return counts
  }

  /** Of a user at a source that has nobody to tell there is one, without a destination. */
  #targetsOf(
    deletion: number,
    userId: string,
    source: number,
    purged: boolean,
  ): (Omit<DeletionTarget, 'userId' | 'sourceId'> & { destination: number })[] {
    const sent = this.#rows.all(
      `${TARGETS} WHERE t.deletion = ? AND t.user_id = ? AND t.source = ? GROUP BY t.destination ORDER BY t.destination`,
      deletion,
      userId,
      source,
    ) as TargetRow[]
    if (sent.length === 0) return [{ destination: 0, destinationId: null, deliveryId: null, state: purged ? 'finished' : 'running' }]
    return sent.map((target) => ({
      destination: target.destination,
      destinationId: this.#rows.destinations.id(target.destination),
      deliveryId: `${target.origin}-0`,
      state: targetState(target, purged),
    }))
  }
}

function indexOf(userIds: readonly string[], { userId, pseudonym }: NamedUser): number {
  const at = userIds.indexOf(userId)
  return at === -1 ? userIds.indexOf(pseudonym) : at
}

function isPurged({ purge_cursor: cursor, purge_end: end }: DeletionRow): boolean {
  return cursor >= end
}

function targetState({ final, attempts, delivered, failed }: TargetRow, purged: boolean): DeletionState {
  if (delivered > 0 || final === 'delivered') return purged ? 'finished' : 'running'
  if (failed > 0 || final !== null) return 'failed'
  return attempts > 0 ? 'running' : 'pending'
}

function overall(counts: Record<DeletionState, number>, purged: boolean): DeletionState {
  if (counts.running > 0 || !purged) return 'running'
  if (counts.pending > 0) return counts.finished + counts.failed > 0 ? 'running' : 'pending'
  return counts.failed > 0 ? 'failed' : 'finished'
}
