// After the retention time, only the messages in quarantine are kept of a segment, with those that were released and may be pending. The
// others leave an empty place, as purged messages do, and the text of their attempts is removed by the caller. Pure.

import { type PurgedContent, withOnlyMessages } from '../deletions/purged-content.ts'
import type { Routes } from '../encoding/stored-parts.ts'
import { withoutViolations } from '../encoding/violations-column.ts'

export interface TrimmedSegment extends Omit<PurgedContent, 'isEmpty'> {
  violations: string | null
  routes: string
}

export interface SegmentToTrim {
  body: Uint8Array
  keys: Uint8Array
  absent: readonly number[]
  violations: string | null
  routes: string
}

/** `held`: the indexes of the messages in quarantine. Undefined if the segment was trimmed before. */
export function trimSegment(segment: SegmentToTrim, held: readonly number[]): TrimmedSegment | undefined {
  const routes = JSON.parse(segment.routes) as Routes
  if (routes.t === 1) return undefined
  const released = (routes.q ?? []).flatMap(([outcome, , indexes]) => (outcome === 'released' ? indexes : []))
  const left = withOnlyMessages(segment, new Set([...held, ...released]))
  return {
    body: left?.body ?? segment.body,
    keys: left?.keys ?? segment.keys,
    indexes: left?.indexes ?? [],
    violations: withoutViolations(segment.violations, left?.indexes ?? []),
    routes: JSON.stringify({ ...routes, t: 1 } satisfies Routes),
  }
}
