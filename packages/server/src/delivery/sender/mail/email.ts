// An email, from the JSON that `request.body` of the destination gave. Values come from messages, so none of them may add a header or a recipient.

import MailComposer from 'nodemailer/lib/mail-composer'

export interface Email {
  from: { name: string; address: string }
  to: readonly string[]
  subject: string
  text: string
}

/** Refused by all servers if longer (RFC 5321, 4.5.3.1.3). */
const MAX_ADDRESS_LENGTH = 254
const MAX_RECIPIENTS = 50
/** Longer ones are cut: a subject is a title. */
const MAX_SUBJECT_LENGTH = 500
const ADDRESS = /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z\d](?:[a-z\d.-]*[a-z\d])?$/i
const NAMED = /^(.*?)\s*<([^<>]*)>$/

/** Returns what is wrong with the JSON if it gives no email: a sentence that quotes nothing. */
export function emailOf(json: string): Email | string {
  const { from, to, subject, text } = (JSON.parse(json) ?? {}) as Record<string, unknown>
  const sender = typeof from === 'string' ? senderOf(from.trim()) : null
  if (sender === null) return 'The `from` of the email must be an address such as alerts@example.com, or Name <alerts@example.com>.'
  const recipients = (Array.isArray(to) ? to : typeof to === 'string' ? to.split(',') : []).map((each: unknown) => String(each).trim())
  if (recipients.length === 0 || recipients.length > MAX_RECIPIENTS || !recipients.every(isAddress))
    return `The \`to\` of the email must be 1 to ${MAX_RECIPIENTS} addresses such as on-call@example.com.`
  if (typeof subject !== 'string') return 'The `subject` of the email must be a text.'
  if (typeof text !== 'string') return 'The `text` of the email must be a text.'
  return {
    from: sender,
    to: recipients,
    subject: subject
      .replaceAll(/\p{Cc}+/gu, ' ')
      .trim()
      .slice(0, MAX_SUBJECT_LENGTH),
    text,
  }
}

export function writtenEmail({ from, to, subject, text }: Email, messageId: string, at: Date): Promise<Buffer> {
  const composer = new MailComposer({
    from,
    to: to.map((address) => ({ name: '', address })),
    subject,
    text,
    messageId,
    date: at,
    // So that nobody's out-of-office reply answers it (RFC 3834).
    headers: { 'Auto-Submitted': 'auto-generated' },
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: 'win',
  })
  return composer.compile().build()
}

function isAddress(text: string): boolean {
  return text.length <= MAX_ADDRESS_LENGTH && ADDRESS.test(text)
}

function senderOf(text: string): Email['from'] | null {
  const [, name = '', address = text] = NAMED.exec(text) ?? []
  return isAddress(address) && !/\p{Cc}/u.test(name) ? { name, address } : null
}
