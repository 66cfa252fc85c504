// The SQL that both adapters share (encoding/sql.ts), for PostgreSQL, and the settings, which are read with it.

import type { SettingRows } from '../../configuration/configuration-rows.ts'
import { configurationTables } from '../../configuration/configuration-tables.ts'
import type { Sql, SqlValue } from '../../encoding/sql.ts'
import type { Value } from '../session/connection.ts'
import type { Ask, Database } from '../session/database.ts'
import { readText, writeText } from '../session/text-columns.ts'
import { POSTGRES_ROWS } from './ids.ts'

/** Statements with `?` by their text, and the same with `$1`, `$2`, … */
const numbered = new Map<string, string>()

function numberedText(text: string): string {
  let known = numbered.get(text)
  if (known === undefined) {
    let count = 0
    known = text.replaceAll('?', () => `$${++count}`)
    numbered.set(text, known)
  }
  return known
}

export function sqlOf(ask: Ask): Sql<string> {
  return {
    order: POSTGRES_ROWS,
    all: async <Row>(text: string, values: readonly SqlValue[] = []) => (await ask<Row>(numberedText(text), values as Value[])).rows,
    run: async (text, values = []) => (await ask(numberedText(text), values as Value[])).count,
    among: (column, type = 'bigint') => `${column} = ANY(?::${type}[])`,
    list: (values) => values,
    text: (value) => (value === null ? value : (writeText(value) as typeof value)),
    read(row, ...columns) {
      for (const column of columns) if (typeof row[column] === 'string') row[column] = readText(row[column]) as (typeof row)[typeof column]
      return row
    },
    flag: (value) => value as never,
    lock: (clause) => clause,
  }
}

export function createSettings(database: Database): SettingRows {
  return {
    ...configurationTables(sqlOf(database.ask)),
    useAssertion: (...use) => database.transaction((ask) => configurationTables(sqlOf(ask)).useAssertion(...use)),
  }
}

export function readSetting(ask: Ask, name: string): Promise<string | undefined> {
  return configurationTables(sqlOf(ask)).getSetting(name)
}
