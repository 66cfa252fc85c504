// The violations column of segments: how messages differ from the tracking plan, as JSON by the index of the message. Null in the segments
// of sources without a plan, and in those that follow their plan.

import type { SegmentContent } from '../../model/messages.ts'

type Violations = SegmentContent['violations']

export function writeViolations(violations: Violations): string | null {
  return violations === undefined ? null : JSON.stringify(violations)
}

export function readViolations(column: string | null): Violations {
  return column === null ? undefined : (JSON.parse(column) as Violations)
}

/** The column without those of some messages. */
export function withoutViolations(column: string | null, indexes: readonly number[]): string | null {
  if (column === null) return null
  const left = Object.entries(readViolations(column) ?? {}).filter(([index]) => !indexes.includes(Number(index)))
  return left.length === 0 ? null : JSON.stringify(Object.fromEntries(left))
}
