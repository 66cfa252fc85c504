// Which values a destination's settings take, as the control API judges them (packages/server/src/control/destinations/destination-settings.ts), so
// that a slip shows while it is typed. The API has the last word; e2e/destination-rules.test.ts holds the two against each other. Pure.

export const MESSAGE_TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias'] as const
export type MessageType = (typeof MESSAGE_TYPES)[number]

export const LIMITS = {
  urls: 5,
  headers: 50,
  events: 1_000,
  signingSecrets: 2,
  batchSize: { min: 1, max: 1_000 },
  batchBytes: { min: 1, max: 5 * 1024 * 1024 },
  lingerMs: { min: 0, max: 60_000 },
  timeoutMs: { min: 100, max: 5_000 },
  retryWindowMs: { min: 1_000, max: 14_400_000 },
  maxInFlight: { min: 1, max: 1_000 },
} as const

const MAX_HEADER_BYTES = 12 * 1024
/** What stands for a value that a viewer may not see. */
const HIDDEN = '(hidden)'

const REFUSED_HEADERS = new Set([
  'host',
  'content-length',
  'content-type',
  'user-agent',
  'x-signature',
  'x-attempt',
  'x-replay',
  'traceparent',
  'tracestate',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
])

/** What is wrong with a value, as a sentence, or null. */
export type Problem = string | null

/** Half of a character, which is no Unicode. */
function hasHalves(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}

export function nameProblem(name: string): Problem {
  if (name.trim() === '') return 'Give it a name.'
  if (name.length > 100) return 'A name has at most 100 characters.'
  if (hasHalves(name) || /\p{Cc}/u.test(name)) return 'A name is text on one line, without control characters.'
  return name === 'All' || name === 'Webhooks' ? 'All and Webhooks stand for every destination in a message: choose another name.' : null
}

export function urlProblem(text: string): Problem {
  if (text === '') return 'Give the URL that messages are posted to.'
  if (text.length > 2_048) return 'A URL has at most 2,048 characters.'
  if (!/^https?:\/\//i.test(text)) return 'Begin with https:// or http://.'
  if (!/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(text)) return 'A URL has a host, and no spaces or backslashes.'
  if (hasHalves(text) || !URL.canParse(text)) return 'This is not a valid URL.'
  const url = new URL(text)
  if (text.includes(HIDDEN)) return 'Write the real query: (hidden) only stands for it where it is not shown.'
  if (text.includes('#')) return 'Leave out the fragment (#…): it is never sent.'
  if (url.username !== '' || url.password !== '') return 'Leave out user name and password; set an Authorization header instead.'
  return null
}

/** Of each URL, with those that are in the list twice. */
export function urlProblems(urls: readonly string[]): Problem[] {
  const seen = new Set<string>()
  return urls.map((text) => {
    const problem = urlProblem(text)
    if (problem !== null) return problem
    const { href } = new URL(text)
    if (seen.has(href)) return 'This URL is in the list already.'
    seen.add(href)
    return null
  })
}

/** What a person may want to know of a URL that is taken as it is. */
export function urlAdvice(text: string): string | null {
  if (urlProblem(text) !== null) return null
  const { protocol, hostname } = new URL(text)
  const isNear = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
  return protocol === 'http:' && !isNear ? 'Not encrypted: everybody on the way can read the messages. Use https:// where you can.' : null
}

export interface HeaderDraft {
  name: string
  value: string
}

export function headerNameProblem(name: string): Problem {
  if (name === '') return 'Give the header a name.'
  if (name.length > 128) return 'A name has at most 128 characters.'
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return "A name has letters, digits and ! # $ % & ' * + - . ^ _ ` | ~ only."
  const lower = name.toLowerCase()
  // Not a header that a browser could build an object with, and no real one.
  if (lower === '__proto__') return 'This name is not taken.'
  return REFUSED_HEADERS.has(lower) || lower.startsWith('webhook-') || lower.startsWith('proxy-')
    ? 'Switchyard or the connection sets this header itself.'
    : null
}

export function headerValueProblem(value: string): Problem {
  if (value.length > 4_096) return 'A value has at most 4,096 characters.'
  if (value === HIDDEN) return 'Write the real value: (hidden) only stands for it where it is not shown.'
  return /^[\t\x20-\x7e]*$/.test(value) ? null : 'A value has visible ASCII characters, spaces and tabs only.'
}

export function headerProblems(headers: readonly HeaderDraft[]): { name: Problem; value: Problem }[] {
  const seen = new Set<string>()
  return headers.map(({ name, value }) => {
    const lower = name.toLowerCase()
    const isTwice = seen.has(lower)
    seen.add(lower)
    return {
      name: headerNameProblem(name) ?? (isTwice ? 'This header is there already; upper and lower case are the same.' : null),
      value: headerValueProblem(value),
    }
  })
}

/** Of all headers together. */
export function headersProblem(headers: readonly HeaderDraft[]): Problem {
  if (headers.length > LIMITS.headers) return `There are at most ${LIMITS.headers} headers.`
  const bytes = headers.reduce((sum, { name, value }) => sum + name.length + value.length + 4, 0)
  return bytes > MAX_HEADER_BYTES ? 'All headers together have at most 12 KB.' : null
}

export function numberProblem(value: number | null, { min, max }: { min: number; max: number }): Problem {
  const good = value !== null && Number.isSafeInteger(value) && value >= min && value <= max
  return good ? null : `A whole number from ${written(min)} to ${written(max)}.`
}

function written(value: number): string {
  return value.toLocaleString('en-US')
}

export function sharedSecretProblem(secret: string): Problem {
  if (secret === '') return 'Give the secret, or keep what is set.'
  if (hasHalves(secret)) return 'A secret is valid Unicode text.'
  return secret.length > 1_024 ? 'A shared secret has at most 1,024 characters.' : null
}

export function signingSecretProblem(secret: string): Problem {
  if (secret === '') return 'Give the secret, or let one be made.'
  const text = secret.slice('whsec_'.length)
  const isForm = secret.startsWith('whsec_') && secret.length <= 200 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
  return isForm && isBase64(text) ? null : 'A signing secret is whsec_ followed by base64.'
}

/** Spelled as the bytes in it are spelled: padding may be left out whole, and no bits hang over. */
function isBase64(text: string): boolean {
  try {
    const canonical = btoa(atob(text))
    return text === canonical || text === canonical.replace(/=+$/, '')
  } catch {
    return false
  }
}

export function signingSecretProblems(secrets: readonly string[]): Problem[] {
  return secrets.map(
    (secret, at) => signingSecretProblem(secret) ?? (secrets.indexOf(secret) < at ? 'This secret is in the list already.' : null),
  )
}

export function eventsProblem(events: readonly string[]): Problem {
  if (events.length > LIMITS.events) return 'There are at most 1,000 names.'
  if (events.some((event) => event === '' || event.length > 1_000 || hasHalves(event))) return 'An event name has 1 to 1,000 characters.'
  return new Set(events).size < events.length ? 'A name is in the list twice.' : null
}
