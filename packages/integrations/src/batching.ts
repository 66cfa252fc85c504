// Which messages go to `performBatch` together. Segment does this before it calls an action: the fields that `batch_keys` names must be equal in a
// batch, because actions read them from its first message (the URL of a webhook, the list of an audience), and `batch_size` limits it.

import type { JsonObject } from '@switchyard/protocol'
import { ROOT_TRANSFORM_FIELD } from './definitions.ts'
import type { Step } from './integration.ts'
import { library } from './library.ts'

interface Fields {
  readonly [name: string]: { default?: unknown } | undefined
}

/** Positions of messages. */
export function batches(step: Step, fields: Fields, messages: readonly JsonObject[]): number[][] {
  const setting = (name: string): unknown => step.mapping[name] ?? fields[name]?.default
  const keys = setting('batch_keys')
  const mapped = Array.isArray(keys) ? keys.filter((key) => typeof key === 'string' && key in step.mapping) : []
  const groups = new Map<string, number[]>()
  messages.forEach((message, position) => {
    const key = mapped.length === 0 ? '' : keyOf(step, mapped, message)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [position])
    else group.push(position)
  })
  const size = setting('batch_size')
  return [...groups.values()].flatMap((group) => chunks(group, typeof size === 'number' && size >= 1 ? Math.floor(size) : group.length))
}

function keyOf(step: Step, keys: readonly string[], message: JsonObject): string {
  try {
    const { [ROOT_TRANSFORM_FIELD]: root, ...fields } = step.mapping
    // A copy, because the mapping kit adds the fields to it.
    const read = { ...(root !== undefined && { [ROOT_TRANSFORM_FIELD]: structuredClone(root) }) }
    return JSON.stringify(library().transform(Object.assign(read, ...keys.map((key) => ({ [key]: fields[key] }))) as JsonObject, message))
  } catch {
    // The mapping fails for this message: on its own, so that it fails alone.
    return JSON.stringify(message)
  }
}

function chunks(positions: readonly number[], size: number): number[][] {
  return Array.from({ length: Math.ceil(positions.length / size) }, (_, index) => positions.slice(index * size, (index + 1) * size))
}
