// The rows of a table, kept column by column. A file is written by columns, a load has many equal texts, and a row of its own for each message would be
// garbage that lives as long as the load: numbers are stored as numbers, and a text that is repeated is stored once.

import type { Cell, ColumnCells, ColumnType, Rows } from '../warehouse.ts'

/** The code of a row that has no text or boolean. A row that has no number has NaN, which no message can contain. */
const NOTHING = -1
/** A column with fewer texts looks for no equal ones: the map would take more memory than it saves. */
const DISTINCT_FROM = 64
/** When a column has so many different texts, it stops looking for equal ones if there were hardly any. */
const JUDGED_AT = 1_024
const FEW_EQUAL = 50

export class FilledColumn implements ColumnCells {
  readonly type: ColumnType
  readonly codes: number[] = []
  readonly texts: string[] = []
  #places: Map<string, number> | null = null
  #equal = 0
  /** Many columns have the same text in row after row: comparing it is faster than finding it in the map. */
  #last = -1

  constructor(type: ColumnType) {
    this.type = type
  }

  get isDistinct(): boolean {
    return this.#places !== null
  }

  /** Rows are filled in their order. Those that are left out have no value. */
  set(row: number, cell: Exclude<Cell, null>): void {
    const { codes, type } = this
    const nothing = type === 'text' || type === 'boolean' ? NOTHING : Number.NaN
    while (codes.length < row) codes.push(nothing)
    codes.push(type === 'text' ? this.#placeOf(cell as string) : Number(cell))
  }

  /** Takes back what was set last. */
  removeLast(): void {
    this.codes.pop()
  }

  has(row: number): boolean {
    // NaN is not at least anything.
    return this.type === 'text' || this.type === 'boolean'
      ? (this.codes[row] ?? NOTHING) >= 0
      : !Number.isNaN(this.codes[row] ?? Number.NaN)
  }

  get(row: number): Cell {
    if (!this.has(row)) return null
    const code = this.codes[row] as number
    return this.type === 'text' ? (this.texts[code] as string) : this.type === 'boolean' ? code === 1 : code
  }

  #placeOf(text: string): number {
    if (typeof text !== 'string') throw new TypeError(`A text column has a value that is a ${typeof text}.`)
    const isLast = this.#places !== null && this.texts[this.#last] === text
    const known = isLast ? this.#last : this.#places?.get(text)
    if (known !== undefined) {
      this.#equal++
      this.#last = known
      return known
    }
    const place = this.texts.push(text) - 1
    this.#last = place
    this.#places?.set(text, place)
    if (this.texts.length === JUDGED_AT && this.#equal < FEW_EQUAL) this.#places = null
    if (this.texts.length !== DISTINCT_FROM || this.#places !== null) return place
    this.#merge()
    this.#last = -1
    return (this.#places as ReadonlyMap<string, number> | null)?.get(text) ?? place
  }

  /** From here on, equal texts are stored once. */
  #merge(): void {
    const places = new Map<string, number>()
    const moved = this.texts.map((text) => {
      const place = places.get(text) ?? places.size
      places.set(text, place)
      return place
    })
    for (const [row, code] of this.codes.entries()) if (code !== NOTHING) this.codes[row] = moved[code] as number
    this.#equal = this.texts.length - places.size
    this.texts.splice(0, this.texts.length, ...places.keys())
    this.#places = places
  }
}

export class ColumnarRows implements Rows {
  readonly columns: FilledColumn[] = []
  length = 0

  constructor(columns: readonly { type: ColumnType }[] = []) {
    for (const { type } of columns) this.columns.push(new FilledColumn(type))
  }

  add(row: readonly Cell[]): void {
    for (let at = 0; at < this.columns.length; at++) {
      const cell = row[at]
      if (cell !== null && cell !== undefined) (this.columns[at] as FilledColumn).set(this.length, cell)
    }
    this.length++
  }

  *[Symbol.iterator](): Generator<Cell[]> {
    for (let row = 0; row < this.length; row++) yield this.columns.map((cells) => cells.get(row))
  }
}
