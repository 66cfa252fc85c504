// The classes of rows of the queue. The rows of a destination are stored by class: see schema/migrations.ts.

import type { OrderedPlace } from '../../store.ts'

export const CLASS = { unordered: 0, retry: 1, fresh: 2, head: 3, waiting: 4 } as const

/** The columns `class` and `due` of a shipment. */
export function placeOf({ attempt, dueAtMs, order }: { attempt: number; dueAtMs: number; order?: OrderedPlace | undefined }): {
  class: number
  due: number
} {
  // Rounded up, so that no retry is early. Backoff gives fractions of milliseconds, and the column is an integer.
  const due = Math.ceil(dueAtMs)
  if (order === undefined) return attempt > 0 ? { class: CLASS.retry, due } : { class: CLASS.unordered, due: 0 }
  if (order.row === 'waiting') return { class: CLASS.waiting, due: order.key as number }
  return order.row === 'head' ? { class: CLASS.head, due } : { class: CLASS.fresh, due: 0 }
}

export function orderedPlaceOf(row: { class: number; due: number; ord: number | null }): OrderedPlace | undefined {
  const ord = row.ord ?? 0
  if (row.class === CLASS.fresh) return { row: 'fresh', ord }
  if (row.class === CLASS.head) return { row: 'head', ord }
  return row.class === CLASS.waiting ? { row: 'waiting', ord, key: row.due } : undefined
}
