// Replays of messages from the archive of a lake: checks of what the caller asks for, and how many messages there are.

import { invalidField } from '../../api/schema.ts'
import { ArchiveProblem } from '../../destinations/warehouse/archive-page.ts'
import { ApiError } from '../../errors.ts'
import type { ArchiveSelection, ReplayCount, ReplayJob, ReplaySelection, Store } from '../../store/store.ts'
import type { ControlParts } from '../routes/route.ts'

type Selection = Extract<ReplaySelection, { archive: unknown }>

interface Asked {
  destinationId: string
  after: number
  before: number
  sourceId?: string | undefined
  event?: string | undefined
  userId?: string | undefined
}

const OTHERS = ['states', 'reason', 'from', 'to', 'deliveryIds'] as const
const JOBS_PER_PAGE = 100

export function archiveSelection(
  store: Pick<Store, 'configuration'>,
  body: { destinationId?: string | undefined; includeReplayed?: boolean } & Partial<Record<(typeof OTHERS)[number], unknown>>,
  { destinationId: lakeId, after, before, sourceId, event, userId }: Asked,
): Selection {
  const { destinations, sources } = store.configuration()
  const other = body.includeReplayed === true ? 'includeReplayed' : OTHERS.find((name) => body[name] !== undefined)
  if (other !== undefined) throw invalidField(other, 'cannot be combined with archive')
  const { destinationId } = body
  if (destinationId === undefined)
    throw invalidField('destinationId', 'is required with archive: it is the destination that the messages are sent to')
  const target = destinations.get(destinationId)
  if (target === undefined)
    throw invalidField('destinationId', 'is not the id of a destination. GET /api/destinations lists all destinations')
  const lake = destinations.get(lakeId)
  if (lake === undefined)
    throw invalidField('archive.destinationId', 'is not the id of a destination. GET /api/destinations lists all destinations')
  if (lake.type !== 'warehouse' || lake.warehouse.engine !== 'parquet') throw new ApiError('no_archive')
  if (before <= after) throw invalidField('archive.before', 'must be after archive.after')
  if (sourceId !== undefined && !sources.has(sourceId))
    throw invalidField('archive.sourceId', 'is not the id of a source. GET /api/sources lists all sources')
  if (sourceId !== undefined && !target.sourceIds.includes(sourceId))
    throw invalidField(
      'archive.sourceId',
      'is not a source of the destination that the messages are sent to. Add it to its sourceIds first',
    )
  if (!target.sourceIds.some((id) => lake.sourceIds.includes(id)))
    throw invalidField('archive.destinationId', 'has no source in common with the destination that the messages are sent to')
  if (lakeId === destinationId)
    throw new ApiError('already_loaded', {
      message: 'The messages of the archive are in the tables of this lake already. Select another destination.',
    })
  const only = {
    ...(sourceId === undefined ? {} : { sourceId }),
    ...(event === undefined ? {} : { event }),
    ...(userId === undefined ? {} : { userId }),
  }
  return { destinationId, archive: { destinationId: lakeId, afterMs: after, beforeMs: before, ...only } }
}

/** Throws already_loaded if an earlier job has put messages of this time into the same warehouse. */
export async function checkLoaded(store: Pick<Store, 'configuration' | 'replays'>, wanted: Selection): Promise<void> {
  const { replays } = store
  if (store.configuration().destinations.get(wanted.destinationId)?.type !== 'warehouse') return
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof replays.list>> = await replays.list({}, { limit: JOBS_PER_PAGE, cursor })
    const earlier = page.data.find((job) => hasLoaded(job, wanted))
    if (earlier !== undefined)
      throw new ApiError('already_loaded', {
        message: `The replay job ${earlier.id} has loaded messages of this time into the warehouse already. Select a time before or after that of the job.`,
      })
    cursor = page.next
  } while (cursor !== null)
}

function hasLoaded({ selection, replayed, state }: ReplayJob, { destinationId, archive }: Selection): boolean {
  if (!('archive' in selection) || selection.destinationId !== destinationId) return false
  if (replayed === 0 && state !== 'running' && state !== 'paused') return false
  const other = selection.archive
  const isApart = (name: 'sourceId' | 'event' | 'userId'): boolean =>
    other[name] !== undefined && archive[name] !== undefined && other[name] !== archive[name]
  return (
    other.afterMs < archive.beforeMs && archive.afterMs < other.beforeMs && !isApart('sourceId') && !isApart('event') && !isApart('userId')
  )
}

export async function archiveSize(
  store: Pick<Store, 'configuration'>,
  archives: ControlParts['archives'],
  selection: Selection,
): Promise<number> {
  try {
    // Of sources in the caller's scope.
    const { sourceIds = [] } = store.configuration().destinations.get(selection.destinationId) ?? {}
    return (await archives?.size({ ...selection, sourceIds })) ?? 0
  } catch (error) {
    if (!(error instanceof ArchiveProblem)) throw error
    if (error.code === 'warehouse_not_installed') throw new ApiError('not_installed')
    const lake = store.configuration().destinations.get(selection.archive.destinationId)
    throw new ApiError('archive_unreadable', { message: `The archive of ${lake?.name ?? 'the lake'} cannot be read: ${error.message}` })
  }
}

export function countOf({ destinationId }: Selection, total: number): ReplayCount {
  return { total, alreadyReplayed: 0, byDestination: [{ destinationId, total, alreadyReplayed: 0 }] }
}

export function archiveView({ destinationId, afterMs, beforeMs, sourceId, event, userId }: ArchiveSelection) {
  return { destinationId, afterMs, beforeMs, sourceId: sourceId ?? null, event: event ?? null, userId: userId ?? null }
}
