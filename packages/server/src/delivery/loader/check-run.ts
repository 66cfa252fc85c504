// Checks a warehouse whose settings are not saved, and makes rows of some messages without storing anything.

import type { Cell, Check, SourceSchema, WarehouseSettings } from '@switchyard/warehouse'
import type { CheckedTable, WarehouseCheck, WarehouseCheckRequest } from '../link/warehouse-check.ts'
import type { Engines } from './engines.ts'

/** The answer is a text of limited length. */
const MAX_TABLES = 60
const MAX_COLUMNS = 60
const MAX_TOTAL_COLUMNS = 800
const MAX_EXAMPLE = 60

export async function runCheck(
  engines: Engines,
  settings: WarehouseSettings,
  { sources }: WarehouseCheckRequest,
  lakeFolder: string | null,
): Promise<WarehouseCheck> {
  const tables = tablesOf(engines, settings, sources)
  const warehouse = engines.createWarehouse(settings, { lakeFolder })
  try {
    return { ...checked(await warehouse.check()), tables }
  } finally {
    await warehouse.close()
  }
}

function checked({ problem, steps, version }: Check) {
  return { problem, version, steps: steps.map(({ step, ok, error = null }) => ({ step, ok, error })) }
}

function tablesOf(engines: Engines, { engine }: WarehouseSettings, sources: WarehouseCheckRequest['sources']): CheckedTable[] {
  const taken: string[] = []
  const found: CheckedTable[] = []
  let columnsLeft = MAX_TOTAL_COLUMNS
  for (const { sourceId, name, rules, messages } of sources) {
    const schema: SourceSchema = { name: engines.schemaName(name, taken), revision: 0, tables: [] }
    taken.push(schema.name)
    const planned = rules === null ? {} : { planned: engines.plannedColumns({ rules: rules as never }) }
    const texts = messages.map((text) => ({ text }))
    const { batch, schema: grown, unfit } = engines.evolve(schema, texts, { engine, loadedAtMs: Date.now(), ...planned })
    const rowsOf = new Map([...batch.tables, ...(batch.archive === null ? [] : [batch.archive])].map((each) => [each.table, each]))
    const states = new Map<string, number>(batch.states.map(({ table, calls }) => [table, new Set(calls.map(({ id }) => id)).size]))
    const archive = batch.archive === null ? [] : [batch.archive]
    for (const { table, columns } of [...grown.tables, ...archive].sort((one, other) => (one.table < other.table ? -1 : 1))) {
      if (found.length >= MAX_TABLES) break
      const rows = rowsOf.get(table)
      const cells = [...(rows?.rows ?? [])]
      const shown = columns.slice(0, Math.max(0, Math.min(MAX_COLUMNS, columnsLeft)))
      columnsLeft -= shown.length
      found.push({
        sourceId,
        schema: schema.name,
        table,
        rows: rows?.rows.length ?? states.get(table) ?? 0,
        columnCount: columns.length,
        columns: shown.map(({ name: column, type, path }) => {
          const at = rows?.columns.findIndex((each) => each.name === column) ?? -1
          const cell = cells.find((row) => (row[at] ?? null) !== null)?.[at] ?? null
          return { name: column, type, path, example: exampleOf(cell, type) }
        }),
        unfit: unfit.reduce((sum, each) => (each.table === table ? sum + each.count : sum), 0),
      })
    }
  }
  return found
}

function exampleOf(cell: Cell, type: string): string | null {
  if (cell === null) return null
  const text = type === 'timestamp' && typeof cell === 'number' ? new Date(cell).toISOString() : String(cell)
  return text.length > MAX_EXAMPLE ? `${text.slice(0, MAX_EXAMPLE)}…` : text
}
