// What a loader uses of the package @switchyard/warehouse.

import type { CreateWarehouse, Evolved, EvolveOptions, LoadMessage, PlannedColumns, SourceSchema } from '@switchyard/warehouse'

export interface Engines {
  createWarehouse: CreateWarehouse
  evolve: (schema: SourceSchema, messages: readonly LoadMessage[], options: EvolveOptions) => Evolved
  schemaName: (sourceName: string, taken: Iterable<string>) => string
  plannedColumns: (plan: { rules: never }) => PlannedColumns
}
