// What a query refers to, read from the tree that DuckDB's own parser made of it. Functions that produce tables are allowed by name: all others read files
// or the state of the process. DuckDB refuses files of its own accord (query-database.ts); this list is the second lock on the same door.

import type { TableName } from './protocol.ts'

export interface Reference {
  schema: string
  table: string
  /** Bytes from the start of the query; null if unknown. */
  position: number | null
}

export interface References {
  tables: Reference[]
  tableFunctions: { name: string; position: number | null }[]
  /** The names of common table expressions. */
  expressions: ReadonlySet<string>
  /** The query lists tables or columns, so it needs all of them. */
  listsTables: boolean
}

type Node = Readonly<Record<string, unknown>>

const ALLOWED_FUNCTIONS = new Set([
  'range',
  'generate_series',
  'unnest',
  'repeat',
  'repeat_row',
  'json_each',
  'json_tree',
  'histogram',
  'histogram_values',
  'duckdb_columns',
  'duckdb_functions',
  'duckdb_keywords',
  'duckdb_schemas',
  'duckdb_tables',
  'duckdb_types',
  'duckdb_views',
])
/** They change or reveal something of the process, although they stand where values do. */
const REFUSED_SCALARS = new Set(['write_log', 'nextval', 'currval', 'getenv', 'sleep_ms', 'json_serialize_plan'])
const LISTING = /^(information_schema|pg_catalog)$/i
const LISTING_TABLES = /^(duckdb_|sqlite_|pg_|pragma_)/i
/** What the parser writes for "unknown". */
const NO_POSITION = Number.MAX_SAFE_INTEGER

export function referencesOf(tree: unknown): References {
  const found = {
    tables: [] as Reference[],
    tableFunctions: [] as { name: string; position: number | null }[],
    expressions: new Set<string>(),
    listsTables: false,
  }
  const waiting: unknown[] = [tree]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next !== 'object' || next === null) continue
    if (!Array.isArray(next)) note(next as Node, found)
    waiting.push(...Object.values(next))
  }
  return found
}

function note(node: Node, found: { -readonly [Key in keyof References]: References[Key] } & { expressions: Set<string> }): void {
  const position = positionOf(node)
  if (node['type'] === 'BASE_TABLE') {
    const [schema, table] = [textOf(node, 'schema_name'), textOf(node, 'table_name')]
    found.tables.push({ schema, table, position })
    if (LISTING.test(schema) || LISTING_TABLES.test(table)) found.listsTables = true
  } else if (node['type'] === 'TABLE_FUNCTION') {
    const name = textOf((node['function'] ?? {}) as Node, 'function_name').toLowerCase()
    found.tableFunctions.push({ name, position })
    if (name.startsWith('duckdb_')) found.listsTables = true
  } else if (node['type'] === 'SHOW_REF' && (node['query'] ?? null) === null) {
    found.listsTables = true
    // DESCRIBE of a name without SELECT.
    if (node['table_name'] !== '') found.tables.push({ schema: textOf(node, 'schema_name'), table: textOf(node, 'table_name'), position })
  } else if (node['class'] === 'FUNCTION') {
    const name = textOf(node, 'function_name').toLowerCase()
    if (REFUSED_SCALARS.has(name)) found.tableFunctions.push({ name, position })
  }
  const { map } = (node['cte_map'] ?? {}) as { map?: readonly Node[] }
  for (const { key } of map ?? []) found.expressions.add(textOf({ key }, 'key').toLowerCase())
}

function textOf(node: Node, name: string): string {
  const value = node[name]
  return typeof value === 'string' ? value : ''
}

function positionOf(node: Node): number | null {
  const at = node['query_location']
  return typeof at === 'number' && at < NO_POSITION ? at : null
}

/** The first function that is not allowed. */
export function refusedFunction({ tableFunctions }: References): { name: string; position: number | null } | null {
  return tableFunctions.find(({ name }) => !ALLOWED_FUNCTIONS.has(name)) ?? null
}

/** The tables of the lake that are named; or a name without a schema that several schemas have. */
export function wantedTables(
  { tables, expressions, listsTables }: References,
  known: readonly TableName[],
): { wanted: TableName[]; ambiguous: (Reference & { schemas: string[] }) | null } {
  const wanted = new Set<TableName>(listsTables ? known : [])
  let ambiguous: (Reference & { schemas: string[] }) | null = null
  for (const reference of tables) {
    const named = known.filter(
      ({ schema, table }) => isSame(table, reference.table) && (reference.schema === '' || isSame(schema, reference.schema)),
    )
    for (const each of named) wanted.add(each)
    if (reference.schema === '' && named.length > 1 && !expressions.has(reference.table.toLowerCase()))
      ambiguous ??= { ...reference, schemas: named.map(({ schema }) => schema) }
  }
  return { wanted: [...wanted], ambiguous }
}

/** Names in SQL have no case. */
function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}
