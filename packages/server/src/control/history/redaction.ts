// Hides values that may be secrets: the header values of a destination, the query values and tokens of its URLs, and constants of its mappings. They are hidden from viewers and
// from the audit log, which is kept longer than the values are used. Names stay visible, to show what is set.

import { kindOf } from '../../destinations/kinds.ts'
import { HIDDEN, hiddenUrl } from '../../secrets/hidden-url.ts'
import { hiddenTexts } from '../../secrets/hidden-values.ts'
import type { Destination, RequestRecord, Role } from '../../store/store.ts'

/** Placeholders for the signatures of a request that was not sent yet, and of one that may differ from what was sent. */
export const ADDED_WHEN_SENT = '(added when sent)'
export const NOT_AS_SENT = '(not shown)'

/**
 * The destination with which a request is built that the role sees. For viewers of a webhook, what they must not see is replaced before the mapping
 * is evaluated: afterwards, a constant may be part of a longer text, or be written in another form.
 */
export function builtFor(role: Role, destination: Destination): Destination {
  return role !== 'viewer' ? destination : kindOf(destination).hidden(destination)
}

/** Hides the values of the headers that come from the settings of the destination. */
export function hideOwnHeaders(headers: Readonly<Record<string, string>>, destination: Destination): Record<string, string> {
  return withValue(headers, kindOf(destination).secretHeaders(destination, 'all'), HIDDEN)
}

/** Hides the values that are the same in all requests: of `headers` and of the credentials. The values of `request.headers` depend on the message. */
export function hideConfiguredHeaders(headers: Readonly<Record<string, string>>, destination: Destination): Record<string, string> {
  return withValue(headers, kindOf(destination).secretHeaders(destination, 'constant'), HIDDEN)
}

const SIGNATURE_HEADERS: ReadonlySet<string> = new Set(['x-signature', 'webhook-signature'])

export function isSigned(headers: Readonly<Record<string, string>>): boolean {
  return Object.keys(headers).some((name) => SIGNATURE_HEADERS.has(name.toLowerCase()))
}

/** Receivers trust signed messages. So nobody gets to see the signature of a message that was not sent. */
export function replaceSignatures(headers: Readonly<Record<string, string>>, text: string): Record<string, string> {
  return withValue(headers, SIGNATURE_HEADERS, text)
}

/** Only a response proves that the request was sent: an attempt without one may have ended before the request was written. */
export function wasAnswered({ status }: Pick<RequestRecord, 'status'>): boolean {
  return status !== null
}

function withValue(headers: Readonly<Record<string, string>>, names: ReadonlySet<string>, text: string): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, names.has(name.toLowerCase()) ? text : value]))
}

/** Returns a function that shows a URL as the role may see it. */
export function urlFor(role: Role): (url: string) => string {
  return role !== 'viewer' ? (url) => url : hiddenUrl
}

/** Returns a function that hides, in a text of a request, the constants of mappings that a viewer must not see, such as the URL of a Slack channel. */
export function textFor(role: Role, destination: Destination | undefined): (text: string) => string {
  const mappings = role !== 'viewer' || destination === undefined ? [] : kindOf(destination).mappings(destination)
  const hidden = mappings.flatMap((mapping) => hiddenTexts(mapping))
  if (hidden.length === 0) return (text) => text
  return (text) => hidden.reduce((shown, constant) => shown.replaceAll(constant, HIDDEN), text)
}

/**
 * Shows the URL of an attempt, which is stored without query values and tokens in the path. Editors and admins see those of the matching URL of the
 * destination, if exactly one matches.
 */
export function attemptUrlFor(role: Role, destination: Destination | undefined): (url: string) => string {
  if (role === 'viewer') {
    const shown = textFor(role, destination)
    return (url) => hiddenUrl(shown(url))
  }
  return (url) => {
    const targets = destination === undefined ? [] : kindOf(destination).targets(destination)
    const alike = targets.filter((own) => hiddenUrl(own) === hiddenUrl(url))
    return alike.length === 1 ? (alike[0] as string) : url
  }
}
