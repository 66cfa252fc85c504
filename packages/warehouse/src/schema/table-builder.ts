// Collects the rows of one table: finds the column of each value by the keys that lead to it, adds columns that are new, and keeps what does not fit
// in `_unfit`. The columns of a table only grow; their order is that in which they came.

import type { Cell, ColumnType, EngineName, StoredColumn, StoredTable, TableRows } from '../warehouse.ts'
import { ColumnarRows, ColumnCells } from './columnar-rows.ts'
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
  /** Whether a null counts as a value of the row. */
  readonly #takesNulls: boolean
  /** The row that is being filled, and its columns that have a value. */
  readonly #row: Cell[] = []
  readonly #given: number[] = []
  #unfit: Unfit | null = null

  constructor(
    table: string,
    stored: StoredTable | undefined,
    fixed: readonly FixedColumn[],
    context: TableContext,
    { takesNulls = false } = {},
  ) {
    this.table = table
    this.#takesNulls = takesNulls
    this.#context = context
    this.changed = stored === undefined
    this.columns = stored?.columns.slice() ?? fixed.map((column) => ({ ...column, since: context.loadedAtMs }))
    this.rows = new ColumnarRows(this.columns)
    this.#names = new Set(this.columns.map(({ name }) => name))
    this.#own = new Set(fixed.map(({ name }) => name))
    this.#row.length = this.columns.length
    this.#row.fill(null)
    this.#unfitAt = this.columns.findIndex(({ name }) => name === '_unfit')
    this.columns.forEach(({ path }, at) => {
      if (at < fixed.length) return
      let node = this.#root
      for (const key of keysOf(path)) node = childOf(node, key)
      node.column = at
    })
  }

  /** Starts a row with the values of its fixed columns, in their order. `cells` are those of the first ones, as far as they are known. */
  start(values: readonly unknown[], cells: readonly Fitted[] = []): void {
    for (const column of this.#given) this.#row[column] = null
    this.#given.length = 0
    this.#unfit = null
    for (let at = 0; at < values.length; at++) {
      const value = values[at]
      if (value === null || value === undefined) continue
      const column = this.columns[at] as StoredColumn
      this.#fill(at, this.#kept(cells[at] ?? fit(value, column.type, this.#context.engine), value, column))
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
    return { cells: this.#given.map((at) => [at, this.#row[at] ?? null]), unfit: this.#unfit }
  }

  end(message: number): void {
    if (this.#context.engine === 'postgres') this.#limitWidth()
    if (this.#unfit !== null) this.#fill(this.#unfitAt, jsonText(this.#unfit))
    const { columns, length } = this.rows
    for (const at of this.#given) {
      const cell = this.#row[at] as Cell
      if (cell !== null) (columns[at] as ColumnCells).set(length, cell)
    }
    this.rows.length++
    this.messages.push(message)
  }

  result(): TableRows {
    return { table: this.table, columns: this.columns, rows: this.rows, messages: this.messages }
  }

  #fill(column: number, cell: Cell): void {
    this.#row[column] = cell
    this.#given.push(column)
  }

  #walk(value: object, node: Node, keys: string[], depth: number): void {
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue
      const inner: unknown = (value as Record<string, unknown>)[key]
      if (inner === undefined || (inner === null && !this.#takesNulls)) continue
      const child = childOf(node, key)
      if (inner === null) {
        if (child.column !== -1) this.#given.push(child.column)
        continue
      }
      keys.push(key)
      if (typeof inner === 'object' && !Array.isArray(inner) && depth > 0) this.#walk(inner, child, keys, depth - 1)
      else this.#put(inner, child, keys)
      keys.pop()
    }
  }

  #put(value: unknown, node: Node, keys: readonly string[]): void {
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
    const column = this.columns[node.column] as StoredColumn
    this.#fill(node.column, this.#kept(fit(value, column.type, this.#context.engine), value, column))
  }

  #addColumn(value: unknown, path: string, keys: readonly string[], node: Node): void {
    const { engine, planned, loadedAtMs } = this.#context
    // The first key says which part of the message it is: only the context keeps it in the name.
    const named = keys[0] === 'properties' || keys[0] === 'traits' ? keys.slice(1) : keys
    const name = columnName(named, this.#own, (candidate) => this.#names.has(candidate))
    node.column = this.columns.length
    const type = planned[path] ?? typeOf(value, engine)
    this.columns.push({ name, type, path, since: loadedAtMs })
    this.rows.columns.push(new ColumnCells(type))
    this.#row.push(null)
    this.#names.add(name)
    this.changed = true
  }

  /** The cell of a value; null if it does not fit and was kept in `_unfit`. */
  #kept(cell: Fitted, value: unknown, column: StoredColumn): Cell {
    if (cell !== UNFIT) return cell
    const { engine, planned } = this.#context
    const { path } = column
    // Engines widen a column in place; files that exist cannot be. A planned integer stays one.
    if (column.type === 'bigint' && typeof value === 'number' && engine !== 'parquet' && planned[path] !== 'bigint') {
      this.columns[this.columns.indexOf(column)] = { ...column, type: 'double' }
      this.changed = true
      return value
    }
    this.#context.onUnfit(this.table, column.name, path, foundType(value))
    this.keep(path, value)
    return null
  }

  /** PostgreSQL keeps a row in one page of 8 KB. Long texts are stored elsewhere, but some bytes of each stay. */
  #limitWidth(): void {
    const row = this.#row
    let width = 32 + Math.ceil(this.columns.length / 8)
    if (width + row.length * (TOASTED_BYTES + 4) < PAGE_BYTES) return
    for (let at = 0; at < row.length; at++) {
      const cell = row[at] as Cell
      if (cell === null) continue
      const { type, name, path } = this.columns[at] as StoredColumn
      const wider = at === this.#unfitAt ? width + TOASTED_BYTES : widthAfter(width, cell, type)
      if (wider <= PAGE_BYTES) width = wider
      else {
        const value = type === 'timestamp' ? timestampText(cell as number) : cell
        this.#context.onUnfit(this.table, name, path, foundType(value))
        this.keep(path, value)
        row[at] = null
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
