// What an attempt reads from its request, and what the errors of nodemailer mean. Pure.

import { writtenForms } from '../../../destinations/webhook/secret-settings.ts'
import { HIDDEN } from '../../../secrets/hidden-url.ts'
import { RESPONSE_START_BYTES, type ReasonCode, reasonOfError, reasonOfTlsError } from '../../link/outcome.ts'
import type { SendRequest } from '../http/attempt.ts'

/** An error of nodemailer. */
export interface MailError {
  message: string
  code?: string | undefined
  /** The code of the error of the socket or of TLS behind it. */
  originalCode?: string | undefined
  /** The reply of the server that caused it. */
  response?: string | undefined
  responseCode?: number | undefined
  command?: string | undefined
  rejectedErrors?: readonly MailError[] | undefined
}

/** The codes of nodemailer for what a server or the network can cause. It has others for wrong calls, which are bugs. */
const MAIL_ERRORS = new Set(['EAUTH', 'ECONNECTION', 'EENVELOPE', 'EMESSAGE', 'EPROTOCOL', 'ESOCKET', 'ETIMEDOUT', 'ETLS'])

export function isMailError(error: unknown): error is MailError {
  return error instanceof Error && MAIL_ERRORS.has((error as MailError).code ?? '')
}

export function headerOf({ headers }: Pick<SendRequest, 'headers'>, name: string): string | null {
  const at = headers.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name)
  return at === -1 ? null : (headers[at + 1] as string)
}

/** Null without a login. */
export function credentialsOf(request: Pick<SendRequest, 'headers'>): { user: string; pass: string } | null {
  const [, encoded] = /^Basic (.*)$/.exec(headerOf(request, 'authorization') ?? '') ?? []
  if (encoded === undefined) return null
  const text = Buffer.from(encoded, 'base64').toString()
  const at = text.indexOf(':')
  return at === -1 ? null : { user: text.slice(0, at), pass: text.slice(at + 1) }
}

/** If the server refuses one of these commands, it refuses this email. If it refuses another, the cause is the server or the login. */
const ABOUT_THE_EMAIL = new Set(['MAIL FROM', 'RCPT TO', 'DATA'])
/** The server does not know the command or a parameter, or wants another login: mistakes of the server or of the settings. */
const ABOUT_THE_SERVER = new Set([500, 501, 502, 503, 504, 530, 534, 535, 538])
/** Older servers mean 452 by it, too many recipients, if it is a reply to RCPT TO (RFC 5321, 4.5.3.1.10). */
const TOO_MANY_RECIPIENTS = 552

export function reasonOfMailError(error: MailError): ReasonCode {
  const { code, originalCode, command, response, responseCode, rejectedErrors = [] } = error
  if (code === 'ETIMEDOUT') return 'timeout'
  if (code === 'EAUTH') return 'mail_login_refused'
  if (command === 'STARTTLS' && response !== undefined) return 'mail_without_tls'
  if (responseCode !== undefined && responseCode >= 400 && responseCode < 600)
    return [error, ...rejectedErrors].every(isPermanent) ? 'mail_refused' : 'mail_deferred'
  // nodemailer also reports a reply that is neither a success nor a failure in this way.
  if ((code === 'EMESSAGE' || code === 'EENVELOPE') && response !== undefined) return 'mail_protocol_error'
  // nodemailer itself refused it: larger than the server accepts, or an address.
  if (code === 'EMESSAGE') return 'mail_refused'
  if (code === 'EENVELOPE') return 'mail_invalid'
  if (code === 'ETLS') return 'tls_failure'
  if (code === 'EPROTOCOL') return 'mail_protocol_error'
  if (code === 'ECONNECTION') return 'connection_closed'
  if (originalCode === undefined) return 'connection_failed'
  const ofTls = reasonOfTlsError({ code: originalCode })
  return ofTls === 'tls_failure' && !/^ERR_(?:SSL|TLS)_/.test(originalCode) ? reasonOfError({ code: originalCode }) : ofTls
}

/** Some servers send 5xx with an enhanced code (RFC 3463) that says that the failure is for now (4.x.x) or of the network (x.4.x), or 501 about an address (x.1.x). */
function isPermanent({ command, response = '', responseCode = 0 }: MailError): boolean {
  if (responseCode < 500 || responseCode > 599 || !ABOUT_THE_EMAIL.has(command ?? '')) return false
  if (responseCode === TOO_MANY_RECIPIENTS && command === 'RCPT TO') return false
  const [, kind, subject] = /^\d{3}[ -](\d)\.(\d{1,3})\.\d{1,3}\b/.exec(response) ?? []
  if (ABOUT_THE_SERVER.has(responseCode) && subject !== '1') return false
  return kind !== '4' && subject !== '4'
}

/** Shorter texts also occur where they are no credentials. */
const MIN_HIDDEN_LENGTH = 4

/** Returns the function that hides the login in a reply, because viewers can read the start of a response. */
export function replyHider(credentials: { user: string; pass: string } | null): (reply: string) => string {
  if (credentials === null) return (reply) => reply
  const { user, pass } = credentials
  const logins = [`\0${user}\0${pass}`, `${user}\0${user}\0${pass}`, `${user}:${pass}`].map((text) => Buffer.from(text).toString('base64'))
  const all = [...logins, ...[pass, user].filter((text) => text.length >= MIN_HIDDEN_LENGTH).flatMap(writtenForms)]
  // nodemailer reads a reply as Latin-1 if it is not valid UTF-8.
  const inLatin1 = all.map((form) => Buffer.from(form).toString('latin1'))
  // Longest first, because one may contain another.
  const forms = [...new Set([...all, ...inLatin1])].sort((left, right) => right.length - left.length)
  return (reply) => forms.reduce((text, form) => text.replaceAll(form, HIDDEN), reply)
}

/** The reply that caused an error, as far as it may be kept. */
export function replyOf({ command = 'CONN', response }: MailError): string | undefined {
  // Before a command was answered, it may come from a server that is no mail server.
  if (command === 'CONN') return undefined
  // It may contain the login in a form that is not found, such as broken over two lines.
  return command.startsWith('AUTH') ? /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3}\b)?/.exec(response ?? '')?.[0].replace('-', ' ') : response
}

/** The start of a reply, in the form that every store accepts; null if there is none. Secrets are hidden before it is cut, which could leave a part of one. */
export function shownReply(reply: string | false | undefined, hide: (reply: string) => string): string | null {
  if (!reply) return null
  const bytes = Buffer.from(hide(reply).replaceAll('\0', '\uFFFD')).subarray(0, RESPONSE_START_BYTES)
  return new TextDecoder().decode(bytes, { stream: true })
}

/** The replies about recipients that do not get the email, although others do; undefined if there are none. */
export function refusedRecipients(errors: readonly MailError[]): string | undefined {
  const listed = (title: string, some: readonly MailError[]): string[] =>
    some.length === 0 ? [] : [title, ...some.map(({ response }) => response ?? 'no reply')]
  const refused = errors.filter(isPermanent)
  const deferred = errors.filter((error) => !isPermanent(error))
  const lines = [
    ...listed('Refused recipients:', refused),
    ...listed('Deferred recipients, to whom the email is not sent again:', deferred),
  ]
  return lines.length === 0 ? undefined : lines.join('\n')
}
