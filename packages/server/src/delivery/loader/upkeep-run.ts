// A part of the upkeep of a warehouse: the tables of one source after the other, for some seconds. The cursor is the source and the engine's own cursor.

import type { Warehouse } from '@switchyard/warehouse'
import type { WarehouseDestination } from '../../destinations/warehouse/settings.ts'
import type { UpkeepAnswer, UpkeepRequest } from '../link/upkeep-message.ts'
import type { StoredSchemas } from './stored-schemas.ts'

/** How long one answer takes at most, if a step of the engine does not take longer. */
const STEP_MS = 20_000

export async function runUpkeep(
  warehouse: Warehouse,
  { id: destinationId, warehouse: { keepDays } }: WarehouseDestination,
  { cursor: given, nowMs }: UpkeepRequest,
  asked: StoredSchemas,
  signal: AbortSignal,
): Promise<UpkeepAnswer> {
  const startedMs = performance.now()
  const [from = '', ...rest] = given?.split(' ') ?? []
  const schemas = await asked.ask('schemas', { kind: 'schemas', destinationId })
  const answer: UpkeepAnswer = { cursor: null, changed: 0, problems: [] }
  for (const { sourceId, schema } of schemas.sort((one, other) => (one.sourceId < other.sourceId ? -1 : 1))) {
    if (sourceId < from) continue
    let cursor = sourceId === from && rest.length > 0 ? rest.join(' ') : null
    do {
      if (signal.aborted || performance.now() - startedMs > STEP_MS) return { ...answer, cursor: `${sourceId} ${cursor ?? ''}`.trim() }
      const openLoads = (): Promise<string[]> => asked.ask('open', { kind: 'open', destinationId })
      const progress = await warehouse.upkeep({ schema, cursor, nowMs, keepDays, openLoads }, signal)
      cursor = progress.cursor
      answer.changed += progress.changed
      answer.problems.push(...progress.problems.map(({ code, message }) => ({ code, message })))
    } while (cursor !== null)
  }
  return answer
}
