// The start of a request, up to its body: the same bytes that undici writes. A name or value that would end its line, or that would contradict
// how the request is sent, makes the request invalid, and nothing of it is sent.

/** These are decided by how the request is sent. The settings of a destination cannot contain them. */
const RESERVED = new Set(['host', 'connection', 'keep-alive', 'upgrade', 'expect', 'content-length', 'transfer-encoding'])
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const PATH = /^\/[\x21-\xff]*$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** Names that were accepted. The settings of destinations have few. When there are this many, they are forgotten. */
const MAX_NAMES = 1_000
const names = new Set<string>()

/** The part that comes before the headers of a request. Null if it cannot be sent. */
export function requestStart(method: string, path: string, host: string): string | null {
  return TOKEN.test(method) && PATH.test(path) ? `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n` : null
}

/** `headers`: names and values alternate. Null if one of them cannot be sent. */
export function requestHead(start: string, headers: readonly string[], length: number | null): string | null {
  let head = start
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string
    const value = headers[at + 1]
    if (value === undefined || !VALUE.test(value) || !(names.has(name) || isName(name))) return null
    head += `${name}: ${value}\r\n`
  }
  return length === null ? `${head}\r\n` : `${head}content-length: ${length}\r\n\r\n`
}

function isName(name: string): boolean {
  if (!TOKEN.test(name) || RESERVED.has(name.toLowerCase())) return false
  if (names.size >= MAX_NAMES) names.clear()
  names.add(name)
  return true
}
