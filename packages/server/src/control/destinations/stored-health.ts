// What the store knows about the health of a destination. All nodes agree about it, and it survives restarts. The stored failures show whether the
// request settings or the transformation fail, and since which version. The notices of loads show which tables of a warehouse cannot be loaded.
// Costs nothing for a destination without these settings or tables.

import { isoTime } from '@switchyard/protocol'
import { array, integer, nullable, object, oneOf, string, time } from '../../api/schema.ts'
import { contentOf, kindOf } from '../../destinations/kinds.ts'
import { readNotices } from '../../store/port/warehouse-tables.ts'
import type { DeliveryRow, Destination, SourceScope, Store } from '../../store/store.ts'

const REASONS = ['transformation_failed', 'mapping_failed'] as const
/** How many versions are searched for the first one that failed. */
const SEARCHED_VERSIONS = 20

export const CONTENT_HEALTH = object(
  {
    version: integer({ description: 'The current version of `request` and `transformation`.' }),
    failing: nullable(
      object(
        {
          reason: oneOf(REASONS),
          error: string({ description: 'The error of the newest delivery that failed for this reason.' }),
          sinceVersion: integer({
            description: 'Since which version there are such failures: every version from this one to the current one has some.',
          }),
          lastAt: time({ description: 'When the newest of these deliveries failed.' }),
        },
        { description: 'Set if a stored delivery failed with the current version because no request could be built; otherwise null.' },
      ),
    ),
  },
  { description: 'Whether requests can be built from messages.' },
)

type Reads = Pick<Store, 'history' | 'resources'>

// A changed destination is a new object, and while it stays the same, so does the first version that failed.
const sinceVersions = new WeakMap<Destination, Promise<number>>()

export async function contentHealth(store: Reads, destination: Destination) {
  const { id, version } = destination
  const healthy = { version, failing: null }
  if (Object.values(contentOf(destination)).every((setting) => setting === null)) return healthy
  const row = await newestFailure(store, id, {})
  const last = row && (await store.history.delivery(row.id))?.history.at(-1)
  if (last?.version !== version || row?.atMs == null) return healthy
  let since = sinceVersions.get(destination)
  if (since === undefined) {
    since = sinceVersion(store, destination)
    sinceVersions.set(destination, since)
    since.catch(() => sinceVersions.delete(destination))
  }
  const reason = REASONS.find((one) => one === row.reason) ?? REASONS[0]
  return { version, failing: { reason, error: last.error ?? '', sinceVersion: await since, lastAt: isoTime(row.atMs) } }
}

/** The versions before are searched by the times at which they were in use. */
async function sinceVersion(store: Reads, { id, version }: Destination): Promise<number> {
  const { data } = await store.resources.destinationVersions(id, { limit: SEARCHED_VERSIONS, cursor: null })
  let since = version
  for (const [at, { version: older, atMs }] of data.entries()) {
    const newer = data[at - 1]
    if (newer === undefined) continue
    if ((await newestFailure(store, id, { fromMs: atMs, toMs: newer.atMs - 1 })) === undefined) break
    since = older
  }
  return since
}

async function newestFailure(
  { history }: Reads,
  destinationId: string,
  range: { fromMs?: number; toMs?: number },
): Promise<DeliveryRow | undefined> {
  const pages = await Promise.all(
    REASONS.map((reason) => history.deliveries({ destinationId, state: 'failed', reason, ...range }, { limit: 1, cursor: null })),
  )
  const rows = pages.flatMap(({ data }) => data)
  return rows.sort((left, right) => (right.atMs ?? 0) - (left.atMs ?? 0))[0]
}

// ── Tables of a warehouse ──

const MAX_TABLES = 20

export const FAILING_TABLES = array(
  object({
    table: string({ description: 'The schema and name of the table, for example `shop.order_completed`.' }),
    error: string({ description: 'A sentence that says why the table cannot be loaded.' }),
    since: time({ description: 'When the first load failed.' }),
  }),
  {
    description: `The tables of a warehouse that cannot be loaded, at most ${MAX_TABLES}, starting with those that have failed for the longest time. Messages of these tables are retried, and all other tables are loaded. Empty if nothing is pending, and for destinations that are not warehouses.`,
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
