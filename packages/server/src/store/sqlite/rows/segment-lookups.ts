// How segments and their destinations are found, for SQLite.

import type { Seed } from '../../encoding/fingerprint.ts'
import type { SegmentLookups } from '../../history/segment-rows.ts'
import { rowAndIndex } from '../schema/row-ids.ts'
import type { Rows } from '../schema/rows.ts'
import { readSetting } from '../schema/settings.ts'

export function segmentLookups(rows: Rows): SegmentLookups<number> {
  return {
    parseId: rowAndIndex,
    seed: () => JSON.parse(readSetting(rows.database, 'dedup_seed') as string) as Seed,
    destinationIds: () => (num) => rows.destinations.id(num),
  }
}
