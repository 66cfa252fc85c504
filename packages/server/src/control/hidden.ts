// What may be a secret although it is not called one: the values of a destination's headers, and the query of a URL. They
// are hidden from viewers and from the audit log, which outlives them. Names stay: they tell what was set.

import type { Destination, Role } from '../store/store.ts'

/** Stands for a value. It is not taken as one, so that what a viewer was shown is never stored in its place. */
export const HIDDEN = '(hidden)'

export function hiddenHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, HIDDEN]))
}

/** Of a request's headers, those that the destination's settings gave. */
export function hideOwnHeaders(headers: Readonly<Record<string, string>>, own: Destination['headers']): Record<string, string> {
  const hidden = new Set(Object.keys(own).map((name) => name.toLowerCase()))
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, hidden.has(name.toLowerCase()) ? HIDDEN : value]))
}

/** Without the values of its query, and without what stands before an @. */
export function hiddenUrl(text: string): string {
  if (!URL.canParse(text)) return HIDDEN
  const { protocol, host, pathname, search } = new URL(text)
  const query = search.slice(1).split('&')
  const names = query.map((part) => (part.includes('=') ? `${part.slice(0, part.indexOf('='))}=${HIDDEN}` : HIDDEN))
  return `${protocol}//${host}${pathname}${search === '' ? '' : `?${names.join('&')}`}`
}

/** A URL as the role may see it. */
export function urlFor(role: Role): (url: string) => string {
  return role === 'admin' ? (url) => url : hiddenUrl
}

/** Names of what was changed and does not show: the entry before and the one after look alike. */
export function changedSecrets(before: Destination, after: Destination): string[] {
  const changed: string[] = []
  if (before.sharedSecret !== after.sharedSecret) changed.push('sharedSecret')
  if (JSON.stringify(before.signingSecrets) !== JSON.stringify(after.signingSecrets)) changed.push('signingSecrets')
  if (before.urls.join('\n') !== after.urls.join('\n') && shown(before) === shown(after)) changed.push('urls')
  for (const [name, value] of Object.entries(after.headers)) {
    if (Object.hasOwn(before.headers, name) && before.headers[name] !== value) changed.push(`headers.${name}`)
  }
  return changed
}

function shown({ urls }: Destination): string {
  return urls.map(hiddenUrl).join('\n')
}
