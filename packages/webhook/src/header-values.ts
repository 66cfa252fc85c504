// Headers in whichever shape a framework hands them over. Returns every value of a name rather than the first or the
// last, because which of two wins is what a forger would like to choose. Knows nothing of signatures.

/** Headers as an object in any letter case, with single or several values. */
export interface HeaderRecord {
  readonly [name: string]: string | readonly string[] | undefined
}

/** What `Headers` of fetch offers, as far as it is needed. */
export interface HeaderGetter {
  get(name: string): string | null | undefined
}

export type HeadersInput = HeaderRecord | HeaderGetter | Iterable<readonly [name: string, value: string]>

/** All non-empty values of a header; `name` in lower case. Values that are not text count as absent. */
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

/** A Map also has get, but one that minds letter case; it is read as pairs. */
function isGetter(headers: HeadersInput): headers is HeaderGetter {
  return typeof (headers as Partial<HeaderGetter>).get === 'function' && !(headers instanceof Map)
}

function isIterable(headers: object): headers is Iterable<unknown> {
  return Symbol.iterator in headers
}
