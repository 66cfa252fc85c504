// What nodes hold of the work that is owed. It lies by holder, apart from what nobody holds, and is little: no more than nodes
// have in memory.

import type { Ask } from '../session/database.ts'

/** Everyone who holds something, found by a step along the index for each. */
export async function holders(ask: Ask): Promise<string[]> {
  const { rows } = await ask<{ holder: string }>(`
    WITH RECURSIVE found AS (
      (SELECT holder FROM shipments WHERE holder > 0 ORDER BY holder LIMIT 1)
      UNION ALL
      SELECT (SELECT s.holder FROM shipments s WHERE s.holder > f.holder ORDER BY s.holder LIMIT 1) FROM found f WHERE f.holder IS NOT NULL
    )
    SELECT holder FROM found WHERE holder IS NOT NULL`)
  return rows.map(({ holder }) => holder)
}
