// Checks a URL when it is configured. Delivery decides whether its address may be dialled, when it dials it. No error message here may quote the
// URL, because it may contain a secret.

import { HIDDEN } from '../../secrets/hidden-url.ts'
import { isMailUrl, mailUrlProblem } from './email/mail-server.ts'

/** The URL parser silently removes or replaces spaces, tabs and backslashes. The stored URL must be exactly the one that is dialled. */
export const URL_FORM = /^https?:\/\/[^\s\p{Cc}\\]+$/iu

export function urlProblem(text: string): string | null {
  if (!URL_FORM.test(text)) return 'must be a URL that begins with http:// or https://, without spaces'
  if (!URL.canParse(text)) return 'must be a valid URL, such as https://example.com/webhook'
  const url = new URL(text)
  if (text.includes(HIDDEN)) return 'contains the placeholder "(hidden)"; send the real query string'
  if (text.includes('#')) return 'must not have a fragment (#…), because fragments are never sent; remove it'
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password; set an Authorization header instead'
  return null
}

/** Of a URL that messages are sent to. */
export function targetProblem(text: string): string | null {
  return isMailUrl(text) ? mailUrlProblem(text) : urlProblem(text)
}

/** Scheme, host and port. */
export function originOf(text: string): string {
  const { origin, protocol, host } = new URL(text)
  return isMailUrl(text) ? `${protocol}//${host.toLowerCase()}` : origin
}
