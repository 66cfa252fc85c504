// A page of the archive of a lake. Like a step of the upkeep (upkeep-message.ts), it goes to a loader in the place of a message.

import type { JsonObject } from '@switchyard/protocol'
import type { ArchiveRequest } from '../../destinations/warehouse/archive-page.ts'

/** No message has this type: parseMessage rejects it. */
const TYPE = 'warehouse_archive'

export function archiveMessage(request: ArchiveRequest): JsonObject {
  return { type: TYPE, ...request }
}

/** Null if the text is that of an ordinary message. */
export function archiveIn(text: string | undefined): ArchiveRequest | null {
  return text?.startsWith(`{"type":"${TYPE}"`) === true ? (JSON.parse(text) as ArchiveRequest) : null
}
