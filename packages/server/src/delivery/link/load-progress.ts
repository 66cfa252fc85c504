// The progress of a delivery to a warehouse: the load that it belongs to. It is stored before anything is written, and stays the same until the delivery
// ends, so that a repeat is the same load.

import type { Progress } from '../../store/store.ts'

export interface LoadAbout {
  id: string
  sourceId: string
  /** In wall time. The rows have it as `uuid_ts`. */
  createdMs: number
}

export function progressOf({ id, sourceId, createdMs }: LoadAbout): readonly string[] {
  return [`load:${id}`, `source:${sourceId}`, `at:${createdMs}`]
}

export function isLoad(progress: Progress): boolean {
  return progress?.[0]?.startsWith('load:') === true
}

/** Throws if it is no load, which would be a bug. */
export function loadOf(progress: Progress): LoadAbout {
  const [id, sourceId, at] = (progress ?? []).map((entry) => entry.slice(entry.indexOf(':') + 1))
  if (!isLoad(progress) || id === undefined || sourceId === undefined) throw new Error('messages without a load cannot be loaded')
  return { id, sourceId, createdMs: Number(at) }
}
