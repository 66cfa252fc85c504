// SQL over Parquet lakes. A caller who is limited to sources sees the schemas of these sources only.

import { anyValue, array, boolean, integer, object, optional, string } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { Destination, Store } from '../../store/store.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { type ControlParts, type Exchange, type Route, route } from '../routes/route.ts'
import { sourcesWithTables } from '../warehouses/tables.ts'

const MAX_QUERY = 100_000
const MAX_ROWS = 10_000

const QUERY = object({
  query: string({
    min: 1,
    max: MAX_QUERY,
    description: 'One SELECT statement of DuckDB. Each source has a schema, and each table is a view: `shop.tracks`.',
  }),
  destinationId: optional(string({ description: 'The lake. May be left out if there is only one.' })),
  limit: optional(integer({ min: 1, max: MAX_ROWS, description: `Rows at most. Default: ${MAX_ROWS.toLocaleString('en-US')}.` })),
})
const ANSWER = object({
  columns: array(object({ name: string(), type: string({ description: 'As DuckDB calls it, such as `BIGINT`.' }) })),
  rows: array(array(anyValue()), {
    description: 'One array per row. Integers beyond 2^53 and some decimals are strings; times are ISO 8601.',
  }),
  truncated: boolean({ description: 'There are more rows, or more than 8 MB of them.' }),
  warnings: array(string(), { description: 'What the answer lacks, such as a file that is gone.' }),
})
const TABLES = object({
  data: array(
    object(
      {
        sourceId: string(),
        schema: string(),
        table: string(),
        columns: array(object({ name: string(), type: string() })),
      },
      { title: 'LakeTable' },
    ),
  ),
})

export function sqlRoutes({ store, queries }: ControlParts): Route[] {
  const given = () => {
    if (queries === undefined) throw new ApiError('not_installed')
    return queries
  }
  return [
    route('POST', '/sql', {
      summary: 'Query a Parquet lake with SQL',
      description:
        'Runs one SELECT statement with DuckDB, in a process of its own: at most 30 s, 512 MB of memory and 10,000 rows. It can read the tables of the lake and nothing else. If the client closes the connection, the query ends. The audit log records each query.',
      access: { role: 'editor', sources: 'limited' },
      body: QUERY,
      answer: ANSWER,
      errors: ['not_a_lake', 'not_installed', 'sql_invalid', 'sql_too_large', 'sql_timed_out', 'sql_cancelled', 'sql_busy', 'sql_failed'],
      async handle({ body: { query, destinationId, limit }, actor, sources, exchange }) {
        const lake = lakeOf(store, destinationId)
        const concerned = await sourcesWithTables(store, lake, sources)
        await recordAction(store.history, { actor, action: 'sql.query', subject: lake.id, after: { query }, sources: concerned })
        const { signal, release } = untilClosed(exchange)
        try {
          return await given().run({ lake, query, limit, signal }, 'all')
        } finally {
          release()
        }
      },
    }),
    route('GET', '/sql/tables', {
      summary: 'List the tables that a query can name',
      access: { role: 'editor', sources: 'limited' },
      query: object({ destinationId: optional(string({ description: 'The lake. May be left out if there is only one.' })) }),
      answer: TABLES,
      errors: ['not_a_lake', 'not_installed'],
      handle: async ({ query: { destinationId } }) => ({ data: await given().tables(lakeOf(store, destinationId), 'all') }),
    }),
  ]
}

function lakeOf(store: Store, id: string | undefined): Destination {
  const { destinations } = store.configuration()
  const lakes = [...destinations.values()].filter((each) => each.type === 'warehouse' && each.warehouse.engine === 'parquet')
  if (id === undefined && lakes.length > 1)
    throw new ApiError('not_a_lake', {
      message: `There are ${lakes.length} lakes. Send the id of one as destinationId: ${lakes.map((lake) => `${lake.id} (${lake.name})`).join(', ')}.`,
      field: 'destinationId',
    })
  const found = id === undefined ? lakes[0] : lakes.find((lake) => lake.id === id)
  if (found === undefined) throw new ApiError('not_a_lake', id === undefined ? {} : { field: 'destinationId' })
  return found
}

/** Aborted when the client closes the connection. */
function untilClosed({ request: { socket } }: Exchange): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  socket.once('close', abort)
  return { signal: controller.signal, release: () => void socket.off('close', abort) }
}
