// Explains why a request to the service got no response: in words of the command line, without the text of OpenSSL.

import { CommandProblem, EXIT } from './problem.ts'

const UNREACHABLE = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT', 'EHOSTUNREACH', 'ENETUNREACH'])
/** What OpenSSL reports if the first bytes of the server are not TLS. */
const NOT_TLS = /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL|RECORD_LAYER_FAILURE))$/
const CERTIFICATE = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/
const DROPPED = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

export function connectionProblem(url: string, error: unknown, deadlineMs: number): CommandProblem {
  return new CommandProblem(explain(url, error as { name?: string; code?: string; message?: string }, deadlineMs), EXIT.unreachable, {
    cause: error,
  })
}

function explain(
  url: string,
  { name, code = '', message }: { name?: string; code?: string; message?: string },
  deadlineMs: number,
): string {
  if (name === 'TimeoutError')
    return `The service at ${url} did not respond within ${deadlineMs / 1_000} s. Check its log, and run the command again.`
  if (UNREACHABLE.has(code))
    return `Cannot reach a service at ${url}. Start one with \`switchyard serve\`, or give the URL of a running one with --url.`
  const isSecure = url.startsWith('https:')
  const plain = plainHttpProblem(url, code)
  if (plain !== null) return plain
  if (isSecure && CERTIFICATE.test(code))
    return `The certificate of ${url} was rejected: ${message ?? code}. If it was issued by your own certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file.`
  const reason = message || code || 'the connection was lost'
  const hint = !isSecure && DROPPED.has(code) ? ` If the server expects TLS, use ${url.replace('http:', 'https:')}.` : ''
  return `The request to ${url} failed: ${reason.replace(/\.$/, '')}.${hint}`
}

/** What to say if https was used and the server answers in plain http; null otherwise. `code` is that of the error. */
export function plainHttpProblem(url: string, code: string): string | null {
  if (!url.startsWith('https:') || !NOT_TLS.test(code)) return null
  return `The server at ${url} does not use TLS. Use ${url.replace('https:', 'http:')}: the service itself serves plain http, and needs a proxy for https.`
}

/** What to change if the URL has a path, such as /api, and the server there does not know the API. Empty if it has none. */
export function pathAdvice(url: string): string {
  const { pathname, origin } = new URL(url)
  return pathname === '/' ? '' : `Leave out ${pathname} and use ${origin}, unless a proxy serves the service under that path.`
}
