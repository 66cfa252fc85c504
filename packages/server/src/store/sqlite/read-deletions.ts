// Deletion requests as they are asked for, with their state per user, source and destination, and who is suppressed.

import type { DeletionDetail, DeletionState, DeletionSummary, DeletionTarget, FinalStateName, Page, PageRequest } from '../store.ts'
import { cursorOf, NEWEST } from './paging.ts'
import type { Rows } from './rows.ts'

export class DeletionReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  list({ limit, cursor }: PageRequest): Page<DeletionSummary> {
    const [start] = cursorOf('d', cursor, [NEWEST])
    const rows = this.#rows.all('SELECT num FROM deletions WHERE num <= ? ORDER BY num DESC LIMIT ?', start, limit + 1) as { num: number }[]
    const data = rows.slice(0, limit).map(({ num }) => {
      const { targets: _, ...summary } = this.#deletion(num)
      return summary
    })
    return { data, next: rows.length > limit ? JSON.stringify(['d', rows[limit]?.num]) : null }
  }

  one(id: string): DeletionDetail | undefined {
    const row = this.#rows.get('SELECT num FROM deletions WHERE id = ?', id) as { num: number } | undefined
    return row && this.#deletion(row.num)
  }

  suppressions({ limit, cursor }: PageRequest): Page<{ userId: string; sourceId: string; since: number }> {
    const [source, userId] = cursorOf('u', cursor, [0, ''])
    const rows = this.#rows.all(
      'SELECT source, user_id AS userId, since FROM suppressions WHERE (source, user_id) >= (?, ?) ORDER BY source, user_id LIMIT ?',
      source,
      userId,
      limit + 1,
    ) as { source: number; userId: string; since: number }[]
    const next = rows[limit]
    const data = rows.slice(0, limit).map((row) => ({ userId: row.userId, sourceId: this.#rows.sources.id(row.source), since: row.since }))
    return { data, next: next ? JSON.stringify(['u', next.source, next.userId]) : null }
  }

  #deletion(num: number): DeletionDetail {
    const row = this.#rows.get('SELECT * FROM deletions WHERE num = ?', num) as {
      id: string
      created_at: number
      suppress: number
      user_ids: string
      sources: string
      purged: number
      purge_cursor: number
      purge_end: number
    }
    const userIds = JSON.parse(row.user_ids) as string[]
    const sources = JSON.parse(row.sources) as number[]
    const purged = row.purge_cursor >= row.purge_end
    // A delete message is alone in its segment, so that the counts of its attempts say how it ended.
    const sent = this.#rows.all(
      `SELECT t.user_id AS userId, t.source, t.destination, t.origin, t.final, ifnull(max(a.attempt), 0) AS attempts,
              ifnull(sum(a.delivered), 0) AS delivered, ifnull(sum(a.failed + a.expired + a.cancelled), 0) AS failed
       FROM deletion_targets t LEFT JOIN attempts a ON a.origin = t.origin
       WHERE t.deletion = ? GROUP BY t.user_id, t.source, t.destination`,
      num,
    ) as {
      userId: string
      source: number
      destination: number
      origin: number
      final: FinalStateName | null
      attempts: number
      delivered: number
      failed: number
    }[]
    const targets = sent.map(({ userId, source, destination, origin, final, attempts, delivered, failed }): DeletionTarget => {
      const isDelivered = delivered > 0 || final === 'delivered'
      const state = targetState(isDelivered ? 'delivered' : failed > 0 || final !== null ? 'failed' : undefined, attempts, purged)
      return {
        userId,
        sourceId: this.#rows.sources.id(source),
        destinationId: this.#rows.destinations.id(destination),
        deliveryId: `${origin}-0`,
        state,
      }
    })
    const withDestination = new Set(sent.map(({ userId, source }) => `${source} ${userId}`))
    for (const source of sources) {
      for (const userId of userIds) {
        if (withDestination.has(`${source} ${userId}`)) continue
        const state = purged ? 'finished' : 'running'
        targets.push({ userId, sourceId: this.#rows.sources.id(source), destinationId: null, deliveryId: null, state })
      }
    }
    return {
      id: row.id,
      createdAtMs: row.created_at,
      suppress: row.suppress === 1,
      userCount: userIds.length,
      sourceIds: sources.map((source) => this.#rows.sources.id(source)),
      state: overall(targets, purged),
      purged: row.purged,
      targets,
    }
  }
}

function targetState(final: 'delivered' | 'failed' | undefined, attempts: number, purged: boolean): DeletionState {
  if (final === undefined) return attempts > 0 ? 'running' : 'pending'
  if (final !== 'delivered') return 'failed'
  return purged ? 'finished' : 'running'
}

function overall(targets: readonly DeletionTarget[], purged: boolean): DeletionState {
  const states = new Set(targets.map(({ state }) => state))
  if (states.has('running') || !purged) return 'running'
  if (states.has('pending')) return states.size === 1 ? 'pending' : 'running'
  return states.has('failed') ? 'failed' : 'finished'
}
