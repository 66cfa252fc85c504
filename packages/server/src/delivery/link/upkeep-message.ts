// A step of the upkeep of a warehouse. It goes to a loader in the place of a message, so that it passes everything that a load passes, and needs nothing of
// its own between the main thread and a loader.

import type { JsonObject } from '@switchyard/protocol'

export interface UpkeepRequest {
  /** Null at first, then that of the last answer. */
  cursor: string | null
  nowMs: number
}

/** What was done, as the loader says. */
export interface UpkeepAnswer {
  /** Null: everything is done. */
  cursor: string | null
  changed: number
  problems: { code: string; message: string }[]
}

/** No message has this type: parseMessage rejects it. */
const TYPE = 'warehouse_upkeep'

export function upkeepMessage(request: UpkeepRequest): JsonObject {
  return { type: TYPE, ...request }
}

/** Null if the text is that of an ordinary message. */
export function upkeepIn(text: string | undefined): UpkeepRequest | null {
  return text?.startsWith(`{"type":"${TYPE}"`) === true ? (JSON.parse(text) as UpkeepRequest) : null
}
