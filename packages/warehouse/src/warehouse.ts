// The interface between the service and the engines of this package: types only, so that the service can import it without loading an engine.
//
// How a load is done, and what keeps it exactly once:
// 1. The service stores the boundaries of a load (its id, its source, which messages) before it calls anything here. A message stays in its load until
//    the outcome of the load is recorded; a repeat after a crash has the same id.
// 2. `evolve` (schema/evolve.ts) makes rows and, if the messages bring new columns, a schema with a higher revision. It is pure. The service stores that
//    schema if the stored one still has the revision that `evolve` was given; otherwise it calls `evolve` again with the newer one.
// 3. `Warehouse.load` writes the rows. The key of each write is load and table: a table in which the load is committed already is skipped and reported
//    as loaded. So a repeat may contain fewer messages than the first attempt: those whose tables are all committed, or whose user was deleted, are gone.

/** JSON is used for all of them between processes, so there is no undefined, Date or bigint in here. */
export type ColumnType = 'boolean' | 'bigint' | 'double' | 'timestamp' | 'text'

export type EngineName = 'parquet' | 'postgres' | 'clickhouse'

export interface ParquetSettings {
  engine: 'parquet'
  /** `file:///…` below the folder of lakes, or `s3://bucket/prefix`. */
  url: string
  endpoint?: string
  region?: string
  accessKeyId?: string
  secretAccessKey?: string
  pathStyle?: boolean
}

export interface PostgresSettings {
  engine: 'postgres'
  /** With its password. */
  url: string
  /** The default is the name of the source's schema. */
  schema?: string
}

export interface ClickHouseSettings {
  engine: 'clickhouse'
  url: string
  database: string
  user: string
  password?: string
}

export type WarehouseSettings = ParquetSettings | PostgresSettings | ClickHouseSettings

// ── Schema ──

export interface StoredColumn {
  name: string
  type: ColumnType
  /** Where its value is in a message, such as `properties.cart.total` or `context.page.url`. */
  path: string
  /** When the column was added, in milliseconds. */
  since: number
}

export interface StoredTable {
  table: string
  columns: StoredColumn[]
}

/** What the service stores for one source of one destination. The mapping of paths to names is in it, so that it stays the same for ever. */
export interface SourceSchema {
  /** The name of the schema or folder. Fixed at the first load. */
  name: string
  /** Grows by one with every change. 0: nothing is stored yet. */
  revision: number
  tables: StoredTable[]
}

/** The types that the source's tracking plan gives to columns: by table, then by path as in StoredColumn. */
export type PlannedColumns = Readonly<Record<string, Readonly<Record<string, ColumnType>>>>

export interface LoadMessage {
  /** The whole message as JSON, with `messageId`, `type` and `receivedAt`. */
  text: string
  /** Tables in which the message is loaded already, by an earlier load that did not succeed in all tables. No rows are made for these. */
  done?: readonly string[]
}

/** How many values did not fit their column. They are in `_unfit` of their rows. */
export interface UnfitCount {
  table: string
  /** Null if there is no column, because the table or the schema is full or an engine cannot hold the name. */
  column: string | null
  path: string
  /** The type that was found: `string`, `number`, `boolean`, `object`, `array`, `timestamp`. */
  type: string
  count: number
}

/** Limits of the layout that were reached; the values are in `_unfit`. */
export interface LimitReached {
  limit: 'columns' | 'tables'
  table: string | null
}

/** One cell of a row: timestamps are milliseconds. */
export type Cell = string | number | boolean | null

/** The cells of a column. */
export interface ColumnCells {
  readonly type: ColumnType
  /** By row, up to the last row with a value: a number as it is, 0 or 1 for a boolean, the place of a text in `texts`. NaN or -1 if the row has no value. */
  readonly codes: readonly number[]
  readonly texts: readonly string[]
  /** Whether no text is in `texts` twice. */
  readonly isDistinct: boolean
  get(row: number): Cell
}

/** The rows of a table. Going through them makes an array of each, in the order of the columns. */
export interface Rows extends Iterable<Cell[]> {
  readonly length: number
  readonly columns: readonly ColumnCells[]
}

export interface TableRows {
  table: string
  columns: readonly StoredColumn[]
  /** `_unfit` is one of the columns. */
  rows: Rows
  /** The message of each row, as an index into the messages that `evolve` was given. */
  messages: number[]
}

/** What one identify or group call says about its user or account. */
export interface StateCall {
  id: string
  /** When it was received, in milliseconds. */
  timeMs: number
  /** The traits that it has, as indexes of columns; null is a trait that was set to null, or did not fit. */
  cells: [column: number, cell: Cell][]
  /** Traits that did not fit, by path. */
  unfit: Record<string, unknown> | null
  message: number
}

/** The calls of a load that change users or accounts, in their order. */
export interface StateRows {
  table: 'users' | 'accounts'
  columns: readonly StoredColumn[]
  calls: StateCall[]
}

export interface RowBatch {
  tables: TableRows[]
  states: StateRows[]
  /** The messages as they are archived in `_messages` by the engine `parquet`. */
  archive: TableRows | null
}

export interface Evolved {
  schema: SourceSchema
  /** Whether `schema` differs from the one that was given, and must be stored before the rows are loaded. */
  changed: boolean
  batch: RowBatch
  /** The tables of each message, in the order of the messages. Empty for a message that is no row, such as `delete`. */
  tablesOf: (readonly string[])[]
  unfit: UnfitCount[]
  limits: LimitReached[]
}

export interface EvolveOptions {
  engine: EngineName
  planned?: PlannedColumns
  /** `uuid_ts` of the rows and `since` of new columns: when the load was stored, so that a repeat writes the same rows. */
  loadedAtMs: number
}

// ── Loading ──

/** Who writes into a place. A place of another owner is refused unless `adopt` is true. */
export interface Owner {
  /** The id of the installation. */
  installation: string
  destinationId: string
  sourceId: string
  adopt?: boolean
}

export interface Load {
  id: string
  owner: Owner
  schema: SourceSchema
  loadedAtMs: number
  /** Whether an earlier attempt may have written something. If in doubt, true. */
  repeated: boolean
}

export interface LoadedTable {
  table: string
  rows: number
  /** As sent or written, compressed. 0 if the table was committed by an earlier attempt. */
  bytes: number
  /** The table existed in the stored schema, but had been dropped, and was created again. */
  recreated?: boolean
  /** Null if the rows are committed. */
  error: WarehouseError | null
}

export interface LoadResult {
  /** One entry per table of the batch. A message is delivered if none of its tables has an error. */
  tables: LoadedTable[]
  /** Values that this engine could not hold, in addition to those of `evolve`. */
  unfit: UnfitCount[]
}

export interface WarehouseError {
  /** Stable codes. Only the first three are not worth a retry before somebody changed something, but are retried all the same. */
  code:
    | 'credentials_refused'
    | 'permission_missing'
    | 'place_taken'
    | 'not_found'
    | 'read_only'
    | 'table_changed'
    | 'disk_full'
    | 'unreachable'
    | 'timed_out'
    | 'file_missing'
    | 'failed'
  /** A sentence for a person, without credentials. */
  message: string
}

/** Thrown by every function below if nothing could be done at all. */
export interface WarehouseFailure extends Error {
  warehouse: WarehouseError
}

export interface Check {
  /** Null if everything that loading needs is there. */
  problem: WarehouseError | null
  /** Each step that was tried, in order: `connect`, `create table`, `insert`, `drop table`, … */
  steps: { step: string; ok: boolean; error?: string }[]
  /** What the place says about itself, such as `PostgreSQL 17.2`. */
  version: string | null
}

// ── Deletion, merging, archive ──

export interface UserDeletion {
  schema: SourceSchema
  userIds: readonly string[]
  /** Null at first, then that of the last Progress. */
  cursor: string | null
}

export interface Progress {
  /** Continues the work, also after a restart; null: it is done. Every call does a bounded part, at most one table, and is safe to repeat. */
  cursor: string | null
  /** Rows deleted, or files merged or removed, by this call. */
  changed: number
  /** What was noticed, such as a file that is gone although the manifest names it. It does not stop the work. */
  problems: WarehouseError[]
}

export interface Upkeep {
  schema: SourceSchema
  /** Null at first, then that of the last Progress. */
  cursor: string | null
  nowMs: number
  /**
   * Ids of loads whose outcome is not recorded yet: a repeat finds out by their files what is committed, so these are not merged. It is called after the
   * files were listed, so a load that began later has none of them.
   */
  openLoads: () => Promise<readonly string[]>
  /** Days that are kept; null keeps all. Rows of older days are removed. */
  keepDays: number | null
}

export interface ArchiveQuery {
  schema: Pick<SourceSchema, 'name'>
  /** `received_at` in milliseconds, `afterMs` included and `beforeMs` not. */
  afterMs: number
  beforeMs: number
  event?: string
  userId?: string
}

export interface ArchivePage {
  /** JSON texts, ordered by when they were received. `cursor` continues after the message. */
  messages: { id: string; receivedAtMs: number; text: string; cursor: string }[]
  /** Continues after this page, also after a restart and after a merge; null at the end. */
  cursor: string | null
}

/** Copies the files of a table to a folder of this machine, for a query. */
export interface TableCopyRequest {
  schema: string
  table: string
  /** The folder of this table. Files that are not part of the table are removed from it. */
  folder: string
  maxBytes: number
}

export interface TableCopies {
  /** The size of all files of the table. */
  bytes: number
  /** Paths of the copies; null if they would have more than `maxBytes`. */
  files: string[] | null
  /** What is missing. */
  warnings: string[]
}

/** The files of a lake, for queries. */
export interface LakeCopying {
  /** The tables of these schemas, in the order of their names. */
  tables(schemas: readonly string[], signal?: AbortSignal): Promise<{ schema: string; table: string }[]>
  copy(request: TableCopyRequest, signal?: AbortSignal): Promise<TableCopies>
}

export interface Warehouse {
  /** Connects, creates and drops the table `_switchyard_test`, and says what is missing. Never throws. */
  check(): Promise<Check>
  /** Never throws for one table: its error is in the result. */
  load(load: Load, batch: RowBatch, signal?: AbortSignal): Promise<LoadResult>
  deleteUsers(deletion: UserDeletion, signal?: AbortSignal): Promise<Progress>
  /** Merges small files of past days, removes days that are not kept and files that no manifest names. Does nothing for `postgres` and `clickhouse`, except keepDays. */
  upkeep(upkeep: Upkeep, signal?: AbortSignal): Promise<Progress>
  /** Null if the engine keeps no archive. */
  readArchive: ((query: ArchiveQuery, cursor: string | null, limit: number, maxCharacters?: number) => Promise<ArchivePage>) | null
  /** How many messages the files of this time have, which may be more than those that fit. Null if the engine keeps no archive. */
  archiveSize: ((query: ArchiveQuery) => Promise<number>) | null
  /** Missing if the engine has no files. */
  copying?: LakeCopying
  close(): Promise<void>
}

export interface WarehouseContext {
  /** The folder below which `file:` addresses must be; null if lakes in folders are not configured. */
  lakeFolder: string | null
  /** Without it, a lake also reads, and looks after, tables of other destinations at its address. */
  destinationId?: string
}

/** `createWarehouse` of engines.ts. Opens nothing: the first call connects. */
export type CreateWarehouse = (settings: WarehouseSettings, context: WarehouseContext) => Warehouse
