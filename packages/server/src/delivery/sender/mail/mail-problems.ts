// What an attempt reads from its request, and what the errors of nodemailer mean. Pure.

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

/** All errors of nodemailer have a code, and so have those of the socket. */
export function isMailError(error: unknown): error is MailError {
  return error instanceof Error && typeof (error as MailError).code === 'string' && !(error instanceof TypeError)
}

export function headerOf({ headers }: Pick<SendRequest, 'headers'>, name: string): string | null {
  const at = headers.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name)
  return at === -1 ? null : (headers[at + 1] as string)
}

/** The user name and the password; empty without a login. */
export function credentialsOf(request: Pick<SendRequest, 'headers'>): [user: string, password: string] {
  const [, encoded = ''] = /^Basic (.*)$/.exec(headerOf(request, 'authorization') ?? '') ?? []
  const text = Buffer.from(encoded, 'base64').toString()
  const at = text.indexOf(':')
  return at === -1 ? ['', ''] : [text.slice(0, at), text.slice(at + 1)]
}

export function reasonOfMailError({ code, originalCode, command, response, responseCode, rejectedErrors = [] }: MailError): ReasonCode {
  if (code === 'ETIMEDOUT') return 'timeout'
  if (code === 'EAUTH') return 'mail_login_refused'
  if (command === 'STARTTLS' && response !== undefined) return 'mail_without_tls'
  if (responseCode !== undefined && responseCode >= 400) {
    const isTemporary = [responseCode, ...rejectedErrors.map((each) => each.responseCode ?? 0)].some((each) => each < 500)
    return isTemporary ? 'mail_deferred' : 'mail_refused'
  }
  if (code === 'ETLS') return 'tls_failure'
  if (code === 'EPROTOCOL') return 'mail_protocol_error'
  if (code === 'ECONNECTION') return 'connection_closed'
  if (originalCode === undefined) return 'connection_failed'
  const ofTls = reasonOfTlsError({ code: originalCode })
  return ofTls === 'tls_failure' && !/^ERR_(?:SSL|TLS)_/.test(originalCode) ? reasonOfError({ code: originalCode }) : ofTls
}

/** The start of a reply, in the form that every store accepts; null if there is none. */
export function replyOf(response: string | false | undefined): string | null {
  if (!response) return null
  const bytes = Buffer.from(response.replaceAll('\0', '\uFFFD')).subarray(0, RESPONSE_START_BYTES)
  return new TextDecoder().decode(bytes, { stream: true })
}

/** The replies about recipients that were refused while others got the email; null if there are none. */
export function refusedRecipients(errors: readonly MailError[]): string | null {
  return errors.length === 0 ? null : replyOf(`Refused recipients:\n${errors.map(({ response }) => response ?? 'no reply').join('\n')}`)
}
