// Turns outbound messages into what a request contains: the transformation changes or drops them, then the destination's shaper builds
// their part of the request. Sending and the preview both use this file, so a preview shows what would be sent.

import type { JsonObject } from '@switchyard/protocol'
import { kindOf } from '../../../destinations/kinds.ts'
import { MappingFailed, type Prepared } from '../../../destinations/port/kind.ts'
import type { Destination } from '../../../store/store.ts'
import type { Rejected } from '../../link/outcome.ts'
import type { Transformer, TransformInput, TransformResult } from './transformer.ts'

/** A JSON text if the message is sent as it is. An error if the service failed: the delivery is retried. */
export type Item = string | Prepared | Rejected | Error

export function isRejected(item: Exclude<Item, string>): item is Rejected {
  return 'reason' in item
}

/** Prepares a message for a destination without a transformation. */
export function prepareMessage(destination: Destination, message: JsonObject, logs: string | null = null): Item {
  const shape = kindOf(destination).shaper(destination)
  try {
    if (shape !== null) return { ...shape(message), logs }
    const text = JSON.stringify(message)
    return logs === null ? text : { text, path: '', headers: [], logs }
  } catch (error) {
    if (error instanceof MappingFailed) return { reason: 'mapping_failed', error: error.message, logs }
    return error as Error
  }
}

export function transformInput(message: JsonObject, receivedAtMs: number): TransformInput {
  const { messageId } = message
  return { text: JSON.stringify(message), receivedAtMs, messageId: typeof messageId === 'string' ? messageId : '' }
}

/** Prepares messages for a destination with a transformation. Calls `done` once, never before it returns. Returns a function that cancels it. */
export function transformMessages(
  destination: Destination,
  inputs: readonly TransformInput[],
  transformer: Transformer,
  done: (items: readonly Item[]) => void,
): () => void {
  const { id } = destination
  const transformation = kindOf(destination).transformation(destination)
  if (transformation === null) throw new Error(`destination ${id} has no transformation`)
  return transformer.run(id, transformation, inputs, (results) => done(results.map((result) => itemOf(destination, result))))
}

function itemOf(destination: Destination, result: TransformResult): Item {
  if (result.kind === 'unavailable') return new Error(result.error)
  const { kind, logs } = result
  if (kind === 'dropped') return { reason: 'dropped_by_transformation', error: null, logs }
  if (kind === 'failed') return { reason: 'transformation_failed', error: result.error, logs }
  const { text } = result
  if (kindOf(destination).shaper(destination) !== null) return prepareMessage(destination, JSON.parse(text) as JsonObject, logs)
  return logs === null ? text : { text, path: '', headers: [], logs }
}
