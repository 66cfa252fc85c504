// A request of a query of a lake in a bucket: for its tables, or for copies of the files of one. Like a step of the upkeep (upkeep-message.ts), it is sent to
// a loader instead of a message, because only processes with a guard for addresses connect to buckets.

import type { JsonObject } from '@switchyard/protocol'
import type { TableCopyRequest } from '@switchyard/warehouse'

export type CopyRequest = { kind: 'tables'; schemas: readonly string[] } | ({ kind: 'copy' } & TableCopyRequest)

/** No message has this type: parseMessage rejects it. */
const TYPE = 'warehouse_copy'

export function copyMessage(request: CopyRequest): JsonObject {
  return { type: TYPE, ...(request as unknown as JsonObject) }
}

/** Null if the text is that of an ordinary message. */
export function copyIn(text: string | undefined): CopyRequest | null {
  return text?.startsWith(`{"type":"${TYPE}"`) === true ? (JSON.parse(text) as CopyRequest) : null
}
