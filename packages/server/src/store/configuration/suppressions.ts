// Users whose new messages are dropped. They are part of the configuration, so no query is needed to find out who is already suppressed.

import type { ConfigurationChange } from './configuration-rows.ts'

/** `sourceIds` and `userIds` have no duplicates. Returns how many pairs were not suppressed before. */
export async function suppress(
  change: ConfigurationChange,
  sourceIds: readonly string[],
  userIds: readonly string[],
  atMs: number,
): Promise<number> {
  const { suppressions } = change.configuration
  let added = 0
  for (const sourceId of sourceIds) for (const userId of userIds) if (!suppressions.get(sourceId)?.has(userId)) added++
  if (added > 0) await change.suppress(sourceIds, userIds, atMs)
  return added
}

/** If `sourceId` is null, for all sources. Returns the number of sources in which the user was suppressed. */
export async function unsuppress(change: ConfigurationChange, userId: string, sourceId: string | null): Promise<number> {
  const { suppressions } = change.configuration
  const asked = sourceId === null ? [...suppressions.keys()] : [sourceId]
  const sourceIds = asked.filter((id) => suppressions.get(id)?.has(userId))
  if (sourceIds.length > 0) await change.unsuppress(sourceIds, userId)
  return sourceIds.length
}
