// An email, from the JSON that `request.body` of the destination gave. Values come from messages, so none of them may add a header or a recipient,
// and checking them takes time in proportion to their length.

import MailComposer from 'nodemailer/lib/mail-composer'

export interface Email {
  from: { name: string; address: string }
  to: readonly string[]
  subject: string
  text: string
}

/** Refused by all servers if longer (RFC 5321, 4.5.3.1.3). */
const MAX_ADDRESS_LENGTH = 254
const MAX_FROM_LENGTH = 600
const MAX_RECIPIENTS = 50
/** Longer ones are cut: a subject is a title. */
const MAX_SUBJECT_LENGTH = 500
const ADDRESS = /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z\d](?:[a-z\d.-]*[a-z\d])?$/i

/** Returns what is wrong with the JSON if it gives no email: a sentence that quotes nothing. */
export function emailOf(json: string): Email | string {
  const { from, to, subject, text } = (JSON.parse(json) ?? {}) as Record<string, unknown>
  const sender = typeof from === 'string' ? senderOf(from.trim()) : null
  if (sender === null)
    return `The \`from\` of the email must be an address such as alerts@example.com, or Name <alerts@example.com>, of at most ${MAX_FROM_LENGTH} characters.`
  const recipients = recipientsOf(to)
  if (recipients === null)
    return `The \`to\` of the email must be one address such as on-call@example.com, or a list of 1 to ${MAX_RECIPIENTS} addresses.`
  if (typeof subject !== 'string') return 'The `subject` of the email must be a string.'
  if (typeof text !== 'string') return 'The `text` of the email must be a string.'
  return { from: sender, to: recipients, subject: oneLine(subject, MAX_SUBJECT_LENGTH), text }
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

/** A text is one address and never several: it may contain a value of a message, which must not add recipients. */
function recipientsOf(to: unknown): string[] | null {
  const given: readonly unknown[] = Array.isArray(to) ? to : [to]
  if (given.length === 0 || given.length > MAX_RECIPIENTS) return null
  const addresses = given.filter((each) => typeof each === 'string').map((each) => each.trim())
  return addresses.length === given.length && addresses.every(isAddress) ? addresses : null
}

function isAddress(text: string): boolean {
  return text.length <= MAX_ADDRESS_LENGTH && ADDRESS.test(text) && !text.includes('=?')
}

function senderOf(text: string): Email['from'] | null {
  if (text.length > MAX_FROM_LENGTH) return null
  const start = text.endsWith('>') ? text.lastIndexOf('<') : -1
  const address = start === -1 ? text : text.slice(start + 1, -1)
  return isAddress(address) ? { name: start === -1 ? '' : oneLine(text.slice(0, start), MAX_FROM_LENGTH), address } : null
}

/**
 * Without what could begin another line or change the direction of the text, and without encoded words (RFC 2047), which mail programs would decode to
 * such characters. No character is cut in half.
 */
function oneLine(text: string, maxLength: number): string {
  const line = text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\s]+/gu, ' ')
    .replaceAll('=?', '= ?')
    .trim()
  return line
    .slice(0, maxLength)
    .replace(/[\uD800-\uDBFF]$/, '')
    .trimEnd()
}
