// The database of one query: in memory, locked before the query is looked at. What a query can read are the files of the views that it names, and nothing
// else: no other files, no network, no extensions, no settings. There is one for parsing, which can read nothing at all, and one for running.

import { fileURLToPath } from 'node:url'
import { type DuckDBConnection, DuckDBInstance, type DuckDBPreparedStatement, StatementType } from '@duckdb/node-api'
import { faultAt, faultOf, QueryFault } from './faults.ts'
import type { Preparation, SqlAnswer, SqlLimits, SqlValue, TableName, ViewFiles } from './protocol.ts'
import { type References, referencesOf, refusedFunction, wantedTables } from './references.ts'
import { jsonValue } from './result-values.ts'

const MB = 1_000_000
/** The memory limit of DuckDB while it parses. */
const PARSER_MB = 64
/** A small table of a lake, which scripts/write-warm-up-table.ts has written. */
const WARM_UP_TABLE = fileURLToPath(new URL('../../warm-up.parquet', import.meta.url))
/** What queries usually do: count, add, search, sort. */
const WARM_UP_QUERIES = [
  'SELECT event, count(*), sum(total) FROM warm_up GROUP BY event ORDER BY event',
  "SELECT * FROM warm_up WHERE user_id = 'user-7' AND total > 0 ORDER BY received_at LIMIT 100",
  "SELECT date_trunc('day', received_at) AS day, count(*), count(DISTINCT user_id) FROM warm_up GROUP BY 1 ORDER BY 1",
]
const WARM_UP_LIMITS: SqlLimits = { rows: 100, bytes: MB, memoryMb: 64, timeMs: 1_000 }

const SETTINGS = {
  threads: '2',
  // Nothing is written to the disk, so a query that needs more memory fails.
  temp_directory: '',
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
  allow_unsigned_extensions: 'false',
  allow_persistent_secrets: 'false',
  errors_as_json: 'true',
  // Rows come as the scan finds them, unless the query sorts them.
  preserve_insertion_order: 'false',
}

/** The databases of a query. They are opened while the process waits for it, because that takes longer than many queries. */
export interface Databases {
  /** Parses the text that is its parameter. Its database cannot read any file. */
  parsing: DuckDBPreparedStatement
  /** Runs the query. Its settings are locked before that. */
  running: DuckDBConnection
  /** Runs the query instead, if it needs exactly the views that were prepared. */
  prepared?: PreparedDatabase | undefined
}

/** A database that is locked, with the views of the last query. */
export interface PreparedDatabase {
  db: DuckDBConnection
  preparation: string
}

/** Loads and starts DuckDB, which takes most of the time of a first query in a process. */
export async function openDatabases(): Promise<Databases> {
  const parsing = await openDatabase(PARSER_MB)
  await lock(parsing, [])
  return { parsing: await parsing.prepare('SELECT json_serialize_sql($1::VARCHAR)'), running: await openRunning() }
}

async function openRunning(): Promise<DuckDBConnection> {
  const running = await openDatabase(PARSER_MB)
  // Without this, the metadata of files would be read when the view is made, and again by the query.
  await running.run('SET parquet_metadata_cache = true')
  return running
}

/**
 * Runs queries over a small table in databases of their own, because code that runs for the first time in a process takes longer than many queries. Stops
 * after a query if `isWanted` returns true. Returns the number of rows that the queries have returned.
 */
export async function warmUp({ parsing }: Databases, isWanted: () => boolean): Promise<number> {
  let found = 0
  const tables = [{ schema: 'main', table: 'warm_up' }]
  for (const query of WARM_UP_QUERIES) {
    if (isWanted()) break
    const databases = { parsing, running: await openRunning() }
    const views = (await tablesOf(databases, query, tables)).map(({ schema, table }) => ({ schema, table, files: [WARM_UP_TABLE] }))
    found += (await runQuery(databases, query, views, [], WARM_UP_LIMITS)).rows.length
    databases.running.closeSync()
  }
  return found
}

/** Creates the views and locks the database before the query comes, because that reads the metadata of all files. */
export async function prepare(preparation: Preparation): Promise<PreparedDatabase> {
  const db = await openRunning()
  await createViews(db, preparation, await uniformViews(db, preparation.views))
  return { db, preparation: JSON.stringify(preparation) }
}

async function openDatabase(memoryMb: number): Promise<DuckDBConnection> {
  const instance = await DuckDBInstance.create(':memory:', { ...SETTINGS, memory_limit: `${memoryMb}MB` })
  const db = await instance.connect()
  await db.run("SET timezone = 'UTC'")
  return db
}

/** One text, because each statement that is run alone waits for a thread. DuckDB runs the statements in turn, and stops at the first one that fails. */
async function lock(db: DuckDBConnection, files: readonly string[], statements: readonly string[] = []): Promise<void> {
  const allowed = files.length === 0 ? [] : [`SET allowed_paths = [${files.map(textLiteral).join(', ')}]`]
  await db.run([...allowed, 'SET enable_external_access = false', ...statements, 'SET lock_configuration = true'].join(';\n'))
}

/** Parses the query, and returns the tables of the lake that it needs. Throws a QueryFault if it is not exactly one SELECT. */
export async function tablesOf(
  { parsing }: Databases,
  query: string,
  known: readonly TableName[] | Promise<readonly TableName[]>,
): Promise<TableName[]> {
  const references = await parsed(parsing, query)
  const refused = refusedFunction(references)
  if (refused !== null)
    throw new QueryFault(
      faultAt(query, refused.position, `The function ${refused.name} is not allowed here. A query can only read the tables of the lake.`),
    )
  const { wanted, ambiguous } = wantedTables(references, await known)
  if (ambiguous !== null) {
    const choices = ambiguous.schemas.map((schema) => `${schema}.${ambiguous.table}`).join(' or ')
    throw new QueryFault(faultAt(query, ambiguous.position, `Several sources have a table ${ambiguous.table}. Write ${choices}.`))
  }
  return wanted
}

async function parsed(statement: DuckDBPreparedStatement, query: string): Promise<References> {
  statement.bindVarchar(1, query)
  const [row] = await (await statement.run()).getRows()
  const tree = JSON.parse(String(row?.[0])) as {
    error: boolean
    error_type?: string
    error_message?: string
    position?: string
    statements?: unknown[]
  }
  if (tree.error && tree.error_type !== 'not implemented') {
    const position = tree.position === undefined ? null : Number(tree.position)
    throw new QueryFault(faultAt(query, position, tree.error_message ?? 'The query cannot be parsed.'))
  }
  if (tree.error) throw new QueryFault(faultAt(query, 0, 'Only one SELECT statement can be run.'))
  const { statements = [] } = tree
  if (statements.length === 0) throw new QueryFault(faultAt(query, 0, 'The query is empty. Write one SELECT statement.'))
  if (statements.length > 1)
    throw new QueryFault(faultAt(query, 0, `The query has ${statements.length} statements. Only one SELECT statement can be run.`))
  return referencesOf(statements)
}

async function createViews(
  db: DuckDBConnection,
  { views, schemas, memoryMb }: Preparation,
  uniform: ReadonlySet<ViewFiles> = new Set(),
): Promise<void> {
  const files = views.flatMap((view) => view.files)
  await lock(db, files, [`SET memory_limit = '${memoryMb}MB'`, ...viewStatements(views, schemas, uniform)])
}

/** The views whose files all have the same columns: a query of them need not open each file before it starts. */
async function uniformViews(db: DuckDBConnection, views: readonly ViewFiles[]): Promise<Set<ViewFiles>> {
  const uniform = new Set<ViewFiles>()
  for (const view of views) {
    const columns = `SELECT list_sort(list(concat_ws(' ', name, type, converted_type))) AS columns FROM parquet_schema([${listOf(view)}]) GROUP BY file_name`
    const [row] = await (await db.run(`SELECT count(DISTINCT columns) FROM (${columns})`)).getRows()
    if (Number(row?.[0]) === 1) uniform.add(view)
  }
  return uniform
}

/** Runs the query with one view per table. */
export async function runQuery(
  { running, prepared: ready }: Databases,
  query: string,
  views: ViewFiles[],
  schemas: string[],
  limits: SqlLimits,
): Promise<Omit<SqlAnswer, 'warnings'>> {
  const needed: Preparation = { views, schemas, memoryMb: limits.memoryMb }
  // Views of other tables, or of files that are no longer part of a table, are never used.
  const isReady = ready !== undefined && ready.preparation === JSON.stringify(needed)
  const db = isReady ? ready.db : running
  try {
    if (!isReady) await createViews(db, needed)
  } catch (error) {
    throw new QueryFault(faultOf(error, query, false))
  }
  try {
    return await answered(await prepared(db, query), query, limits)
  } catch (error) {
    throw new QueryFault(faultOf(error, query, true))
  }
}

function viewStatements(views: readonly ViewFiles[], schemas: readonly string[], uniform: ReadonlySet<ViewFiles>): string[] {
  const used = new Set([...schemas, ...views.map(({ schema }) => schema)])
  const statements = Array.from(used, (schema) => `CREATE SCHEMA IF NOT EXISTS ${identifier(schema)}`)
  for (const view of views) {
    const { schema, table, files } = view
    const days = files.every((path) => /\/day=\d{4}-\d\d-\d\d\/[^/]+$/.test(path))
    // Columns that came later are missing in older files. `day` is a part of the path, so a condition on it skips files.
    const options = `union_by_name = ${!uniform.has(view)}, hive_partitioning = ${days}${days ? ", hive_types = {'day': DATE}" : ''}`
    statements.push(`CREATE VIEW ${identifier(schema)}.${identifier(table)} AS SELECT * FROM read_parquet([${listOf(view)}], ${options})`)
  }
  const path = [...used].map(identifier)
  if (path.length > 0) statements.push(`SET search_path = ${textLiteral([...path, 'main'].join(','))}`)
  return statements
}

function listOf({ files }: ViewFiles): string {
  return files.map(textLiteral).join(', ')
}

/** The parser's own word for what the statement is. */
async function prepared(db: DuckDBConnection, query: string): Promise<DuckDBPreparedStatement> {
  const statements = await db.extractStatements(query)
  if (statements.count !== 1) throw new QueryFault(faultAt(query, 0, 'Only one SELECT statement can be run.'))
  const statement = await statements.prepare(0)
  if (statement.statementType !== StatementType.SELECT) throw new QueryFault(faultAt(query, 0, 'Only one SELECT statement can be run.'))
  if (statement.parameterCount > 0)
    throw new QueryFault(faultAt(query, null, 'The query has parameters, and they have no values. Write the values into the query.'))
  return statement
}

async function answered(statement: DuckDBPreparedStatement, query: string, limits: SqlLimits): Promise<Omit<SqlAnswer, 'warnings'>> {
  const result = await statement.stream()
  const types = result.columnTypes()
  const columns = result.columnNames().map((name, at) => ({ name, type: String(types[at]) }))
  const rows: SqlValue[][] = []
  let bytes = 0
  for (;;) {
    const chunk = await result.fetchChunk()
    if (chunk === null || chunk.rowCount === 0) return { columns, rows, truncated: false }
    const vectors = columns.map((_, at) => chunk.getColumnVector(at))
    for (let at = 0; at < chunk.rowCount; at++) {
      if (rows.length === limits.rows) return { columns, rows, truncated: true }
      const row = vectors.map((vector) => jsonValue(vector.getItem(at)))
      bytes += Buffer.byteLength(JSON.stringify(row))
      if (bytes > limits.bytes && rows.length > 0) return { columns, rows, truncated: true }
      if (bytes > limits.bytes)
        throw new QueryFault({
          ...faultAt(
            query,
            null,
            `A row of the result is larger than ${Math.round(limits.bytes / MB)} MB. Select fewer or shorter columns.`,
          ),
          code: 'sql_too_large',
        })
      rows.push(row)
    }
  }
}

function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function textLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
