// Parsers for the values of settings: text in, a typed value or what was expected out. The table of settings is in config.ts.

import { isIP } from 'node:net'

/** `expected` completes "The setting must be …"; `problem` is a sentence of its own. */
export type Parsed<T> = { value: T } | { expected: string } | { problem: string }

export function parseInteger(text: string, least: number, most: number): Parsed<number> {
  const value = Number(text)
  return /^\d{1,15}$/.test(text) && value >= least && value <= most ? { value } : { expected: `a whole number from ${least} to ${most}` }
}

export function parseAutoOr(text: string, least: number, most: number): Parsed<number | 'auto'> {
  if (text.toLowerCase() === 'auto') return { value: 'auto' }
  const parsed = parseInteger(text, least, most)
  return 'expected' in parsed ? { expected: `auto or ${parsed.expected}` } : parsed
}

export function parseHost(text: string): Parsed<string> {
  const host = /^\[.*\]$/.test(text) ? text.slice(1, -1) : text
  const wellFormed = isIP(host) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(host)
  // Digits and dots that are not a valid address would be resolved as a host name and fail with a confusing error.
  return wellFormed && (isIP(host) !== 0 || !/^[\d.]+$/.test(host)) ? { value: host } : { expected: 'an IP address or a host name' }
}

export function parseGateway(text: string): Parsed<{ host: string; port: number }> {
  const [, name = '', digits = ''] = /^(.+):(\d+)$/.exec(text) ?? []
  const host = parseHost(name)
  const port = parseInteger(digits, 1, 65_535)
  return 'value' in host && 'value' in port
    ? { value: { host: host.value, port: port.value } }
    : { expected: 'a host and a port, such as gateway.internal:8443' }
}

export function parsePath(text: string): Parsed<string> {
  return text.includes('\0') ? { expected: 'a path' } : { value: text }
}

export function parseToken(text: string): Parsed<string> {
  return /^[\x21-\x7e]{1,1000}$/.test(text)
    ? { value: text }
    : { expected: '1 to 1000 visible ASCII characters without spaces, because it is sent in a header' }
}

export function parseRanges(text: string): Parsed<readonly string[]> {
  const ranges: string[] = []
  for (const part of text.split(',').map((word) => word.trim())) {
    if (part === '') continue
    const range = parseRange(part)
    if (range === undefined) return { expected: 'addresses or address ranges such as 10.0.0.0/8, separated by commas' }
    ranges.push(range)
  }
  return { value: ranges }
}

/** A single address becomes the range that contains only that address. */
export function parseRange(text: string): string | undefined {
  const [, address = '', length] = /^([^/]*?)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const version = isIP(address)
  if (version === 0 || address.includes('%')) return undefined
  const bits = version === 4 ? 32 : 128
  const prefix = length === undefined ? bits : Number(length)
  if (prefix > bits) return undefined
  return `${address}/${prefix}`
}

export function parseSwitch(text: string): Parsed<boolean> {
  if (['1', 'true', 'yes', 'on'].includes(text.toLowerCase())) return { value: true }
  if (['0', 'false', 'no', 'off'].includes(text.toLowerCase())) return { value: false }
  return { expected: '1 or 0 (true, false, yes, no, on and off are also accepted)' }
}

export function parseChoice<T extends string>(text: string, choices: readonly T[]): Parsed<T> {
  const value = choices.find((known) => known === text.toLowerCase())
  return value === undefined ? { expected: `one of ${choices.join(', ')}` } : { value }
}

/** Must be an origin: the service cannot be served under a path. */
export function parsePublicUrl(text: string): Parsed<string> {
  const url = URL.canParse(text) ? new URL(text) : null
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`
  return isOrigin ? { value: url.origin } : { expected: 'an http or https address without a path, such as https://events.example.com' }
}

export function parseLimit(text: string, expected: string): Parsed<number | null> {
  if (text === '0' || text.toLowerCase() === 'off') return { value: null }
  const parsed = parseInteger(text, 1, 1_000_000_000)
  return 'value' in parsed ? parsed : { expected }
}

/** The issuer is kept as it was given: providers compare it character by character. */
export function parseIssuer(text: string): Parsed<string> {
  const url = URL.canParse(text) ? new URL(text) : null
  const isSecure = url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname)))
  const isPlain = url !== null && url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  return isSecure && isPlain && !/[?#\s]/.test(text)
    ? { value: text }
    : { expected: 'an https address without a query, such as https://login.example.com/realms/main; http is accepted on loopback only' }
}

/** Only if it is an IP address or localhost: any other name may resolve to anything. `host` is the hostname of a URL. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'))
}

export function parseText(text: string, most: number): Parsed<string> {
  const value = text.trim()
  return value !== '' && value.length <= most && !/[\p{Cc}\p{Surrogate}]/u.test(value)
    ? { value }
    : { expected: `a line of 1 to ${most} characters` }
}

export function parseScopes(text: string): Parsed<string> {
  const scopes = text.trim().split(/\s+/)
  return scopes.includes('openid') && text.length <= 1_000 && scopes.every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
    ? { value: scopes.join(' ') }
    : { expected: 'scopes separated by spaces, with openid among them' }
}
