// Collects the rows of one table: finds the column of each value by the keys that lead to it, adds columns that are new, and keeps what does not fit
// in `_unfit`. The columns of a table only grow; their order is that in which they came.

import type { Cell, ColumnType, EngineName, StoredColumn, StoredTable, TableRows } from '../warehouse.ts'
import { ColumnarRows, FilledColumn } from './columnar-rows.ts'
import { columnName, keysOf, pathOf } from './names.ts'
import { type Fitted, fit, foundType, jsonText, timestampText, typeOf, UNFIT } from './values.ts'

export const MAX_COLUMNS = 1_000
/** Objects below this depth are JSON text: a name made of more keys would be a hash anyway. */
const MAX_DEPTH = 16

interface Node {
  column: number
  children: Map<string, Node> | null
}

export interface FixedColumn {
  name: string
  type: ColumnType
  path: string
}

export interface TableContext {
  engine: EngineName
  loadedAtMs: number
  planned: Readonly<Record<string, ColumnType>>
  onUnfit: (table: string, column: string | null, path: string, type: string) => void
  onFull: (table: string) => void
}

export type Unfit = Record<string, unknown>

export class TableBuilder {
  readonly table: string
  readonly columns: StoredColumn[]
  changed: boolean
  readonly rows: ColumnarRows
  readonly messages: number[] = []
  readonly #context: TableContext
  readonly #names: Set<string>
  readonly #own: ReadonlySet<string>
  readonly #root: Node = { column: -1, children: null }
  readonly #unfitAt: number
  /** The cells of the row that was started, nulls included, if they are taken and not kept. */
  readonly #taken: [column: number, cell: Cell][] | null
  #unfit: Unfit | null = null

  constructor(
    table: string,
    stored: StoredTable | undefined,
    fixed: readonly FixedColumn[],
    context: TableContext,
    { isTaken = false } = {},
  ) {
    this.table = table
    this.#taken = isTaken ? [] : null
    this.#context = context
    this.changed = stored === undefined
    this.columns = stored?.columns.slice() ?? fixed.map((column) => ({ ...column, since: context.loadedAtMs }))
    this.rows = new ColumnarRows(this.columns)
    this.#names = new Set(this.columns.map(({ name }) => name))
    this.#own = new Set(fixed.map(({ name }) => name))
    this.#unfitAt = this.columns.findIndex(({ name }) => name === '_unfit')
    this.columns.forEach(({ path }, at) => {
      if (at < fixed.length) return
      let node = this.#root
      for (const key of keysOf(path)) node = childOf(node, key)
      node.column = at
    })
  }

  /** Starts a row. The first columns have the cells that were made of the values, and the next ones those of `own`. */
  start(values: readonly unknown[], cells: readonly Fitted[], own: readonly unknown[]): void {
    this.#unfit = null
    if (this.#taken !== null) this.#taken.length = 0
    for (let at = 0; at < values.length; at++) {
      const cell = cells[at] as Fitted
      if (cell !== null) this.#fill(at, cell, values[at])
    }
    for (let at = 0; at < own.length; at++) {
      const value = own[at]
      if (value !== null && value !== undefined) this.#put(value, values.length + at)
    }
  }

  /** Adds every value below an object to the row. `keys` lead to it. */
  add(value: object, keys: readonly string[]): void {
    let node = this.#root
    for (const key of keys) node = childOf(node, key)
    this.#walk(value, node, [...keys], MAX_DEPTH)
  }

  /** Keeps values that have no table. */
  keep(path: string, value: unknown): void {
    this.#unfit ??= Object.create(null) as Unfit
    this.#unfit[path] = value
  }

  /** The values of the row that was started, instead of `end`. */
  taken(): { cells: [column: number, cell: Cell][]; unfit: Unfit | null } {
    return { cells: [...(this.#taken ?? [])], unfit: this.#unfit }
  }

  end(message: number): void {
    const { rows } = this
    if (this.#context.engine === 'postgres') this.#limitWidth()
    if (this.#unfit !== null) rows.columns[this.#unfitAt]?.set(rows.length, jsonText(this.#unfit))
    rows.length++
    this.messages.push(message)
  }

  result(): TableRows {
    return { table: this.table, columns: this.columns, rows: this.rows, messages: this.messages }
  }

  #walk(value: object, node: Node, keys: string[], depth: number): void {
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue
      const inner: unknown = (value as Record<string, unknown>)[key]
      if (inner === undefined || (inner === null && this.#taken === null)) continue
      const child = childOf(node, key)
      if (inner === null) {
        if (child.column !== -1) this.#taken?.push([child.column, null])
        continue
      }
      keys.push(key)
      if (typeof inner === 'object' && !Array.isArray(inner) && depth > 0) this.#walk(inner, child, keys, depth - 1)
      else this.#add(inner, child, keys)
      keys.pop()
    }
  }

  #add(value: unknown, node: Node, keys: readonly string[]): void {
    if (node.column === -1) {
      const path = pathOf(keys)
      if (this.columns.length >= MAX_COLUMNS) {
        this.#context.onFull(this.table)
        this.#context.onUnfit(this.table, null, path, foundType(value))
        this.keep(path, value)
        return
      }
      this.#addColumn(value, path, keys, node)
    }
    this.#put(value, node.column)
  }

  #put(value: unknown, at: number): void {
    this.#fill(at, fit(value, (this.columns[at] as StoredColumn).type, this.#context.engine), value)
  }

  /** Puts the cell of a value into the row. If it does not fit, it is kept in `_unfit`. */
  #fill(at: number, fitted: Fitted, value: unknown): void {
    const cell = fitted === UNFIT ? this.#widened(value, at) : fitted
    if (this.#taken !== null) this.#taken.push([at, cell])
    else if (cell !== null) (this.rows.columns[at] as FilledColumn).set(this.rows.length, cell)
  }

  #addColumn(value: unknown, path: string, keys: readonly string[], node: Node): void {
    const { engine, planned, loadedAtMs } = this.#context
    // The first key says which part of the message it is: only the context keeps it in the name.
    const named = keys[0] === 'properties' || keys[0] === 'traits' ? keys.slice(1) : keys
    const name = columnName(named, this.#own, (candidate) => this.#names.has(candidate))
    node.column = this.columns.length
    const type = planned[path] ?? typeOf(value, engine)
    this.columns.push({ name, type, path, since: loadedAtMs })
    this.rows.columns.push(new FilledColumn(type))
    this.#names.add(name)
    this.changed = true
  }

  #widened(value: unknown, at: number): Cell {
    const { engine, planned } = this.#context
    const column = this.columns[at] as StoredColumn
    const { name, type, path } = column
    // Engines widen a column in place; files that exist cannot be. A planned integer stays one.
    if (type === 'bigint' && typeof value === 'number' && engine !== 'parquet' && planned[path] !== 'bigint') {
      this.columns[at] = { ...column, type: 'double' }
      this.changed = true
      return value
    }
    this.#context.onUnfit(this.table, name, path, foundType(value))
    this.keep(path, value)
    return null
  }

  /** PostgreSQL keeps a row in one page of 8 KB. Long texts are stored elsewhere, but some bytes of each stay. */
  #limitWidth(): void {
    const { columns, length } = this.rows
    // With room for the column that keeps what does not fit.
    let width = 32 + Math.ceil(columns.length / 8) + TOASTED_BYTES
    if (width + columns.length * (TOASTED_BYTES + 4) < PAGE_BYTES) return
    for (const [at, cells] of columns.entries()) {
      const cell = cells.get(length)
      if (cell === null) continue
      const { type, name, path } = this.columns[at] as StoredColumn
      const wider = widthAfter(width, cell, type)
      if (wider <= PAGE_BYTES) width = wider
      else {
        const value = type === 'timestamp' ? timestampText(cell as number) : cell
        this.#context.onUnfit(this.table, name, path, foundType(value))
        this.keep(path, value)
        cells.removeLast()
      }
    }
  }
}

/** PostgreSQL compresses longer texts or stores them elsewhere, and leaves those alone that have become this short. */
const TOASTED_BYTES = 24
/** With room for the item pointer and the header of the page. */
const PAGE_BYTES = 8_100

function widthAfter(width: number, cell: Cell, type: ColumnType): number {
  if (cell === null) return width
  if (typeof cell === 'boolean') return width + 1
  if (type !== 'text') return Math.ceil(width / 8) * 8 + 8
  const bytes = Buffer.byteLength(cell as string) + 1
  return bytes <= TOASTED_BYTES ? width + bytes : Math.ceil(width / 4) * 4 + TOASTED_BYTES
}

function childOf(node: Node, key: string): Node {
  node.children ??= new Map()
  let child = node.children.get(key)
  if (child === undefined) {
    child = { column: -1, children: null }
    node.children.set(key, child)
  }
  return child
}
