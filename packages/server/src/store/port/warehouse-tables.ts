// What is stored of the tables of warehouses: their schemas, what was loaded into them, and the loads that are not complete. Documents, so that all nodes
// change them one at a time. A schema is changed only by whoever has read its newest revision; see `evolve` of the package @switchyard/warehouse.

import { createHash } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import type { SourceSchema, StoredTable, UnfitCount } from '@switchyard/warehouse'
import type { DocumentStore, StoredDocument } from './documents.ts'
import { WAREHOUSE_NOTICES } from './warehouse-notices.ts'

export const WAREHOUSE_SCHEMAS = 'warehouse-schema'
export const WAREHOUSE_TABLES = 'warehouse-table'
export const WAREHOUSE_LOADS = 'warehouse-load'
export const WAREHOUSE_HISTORY = 'warehouse-history'
const MAX_LOADS = 200
/** Names of tables that could not be loaded. */
const MAX_FAILED = 10
const PAGE = 1_000
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

/** Removes everything about the tables of a destination that was deleted. */
export async function dropTables(documents: DocumentStore, destinationId: string): Promise<void> {
  for (const kind of [WAREHOUSE_SCHEMAS, WAREHOUSE_TABLES, WAREHOUSE_LOADS, WAREHOUSE_NOTICES])
    await documents.drop(kind, { prefix: `${destinationId} ` })
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
