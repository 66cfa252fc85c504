// Makes rows from messages, and the schema that these rows need. Pure: the same schema and messages give the same result, so nodes and repeats agree.
// Every value of a message is in its rows: in its column, or in `_unfit`. Engines only write what comes out of here.

import { isObject, type JsonObject } from '@switchyard/protocol'
import type {
  ColumnType,
  Evolved,
  EvolveOptions,
  LimitReached,
  LoadMessage,
  SourceSchema,
  StateRows,
  StoredTable,
  UnfitCount,
} from '../warehouse.ts'
import { ColumnarRows } from './columnar-rows.ts'
import { ARCHIVE_TABLE, eventName, eventTable, LAYOUT, pathOf } from './names.ts'
import { type FixedColumn, TableBuilder, type TableContext } from './table-builder.ts'
import { type Fitted, fit, foundType, isWellFormed, parseTimestamp, wellFormed } from './values.ts'

export { schemaName } from './names.ts'
export { plannedColumns } from './planned-columns.ts'

export const MAX_TABLES = 2_000
const MAX_EVENT_TABLES = MAX_TABLES - Object.keys(LAYOUT).length

const text = (name: string, path: string): FixedColumn => ({ name, type: 'text', path })
const time = (name: string, path: string): FixedColumn => ({ name, type: 'timestamp', path })

/** Filled in this order by #startRow. */
const COMMON: readonly FixedColumn[] = [
  text('id', 'messageId'),
  text('anonymous_id', 'anonymousId'),
  text('user_id', 'userId'),
  time('received_at', 'receivedAt'),
  time('sent_at', 'sentAt'),
  time('original_timestamp', 'originalTimestamp'),
  time('timestamp', 'timestamp'),
  time('uuid_ts', ''),
]
const UNFIT_COLUMN = text('_unfit', '')
/** Their order is relied on by state.ts. */
const STATE_COLUMNS: readonly FixedColumn[] = [
  text('id', ''),
  time('received_at', 'receivedAt'),
  time('uuid_ts', ''),
  text('_trait_times', ''),
  UNFIT_COLUMN,
]
export const ARCHIVE_COLUMNS = [
  text('id', 'messageId'),
  text('type', 'type'),
  text('user_id', 'userId'),
  text('anonymous_id', 'anonymousId'),
  text('event', 'event'),
  time('received_at', 'receivedAt'),
  text('message', ''),
].map(({ name, type, path }) => ({ name, type, path, since: 0 }))

type Layout = keyof typeof LAYOUT
interface Kind {
  table: Layout
  /** Where the columns that only this table has are in a message. */
  paths: readonly string[]
  /** The part of the message whose values are columns without a prefix. */
  part: 'properties' | 'traits' | null
}
const KINDS: Record<string, Kind> = {
  track: { table: 'tracks', paths: ['event', 'event'], part: 'properties' },
  identify: { table: 'identifies', paths: [], part: 'traits' },
  page: { table: 'pages', paths: ['name', 'category'], part: 'properties' },
  screen: { table: 'screens', paths: ['name', 'category'], part: 'properties' },
  group: { table: 'groups', paths: ['groupId'], part: 'traits' },
  alias: { table: 'aliases', paths: ['previousId'], part: null },
}

/** Fields that are in fixed columns, or say how the message was sent and not what happened. */
const NOT_FLATTENED = new Set([
  ...COMMON.map(({ path }) => path),
  ...Object.values(KINDS).flatMap(({ paths }) => paths),
  'type',
  'context',
  'integrations',
  'channel',
  'version',
  'writeKey',
  '_metadata',
])

const NOTHING_PLANNED: Readonly<Record<string, ColumnType>> = {}

export function evolve(schema: SourceSchema, messages: readonly LoadMessage[], options: EvolveOptions): Evolved {
  const batch = new Batch(schema, options)
  const tablesOf = messages.map((message, at) => batch.add(message, at))
  return batch.result(tablesOf)
}

interface Archived {
  rows: ColumnarRows
  messages: number[]
}

class Batch {
  readonly #before: SourceSchema
  readonly #options: EvolveOptions
  readonly #loadedAt: string
  readonly #stored: Map<string, StoredTable>
  readonly #builders = new Map<string, TableBuilder>()
  readonly #states = new Map<string, StateRows & { builder: TableBuilder }>()
  readonly #archive: Archived | null
  readonly #unfit = new Map<string, UnfitCount>()
  readonly #limits = new Map<string, LimitReached>()
  readonly #lists = new Map<string, string[]>()
  #eventTables: number
  #common: unknown[] = []
  readonly #commonCells: Fitted[] = []

  constructor(schema: SourceSchema, options: EvolveOptions) {
    this.#before = schema
    this.#options = options
    this.#loadedAt = new Date(options.loadedAtMs).toISOString()
    this.#stored = new Map(schema.tables.map((table) => [table.table, table]))
    this.#eventTables = schema.tables.filter(({ table }) => !(table in LAYOUT)).length
    this.#archive = options.engine === 'parquet' ? { rows: new ColumnarRows(ARCHIVE_COLUMNS), messages: [] } : null
  }

  /** Returns the tables of the message. */
  add({ text: json, done = [] }: LoadMessage, at: number): string[] {
    const message = JSON.parse(json) as JsonObject
    const kind = KINDS[String(message['type'])]
    if (kind === undefined) return []
    const found: string[] = []
    const isOwed = (table: string): boolean => {
      if (done.includes(table)) return false
      found.push(table)
      return true
    }
    this.#startMessage(message)
    const own = kind.paths.map((path) => message[path] as unknown)
    if (kind.table === 'tracks') this.#addTrack(message, kind, at, isOwed)
    else if (isOwed(kind.table)) {
      const builder = this.#builder(kind.table, kind)
      this.#startRow(builder, message, own)
      this.#addRest(builder, message, kind.part)
      builder.end(at)
    }
    if (kind.table === 'identifies') this.#addState('users', message['userId'], message, at, isOwed)
    if (kind.table === 'groups') this.#addState('accounts', message['groupId'], message, at, isOwed)
    if (this.#archive !== null && isOwed(ARCHIVE_TABLE)) this.#addArchived(this.#archive, message, json, at)
    return this.#shared(found)
  }

  /** Nearly all messages of an event have the same tables, so they share a list. */
  #shared(found: string[]): string[] {
    const key = found.find((table) => table !== 'tracks') ?? ''
    const known = this.#lists.get(key)
    if (known?.length === found.length && found.every((table, at) => known[at] === table)) return known
    this.#lists.set(key, found)
    return found
  }

  result(tablesOf: string[][]): Evolved {
    const built = [...this.#builders.values(), ...[...this.#states.values()].map(({ builder }) => builder)]
    const changed = built.some((builder) => builder.changed)
    return {
      schema: changed ? this.#evolved(built) : this.#before,
      changed,
      batch: {
        tables: [...this.#builders.values()].filter(({ rows }) => rows.length > 0).map((builder) => builder.result()),
        states: [...this.#states.values()].map(({ table, builder, calls }) => ({ table, columns: builder.columns, calls })),
        archive:
          this.#archive === null || this.#archive.rows.length === 0
            ? null
            : { table: ARCHIVE_TABLE, columns: ARCHIVE_COLUMNS, ...this.#archive },
      },
      tablesOf,
      unfit: [...this.#unfit.values()],
      limits: [...this.#limits.values()],
    }
  }

  #evolved(built: readonly TableBuilder[]): SourceSchema {
    const tables = new Map(this.#stored)
    for (const { table, columns, changed } of built) if (changed) tables.set(table, { table, columns: [...columns] })
    return { ...this.#before, revision: this.#before.revision + 1, tables: [...tables.values()] }
  }

  #addTrack(message: JsonObject, kind: Kind, at: number, isOwed: (table: string) => boolean): void {
    const event = String(message['event'])
    const table = eventTable(event)
    const names = [eventName(event) || table, message['event'] as unknown]
    const hasTable = this.#hasRoomFor(table)
    if (isOwed('tracks')) {
      const tracks = this.#builder('tracks', kind)
      this.#startRow(tracks, message, names)
      if (!hasTable) this.#keepRest(tracks, message)
      tracks.end(at)
    }
    if (hasTable && isOwed(table)) {
      const builder = this.#builder(table, kind)
      this.#startRow(builder, message, names)
      this.#addRest(builder, message, kind.part)
      builder.end(at)
    }
  }

  /** The cells of the common columns are the same in all tables of a message. */
  #startMessage({ messageId, anonymousId, userId, receivedAt, sentAt, originalTimestamp, timestamp }: JsonObject): void {
    this.#common = [messageId, anonymousId, userId, receivedAt, sentAt, originalTimestamp, timestamp, this.#loadedAt]
    for (let at = 0; at < COMMON.length; at++) {
      const value = this.#common[at]
      const { type } = COMMON[at] as FixedColumn
      this.#commonCells[at] = value === null || value === undefined ? null : fit(value, type, this.#options.engine)
    }
  }

  #startRow(builder: TableBuilder, message: JsonObject, own: readonly unknown[]): void {
    builder.start(this.#common, this.#commonCells, own)
    if (isObject(message['context'])) builder.add(message['context'], ['context'])
    else if (message['context'] !== null && message['context'] !== undefined) builder.keep('context', message['context'])
  }

  #addRest(builder: TableBuilder, message: JsonObject, part: Kind['part']): void {
    for (const key of this.#restOf(message)) {
      const value: unknown = message[key]
      if (key === part && isObject(value)) builder.add(value, [key])
      else builder.add({ [key]: value }, [])
    }
  }

  /** The properties of an event that gets no table, because there are too many, stay with its row in `tracks`. */
  #keepRest(tracks: TableBuilder, message: JsonObject): void {
    for (const key of this.#restOf(message)) {
      const value: unknown = message[key]
      const path = pathOf([key])
      this.#countUnfit('tracks', null, path, foundType(value))
      tracks.keep(path, value)
    }
  }

  #restOf(message: JsonObject): string[] {
    const keys: string[] = []
    for (const key in message) if (!NOT_FLATTENED.has(key) && message[key] !== null && Object.hasOwn(message, key)) keys.push(key)
    return keys
  }

  #addState(table: StateRows['table'], id: unknown, message: JsonObject, at: number, isOwed: (table: string) => boolean): void {
    const key = typeof id === 'number' ? String(id) : id
    if (typeof key !== 'string' || key === '' || !this.#canHold(key) || !isOwed(table)) return
    let state = this.#states.get(table)
    if (state === undefined) {
      const kind = table === 'users' ? KINDS['identify'] : KINDS['group']
      const builder = new TableBuilder(table, this.#stored.get(table), STATE_COLUMNS, this.#context(kind?.table ?? table), {
        isTaken: true,
      })
      state = { table, columns: builder.columns, calls: [], builder }
      this.#states.set(table, state)
    }
    state.builder.start([], [], [])
    if (isObject(message['traits'])) state.builder.add(message['traits'], ['traits'])
    const timeMs = parseTimestamp(String(message['receivedAt']), this.#options.engine) ?? this.#options.loadedAtMs
    state.calls.push({ id: key, timeMs, ...state.builder.taken(), message: at })
  }

  #addArchived({ rows, messages }: Archived, message: JsonObject, json: string, at: number): void {
    const word = (key: string): string | null => {
      const value: unknown = message[key]
      return typeof value === 'string' ? wellFormed(value) : null
    }
    const receivedAt = parseTimestamp(String(message['receivedAt']), this.#options.engine) ?? this.#options.loadedAtMs
    rows.add([word('messageId'), word('type'), word('userId'), word('anonymousId'), word('event'), receivedAt, json])
    messages.push(at)
  }

  #builder(table: string, kind: Kind): TableBuilder {
    const known = this.#builders.get(table)
    if (known !== undefined) return known
    const own = LAYOUT[kind.table].map((name, at) => text(name, kind.paths[at] as string))
    const builder = new TableBuilder(table, this.#stored.get(table), [...COMMON, ...own, UNFIT_COLUMN], this.#context(table))
    if (builder.changed && !(table in LAYOUT)) this.#eventTables++
    this.#builders.set(table, builder)
    return builder
  }

  #hasRoomFor(table: string): boolean {
    if (this.#stored.has(table) || this.#builders.has(table) || this.#eventTables < MAX_EVENT_TABLES) return true
    this.#limits.set('tables', { limit: 'tables', table: null })
    return false
  }

  #context(plannedAs: string): TableContext {
    const { engine, loadedAtMs, planned } = this.#options
    return {
      engine,
      loadedAtMs,
      planned: planned?.[plannedAs] ?? NOTHING_PLANNED,
      onUnfit: this.#countUnfit,
      onFull: (table) => this.#limits.set(`columns ${table}`, { limit: 'columns', table }),
    }
  }

  readonly #countUnfit = (table: string, column: string | null, path: string, type: string): void => {
    const key = JSON.stringify([table, path, type])
    const known = this.#unfit.get(key)
    if (known === undefined) this.#unfit.set(key, { table, column, path, type, count: 1 })
    else known.count++
  }

  #canHold(id: string): boolean {
    return isWellFormed(id) && !(this.#options.engine === 'postgres' && id.includes('\0'))
  }
}
