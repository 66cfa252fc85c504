// Finds the nodes that hold shipments. Held shipments are stored by holder, apart from those that nobody holds, and are few: no more
// than the nodes have in memory.

import type { Ask } from '../session/database.ts'

/** The beginning of a statement, with the ids of all holders as `holders`. Each takes one index lookup. The last row is null. */
export const WITH_HOLDERS = `
  WITH RECURSIVE holders AS (
    (SELECT holder FROM shipments WHERE holder > 0 ORDER BY holder LIMIT 1)
    UNION ALL
    SELECT (SELECT s.holder FROM shipments s WHERE s.holder > h.holder ORDER BY s.holder LIMIT 1) FROM holders h WHERE h.holder IS NOT NULL
  )`

export async function holders(ask: Ask): Promise<string[]> {
  const { rows } = await ask<{ holder: string }>(`${WITH_HOLDERS} SELECT holder FROM holders WHERE holder IS NOT NULL`)
  return rows.map(({ holder }) => holder)
}
