// A mapping whose fields read what a @transform results in, in place of the message. Segment's app saves the directive beside the fields. The mapping
// kit also accepts it around them: `{ "@transform": { "apply": …, "mapping": { fields } } }`. Here, both are saved as Segment saves them, so that
// everything that reads a field of a mapping finds it where it is without the directive.

import { isObject, type JsonObject } from '@switchyard/protocol'
import { ROOT_TRANSFORM } from '../webhook/shaping/mapping.ts'

/** The mapping in the form in which it is saved. One that is not valid stays as it is. */
export function withRootTransform(mapping: JsonObject): JsonObject {
  const around = onlyTransform(mapping)
  if (around !== null && isObject(around['mapping']) && isFields(around['mapping']))
    return { [ROOT_TRANSFORM]: { '@transform': withoutMapping(around) }, ...around['mapping'] }
  const beside = onlyTransform(mapping[ROOT_TRANSFORM])
  // The mapping kit ignores what it says about fields: it uses those beside it.
  return beside === null ? mapping : { ...mapping, [ROOT_TRANSFORM]: { '@transform': withoutMapping(beside) } }
}

/** The directive around the fields, as mappings are checked; the mapping itself if it has none, and null if it is not one that can be evaluated. */
export function asDirective(mapping: Readonly<JsonObject>): JsonObject | null {
  const { [ROOT_TRANSFORM]: root, ...fields } = mapping
  if (root === undefined) return fields
  const given = onlyTransform(root)
  return given === null ? null : { '@transform': { ...given, mapping: fields } }
}

/** Where something is in the saved form that is at `place` in the directive. */
export function savedPlace(place: string): string {
  const inFields = '.@transform.mapping'
  return place.startsWith(inFields) ? place.slice(inFields.length) : `.${ROOT_TRANSFORM}${place}`
}

/** The value of a @transform that is the only key, except for what Segment's editor adds. */
function onlyTransform(value: unknown): JsonObject | null {
  if (!isObject(value)) return null
  const { '@transform': given, _metadata: _, ...others } = value
  return isObject(given) && Object.keys(others).length === 0 ? given : null
}

function withoutMapping(value: JsonObject): JsonObject {
  const { mapping: _, ...given } = value
  return given
}

function isFields(value: object): value is JsonObject {
  return !Object.keys(value).some((key) => key.startsWith('@') || key === ROOT_TRANSFORM)
}
