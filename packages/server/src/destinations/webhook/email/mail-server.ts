// The URL of a mail server, to which a webhook sends its messages as emails: smtps:// for TLS from the start, smtp:// for STARTTLS.

export interface MailServer {
  /** A name, or an address without brackets. */
  hostname: string
  port: number
  /** Whether TLS starts with the connection and not with STARTTLS. */
  secure: boolean
  /** For dialling it without TLS, as if it were a web server. */
  dialUrl: URL
}

export const MAIL_URL_FORM = /^smtps?:\/\/(?:\[[\da-f:.]+\]|[a-z\d.-]+)(?::\d{1,5})?\/?$/

export function isMailUrl(url: string): boolean {
  return url.startsWith('smtp://') || url.startsWith('smtps://')
}

/** Null if it is not the URL of a mail server. */
export function mailServerOf(text: string): MailServer | null {
  if (!MAIL_URL_FORM.test(text) || !URL.canParse(text)) return null
  const { protocol, port } = new URL(text)
  const secure = protocol === 'smtps:'
  const usual = secure ? '465' : '587'
  // The parser brings hosts into their usual form only in URLs of the web.
  const dialUrl = URL.parse(`http://${new URL(text).hostname}:${port === '' ? usual : port}`)
  if (dialUrl === null) return null
  return { hostname: dialUrl.hostname.replace(/^\[|\]$/g, ''), port: Number(dialUrl.port || 80), secure, dialUrl }
}

export function mailUrlProblem(text: string): string | null {
  return mailServerOf(text) === null
    ? 'must be the address of a mail server without a path, such as smtps://mail.example.com:465 or smtp://mail.example.com:587'
    : null
}
