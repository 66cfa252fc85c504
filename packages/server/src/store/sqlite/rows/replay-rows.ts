// Which rows a replay job is made for, by their numbers.

import { NEWEST } from '../../history/paging.ts'
import { rowIdAt } from '../schema/ids.ts'

/** The rows of a period, by their numbers, below the bound that fixed the job's set. */
export function rowRange(fromMs: number | null, toMs: number | null, bound: number): { first: number; last: number } {
  return { first: fromMs === null ? 0 : rowIdAt(fromMs), last: Math.min(bound - 1, toMs === null ? NEWEST : rowIdAt(toMs + 1) - 1) }
}
