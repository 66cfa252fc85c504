// The tables of a warehouse that cannot be loaded, as part of its health. From what loads have noted in the store, so all nodes agree and a restart forgets nothing.

import { array, object, string, time } from '../../api/schema.ts'
import { kindOf } from '../../destinations/kinds.ts'
import { readNotices } from '../../store/port/warehouse-tables.ts'
import type { Destination, SourceScope, Store } from '../../store/store.ts'

const MAX_TABLES = 20

export const FAILING_TABLES = array(
  object({
    table: string({ description: 'With its schema.' }),
    error: string({ description: 'A sentence that says why.' }),
    since: time({ description: 'When the first load failed.' }),
  }),
  {
    description: `The tables of a warehouse that cannot be loaded, at most ${MAX_TABLES}, those that have failed for the longest time first. The other tables are loaded, and the messages of these are retried. Empty if nothing is pending, and for other destinations.`,
  },
)

export interface FailingTable {
  table: string
  error: string
  since: number
}

export async function failingTables(
  { documents }: Pick<Store, 'documents'>,
  destination: Destination,
  pending: number,
  sources: SourceScope,
): Promise<FailingTable[]> {
  // When nothing is pending, no load shows whether the table can be loaded by now.
  if (kindOf(destination).place !== 'loader' || pending === 0) return []
  const notices = await readNotices(documents, destination.id)
  return notices
    .filter(({ kind, sourceId }) => kind === 'failing' && (sources === 'all' || sources.includes(sourceId)))
    .sort((one, other) => one.sinceMs - other.sinceMs)
    .slice(0, MAX_TABLES)
    .map(({ table, message, sinceMs }) => ({ table: table ?? '', error: message, since: sinceMs }))
}
