// The file in the folder of a source that says whose tables they are. Each lake writes it before its first table, so a folder with tables of another destination
// is recognised, whoever has chosen the same address for a lake.

import { WarehouseProblem } from '../failure.ts'
import type { LakeFiles } from './lake-files.ts'

export const OWNER_FILE = '_switchyard.json'

/** Whether the folder is of this destination, or has no owner yet. */
export async function isFolderOf(
  files: Pick<LakeFiles, 'read'>,
  schema: string,
  destinationId: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const found = await files.read(`${schema}/${OWNER_FILE}`, signal)
  if (found === null) return true
  try {
    const owner = JSON.parse(Buffer.from(found.bytes).toString()) as { destinationId?: unknown } | null
    return owner?.destinationId === destinationId
  } catch {
    return false
  }
}

export function placeTaken(place: string, schema: string): WarehouseProblem {
  return new WarehouseProblem(
    'place_taken',
    `${place}/${schema} has tables of another installation or destination. Use another address, or set "adopt": true to continue them.`,
  )
}
