// The request of a webhook that sends emails: its body is what the email is made of. delivery/sender/mail sends it.

import type { WebhookDestination } from '../../../model/configuration.ts'
import type { OutgoingRequest, Prepared, RequestAbout } from '../../port/kind.ts'
import { isMailUrl } from './mail-server.ts'

/**
 * How long a mail server may take, after the timeout of the destination, to confirm an email that was sent. Some check it for viruses first. The order
 * of a destination relies on no attempt taking longer.
 */
export const EMAIL_CONFIRMATION_MS = 60_000

/** Of everything that a mail server sends in one attempt, which may be kept until its end. The replies to an email with 50 recipients are about 10 KB. */
export const MAX_RECEIVED_BYTES = 262_144

/** For each character of the JSON: one or two bytes when it is parsed, and at most 4.2 in the email that is written from it, in Base64 or quoted-printable. */
const EMAIL_FACTOR = 6

export function sendsEmail({ urls }: Pick<WebhookDestination, 'urls'>): boolean {
  return isMailUrl(urls[0] as string)
}

/** The Message-ID is the same on every attempt, so that a mailbox can recognize an email that it gets twice. */
export function emailRequest(messages: readonly (string | Prepared)[], { id }: Pick<RequestAbout, 'id'>): OutgoingRequest {
  const [message] = messages
  const headers = ['Message-ID', `<${id.replaceAll(/[^\w.-]/g, '-')}@switchyard>`]
  const body = typeof message === 'object' ? message.text : (message as string)
  return { method: 'MAIL', path: '', headers, body, sendingBytes: EMAIL_FACTOR * body.length + MAX_RECEIVED_BYTES }
}
