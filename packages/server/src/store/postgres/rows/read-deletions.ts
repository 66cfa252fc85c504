// Deletion requests as they are asked for, with their state per user, source and destination. Every answer is of one moment. Users stand in columns as texts.ts writes them, and in the JSON of a request as they are.

import type { DeletionQuestion, NamedUser } from '../../deletions/deletion-question.ts'
import { cursorOf, ROWS_PER_PAGE } from '../../history/paging.ts'
import {
  type DeletionDetail,
  type DeletionState,
  type DeletionSummary,
  type DeletionTarget,
  type FinalStateName,
  InvalidCursor,
  type Page,
  type PageRequest,
} from '../../store.ts'
import { isRowId, NEWEST, SKEW } from '../schema/ids.ts'
import type { Ask, Database } from '../session/database.ts'
import { readText, writeText } from '../session/texts.ts'
import { rowCursorOf } from './paging.ts'

interface DeletionRow {
  num: string
  id: string
  created_at: number
  suppress: boolean
  user_ids: string
  sources: string
  purged: number
  is_purged: boolean
  ended: 'finished' | 'failed' | null
}

interface TargetRow {
  user_id: string
  source: string
  destination: string
  destination_id: string
  origin: string
  final: FinalStateName | null
  attempts: number
  delivered: number
  failed: number
}

const COLUMNS = 'num, id, created_at, suppress, user_ids, sources, purged, purge_cursor >= purge_end AS is_purged, ended'

/** Users of the requests that one page may look through before it answers with what it has. */
const USERS_PER_PAGE = 200_000
/** Each may have thousands of users. */
const REQUESTS_AT_ONCE = 20
/** With a request itself; a request may have many more. */
const TARGETS_SHOWN = 1_000
/** Users whose targets are asked for together. */
const USERS_AT_ONCE = 250
/** In the place of a destination, where there is only the purge. */
const NO_DESTINATION = '0'

/**
 * A delete message is alone in its segment, so that the counts of its attempts say how it ended. They were all made after the
 * request ($1), of whose age the partitions before need not be looked at.
 */
const TARGETS = `
  SELECT t.user_id, t.source, t.destination, t.origin, t.final, coalesce(max(a.attempt), 0) AS attempts,
         coalesce(sum(a.delivered), 0) AS delivered, coalesce(sum(a.failed + a.expired + a.cancelled), 0) AS failed
  FROM deletion_targets t LEFT JOIN attempts a ON a.origin = t.origin AND a.id > $1::bigint - ${SKEW}
  WHERE t.deletion = $1`
/** By the key of deletion_targets, on which the other columns depend. */
const EACH = 'GROUP BY t.deletion, t.user_digest, t.source, t.destination'

/** By digest, as the key has them. */
const OF_USERS = 't.user_digest = ANY(ARRAY(SELECT digest_of(u) FROM unnest($2::text[]) AS u))'

/** How the delete messages of a request stand: `open` have not ended, `failed` ended without success. */
export async function countEnds(ask: Ask, deletion: string): Promise<{ open: number; failed: number }> {
  const { rows } = await ask<{ open: number; failed: number }>(
    `SELECT count(*) FILTER (WHERE final IS NULL AND delivered + failed = 0) AS open,
            count(*) FILTER (WHERE coalesce(final, 'delivered') <> 'delivered' OR failed > 0) AS failed
     FROM (${TARGETS} ${EACH}) e`,
    [deletion],
  )
  return rows[0] as { open: number; failed: number }
}

export class DeletionReads {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  list({ state, user }: DeletionQuestion, { limit, cursor }: PageRequest): Promise<Page<DeletionSummary>> {
    const [start] = rowCursorOf('d', cursor, [NEWEST])
    return this.#snapshot(async (ask) => {
      const data: DeletionSummary[] = []
      let users = 0
      for (let from = start; ; ) {
        const { rows } = await ask<DeletionRow>(
          `SELECT ${COLUMNS} FROM deletions WHERE num <= $1 ORDER BY num DESC LIMIT ${REQUESTS_AT_ONCE}`,
          [from],
        )
        for (const row of rows) {
          if (data.length === limit || users > USERS_PER_PAGE) return { data, next: JSON.stringify(['d', row.num]) }
          const userIds = JSON.parse(row.user_ids) as string[]
          users += userIds.length
          if (user !== undefined && indexOf(userIds, user) === -1) continue
          const own = row.ended ?? overall(await countsOf(ask, row, userIds.length), row.is_purged)
          if (state === undefined || own === state) data.push(await summaryOf(ask, row, userIds, own))
        }
        const last = rows.at(-1)
        if (last === undefined || rows.length < REQUESTS_AT_ONCE) return { data, next: null }
        from = String(BigInt(last.num) - 1n)
      }
    })
  }

  /** Whether any has users by their ids. */
  async areNamed(): Promise<boolean> {
    const { rows } = await this.#database.query('SELECT 1 FROM deletions WHERE NOT pseudonyms LIMIT 1')
    return rows.length > 0
  }

  one(id: string): Promise<DeletionDetail | undefined> {
    return this.#snapshot(async (ask) => {
      const row = await rowOf(ask, id)
      if (row === undefined) return undefined
      const userIds = JSON.parse(row.user_ids) as string[]
      const targetCounts = await countsOf(ask, row, userIds.length)
      return {
        ...(await summaryOf(ask, row, userIds, row.ended ?? overall(targetCounts, row.is_purged))),
        targetCounts,
        firstTargets: await targetsOf(ask, row, {}, { limit: TARGETS_SHOWN, cursor: null }),
      }
    })
  }

  targets(id: string, question: DeletionQuestion, page: PageRequest): Promise<Page<DeletionTarget>> {
    return this.#snapshot(async (ask) => {
      const row = await rowOf(ask, id)
      return row === undefined ? { data: [], next: null } : targetsOf(ask, row, question, page)
    })
  }

  #snapshot<T>(work: (ask: Ask) => Promise<T>): Promise<T> {
    return this.#database.transaction(work, { readOnly: true })
  }
}

async function rowOf(ask: Ask, id: string): Promise<DeletionRow | undefined> {
  const { rows } = await ask<DeletionRow>(`SELECT ${COLUMNS} FROM deletions WHERE id = $1`, [writeText(id)])
  return rows[0]
}

async function summaryOf(ask: Ask, row: DeletionRow, userIds: readonly string[], state: DeletionState): Promise<DeletionSummary> {
  return {
    id: row.id,
    createdAtMs: row.created_at,
    suppress: row.suppress,
    userCount: userIds.length,
    sourceIds: [...(await sourcesOf(ask, row)).values()],
    state,
    purged: row.purged,
  }
}

/** The ids of the request's sources by `num`, in its order. */
async function sourcesOf(ask: Ask, row: DeletionRow): Promise<Map<string, string>> {
  const { rows } = await ask<{ num: string; id: string }>(
    'SELECT num, s.id FROM unnest($1::bigint[]) WITH ORDINALITY AS u (num, nth) JOIN sources s USING (num) ORDER BY nth',
    [JSON.parse(row.sources) as string[]],
  )
  return new Map(rows.map(({ num, id }) => [num, id]))
}

async function countsOf(ask: Ask, row: DeletionRow, users: number): Promise<Record<DeletionState, number>> {
  const counts: Record<DeletionState, number> = { pending: 0, running: 0, finished: 0, failed: 0 }
  const { rows } = await ask<{ final: FinalStateName | null; attempts: number; delivered: number; failed: number; count: number }>(
    `SELECT final, least(attempts, 1) AS attempts, least(delivered, 1) AS delivered, least(failed, 1) AS failed, count(*) AS count
     FROM (${TARGETS} ${EACH}) e GROUP BY 1, 2, 3, 4`,
    [row.num],
  )
  for (const { count, ...target } of rows) counts[targetState(target, row.is_purged)] += count
  const { rows: told } = await ask<{ count: number }>('SELECT count(DISTINCT source) AS count FROM deletion_targets WHERE deletion = $1', [
    row.num,
  ])
  const quiet = (JSON.parse(row.sources) as string[]).length - (told[0]?.count ?? 0)
  counts[row.is_purged ? 'finished' : 'running'] += quiet * users
  return counts
}

/** In the order of the request's users and sources, by where in them each page begins. */
async function targetsOf(
  ask: Ask,
  row: DeletionRow,
  { state, user }: DeletionQuestion,
  { limit, cursor }: PageRequest,
): Promise<Page<DeletionTarget>> {
  const start = cursorOf('t', cursor, [0, 0, NO_DESTINATION])
  if (start[2] !== NO_DESTINATION && !isRowId(start[2])) throw new InvalidCursor()
  const userIds = JSON.parse(row.user_ids) as string[]
  const only = user === undefined ? undefined : indexOf(userIds, user)
  if (only === -1) return { data: [], next: null }
  const [first, last] = only === undefined ? [start[0], userIds.length - 1] : [Math.max(only, start[0]), only]
  const sources = [...(await sourcesOf(ask, row))]
  const data: DeletionTarget[] = []
  let seen = 0
  for (let chunk = first; chunk <= last; chunk += USERS_AT_ONCE) {
    const ofChunk = userIds.slice(chunk, Math.min(chunk + USERS_AT_ONCE, last + 1))
    const sent = await sentOf(ask, row.num, ofChunk)
    for (let at = chunk; at < chunk + ofChunk.length; at++) {
      const userId = userIds[at] as string
      for (let sourceAt = at === start[0] ? start[1] : 0; sourceAt < sources.length; sourceAt++) {
        const [source, sourceId] = sources[sourceAt] as [string, string]
        const from = at === start[0] && sourceAt === start[1] ? start[2] : NO_DESTINATION
        for (const { destination, ...target } of shown(sent.get(`${source} ${userId}`), row.is_purged)) {
          if (destination < from) continue
          if (data.length === limit || ++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify(['t', at, sourceAt, destination]) }
          if (state === undefined || target.state === state) data.push({ userId, sourceId, ...target })
        }
      }
    }
  }
  return { data, next: null }
}

/** By source and user. */
async function sentOf(ask: Ask, deletion: string, userIds: readonly string[]): Promise<Map<string, TargetRow[]>> {
  const { rows } = await ask<TargetRow>(
    `SELECT e.*, d.id AS destination_id FROM (${TARGETS} AND ${OF_USERS} ${EACH}) e JOIN destinations d ON d.num = e.destination
     ORDER BY e.destination`,
    [deletion, userIds.map(writeText)],
  )
  const sent = new Map<string, TargetRow[]>()
  for (const row of rows) {
    const key = `${row.source} ${readText(row.user_id)}`
    const own = sent.get(key)
    if (own === undefined) sent.set(key, [row])
    else own.push(row)
  }
  return sent
}

/** Of a user at a source that has nobody to tell there is one, without a destination. */
function shown(
  sent: readonly TargetRow[] | undefined,
  purged: boolean,
): (Omit<DeletionTarget, 'userId' | 'sourceId'> & { destination: string })[] {
  if (sent === undefined) {
    return [{ destination: NO_DESTINATION, destinationId: null, deliveryId: null, state: purged ? 'finished' : 'running' }]
  }
  return sent.map((target) => ({
    destination: target.destination,
    destinationId: target.destination_id,
    deliveryId: `${target.origin}-0`,
    state: targetState(target, purged),
  }))
}

function indexOf(userIds: readonly string[], { userId, pseudonym }: NamedUser): number {
  const at = userIds.indexOf(userId)
  return at === -1 ? userIds.indexOf(pseudonym) : at
}

function targetState(
  { final, attempts, delivered, failed }: Pick<TargetRow, 'final' | 'attempts' | 'delivered' | 'failed'>,
  purged: boolean,
): DeletionState {
  if (delivered > 0 || final === 'delivered') return purged ? 'finished' : 'running'
  if (failed > 0 || final !== null) return 'failed'
  return attempts > 0 ? 'running' : 'pending'
}

function overall(counts: Record<DeletionState, number>, purged: boolean): DeletionState {
  if (counts.running > 0 || !purged) return 'running'
  if (counts.pending > 0) return counts.finished + counts.failed > 0 ? 'running' : 'pending'
  return counts.failed > 0 ? 'failed' : 'finished'
}
