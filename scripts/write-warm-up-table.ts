// Writes packages/warehouse/warm-up.parquet: a file as a lake has it, over which the process of a query runs a few queries before the real one comes.
// Run: node scripts/run.mjs scripts/write-warm-up-table.ts

import { copyFileSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { shopMessages } from '../bench/warehouse/measured.ts'
import { createWarehouse } from '../packages/warehouse/src/engines.ts'
import { emptySchema, LOADED_AT, OWNER } from '../packages/warehouse/src/fixtures/messages.ts'
import { evolve } from '../packages/warehouse/src/schema/evolve.ts'

const MESSAGES = 400
const folder = mkdtempSync(join(tmpdir(), 'switchyard-warm-up-'))
try {
  const warehouse = createWarehouse({ engine: 'parquet', url: pathToFileURL(folder).href }, { lakeFolder: folder })
  const { schema, batch } = evolve(emptySchema(), shopMessages(MESSAGES), { engine: 'parquet', loadedAtMs: LOADED_AT })
  await warehouse.load({ id: 'load_1', owner: OWNER, schema, loadedAtMs: LOADED_AT, repeated: false }, batch)
  const [file = ''] = globSync('shop/order_completed/*/*.parquet', { cwd: folder })
  copyFileSync(join(folder, file), join(import.meta.dirname, '..', 'packages', 'warehouse', 'warm-up.parquet'))
} finally {
  rmSync(folder, { recursive: true })
}
