// Reads headers in any form in which frameworks pass them. Returns all values of a name instead of the first or the last,
// because an attacker must not be able to choose which of two counts. Knows nothing about signatures.

/** Headers as an object, with names in any letter case and one or several values each. */
export interface HeaderRecord {
  readonly [name: string]: string | readonly string[] | undefined
}

/** The part of the Fetch API's `Headers` that is used. */
export interface HeaderGetter {
  get(name: string): string | null | undefined
}

export type HeadersInput = HeaderRecord | HeaderGetter | Iterable<readonly [name: string, value: string]>

/** Returns all non-empty values of a header. `name` must be in lower case. Ignores values that are not strings. */
export function headerValues(headers: HeadersInput, name: string): string[] {
  const values: string[] = []
  if (isGetter(headers)) add(values, headers.get(name))
  else {
    const pairs = isIterable(headers) ? headers : Object.entries(headers)
    for (const pair of pairs) {
      if (Array.isArray(pair) && typeof pair[0] === 'string' && pair[0].toLowerCase() === name) add(values, pair[1])
    }
  }
  return values
}

export function requireHeaders(headers: unknown): asserts headers is HeadersInput {
  if (typeof headers !== 'object' || headers === null) throw new TypeError('headers must be an object.')
}

function add(values: string[], value: unknown): void {
  if (Array.isArray(value)) for (const each of value) add(values, each)
  else if (typeof value === 'string' && value !== '') values.push(value)
}

/** A Map also has get(), but that is case-sensitive, so a Map is read as pairs. */
function isGetter(headers: HeadersInput): headers is HeaderGetter {
  return typeof (headers as Partial<HeaderGetter>).get === 'function' && !(headers instanceof Map)
}

function isIterable(headers: object): headers is Iterable<unknown> {
  return Symbol.iterator in headers
}
