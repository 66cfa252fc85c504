// Why attempts fail, as stable codes with what each means: whether it is tried again, and a sentence for a person. What in the network
// or in an answer leads to which is delivery/sending/outcome.ts's; the control API groups failures by these.

import { STATUS_CODES } from 'node:http'

export const REASONS = {
  timeout: ['temporary', 'The receiver did not answer in time.'],
  connection_refused: ['temporary', 'The receiver refused the connection.'],
  connection_reset: ['temporary', 'The receiver reset the connection.'],
  connection_closed: ['temporary', 'The receiver closed the connection before its answer was complete.'],
  connection_failed: ['temporary', 'The connection failed.'],
  unreachable: ['temporary', 'The receiver cannot be reached over the network.'],
  dns_failure: ['temporary', "The receiver's name could not be looked up."],
  // Temporary as well: a name that is missing during a move or a lapse of a zone comes back within the window.
  dns_not_found: ['temporary', "The receiver's name does not exist."],
  address_refused: ['permanent', "The URL leads to an address that is not public, which this service's configuration does not allow."],
  tls_self_signed: ['permanent', "The receiver's certificate is self-signed."],
  tls_expired: ['permanent', "The receiver's certificate has expired or is not valid yet."],
  tls_wrong_host: ['permanent', "The receiver's certificate is for another host."],
  tls_untrusted: ['permanent', "The receiver's certificate is not from a trusted authority."],
  tls_failure: ['temporary', 'The TLS handshake failed.'],
  invalid_response: ['temporary', 'The receiver answered with something that is not HTTP/1.1.'],
  invalid_request: ['permanent', 'The URL or a header cannot be sent in an HTTP request.'],
  // The service's own doing: these say nothing about the receiver.
  internal_error: ['temporary', 'This service could not make the request, which is a fault of its own.'],
  aborted: ['temporary', 'The service stopped before the receiver had answered.'],
} as const satisfies Record<string, readonly [verdict: 'temporary' | 'permanent', sentence: string]>

export type ReasonCode = keyof typeof REASONS

export function describeStatus(status: number): string {
  const name = STATUS_CODES[status]
  const answered = `The receiver answered ${status}${name === undefined ? '' : ` ${name}`}`
  return status >= 300 && status < 400 ? `${answered}, and redirects are not followed.` : `${answered}.`
}
