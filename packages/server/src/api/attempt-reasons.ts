// The reasons why attempts fail: stable codes, each with its verdict (temporary failures are retried, permanent ones are not) and a sentence
// for people. delivery/link/outcome.ts maps network errors and responses to these codes; the control API groups failures by them.

import { STATUS_CODES } from 'node:http'

export const REASONS = {
  timeout: ['temporary', 'The receiver did not answer in time.'],
  connection_refused: ['temporary', 'The receiver refused the connection.'],
  connection_reset: ['temporary', 'The receiver reset the connection.'],
  connection_closed: ['temporary', 'The receiver closed the connection before its response was complete.'],
  connection_failed: ['temporary', 'The connection failed.'],
  unreachable: ['temporary', 'The receiver cannot be reached over the network.'],
  dns_failure: ['temporary', "The DNS lookup of the receiver's host name failed."],
  // Also temporary: a name that is missing during a migration or an outage of its DNS zone may be back within the retry window.
  dns_not_found: ['temporary', "The receiver's host name does not exist."],
  address_refused: [
    'permanent',
    'The URL resolves to an address that is not public, and the configuration of this service does not allow it.',
  ],
  tls_self_signed: ['permanent', "The receiver's certificate is self-signed."],
  tls_expired: ['permanent', "The receiver's certificate has expired or is not valid yet."],
  tls_wrong_host: ['permanent', "The receiver's certificate is for another host."],
  tls_untrusted: ['permanent', "The receiver's certificate is not from a trusted authority."],
  tls_failure: ['temporary', 'The TLS handshake failed.'],
  tls_certificate_refused: [
    'temporary',
    'The receiver requires a client certificate, or did not accept the certificate of this destination.',
  ],
  invalid_response: ['temporary', 'The response of the receiver is not valid HTTP/1.1.'],
  invalid_request: ['permanent', 'The URL or a header cannot be sent in an HTTP request.'],
  // Of mail servers.
  mail_without_tls: ['temporary', 'The mail server does not offer TLS. Nothing was sent.'],
  mail_login_refused: ['temporary', 'The mail server refused the user name or the password.'],
  mail_deferred: ['temporary', 'The mail server did not accept the email, but may accept it later.'],
  mail_refused: ['permanent', 'The mail server refused the email.'],
  mail_protocol_error: ['temporary', 'The server did not follow the SMTP protocol.'],
  mail_invalid: ['permanent', 'The request settings of the destination do not produce a valid email. Nothing was sent.'],
  // Caused by the settings of the destination: nothing was sent.
  mapping_failed: ['permanent', 'The request settings of the destination do not fit the message. Nothing was sent.'],
  transformation_failed: ['permanent', 'The transformation of the destination failed for the message. Nothing was sent.'],
  dropped_by_transformation: ['permanent', 'The transformation dropped the message. Nothing was sent.'],
  // Reported by the code of an integration.
  integration_retry: ['temporary', 'The integration asked for a retry.'],
  integration_failed: ['permanent', 'The integration reported an error.'],
  invalid_payload: ['permanent', 'The integration rejected the message: a value that its action needs is missing or invalid.'],
  invalid_authentication: ['permanent', 'The tool rejected the credentials in the settings of the integration.'],
  no_subscription: ['permanent', 'No subscription of the integration matches the message. Nothing was sent.'],
  integration_crashed: ['temporary', 'The integration crashed or hung while it ran. Its requests may have reached the tool.'],
  // Reported by the loader of a warehouse.
  warehouse_credentials_refused: ['temporary', 'The warehouse refused the credentials of the destination.'],
  warehouse_permission_missing: ['temporary', 'The user of the destination may not write into the warehouse.'],
  warehouse_place_taken: ['temporary', 'The place has tables of another installation or destination.'],
  warehouse_not_found: ['temporary', 'The database, bucket or folder of the warehouse does not exist.'],
  warehouse_read_only: ['temporary', 'The warehouse is read-only.'],
  warehouse_table_changed: ['temporary', 'A table was changed by hand, so that rows no longer fit.'],
  warehouse_disk_full: ['temporary', 'The disk of the warehouse is full.'],
  warehouse_unreachable: ['temporary', 'The warehouse cannot be reached over the network.'],
  warehouse_timed_out: ['temporary', 'The warehouse did not answer in time.'],
  warehouse_file_missing: ['temporary', 'A file of the lake is missing.'],
  warehouse_failed: ['temporary', 'The load failed.'],
  warehouse_not_installed: ['temporary', 'The warehouse package is not installed on this server.'],
  deletion_unfinished: ['temporary', 'The rows of the user are being deleted, and this takes several steps.'],
  already_loaded: ['permanent', 'The message is in the tables already, so it was not loaded again.'],
  loader_lost: [
    'temporary',
    'The process that loads ended or stopped responding. The load is repeated, and each row is in its table once.',
  ],
  // Caused by the authorization server of the destination: nothing was sent to the receiver.
  auth_unavailable: ['temporary', 'The token endpoint did not return an access token.'],
  auth_refused: ['temporary', 'The token endpoint refused to issue an access token.'],
  // Caused by the service itself; these say nothing about the receiver.
  internal_error: ['temporary', 'The service could not send the request because of an internal error.'],
  sender_lost: [
    'temporary',
    'The service failed while it sent the request (its sender thread ended or stopped responding). The request may have reached the receiver.',
  ],
  aborted: ['temporary', 'The service stopped before the receiver answered.'],
} as const satisfies Record<string, readonly [verdict: 'temporary' | 'permanent', sentence: string]>

export type ReasonCode = keyof typeof REASONS

/** Returns 503 for `http_503`, and null if the reason is not an HTTP status. */
export function statusOfReason(reason: string | null): number | null {
  const [, status] = /^http_(\d{3})$/.exec(reason ?? '') ?? []
  return status === undefined ? null : Number(status)
}

/** The usual sentence of a reason, which quotes nothing; null if the reason is not one of an attempt. */
export function usualSentence(reason: string): string | null {
  const status = statusOfReason(reason)
  if (status !== null) return describeStatus(status)
  return Object.hasOwn(REASONS, reason) ? REASONS[reason as ReasonCode][1] : null
}

const USUAL: ReadonlySet<string> = new Set(Object.values(REASONS).map(([, sentence]) => sentence))

/** Whether it is the usual sentence of some reason: anything else may quote a message. */
export function isUsualSentence(text: string): boolean {
  const [, status] = /^The receiver answered (\d{3})\b/.exec(text) ?? []
  return USUAL.has(text) || (status !== undefined && describeStatus(Number(status)) === text)
}

export function describeStatus(status: number): string {
  const name = STATUS_CODES[status]
  const answered = `The receiver answered ${status}${name === undefined ? '' : ` ${name}`}`
  return status >= 300 && status < 400 ? `${answered}, and redirects are not followed.` : `${answered}.`
}
