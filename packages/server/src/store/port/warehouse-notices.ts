// What is noticed about tables of warehouses while they are loaded: a table that cannot be loaded, one that was dropped and created again, and limits that are
// reached. Documents, which the rules for incidents read on any node.

import { createHash } from 'node:crypto'
import type { DocumentStore } from './documents.ts'

export const WAREHOUSE_NOTICES = 'warehouse-notice'
/** More than this are not looked at. */
const MAX_READ = 500
/** Everything is noted again this often, so that a load seldom writes a document. */
const REPEAT_MS = 10 * 60_000

export interface TableNotice {
  kind: 'failing' | 'limit' | 'recreated'
  /** With its schema. Null: the schema as a whole. */
  table: string | null
  /** In words. */
  message: string
  sinceMs: number
  /** When it was noticed last. */
  lastMs: number
}

export interface NoticedLoad {
  destinationId: string
  sourceId: string
  /** The schema of the source. */
  schema: string
  loaded: readonly string[]
  failed: readonly { table: string; message: string }[]
  limits: readonly { limit: 'columns' | 'tables'; table: string | null }[]
  recreated: readonly string[]
}

/** Notes what a load has shown. A table that was loaded is not failing any more. */
export async function noteTables(documents: DocumentStore, load: NoticedLoad, nowMs: number): Promise<void> {
  const prefix = `${load.destinationId} ${load.sourceId} `
  const noticed = new Map(noticesOf(load, nowMs).map((notice) => [keyOf(prefix, notice), notice]))
  const before = await documents.list(WAREHOUSE_NOTICES, { prefix, order: 'key', limit: MAX_READ })
  const loaded = new Set(load.loaded.map((table) => keyOf(prefix, { kind: 'failing', table: `${load.schema}.${table}` })))
  const over = before.filter(({ key }) => loaded.has(key) && !noticed.has(key)).map(({ key }) => key)
  const known = new Map(before.map(({ key, doc }) => [key, doc as unknown as TableNotice]))
  const changed = [...noticed].filter(([key, { message }]) => {
    const stored = known.get(key)
    return stored === undefined || stored.message !== message || nowMs - stored.lastMs > REPEAT_MS
  })
  if (changed.length === 0 && over.length === 0) return
  await documents.update(
    WAREHOUSE_NOTICES,
    changed.map(([key]) => key),
    (stored) =>
      new Map([
        ...over.map((key) => [key, null] as const),
        ...changed.map(([key, notice]) => {
          const since = (stored.get(key)?.doc as unknown as TableNotice | undefined)?.sinceMs ?? notice.sinceMs
          return [key, { atMs: nowMs, doc: { ...notice, sinceMs: since } }] as const
        }),
      ]),
  )
}

export async function readNotices(documents: Pick<DocumentStore, 'list'>, destinationId: string): Promise<TableNotice[]> {
  const stored = await documents.list(WAREHOUSE_NOTICES, { prefix: `${destinationId} `, order: 'key', limit: MAX_READ })
  return stored.map(({ doc }) => doc as unknown as TableNotice)
}

function noticesOf({ schema, failed, limits, recreated }: NoticedLoad, nowMs: number): TableNotice[] {
  const at = { sinceMs: nowMs, lastMs: nowMs }
  return [
    ...failed.map(({ table, message }) => ({ kind: 'failing' as const, table: `${schema}.${table}`, message, ...at })),
    ...recreated.map((table) => ({
      kind: 'recreated' as const,
      table: `${schema}.${table}`,
      message: 'The table was dropped, and was created again. The rows that it had are not in it.',
      ...at,
    })),
    ...limits.map(({ limit, table }) => ({
      kind: 'limit' as const,
      table: table === null ? null : `${schema}.${table}`,
      message:
        limit === 'columns'
          ? 'The table has the largest number of columns, 1,000. New properties are kept in its column _unfit.'
          : `The schema ${schema} has the largest number of tables, 2,000. Calls of new events are only in the table tracks, and their properties in its column _unfit.`,
      ...at,
    })),
  ]
}

function keyOf(prefix: string, { kind, table }: Pick<TableNotice, 'kind' | 'table'>): string {
  return `${prefix}${kind} ${createHash('sha256')
    .update(table ?? '')
    .digest('hex')
    .slice(0, 24)}`
}
