// A question to a tool: which values can a field of an action have? It goes to the host of previews in the place of a message, so that it passes
// everything that a request passes, and needs nothing of its own between the main thread and a host.

import type { JsonObject } from '@switchyard/protocol'

export interface FieldLookup {
  action: string
  /** `list_id`, `object_details.object_type` or `associations[0].object_type`. */
  field: string
  mapping: JsonObject
  syncMode?: string | undefined
  page?: string | undefined
}

/** `isStored`: whether the settings are those of a stored destination, so that a refresh token that the tool replaces is stored. */
type Asked = FieldLookup & { isStored: boolean }

/** No message has this type: parseMessage rejects it. */
const TYPE = 'field_lookup'

export function lookupMessage(lookup: Asked): JsonObject {
  return { type: TYPE, lookup }
}

/** Null if the text is that of an ordinary message. */
export function lookupIn(text: string): Asked | null {
  return text.startsWith(`{"type":"${TYPE}"`) ? (JSON.parse(text) as { lookup: Asked }).lookup : null
}
