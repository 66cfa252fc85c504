// Validates the settings of a webhook while they are typed: URLs, headers and secrets, by the rules of the control API, which are generated
// (api/rules.ts). The API decides. Pure.

import { FIELDS, HEADER_RULES, HIDDEN, MAIL_URL_FORM, URL_FORM } from '../../../api/rules.ts'
import { hasLoneSurrogates, lengthProblem, type Problem, written } from '../../../destination/form/validation.ts'

export function urlProblem(text: string): Problem {
  if (text === '') return 'Enter the URL that messages are sent to.'
  const long = lengthProblem(text, FIELDS['urls[]'])
  if (long !== null) return long
  if (/^smtps?:/.test(text)) return mailUrlProblem(text)
  if (!/^https?:\/\//i.test(text)) return 'Start the URL with https:// or http://.'
  if (!URL_FORM.test(text)) return 'The URL needs a host and must not contain spaces or backslashes.'
  if (hasLoneSurrogates(text) || !URL.canParse(text)) return 'This is not a valid URL.'
  const url = new URL(text)
  if (text.includes(HIDDEN)) return `Contains the placeholder ${HIDDEN}. Enter the real query string.`
  if (text.includes('#')) return 'Remove the fragment (#…): it is never sent.'
  if (url.username !== '' || url.password !== '') return 'Remove the user name and password. Set an Authorization header instead.'
  return null
}

function mailUrlProblem(text: string): Problem {
  return MAIL_URL_FORM.test(text) && URL.canParse(text) ? null : 'Enter a mail server without a path, such as smtps://mail.example.com:465.'
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

export function headersOf(headers: readonly HeaderDraft[]): Record<string, string> {
  return Object.fromEntries(headers.map(({ name, value }) => [name, value]))
}

export function headerDrafts(headers: Readonly<Record<string, string>>): HeaderDraft[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value }))
}

function headerNameProblem(name: string): Problem {
  const { maxNameLength: max, name: form, reserved, reservedPrefixes } = HEADER_RULES
  if (name === '') return 'Enter a header name.'
  if (name.length > max) return lengthProblem(name, { max })
  if (!form.test(name)) return "Use only letters, digits and ! # $ % & ' * + - . ^ _ ` | ~"
  const lower = name.toLowerCase()
  // JavaScript cannot use this name as an ordinary object key, and no real header has it.
  if (lower === '__proto__') return 'This name cannot be used.'
  return (reserved as readonly string[]).includes(lower) || reservedPrefixes.some((prefix) => lower.startsWith(prefix))
    ? 'This header is set by Switchyard or by the HTTP connection.'
    : null
}

function headerValueProblem(value: string): Problem {
  if (value.length > FIELDS['headers[]'].max) return lengthProblem(value, FIELDS['headers[]'])
  if (value === HIDDEN) return `Contains the placeholder ${HIDDEN}. Enter the real value.`
  return HEADER_RULES.value.test(value) ? null : 'Use only printable ASCII characters, spaces and tabs.'
}

/** By field: `headers[0].name`, `headers[0].value`. */
export function headerProblems(headers: readonly HeaderDraft[], prefix = 'headers'): [field: string, problem: Problem][] {
  const seen = new Set<string>()
  return headers.flatMap(({ name, value }, at) => {
    const lower = name.toLowerCase()
    const isTwice = seen.has(lower)
    seen.add(lower)
    const twice = isTwice ? 'This header is already in the list. Header names are case-insensitive.' : null
    return [
      [`${prefix}[${at}].name`, headerNameProblem(name) ?? twice],
      [`${prefix}[${at}].value`, headerValueProblem(value)],
    ]
  })
}

/** The problem of all headers together. */
export function headersProblem(headers: readonly HeaderDraft[]): Problem {
  if (headers.length > FIELDS.headers.max) return `Use at most ${FIELDS.headers.max} headers.`
  const bytes = headers.reduce((sum, { name, value }) => sum + name.length + value.length + 4, 0)
  return bytes > HEADER_RULES.maxBytes ? `All headers together must not exceed ${written(HEADER_RULES.maxBytes / 1024)} KB.` : null
}

export function sharedSecretProblem(secret: string): Problem {
  if (secret === '') return 'Enter a secret, or keep the current one.'
  if (hasLoneSurrogates(secret)) return 'The secret must be valid Unicode text.'
  return lengthProblem(secret, FIELDS.sharedSecret)
}

function signingSecretProblem(secret: string): Problem {
  if (secret === '') return 'Enter a secret, or generate one.'
  const text = secret.slice('whsec_'.length)
  const { max } = FIELDS['signingSecrets[]']
  const isWellFormed = secret.startsWith('whsec_') && secret.length <= max && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
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
