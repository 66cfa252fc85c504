// Shared by the conformance tests of deletion requests: reads a request with all of its targets, and waits for its purge.

import assert from 'node:assert/strict'
import type { DeletionDetail, DeletionTarget, Store } from '../store.ts'
import { allPages, until } from './fixtures.ts'

export type WithTargets = DeletionDetail & { targets: DeletionTarget[] }

export async function detail(store: Store, id: string): Promise<WithTargets> {
  const found = await store.deletions.one(id)
  assert.ok(found !== undefined)
  const { data, next } = found.firstTargets
  if (next === null) return { ...found, targets: data }
  return { ...found, targets: await allPages((page) => store.deletions.targets(id, {}, page), 1_000) }
}

/** With suppression, a purge continues for some seconds after the request. */
export function untilPurged(store: Store, id: string, purged: number): Promise<WithTargets> {
  return until(
    () => detail(store, id),
    (deletion) => deletion.purged === purged,
    `${purged} messages are purged`,
  )
}
