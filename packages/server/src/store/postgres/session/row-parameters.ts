// Passes rows as parameters of a statement, one array per column. A table of columns has the name, type and value of each column. The
// text of the statement and its parameters are both built from that table, so nobody has to match them by counting. The text
// is built once, when the module is loaded, because a prepared statement must always have the same text.

import type { Buffer } from 'node:buffer'
import { bools, byteas, int4s, int8s, texts, uuids } from './binary-arrays.ts'
import type { Statement, Value } from './connection.ts'

const ARRAYS = { bigint: int8s, integer: int4s, boolean: bools, text: texts, bytea: byteas, uuid: uuids }

type ColumnType = keyof typeof ARRAYS
type ValueOf<T extends ColumnType> = Parameters<(typeof ARRAYS)[T]>[0][number]
type Column<Row> = { [T in ColumnType]: readonly [type: T, value: (row: Row) => ValueOf<T>] }[ColumnType]

export function arrayOf(type: ColumnType, values: readonly unknown[]): Buffer {
  return ARRAYS[type](values as never)
}

export class Columns<Row> {
  readonly table: readonly { name: string; type: ColumnType; value: (row: Row) => unknown }[]

  constructor(table: Record<string, Column<Row>>) {
    this.table = Object.entries(table).map(([name, [type, value]]) => ({ name, type, value }))
  }
}

export type RowOf<C> = C extends Columns<infer Row> ? Row : never

/** Columns whose values are the fields of the same name. */
export function plainColumns<const T extends Record<string, ColumnType>>(types: T): Columns<{ [K in keyof T]: ValueOf<T[K]> }> {
  const columns = Object.entries(types).map(([name, type]) => [name, [type, (row: Record<string, never>) => row[name]]])
  return new Columns(Object.fromEntries(columns))
}

/** SQL fragments with which the text of a statement refers to its rows. */
class RowsText {
  /** `id, claim`. */
  readonly names: string
  /** `unnest($2::bigint[], $3::integer[])`. */
  readonly unnest: string
  readonly #arrays: Map<string, string>

  constructor({ table }: Columns<never>, first: number) {
    this.#arrays = new Map(table.map(({ name, type }, at) => [name, `$${first + at}::${type}[]`]))
    this.names = [...this.#arrays.keys()].join(', ')
    this.unnest = `unnest(${[...this.#arrays.values()].join(', ')})`
  }

  /** `unnest($2::bigint[], $3::integer[]) AS d (id, claim)`. */
  as(alias: string): string {
    return `${this.unnest} AS ${alias} (${this.names})`
  }

  /** With the position of each row: `unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS d (id, claim, place)`. */
  inOrder(alias: string): string {
    return `${this.unnest} WITH ORDINALITY AS ${alias} (${this.names}, place)`
  }

  /** One column: `$2::bigint[]`. */
  array(name: string): string {
    const array = this.#arrays.get(name)
    if (array === undefined) throw new Error(`no column ${name} in ${this.names}`)
    return array
  }
}

type ParameterTable = Record<string, 'value' | Columns<never>>
export type Texts<P extends ParameterTable> = { [K in keyof P]: P[K] extends 'value' ? string : RowsText }
type Given<P extends ParameterTable> = { [K in keyof P]: P[K] extends Columns<infer Row> ? readonly Row[] : Value }

/** A statement with named parameters, each of which is a single value or rows. */
export function statement<P extends ParameterTable>(options: {
  /** Prepared under this name, once per connection. */
  name?: string
  parameters: P
  text: (parameters: Texts<P>) => string
}): Statement & { values: (given: Given<P>) => Value[] } {
  const { name, parameters, text } = options
  const entries = Object.entries(parameters)
  const written: Record<string, string | RowsText> = {}
  let count = 1
  for (const [key, parameter] of entries) {
    written[key] = parameter === 'value' ? `$${count}` : new RowsText(parameter, count)
    count += parameter === 'value' ? 1 : parameter.table.length
  }
  return {
    ...(name === undefined ? {} : { name }),
    text: text(written as Texts<P>),
    values: (given) => {
      const values: Value[] = []
      for (const [key, parameter] of entries) {
        if (parameter === 'value') {
          values.push(given[key] as Value)
          continue
        }
        const rows = given[key] as readonly never[]
        for (const { type, value } of parameter.table) values.push(arrayOf(type, rows.map(value)))
      }
      return values
    },
  }
}
