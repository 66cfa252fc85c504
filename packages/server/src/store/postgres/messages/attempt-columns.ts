// The rows that settling and cancelling append: one in `attempts` for each record, and one in `failures` for each delivery that failed, expired
// or was cancelled.

import type { RecordRow } from '../../encoding/settlement.ts'
import { Columns } from '../session/row-parameters.ts'
import { writeText } from '../session/text-columns.ts'
import type { RowIds } from '../tables/ids.ts'

export interface AttemptRow {
  id: string
  /** The destination's `num`. */
  destination: string
  record: RecordRow<string>
}

interface FailureRow extends AttemptRow {
  failure: RecordRow<string>['failures'][number]
}

export const ATTEMPTS = new Columns<AttemptRow>({
  id: ['bigint', ({ id }) => id],
  origin: ['bigint', ({ record }) => record.origin],
  destination: ['bigint', ({ destination }) => destination],
  segment: ['bigint', ({ record }) => record.segment],
  at: ['bigint', ({ record }) => Math.floor(record.atMs)],
  attempt: ['integer', ({ record }) => record.attempt],
  delivered: ['integer', ({ record }) => record.delivered],
  failed: ['integer', ({ record }) => record.failed],
  expired: ['integer', ({ record }) => record.expired],
  cancelled: ['integer', ({ record }) => record.cancelled],
  replay: ['boolean', ({ record }) => record.replay],
  doc: ['text', ({ record }) => record.doc],
})

export const FAILURES = new Columns<FailureRow>({
  id: ['bigint', ({ id }) => id],
  destination: ['bigint', ({ destination }) => destination],
  origin: ['bigint', ({ record }) => record.origin],
  segment: ['bigint', ({ record }) => record.segment],
  at: ['bigint', ({ record }) => Math.floor(record.atMs)],
  idx: ['integer', ({ failure }) => failure.index],
  attempts: ['integer', ({ record }) => record.attempt],
  replay: ['boolean', ({ record }) => record.replay],
  state: ['text', ({ failure }) => failure.state],
  reason: ['text', ({ failure }) => (failure.reason === null ? null : writeText(failure.reason))],
})

export function attemptRows(destination: string, records: readonly RecordRow<string>[], ids: RowIds): AttemptRow[] {
  return records.map((record) => ({ id: ids.next(), destination, record }))
}

export function failureRows(attempts: readonly AttemptRow[], ids: RowIds): FailureRow[] {
  return attempts.flatMap(({ destination, record }) => record.failures.map((failure) => ({ id: ids.next(), destination, record, failure })))
}
