// Reads a page of the archive of a lake, or counts its messages.

import type { ArchiveQuery, Warehouse } from '@switchyard/warehouse'
import type { ArchiveAnswer, ArchiveRequest } from '../../destinations/warehouse/archive-page.ts'

export async function runArchive(
  { readArchive, archiveSize }: Pick<Warehouse, 'readArchive' | 'archiveSize'>,
  { schema: name, page, afterMs, beforeMs, event, userId }: ArchiveRequest,
): Promise<ArchiveAnswer> {
  if (readArchive === null || archiveSize === null) throw new Error('The warehouse keeps no archive.')
  const query: ArchiveQuery = {
    schema: { name },
    afterMs,
    beforeMs,
    ...(event === undefined ? {} : { event }),
    ...(userId === undefined ? {} : { userId }),
  }
  if (page === null) return { size: await archiveSize(query) }
  return await readArchive(query, page.cursor, page.limit, page.maxCharacters)
}
