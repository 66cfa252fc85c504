// The outcome of an attempt: the verdict that decides whether to retry, a stable reason code and a sentence for people. All errors of the
// network, the resolver and TLS, and all statuses, are mapped here and nowhere else. Pure: no clock, no sockets. A sentence never contains
// anything that the receiver sent, or an address that was looked up.

import { REASONS, type ReasonCode } from '../../api/attempt-reasons.ts'
import type { Verdict } from '../../destinations/port/kind.ts'
import type { LoadRecord, StateEntry } from '../../store/store.ts'

export { describeStatus, REASONS, type ReasonCode } from '../../api/attempt-reasons.ts'

/** Null where a step did not take place: on a reused connection, for an address in the URL (DNS), over plain HTTP (TLS). */
export interface Timings {
  dnsMs: number | null
  connectMs: number | null
  tlsMs: number | null
  /** Measured from the start of the attempt, like the total, not from sending the request. */
  firstByteMs: number | null
  totalMs: number
}

export interface Outcome {
  verdict: Verdict
  /** Also set if the response started but was never completed. */
  status: number | null
  /** A stable code; null on success. */
  reason: string | null
  /** A sentence for a person; null on success. */
  error: string | null
  /** The address that was dialled last; null if none was. */
  address: string | null
  timings: Timings
  /** The value of Retry-After, on 429 and 503. */
  retryAfterMs: number | null
  /** At most RESPONSE_START_BYTES of the answer's body in UTF-8, only for statuses that are failures unless more is asked for. */
  responseStart: string | null
  /** What the transformation of its messages printed, if anything. */
  logs?: string
  /** What an integration did, message by message; missing if it did not run. */
  ran?: Ran
  /** Only of a warehouse: what was loaded. */
  load?: LoadRecord
}

export interface Ran {
  /** One for each message of the unit. */
  messages: readonly RanMessage[]
  requests: readonly RanRequest[]
  /** What the integration keeps for later messages; missing if nothing. It is recorded with the outcomes. */
  state?: readonly RanState[]
}

export interface RanState extends StateEntry {
  /** The message whose run left it; null if it was a batch of several. */
  position: number | null
}

export interface RanMessage {
  verdict: Verdict
  reason: string | null
  retryAfterMs: number | null
  /** The ids of the subscriptions that have succeeded, in this attempt or before. */
  succeeded: readonly string[]
}

/** A request of an integration; or, without a method, a subscription that ended without one. */
export interface RanRequest {
  /** The messages that it was made for. */
  positions: readonly number[]
  /** The name of the subscription; null if it is no request of an integration. */
  subscription: string | null
  method: string | null
  url: string
  startedAtMs: number
  outcome: Outcome
  /** Only in a test or a preview. */
  sent: { headers: Readonly<Record<string, string>>; body: string } | null
}

/** A message that is not sent because of the destination's settings. */
export interface Rejected {
  reason: 'dropped_by_transformation' | 'transformation_failed' | 'mapping_failed'
  /** A sentence with the place; null if the message was dropped. */
  error: string | null
  logs: string | null
}

const NO_TIMINGS: Timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 }

/** An outcome that the service itself caused, before or instead of an answer. */
export function failure(reason: 'internal_error' | 'aborted' | 'sender_lost' | 'integration_crashed' | 'loader_lost'): Outcome {
  return unanswered(reason, REASONS[reason][1])
}

/** The outcome of a message that the settings of the destination did not let pass. */
export function rejectionOutcome({ reason, error, logs }: Rejected): Outcome {
  const outcome = unanswered(reason, error ?? REASONS[reason][1])
  return logs === null ? outcome : { ...outcome, logs }
}

export function unanswered(reason: ReasonCode, error: string): Outcome {
  return withoutAnswer({ verdict: REASONS[reason][0], reason, error }, 0)
}

/** The outcome of something else than a request. */
export function withoutAnswer({ verdict, reason, error }: Pick<Outcome, 'verdict' | 'reason' | 'error'>, totalMs: number): Outcome {
  const timings = { ...NO_TIMINGS, totalMs }
  return { verdict, status: null, reason, error, address: null, timings, retryAfterMs: null, responseStart: null }
}

export const RESPONSE_START_BYTES = 4_096

/** The outcome of a request that could not be created, which is a bug. It is retried like a failure: the message is not lost, and there is no loop. */
export const UNWRITABLE = failure('internal_error')

/** Whether the service itself caused the failure. Such a failure must not count against the receiver. */
export function isOwnFault({ reason }: Outcome): boolean {
  return reason === 'internal_error' || reason === 'sender_lost'
}

/** Whether the messages were refused without asking the receiver, by an integration or because they give no valid email. This says nothing about the receiver. */
export function isRefusedUnasked({ verdict, reason, ran }: Outcome): boolean {
  if (reason === 'mail_invalid') return true
  return ran !== undefined && verdict === 'permanent' && ran.requests.every(({ method }) => method === null)
}

const REASON_OF_CODE = new Map<string, ReasonCode>([
  ['ETIMEDOUT', 'timeout'],
  ['ECONNREFUSED', 'connection_refused'],
  ['ECONNRESET', 'connection_reset'],
  ['EPIPE', 'connection_reset'],
  ['ECONNABORTED', 'connection_reset'],
  ['ENETUNREACH', 'unreachable'],
  ['EHOSTUNREACH', 'unreachable'],
  ['ENETDOWN', 'unreachable'],
  ['EHOSTDOWN', 'unreachable'],
  ['EADDRNOTAVAIL', 'unreachable'],
  ['ENOTFOUND', 'dns_not_found'],
  ['ENODATA', 'dns_not_found'],
  // Of the guard in a host process.
  ['ERR_ADDRESS_REFUSED', 'address_refused'],
  ['UND_ERR_HEADERS_OVERFLOW', 'invalid_response'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'connection_closed'],
  ['UND_ERR_INVALID_ARG', 'invalid_request'],
  ['UND_ERR_NOT_SUPPORTED', 'invalid_request'],
  ['UND_ERR_REQ_CONTENT_LENGTH_MISMATCH', 'invalid_request'],
])

/** The codes of OpenSSL's X509_V_ERR_*, as node:tls reports them. Any other code is a handshake failure. */
const REASON_OF_CERTIFICATE_CODE = new Map<string, ReasonCode>([
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_self_signed'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_self_signed'],
  ['CERT_HAS_EXPIRED', 'tls_expired'],
  ['CERT_NOT_YET_VALID', 'tls_expired'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_wrong_host'],
  ['ERR_TLS_CERT_ALTNAME_FORMAT', 'tls_wrong_host'],
  ['HOSTNAME_MISMATCH', 'tls_wrong_host'],
  ...[
    'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
    'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
    'UNABLE_TO_DECRYPT_CRL_SIGNATURE',
    'UNABLE_TO_GET_CRL',
    'CERT_SIGNATURE_FAILURE',
    'CRL_SIGNATURE_FAILURE',
    'CRL_HAS_EXPIRED',
    'CRL_NOT_YET_VALID',
    'ERROR_IN_CERT_NOT_BEFORE_FIELD',
    'ERROR_IN_CERT_NOT_AFTER_FIELD',
    'ERROR_IN_CRL_LAST_UPDATE_FIELD',
    'ERROR_IN_CRL_NEXT_UPDATE_FIELD',
    'CERT_CHAIN_TOO_LONG',
    'CERT_REVOKED',
    'INVALID_CA',
    'PATH_LENGTH_EXCEEDED',
    'INVALID_PURPOSE',
    'CERT_UNTRUSTED',
    'CERT_REJECTED',
  ].map((code): [string, ReasonCode] => [code, 'tls_untrusted']),
])

/** Alerts with which a receiver refuses the client certificate, or the lack of one. With TLS 1.3 they arrive after the handshake. */
const CERTIFICATE_ALERT =
  /^ERR_SSL_\S+_ALERT_(?:BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REQUIRED|REVOKED|EXPIRED|UNKNOWN)|UNKNOWN_CA|ACCESS_DENIED)$/

/** The reason behind an error of a socket or of undici, while a connection was being dialled or was open. */
export function reasonOfError(error: unknown): ReasonCode {
  if (error instanceof AggregateError) return reasonOfSeveral(error.errors)
  const code = codeOf(error)
  // One code for two cases: a closed connection, and an unexpected response (100 or 101, which was not requested).
  if (code === 'UND_ERR_SOCKET') return (error as Error).message.startsWith('bad ') ? 'invalid_response' : 'connection_closed'
  if (CERTIFICATE_ALERT.test(code)) return 'tls_certificate_refused'
  // Recognized by its name, because parser errors often have no code.
  if ((error as Error | undefined)?.name === 'HTTPParserError') return 'invalid_response'
  return REASON_OF_CODE.get(code) ?? 'connection_failed'
}

/** If several addresses failed, an error from a host takes precedence over an unreachable one, such as IPv6 without a route. */
function reasonOfSeveral(errors: readonly unknown[]): ReasonCode {
  const reasons = errors.map(reasonOfError)
  return reasons.find((reason) => reason !== 'unreachable') ?? reasons[0] ?? 'connection_failed'
}

export function reasonOfLookupError(error: unknown): ReasonCode {
  return REASON_OF_CODE.get(codeOf(error)) === 'dns_not_found' ? 'dns_not_found' : 'dns_failure'
}

/** The reason behind an error during the TLS handshake. */
export function reasonOfTlsError(error: unknown): ReasonCode {
  const code = codeOf(error)
  return CERTIFICATE_ALERT.test(code) ? 'tls_certificate_refused' : (REASON_OF_CERTIFICATE_CODE.get(code) ?? 'tls_failure')
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : ''
}

const HTTP_DATE = /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT|[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d [\d:]{8} GMT)$/
const ASCTIME_DATE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}$/

/** Parses Retry-After on 429 and 503. Returns 0 for a date in the past, and null if it cannot be parsed. */
export function parseRetryAfter(status: number, header: string | readonly string[] | undefined, nowMs: number): number | null {
  if ((status !== 429 && status !== 503) || header === undefined) return null
  const value = (typeof header === 'string' ? header : (header[0] ?? '')).trim()
  if (/^\d{1,10}$/.test(value)) return Number(value) * 1_000
  // Date.parse reads far more than HTTP's three forms of a date ("5 apples" is one), and asctime's as local time.
  const atMs = HTTP_DATE.test(value) ? Date.parse(value) : ASCTIME_DATE.test(value) ? Date.parse(`${value} GMT`) : Number.NaN
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs)
}
