// Validates a destination's settings while they are typed, by the same rules as the control API
// (packages/server/src/control/destinations/destination-settings.ts). The API decides; e2e/destination-rules.test.ts checks that the two
// agree. Pure.

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
  integrationTimeoutMs: { min: 100, max: 30_000 },
  retryWindowMs: { min: 1_000, max: 1_209_600_000 },
  retryInitialMs: { min: 100, max: 3_600_000 },
  retryMaxMs: { min: 100, max: 86_400_000 },
  retryFactor: { min: 1, max: 10 },
  statuses: 100,
  maxInFlight: { min: 1, max: 1_000 },
} as const

const MAX_HEADER_BYTES = 12 * 1024
/** The placeholder for a value that viewers must not see. */
const HIDDEN = '(hidden)'

const RESERVED_HEADERS = new Set([
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

/** A sentence about what is wrong with a value; null if it is valid. */
export type Problem = string | null

/** Whether the text has half of a surrogate pair, which is not valid Unicode. */
function hasLoneSurrogates(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}

export function nameProblem(name: string): Problem {
  if (name.trim() === '') return 'Enter a name.'
  if (name.length > 100) return 'Use at most 100 characters.'
  if (hasLoneSurrogates(name) || /\p{Cc}/u.test(name)) return 'Use one line of text without control characters.'
  return name === 'All' || name === 'Webhooks'
    ? 'All and Webhooks are reserved: in a message they mean every destination. Choose another name.'
    : null
}

export function urlProblem(text: string): Problem {
  if (text === '') return 'Enter the URL that messages are sent to.'
  if (text.length > 2_048) return 'Use at most 2,048 characters.'
  if (!/^https?:\/\//i.test(text)) return 'Start the URL with https:// or http://.'
  if (!/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(text)) return 'The URL needs a host and must not contain spaces or backslashes.'
  if (hasLoneSurrogates(text) || !URL.canParse(text)) return 'This is not a valid URL.'
  const url = new URL(text)
  if (text.includes(HIDDEN)) return 'Contains the placeholder (hidden). Enter the real query string.'
  if (text.includes('#')) return 'Remove the fragment (#…): it is never sent.'
  if (url.username !== '' || url.password !== '') return 'Remove the user name and password. Set an Authorization header instead.'
  return null
}

/** The problem of each URL, including duplicates. */
export function urlProblems(urls: readonly string[]): Problem[] {
  const seen = new Set<string>()
  return urls.map((text) => {
    const problem = urlProblem(text)
    if (problem !== null) return problem
    const { href } = new URL(text)
    if (seen.has(href)) return 'This URL is already in the list.'
    seen.add(href)
    return null
  })
}

/** A warning about a URL that is valid. */
export function urlAdvice(text: string): string | null {
  if (urlProblem(text) !== null) return null
  const { protocol, hostname } = new URL(text)
  const isLocal = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
  return protocol === 'http:' && !isLocal
    ? 'Not encrypted: anyone on the network path can read the messages. Use https:// if you can.'
    : null
}

export interface HeaderDraft {
  name: string
  value: string
}

export function headerNameProblem(name: string): Problem {
  if (name === '') return 'Enter a header name.'
  if (name.length > 128) return 'Use at most 128 characters.'
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return "Use only letters, digits and ! # $ % & ' * + - . ^ _ ` | ~"
  const lower = name.toLowerCase()
  // JavaScript cannot use this name as an ordinary object key, and no real header has it.
  if (lower === '__proto__') return 'This name cannot be used.'
  return RESERVED_HEADERS.has(lower) || lower.startsWith('webhook-') || lower.startsWith('proxy-')
    ? 'This header is set by Switchyard or by the HTTP connection.'
    : null
}

export function headerValueProblem(value: string): Problem {
  if (value.length > 4_096) return 'Use at most 4,096 characters.'
  if (value === HIDDEN) return 'Contains the placeholder (hidden). Enter the real value.'
  return /^[\t\x20-\x7e]*$/.test(value) ? null : 'Use only printable ASCII characters, spaces and tabs.'
}

export function headerProblems(headers: readonly HeaderDraft[]): { name: Problem; value: Problem }[] {
  const seen = new Set<string>()
  return headers.map(({ name, value }) => {
    const lower = name.toLowerCase()
    const isDuplicate = seen.has(lower)
    seen.add(lower)
    return {
      name: headerNameProblem(name) ?? (isDuplicate ? 'This header is already in the list. Header names are case-insensitive.' : null),
      value: headerValueProblem(value),
    }
  })
}

/** The problem of all headers together. */
export function headersProblem(headers: readonly HeaderDraft[]): Problem {
  if (headers.length > LIMITS.headers) return `Use at most ${LIMITS.headers} headers.`
  const bytes = headers.reduce((sum, { name, value }) => sum + name.length + value.length + 4, 0)
  return bytes > MAX_HEADER_BYTES ? 'All headers together must not exceed 12 KB.' : null
}

export function numberProblem(
  value: number | null,
  { min, max }: { min: number; max: number },
  { isWhole = true }: { isWhole?: boolean } = {},
): Problem {
  const good = value !== null && (!isWhole || Number.isSafeInteger(value)) && value >= min && value <= max
  return good ? null : `Enter a ${isWhole ? 'whole number' : 'number'} from ${written(min)} to ${written(max)}.`
}

/** `others`: the statuses of the opposite list. */
export function statusesProblem(statuses: readonly string[], others: readonly string[] = []): Problem {
  if (statuses.length > LIMITS.statuses) return `Use at most ${LIMITS.statuses} statuses.`
  const wrong = statuses.find((status) => !/^[345]\d\d$/.test(status))
  if (wrong !== undefined) return `${wrong} is not an HTTP status from 300 to 599.`
  if (new Set(statuses).size < statuses.length) return 'The list contains the same status twice.'
  const both = statuses.find((status) => others.includes(status))
  return both === undefined ? null : `${both} is in both lists. Remove it from one of them.`
}

function written(value: number): string {
  return value.toLocaleString('en-US')
}

export function sharedSecretProblem(secret: string): Problem {
  if (secret === '') return 'Enter a secret, or keep the current one.'
  if (hasLoneSurrogates(secret)) return 'The secret must be valid Unicode text.'
  return secret.length > 1_024 ? 'Use at most 1,024 characters.' : null
}

export function signingSecretProblem(secret: string): Problem {
  if (secret === '') return 'Enter a secret, or generate one.'
  const text = secret.slice('whsec_'.length)
  const isWellFormed = secret.startsWith('whsec_') && secret.length <= 200 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
  return isWellFormed && isBase64(text) ? null : 'A signing secret must be whsec_ followed by base64.'
}

/** Whether it is canonical base64: the padding may be missing, but there must be no excess bits. */
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
    (secret, at) => signingSecretProblem(secret) ?? (secrets.indexOf(secret) < at ? 'This secret is already in the list.' : null),
  )
}

export function eventsProblem(events: readonly string[]): Problem {
  if (events.length > LIMITS.events) return 'Use at most 1,000 names.'
  if (events.some((event) => event === '' || event.length > 1_000 || hasLoneSurrogates(event)))
    return 'Event names must have 1 to 1,000 characters.'
  return new Set(events).size < events.length ? 'The list contains the same name twice.' : null
}
