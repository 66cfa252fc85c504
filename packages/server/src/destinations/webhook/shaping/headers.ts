// Which headers can be configured for a webhook.

const KIB = 1024

export const MAX_HEADERS = 50
export const MAX_HEADER_VALUE_LENGTH = 4_096
/** The limit for all names and values. Servers commonly reject more than 16 KB of headers, and Switchyard adds its own. */
export const MAX_HEADER_BYTES = 12 * KIB

const RESERVED_HEADERS = [
  // Set by Switchyard
  'host',
  'content-length',
  'content-type',
  'user-agent',
  'x-signature',
  'x-attempt',
  'x-replay',
  'traceparent',
  'tracestate',
  // Connection headers
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
]

/** The dashboard checks headers by the same rules while they are typed (packages/dashboard/src/api/rules.ts). */
export const HEADER_RULES = {
  maxNameLength: 128,
  maxBytes: MAX_HEADER_BYTES,
  /** RFC 9110, 5.6.2 */
  name: /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/,
  value: /^[\t\x20-\x7e]*$/,
  reserved: RESERVED_HEADERS,
  reservedPrefixes: ['webhook-', 'proxy-'],
}

export function headerNameProblem(name: string): string | null {
  const { maxNameLength, reserved, reservedPrefixes } = HEADER_RULES
  if (name.length > maxNameLength) return `must have a name of at most ${maxNameLength} characters`
  if (!HEADER_RULES.name.test(name)) return "must have a name that consists only of letters, digits and ! # $ % & ' * + - . ^ _ ` | ~"
  const lower = name.toLowerCase()
  if (reserved.includes(lower) || reservedPrefixes.some((prefix) => lower.startsWith(prefix))) {
    return 'is set by Switchyard or by the HTTP connection and cannot be configured; remove it'
  }
  return null
}

export function isHeaderValue(value: string): boolean {
  return HEADER_RULES.value.test(value)
}

/** What a list of names and values adds to a request. */
export function headerBytes(entries: Iterable<readonly [string, string]>): number {
  let bytes = 0
  for (const [name, value] of entries) bytes += name.length + value.length + 4
  return bytes
}

export function headersProblem(headers: Record<string, string>): string | null {
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  if (new Set(names).size < names.length) return 'must not contain the same header twice; header names are case-insensitive'
  return headerBytes(Object.entries(headers)) > MAX_HEADER_BYTES
    ? `must have at most ${MAX_HEADER_BYTES} bytes of names and values in total`
    : null
}
