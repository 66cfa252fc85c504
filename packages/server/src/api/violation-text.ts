// A violation of a tracking plan in words, for the timeline of a message and the command line. The dashboard writes the same as a sentence
// (pages/plans/plan-text.ts).

import type { Violation } from '@switchyard/protocol'

/** Without a full stop: `properties.total: expected a number, found a string`. */
export function violationText({ code, path, expected, found }: Pick<Violation, 'code' | 'path' | 'expected' | 'found'>): string {
  switch (code) {
    case 'unplanned_event':
      return path === 'event' ? 'the plan has no rule for this event' : 'the plan has no rule for messages of this type'
    case 'unplanned_property':
      return `${path} is not planned`
    case 'missing_property':
      return `${path} is missing: expected ${expected}`
    default:
      return `${path}: expected ${expected}, found ${found}`
  }
}
