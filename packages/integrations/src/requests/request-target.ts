// A URL as node-fetch reads it: parsed by today's rules, and again by those of url.parse(), which escapes more characters.

import { libraryRequests } from './library-requests.ts'

export interface RequestTarget {
  /** As responses and errors name it. */
  url: string
  protocol: 'http:' | 'https:'
  hostname: string
  port: string | null
  path: string
  /** As in a URL. Kept connections are found by their origin. */
  origin: string
}

const MAX_KEPT = 200
const MAX_KEPT_CHARS = 300

/** Most actions send everything to the same URL, and parsing it twice for each request would cost CPU time. */
const kept = new Map<string, RequestTarget>()

/** Null if it is not a plain absolute URL. */
export function requestTarget(url: string): RequestTarget | null {
  const known = kept.get(url)
  if (known !== undefined) return known
  const target = parsed(url)
  if (target !== null && url.length <= MAX_KEPT_CHARS) {
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(url, target)
  }
  return target
}

function parsed(text: string): RequestTarget | null {
  if (!/^https?:/i.test(text) || !URL.canParse(text)) return null
  const { protocol, host, hostname, port, username, password } = new URL(text)
  const origin = `${protocol}//${host}`
  // url.parse() itself is deprecated for code outside of packages.
  const { url } = new (libraryRequests().fetch.Request)(text, {})
  if ((protocol !== 'http:' && protocol !== 'https:') || username !== '' || password !== '' || !url.startsWith(`${origin}/`)) return null
  const path = url.slice(origin.length).replace(/#.*/, '')
  return { url, protocol, hostname: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? null : port, path, origin }
}
