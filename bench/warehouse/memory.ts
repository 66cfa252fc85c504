// The memory of a process that loads messages into 1,000 tables of 100 columns. Run by run.ts.

import { pathToFileURL } from 'node:url'
import { createWarehouse } from '../../packages/warehouse/src/engines.ts'
import { temporaryLake } from '../../packages/warehouse/src/fixtures/lake-reading.ts'
import { emptySchema, LOADED_AT, OWNER } from '../../packages/warehouse/src/fixtures/messages.ts'
import { evolve } from '../../packages/warehouse/src/schema/evolve.ts'

const TABLES = 1_000
const COLUMNS = 84
const LOADS = 5
/** As much as a load of a destination has by default. */
const LOAD_BYTES = 32 * 1024 * 1024

using lake = temporaryLake()
const warehouse = createWarehouse({ engine: 'parquet', url: pathToFileURL(lake.folder).href }, { lakeFolder: lake.folder })
let schema = emptySchema()
let total = 0
for (let load = 0; load < LOADS; load++) {
  const messages: { text: string }[] = []
  for (let bytes = 0, at = 0; bytes < LOAD_BYTES && at < 50_000; at++) {
    const properties = Object.fromEntries(
      Array.from({ length: COLUMNS }, (_, column) => [`property ${column}`, column % 2 === 0 ? at + column / 8 : `value ${at}`]),
    )
    const text = JSON.stringify({
      messageId: `m-${load}-${at}`,
      type: 'track',
      event: `Event ${at % TABLES}`,
      userId: `user-${at}`,
      properties,
      context: { library: { name: 'x', version: '1.0.0' } },
      receivedAt: '2026-11-17T10:00:00.000Z',
      timestamp: '2026-11-17T10:00:00.000Z',
    })
    messages.push({ text })
    bytes += text.length
  }
  total += messages.length
  const evolved = evolve(schema, messages, { engine: 'parquet', loadedAtMs: LOADED_AT })
  schema = evolved.schema
  const { tables } = await warehouse.load(
    { id: `load_${load}`, owner: OWNER, schema, loadedAtMs: LOADED_AT, repeated: false },
    evolved.batch,
  )
  const failed = tables.find(({ error }) => error !== null)
  if (failed !== undefined) throw new Error(failed.error?.message)
}
await warehouse.close()
const events = schema.tables.filter(({ table }) => table.startsWith('event_'))
const columns = Math.max(...events.map((table) => table.columns.length))
console.log(
  `  ${LOADS} loads, ${total.toLocaleString('en')} messages, ${events.length} tables of ${columns} columns: at most ${Math.round(process.resourceUsage().maxRSS / 1_024)} MB`,
)
