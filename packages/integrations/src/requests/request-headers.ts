// The headers of a request as the library and node-fetch would send them: the same names, the same order, the same upper and lower case. Null
// wherever that is not certain; the library then makes the request itself.

/** By name, in the order in which they are sent. */
export type HeaderMap = Map<string, string>

const INVALID_NAME = /[^^_`a-zA-Z\-0-9!#$%&'*+.|~]/
export const INVALID_VALUE = /[^\t\x20-\x7e\x80-\xff]/
/** Node.js and node-fetch treat these headers specially. */
const SPECIAL = new Set(['host', 'expect', 'connection', 'transfer-encoding', 'upgrade', 'trailer', 'te', 'keep-alive'])

/** The library merges what each level of options adds to those before it, and sorts what a level takes over. The last one is that of the call. */
export function mergedHeaders(levels: readonly unknown[]): HeaderMap | null {
  let headers: HeaderMap = new Map()
  for (const [level, added] of levels.entries()) {
    if (level > 0) headers = sorted(headers)
    if (added === undefined || added === null) continue
    if (!mergeInto(headers, added)) return null
  }
  return headers
}

export function sorted(headers: HeaderMap): HeaderMap {
  const names = [...headers.keys()].sort()
  return new Map(names.map((name) => [name, headers.get(name) as string]))
}

function mergeInto(headers: HeaderMap, added: unknown): boolean {
  if (typeof added !== 'object' || added === null || Object.getPrototypeOf(added) !== Object.prototype) return false
  const own = new Set<string>()
  for (const name of Object.keys(added).sort()) {
    const given: unknown = (added as Record<string, unknown>)[name]
    if (!['string', 'number', 'boolean', 'undefined'].includes(typeof given)) return false
    const value = String(given)
    const key = name.toLowerCase()
    if (name === '' || INVALID_NAME.test(name) || INVALID_VALUE.test(value) || SPECIAL.has(key) || own.has(key)) return false
    own.add(key)
    // As the library writes a header that is to be left out.
    if (value === 'undefined') headers.delete(key)
    else headers.set(key, value)
  }
  return true
}

/** Adds what node-fetch adds to each request. */
export function completed(headers: HeaderMap, method: string, bodyBytes: number | null): Record<string, string> {
  if (!headers.has('accept')) headers.set('Accept', '*/*')
  if (bodyBytes !== null) setLength(headers, String(bodyBytes))
  else if (method === 'POST' || method === 'PUT') setLength(headers, '0')
  if (!headers.has('user-agent')) headers.set('User-Agent', 'node-fetch/1.0 (+https://github.com/bitinn/node-fetch)')
  if (!headers.has('accept-encoding')) headers.set('Accept-Encoding', 'gzip,deflate')
  return Object.fromEntries(headers)
}

function setLength(headers: HeaderMap, length: string): void {
  headers.set(headers.has('content-length') ? 'content-length' : 'Content-Length', length)
}
