// What is stored of the tables of warehouses: their schemas, what was loaded into them, the loads that are not complete, requests for loads, the
// latest loads, and what was noticed. Documents, so that all nodes
// change them one at a time. A schema is changed only by whoever has read its newest revision; see `evolve` of the package @switchyard/warehouse.

import { createHash } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import type { SourceSchema, StoredTable, UnfitCount } from '@switchyard/warehouse'
import { isUsualSentence, REASONS, usualSentence } from '../../api/attempt-reasons.ts'
import { newId } from '../../model/new-id.ts'
import type { DocumentStore, StoredDocument } from './documents.ts'
import { SAVED_QUERIES } from './saved-queries.ts'
import { WAREHOUSE_UPKEEP } from './warehouse-upkeep.ts'

export const WAREHOUSE_SCHEMAS = 'warehouse-schema'
export const WAREHOUSE_TABLES = 'warehouse-table'
export const WAREHOUSE_LOADS = 'warehouse-load'
export const WAREHOUSE_HISTORY = 'warehouse-history'
export const WAREHOUSE_NOTICES = 'warehouse-notice'
export const LOAD_REQUESTS = 'warehouse-load-request'
/** The kinds of documents that are deleted with their destination. Their keys begin with its id. */
export const WAREHOUSE_DOCUMENTS: readonly string[] = [
  WAREHOUSE_SCHEMAS,
  WAREHOUSE_TABLES,
  WAREHOUSE_LOADS,
  WAREHOUSE_HISTORY,
  WAREHOUSE_NOTICES,
  WAREHOUSE_UPKEEP,
  LOAD_REQUESTS,
  SAVED_QUERIES,
]
const MAX_LOADS = 200
/** Names of tables that could not be loaded. */
const MAX_FAILED = 10
/** More than this are not looked at. */
const MAX_NOTICES = 500
/** Everything is noted again this often, so that a load seldom writes a document. */
const REPEAT_MS = 10 * 60_000
const PAGE = 1_000
const [, LOAD_FAILED] = REASONS.warehouse_failed
const MAX_REQUESTS = 1_000
/** Columns with values that did not fit, of one table; the others are counted without their name. */
const MAX_UNFIT = 200

/** What became of the rows of one table. */
export interface TableStats {
  table: string
  rows: number
  lastLoadAtMs: number
  unfit: { column: string | null; path: string; type: string; count: number }[]
}

/** A change of a schema: the tables that differ from the revision before. */
export interface SchemaChange {
  name: string
  revision: number
  tables: readonly StoredTable[]
}

/** Undefined before the first load; `same` if the stored revision is the known one. */
export async function readSchema(
  documents: DocumentStore,
  destinationId: string,
  sourceId: string,
  known: number | null = null,
): Promise<SourceSchema | 'same' | undefined> {
  const prefix = schemaPrefix(destinationId, sourceId)
  for (;;) {
    const meta = await documents.get(WAREHOUSE_SCHEMAS, `${prefix}meta`)
    if (meta === undefined) return undefined
    const { name, revision } = meta.doc as { name: string; revision: number }
    if (revision === known) return 'same'
    const stored = await all(documents, WAREHOUSE_SCHEMAS, `${prefix}table `)
    const tables = stored.map(({ doc }) => doc as unknown as StoredTable)
    const after = await documents.get(WAREHOUSE_SCHEMAS, `${prefix}meta`)
    // Somebody may have changed it between two pages.
    if (after?.doc['revision'] === revision) return { name, revision, tables }
  }
}

/** The schemas of all sources of a destination. */
export async function readSchemas(documents: DocumentStore, destinationId: string): Promise<{ sourceId: string; schema: SourceSchema }[]> {
  const names = await all(documents, WAREHOUSE_SCHEMAS, `${destinationId} name `)
  const found = await Promise.all(
    names.map(async ({ doc }) => {
      const sourceId = String(doc['sourceId'])
      return { sourceId, schema: await readSchema(documents, destinationId, sourceId) }
    }),
  )
  return found.flatMap(({ sourceId, schema }) => (schema === undefined || schema === 'same' ? [] : [{ sourceId, schema }]))
}

/** The names of the schemas of all sources of a destination, without their tables. */
export async function schemasOfSources(documents: DocumentStore, destinationId: string): Promise<{ sourceId: string; name: string }[]> {
  const names = await all(documents, WAREHOUSE_SCHEMAS, `${destinationId} name `)
  return names.map(({ doc }) => ({ sourceId: String(doc['sourceId']), name: String(doc['name']) }))
}

/** The names of schemas that sources of a destination have. */
export async function schemaNames(documents: DocumentStore, destinationId: string): Promise<string[]> {
  return (await all(documents, WAREHOUSE_SCHEMAS, `${destinationId} name `)).map(({ doc }) => String(doc['name']))
}

/** Stores a change that was made from revision `before`, 0 for none. Returns false if the stored one has another revision, or another source has its name. */
export async function storeSchema(
  documents: DocumentStore,
  { destinationId, sourceId }: { destinationId: string; sourceId: string },
  before: number,
  { name, revision, tables }: SchemaChange,
  nowMs: number,
): Promise<boolean> {
  const prefix = schemaPrefix(destinationId, sourceId)
  const meta = `${prefix}meta`
  const owner = `${destinationId} name ${hashOf(name)}`
  let isStored = false
  await documents.update(WAREHOUSE_SCHEMAS, [meta, owner], (stored) => {
    const known = stored.get(meta)?.doc
    const other = stored.get(owner)?.doc['sourceId']
    isStored = Number(known?.['revision'] ?? 0) === before && (other === undefined || other === sourceId)
    // This may be called again after its change was made.
    if (known?.['revision'] === revision && known['by'] === before) isStored = true
    if (!isStored) return new Map()
    const changes = new Map<string, Pick<StoredDocument, 'atMs' | 'doc'>>([
      [meta, { atMs: nowMs, doc: { name, revision, by: before } }],
      [owner, { atMs: nowMs, doc: { name, sourceId } }],
    ])
    for (const table of tables) changes.set(`${prefix}table ${hashOf(table.table)}`, { atMs: nowMs, doc: { ...table } })
    return changes
  })
  return isStored
}

export async function readStats(documents: DocumentStore, destinationId: string, sourceId: string): Promise<TableStats[]> {
  const stored = await all(documents, WAREHOUSE_TABLES, schemaPrefix(destinationId, sourceId))
  return stored.map(({ doc }) => doc as unknown as TableStats)
}

/** Adds what a load has put into tables. */
export async function addStats(
  documents: DocumentStore,
  { destinationId, sourceId }: { destinationId: string; sourceId: string },
  tables: readonly { table: string; rows: number }[],
  unfit: readonly UnfitCount[],
  nowMs: number,
): Promise<void> {
  const prefix = schemaPrefix(destinationId, sourceId)
  const keyOf = (table: string): string => `${prefix}${hashOf(table)}`
  const loaded = new Map(tables.map(({ table, rows }) => [table, rows]))
  const keys = tables.map(({ table }) => keyOf(table))
  await documents.update(WAREHOUSE_TABLES, keys, (stored) => {
    const changes = new Map<string, Pick<StoredDocument, 'atMs' | 'doc'>>()
    for (const [table, rows] of loaded) {
      const before = stored.get(keyOf(table))?.doc as unknown as TableStats | undefined
      const found = unfit.filter((count) => count.table === table)
      const doc: TableStats = {
        table,
        rows: (before?.rows ?? 0) + rows,
        lastLoadAtMs: nowMs,
        unfit: found.length === 0 ? (before?.unfit ?? []) : addedUnfit(before?.unfit ?? [], found),
      }
      changes.set(keyOf(table), { atMs: nowMs, doc: { ...doc } })
    }
    return changes
  })
}

function addedUnfit(before: TableStats['unfit'], found: readonly UnfitCount[]): TableStats['unfit'] {
  const counts = new Map(before.map((each) => [`${each.path} ${each.type}`, { ...each }]))
  for (const { column, path, type, count } of found) {
    const isFull = counts.size >= MAX_UNFIT && !counts.has(`${path} ${type}`)
    const place = isFull ? { column: null, path: '' } : { column, path }
    const key = `${place.path} ${type}`
    const known = counts.get(key)
    if (known === undefined) counts.set(key, { ...place, type, count })
    else known.count += count
  }
  return [...counts.values()]
}

// ── Loads that are not complete ──

/** Notes a load before it starts. Files of loads that are not complete are not merged. */
export async function openLoad(documents: DocumentStore, destinationId: string, loadId: string, nowMs: number): Promise<void> {
  const key = `${destinationId} ${loadId}`
  await documents.update(WAREHOUSE_LOADS, [key], (stored) => (stored.has(key) ? new Map() : new Map([[key, { atMs: nowMs, doc: {} }]])))
}

export async function closeLoad(documents: DocumentStore, destinationId: string, loadId: string): Promise<void> {
  await documents.update(WAREHOUSE_LOADS, [], () => new Map([[`${destinationId} ${loadId}`, null]]))
}

export async function openLoads(documents: DocumentStore, destinationId: string): Promise<string[]> {
  const prefix = `${destinationId} `
  return (await all(documents, WAREHOUSE_LOADS, prefix)).map(({ key }) => key.slice(prefix.length))
}

// ── Requests to load everything that waits now ──
// At most one per destination, stored until all waiting messages are in loads. So the node that makes the loads finds it, whichever node received it.

export interface LoadRequest {
  destinationId: string
  id: string
}

/** A request replaces an earlier one for the same destination, because it covers everything that still waits. */
export async function askForLoad(documents: DocumentStore, destinationId: string, nowMs: number): Promise<LoadRequest> {
  const id = newId('ask')
  await documents.update(LOAD_REQUESTS, [], () => new Map([[destinationId, { atMs: nowMs, doc: { id } }]]))
  return { destinationId, id }
}

export async function loadRequests(documents: Pick<DocumentStore, 'list'>): Promise<LoadRequest[]> {
  const stored = await documents.list(LOAD_REQUESTS, { order: 'key', limit: MAX_REQUESTS })
  return stored.map(({ key, doc }) => ({ destinationId: key, id: String(doc['id']) }))
}

/** Deletes a request, unless there is a later one for the same destination. */
export async function endLoadRequest(documents: DocumentStore, { destinationId, id }: LoadRequest): Promise<void> {
  await documents.update(LOAD_REQUESTS, [destinationId], (stored) => {
    return stored.get(destinationId)?.doc['id'] === id ? new Map([[destinationId, null]]) : new Map()
  })
}

// ── The latest loads, in one document per destination ──

export interface PastLoad {
  id: string
  sourceId: string
  /** When its tables were committed, in wall time. */
  atMs: number
  messages: number
  tables: number
  rows: number
  bytes: number
  durationMs: number
  /** Tables that could not be loaded; the load is repeated for these. */
  failed: string[]
}

/** The newest first. */
export async function readLoads(documents: Pick<DocumentStore, 'get'>, destinationId: string): Promise<PastLoad[]> {
  const stored = await documents.get(WAREHOUSE_HISTORY, destinationId)
  return (stored?.doc['loads'] as PastLoad[] | undefined) ?? []
}

/** A load that was repeated has one entry, with what all its attempts have committed. */
export async function noteLoad(documents: DocumentStore, destinationId: string, load: PastLoad): Promise<void> {
  await documents.update(WAREHOUSE_HISTORY, [destinationId], (stored) => {
    const known = (stored.get(destinationId)?.doc['loads'] as PastLoad[] | undefined) ?? []
    const before = known.find(({ id }) => id === load.id)
    const rows = load.rows + (before?.rows ?? 0)
    const bytes = load.bytes + (before?.bytes ?? 0)
    const tables = load.tables + (before?.tables ?? 0)
    const messages = Math.max(load.messages, before?.messages ?? 0)
    const whole = { ...load, rows, bytes, tables, messages, failed: load.failed.slice(0, MAX_FAILED) }
    const loads = [whole, ...known.filter(({ id }) => id !== load.id)].slice(0, MAX_LOADS)
    return new Map([[destinationId, { atMs: load.atMs, doc: { loads: loads as unknown as JsonObject[] } }]])
  })
}

// ── What was noticed about tables, which the rules for incidents read on any node ──

export interface TableNotice {
  kind: 'failing' | 'limit' | 'recreated'
  /** With its schema. Null: the schema as a whole. */
  table: string | null
  /** A sentence. It does not quote the error of an engine, which may contain values of messages. */
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
  failed: readonly { table: string; reason: string }[]
  limits: readonly { limit: 'columns' | 'tables'; table: string | null }[]
  recreated: readonly string[]
}

/** Notes what a load has shown. A table that was loaded is not failing any more. */
export async function noteTables(documents: DocumentStore, load: NoticedLoad, nowMs: number): Promise<void> {
  const prefix = `${load.destinationId} ${load.sourceId} `
  const noticed = new Map(noticesOf(load, nowMs).map((notice) => [keyOf(prefix, notice), notice]))
  const before = await documents.list(WAREHOUSE_NOTICES, { prefix, order: 'key', limit: MAX_NOTICES })
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

export async function readNotices(
  documents: Pick<DocumentStore, 'list'>,
  destinationId: string,
): Promise<(TableNotice & { sourceId: string })[]> {
  const stored = await documents.list(WAREHOUSE_NOTICES, { prefix: `${destinationId} `, order: 'key', limit: MAX_NOTICES })
  return stored.map(({ key, doc }) => {
    const [, sourceId = ''] = key.split(' ')
    return Object.assign({}, withoutQuotes(doc as unknown as TableNotice), { sourceId })
  })
}

/** Removes the error of an engine, which a notice of an earlier version may contain. */
function withoutQuotes(notice: TableNotice): TableNotice {
  return notice.kind === 'failing' && !isUsualSentence(notice.message) ? { ...notice, message: LOAD_FAILED } : notice
}

function noticesOf({ schema, failed, limits, recreated }: NoticedLoad, nowMs: number): TableNotice[] {
  const at = { sinceMs: nowMs, lastMs: nowMs }
  return [
    ...failed.map(({ table, reason }) => ({
      kind: 'failing' as const,
      table: `${schema}.${table}`,
      message: usualSentence(reason) ?? LOAD_FAILED,
      ...at,
    })),
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
  return `${prefix}${kind} ${hashOf(table ?? '')}`
}

function schemaPrefix(destinationId: string, sourceId: string): string {
  return `${destinationId} ${sourceId} `
}

async function all(documents: DocumentStore, kind: string, prefix: string): Promise<StoredDocument[]> {
  const stored: StoredDocument[] = []
  for (;;) {
    const page = await documents.list(kind, { prefix, order: 'key', after: stored.at(-1), limit: PAGE })
    stored.push(...page)
    if (page.length < PAGE) return stored
  }
}

/** Names of tables may be longer than keys, and have other characters. */
function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24)
}
