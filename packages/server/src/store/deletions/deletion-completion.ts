// Checks deletion requests that may be complete, one per step. The final state of a request is recorded, so that lists need not count its
// attempts. After the retention time, the user ids in it are replaced by pseudonyms. Replaying a delete message that failed opens its
// request again.

import type { RowId } from '../../model/messages.ts'
import type { DeletionRows } from './deletion-rows.ts'
import { countTargets, stateOf } from './deletion-state.ts'
import { pseudonymOf } from './pseudonyms.ts'

/** Checks the first request after `after`. Returns its row id, or null if there is none. */
export async function completeStep<Id extends RowId>(
  rows: DeletionRows<Id>,
  after: Id,
  beforeMs: number,
  pseudonymKey: string,
): Promise<Id | null> {
  const row = await rows.nextWithUserIds(after, beforeMs)
  if (row === undefined) return null
  const userIds = JSON.parse(row.userIds) as string[]
  let { ended } = row
  if (ended === null && row.isPurged) {
    const state = stateOf(await countTargets(rows, row, userIds.length), row.isPurged)
    if (state === 'finished' || state === 'failed') await rows.end(row.num, (ended = state))
  }
  if (ended !== null && row.createdAtMs < beforeMs) {
    await rows.replaceUserIds(
      row.num,
      userIds,
      userIds.map((userId) => pseudonymOf(userId, pseudonymKey)),
    )
  }
  return row.num
}
