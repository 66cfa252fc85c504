// References to the `secrets` of a destination in the templates and the mapping of its `request`: {{secrets.name}} and $.secrets.name. A path
// that begins with `secrets` never reads the message, wherever it is written, so no message can take the place of a secret.

import type { RequestSettings } from '../../../model/configuration.ts'
import type { SettingsProblem } from '../../port/kind.ts'
import { isSecretPath, segmentsOf } from './bounded-reading.ts'
import { withTwoBraces } from './mapping.ts'
import { parseTemplate } from './template.ts'

interface Reference {
  /** The field of `request` in which it is written. */
  field: string
  /** Null if the path does not name one secret, such as `$.secrets`. */
  name: string | null
}

/** Returns the first reference to a secret that does not exist, or null. */
export function unknownSecret(request: RequestSettings | null, names: readonly string[]): SettingsProblem | null {
  if (request === null) return null
  const found = referencesIn(request).find(({ name }) => name === null || !names.includes(name))
  if (found === undefined) return null
  const { field, name } = found
  if (name === null) return { field, problem: 'must name one of the secrets of the destination, such as secrets.apiKey' }
  return {
    field,
    problem: `names the secret ${name.slice(0, 100)}, which the destination does not have; ${names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`}. Add it to secrets in the same request`,
  }
}

function referencesIn({ path, headers, body }: RequestSettings): Reference[] {
  return [
    ...inTemplate(path, 'request.path'),
    ...Object.entries(headers).flatMap(([name, value]) => inTemplate(value, `request.headers.${name}`)),
    ...inMapping(body, 'request.body'),
  ]
}

function inTemplate(text: string, field: string): Reference[] {
  return parseTemplate(text).placeholders.flatMap(({ segments }) => ofPath(segments, field))
}

function inMapping(value: unknown, field: string): Reference[] {
  if (Array.isArray(value)) return value.flatMap((item, at) => inMapping(item, `${field}[${at}]`))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
    const place = `${field}.${key}`
    if (key === '@path' && typeof inner === 'string') return ofPath(mappingSegments(inner), place)
    if (key === '@template' && typeof inner === 'string') return inTemplate(withTwoBraces(inner), place)
    if (key === '@arrayPath' && Array.isArray(inner) && typeof inner[0] === 'string')
      return ofPath(mappingSegments(inner[0]), `${place}[0]`).concat(inMapping(inner.slice(1), place))
    return inMapping(inner, place)
  })
}

/** The mapping kit removes the first `$.` of a path. */
function mappingSegments(path: string): string[] {
  return segmentsOf(path.replace('$.', ''))
}

function ofPath(segments: readonly string[], field: string): Reference[] {
  if (!isSecretPath(segments)) return []
  return [{ field, name: segments.length === 2 ? (segments[1] as string) : null }]
}
