// Routes for the tables of a warehouse: what they contain, and loading at once.

import { array, integer, nullable, object, string, time } from '../../api/schema.ts'
import { kindOf } from '../../destinations/kinds.ts'
import { ApiError } from '../../errors.ts'
import { readLoads, readSchemas, readStats, schemasOfSources } from '../../store/port/warehouse-tables.ts'
import type { Destination, SourceScope, Store } from '../../store/store.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { found } from '../routes/resource-routes.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const COUNTS = {
  count: integer({ description: 'How many values did not fit the column. They are in `_unfit` of their rows.' }),
  types: array(object({ type: string(), count: integer() }), { description: 'Of which type these values were.' }),
}
const TABLES = object({
  data: array(
    object(
      {
        sourceId: string(),
        schema: string({ description: 'The schema, or the folder, of the tables of the source.' }),
        table: string(),
        columns: array(
          object({
            name: string(),
            type: string({ description: '`boolean`, `bigint`, `double`, `timestamp` or `text`.' }),
            path: string({ description: 'Where the values are in a message, such as `properties.cart.total`.' }),
            since: nullable(time({ description: 'When the column was added; null for one that every such table has.' })),
            unfit: object(COUNTS),
          }),
        ),
        unfit: array(object({ path: string(), type: string(), count: integer() }), {
          description: 'Values that have no column, for example because the table has as many columns as it may have.',
        }),
        rows: integer({ description: 'How many rows were loaded. Rows that were deleted later are not subtracted.' }),
        lastLoadAt: nullable(time()),
      },
      { title: 'WarehouseTable' },
    ),
  ),
  next: nullable(string({ description: 'Always null: the list is complete.' })),
})
const LOADS = object({
  data: array(
    object(
      {
        id: string({ description: 'As in the attempts of its messages.' }),
        sourceId: string(),
        at: time({ description: 'When its tables were committed.' }),
        messages: integer(),
        tables: integer(),
        rows: integer(),
        bytes: integer({ description: 'As they were written or sent, compressed.' }),
        durationMs: integer(),
        failed: array(string(), {
          description:
            'Tables that could not be loaded, at most 10. The load is repeated for their messages, and its entry is then replaced.',
        }),
      },
      { title: 'WarehouseLoad' },
    ),
  ),
  next: nullable(string({ description: 'Always null: the list is complete.' })),
})
const LOADING = object({ pending: integer({ description: 'The number of messages that wait or are being loaded.' }) })

export function warehouseTableRoutes({ store, loads }: ControlParts): Route[] {
  return [
    route('GET', '/destinations/:id/tables', {
      summary: 'List the tables of a warehouse',
      description: 'With the columns of each, and how many values did not fit them. Only for warehouses.',
      access: { role: 'viewer', sources: 'limited', subject: 'destination', whole: true },
      answer: TABLES,
      errors: ['destination_not_found', 'not_a_warehouse'],
      async handle({ params, sources }) {
        const { id } = storedWarehouse(store, params['id'])
        const schemas = (await readSchemas(store.documents, id)).filter(isOf(sources))
        const data = await Promise.all(schemas.map(async (each) => tablesOf(each, await readStats(store.documents, id, each.sourceId))))
        return { data: data.flat(), next: null }
      },
    }),
    route('GET', '/destinations/:id/loads', {
      summary: 'List the latest loads of a warehouse',
      description: 'The newest first, at most 200. Only for warehouses.',
      access: { role: 'viewer', sources: 'limited', subject: 'destination', whole: true },
      answer: LOADS,
      errors: ['destination_not_found', 'not_a_warehouse'],
      async handle({ params, sources }) {
        const { id } = storedWarehouse(store, params['id'])
        const loads = (await readLoads(store.documents, id)).filter(isOf(sources))
        return { data: loads.map(({ atMs, ...load }) => Object.assign(load, { at: atMs })), next: null }
      },
    }),
    route('POST', '/destinations/:id/load', {
      summary: 'Load waiting messages into a warehouse now',
      description:
        'Works on every node, whichever of them makes the loads of the warehouse. Does not wait until the load has ended. Only for warehouses.',
      access: { role: 'editor', sources: 'limited', subject: 'destination', whole: true },
      status: 202,
      answer: LOADING,
      errors: ['destination_not_found', 'not_a_warehouse'],
      async handle({ params, actor }) {
        const { id, sourceIds } = storedWarehouse(store, params['id'])
        await recordAction(store.history, { actor, action: 'destination.load', subject: id, after: {}, sources: sourceIds })
        await loads?.want(id)
        const rows = await store.books.ledger()
        return { pending: rows.find(({ destinationId }) => destinationId === id)?.pending ?? 0 }
      },
    }),
  ]
}

/** Whether the caller has a source. A warehouse may have tables of sources that it had before, which are not judged by who has all its sources now. */
function isOf(sources: SourceScope) {
  return ({ sourceId }: { sourceId: string }): boolean => sources === 'all' || sources.includes(sourceId)
}

/** The sources whose tables the caller can query: those of the lake, and those that it had before, whose tables are still there. */
export async function sourcesWithTables(store: Store, { id, sourceIds }: Destination, sources: SourceScope): Promise<string[]> {
  const schemas = await schemasOfSources(store.documents, id)
  const before = schemas.map(({ sourceId }) => sourceId).filter((sourceId) => sources === 'all' || sources.includes(sourceId))
  return [...new Set([...sourceIds, ...before])]
}

/** Throws if there is none, or it is a destination of another kind. */
export function storedWarehouse(store: Pick<Store, 'configuration'>, id: string | undefined): Destination {
  const destination = found({ notFound: 'destination_not_found' }, store.configuration().destinations.get(id ?? ''))
  if (kindOf(destination).place !== 'loader') throw new ApiError('not_a_warehouse')
  return destination
}

type Schemas = Awaited<ReturnType<typeof readSchemas>>[number]
type Stats = Awaited<ReturnType<typeof readStats>>

function tablesOf({ sourceId, schema }: Schemas, stats: Stats) {
  const byTable = new Map(stats.map((each) => [each.table, each]))
  const columns = new Map(schema.tables.map((table) => [table.table, table.columns]))
  // The archive has no stored columns, and tables without rows were not committed yet.
  const names = [...new Set([...columns.keys(), ...byTable.keys()])].sort()
  return names.map((table) => {
    const { rows = 0, lastLoadAtMs = null, unfit = [] } = byTable.get(table) ?? {}
    const own = columns.get(table) ?? []
    const known = new Set(own.map(({ name }) => name))
    return {
      sourceId,
      schema: schema.name,
      table,
      columns: own.map(({ name, type, path, since }) => {
        const misfits = unfit.filter(({ column }) => column === name)
        const count = misfits.reduce((sum, each) => sum + each.count, 0)
        return {
          name,
          type,
          path,
          since: since === 0 ? null : since,
          unfit: { count, types: misfits.map((each) => ({ type: each.type, count: each.count })) },
        }
      }),
      unfit: unfit.filter(({ column }) => column === null || !known.has(column)).map(({ path, type, count }) => ({ path, type, count })),
      rows,
      lastLoadAt: lastLoadAtMs,
    }
  })
}
