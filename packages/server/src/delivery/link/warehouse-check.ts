// A question about a warehouse whose settings are not saved: can its tables be written, and which tables would these messages make? It goes to a loader in
// the place of a message, as a step of the upkeep does.

import type { JsonObject, TrackingPlan } from '@switchyard/protocol'

/** Messages of one source. */
export interface CheckedSource {
  sourceId: string
  name: string
  /** The rules of its tracking plan, which says the types of columns; null for none. */
  rules: TrackingPlan['rules'] | null
  /** JSON texts. */
  messages: readonly string[]
}

export interface WarehouseCheckRequest {
  sources: readonly CheckedSource[]
}

export interface CheckedTable {
  sourceId: string
  schema: string
  table: string
  /** Of the messages that were given. */
  rows: number
  /** All of them; `columns` has the first. */
  columnCount: number
  /** `example`: the first value that is not null, shortened. */
  columns: { name: string; type: string; path: string; example: string | null }[]
  /** How many values do not fit their column. */
  unfit: number
}

export interface WarehouseCheck {
  /** Why the tables cannot be written; null if they can. */
  problem: { code: string; message: string } | null
  steps: { step: string; ok: boolean; error: string | null }[]
  /** What the place says about itself. */
  version: string | null
  tables: CheckedTable[]
}

/** No message has this type: parseMessage rejects it. */
const TYPE = 'warehouse_check'

export function checkMessage(request: WarehouseCheckRequest): JsonObject {
  return { type: TYPE, ...(request as unknown as JsonObject) }
}

/** Null if the text is that of an ordinary message. */
export function checkIn(text: string | undefined): WarehouseCheckRequest | null {
  return text?.startsWith(`{"type":"${TYPE}"`) === true ? JSON.parse(text) : null
}
