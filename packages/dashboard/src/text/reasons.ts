// Explains why an attempt or a delivery failed: what the reason code means, and what to do about it. The codes are the API's
// (packages/server/src/delivery/sending/outcome.ts and the states of a delivery); a test compares the two.

interface Reason {
  /** What the code means, in a sentence. */
  says: string
  /** What to do about it. */
  advice: string
}

const REASONS: Readonly<Record<string, Reason>> = {
  timeout: {
    says: 'The receiver did not answer in time.',
    advice: 'Make the receiver respond before it processes the message, or increase the timeout of the destination.',
  },
  connection_refused: {
    says: 'The receiver refused the connection.',
    advice: 'Check that the receiver is running: nothing listens on that address and port, or a firewall rejects the connection.',
  },
  connection_reset: {
    says: 'The receiver reset the connection.',
    advice: 'The receiver or a proxy in front of it crashed, restarted or timed out. Check its log.',
  },
  connection_closed: {
    says: 'The receiver closed the connection before its response was complete.',
    advice: 'The receiver crashed or restarted while it responded. Check its log.',
  },
  connection_failed: { says: 'The connection failed.', advice: 'Check the network between this service and the receiver.' },
  unreachable: {
    says: 'The receiver cannot be reached over the network.',
    advice: 'There is no route to its address. Check the network, the firewall and the address that its name resolves to.',
  },
  dns_failure: {
    says: "The DNS lookup of the receiver's host name failed.",
    advice: 'The DNS server did not answer. Check the DNS configuration of the machine that this service runs on.',
  },
  dns_not_found: { says: "The receiver's host name does not exist.", advice: 'Check the URL for a typo, and the DNS record of the host.' },
  address_refused: {
    says: 'The URL resolves to an address that is not public, and the configuration of this service does not allow it.',
    advice: 'Use a public address, or allow this one with SWITCHYARD_ALLOW_ADDRESSES, then replay: it is not retried automatically.',
  },
  tls_self_signed: {
    says: "The receiver's certificate is self-signed.",
    advice: 'Install a certificate from a trusted authority at the receiver, then replay.',
  },
  tls_expired: { says: "The receiver's certificate has expired or is not valid yet.", advice: 'Renew the certificate, then replay.' },
  tls_wrong_host: {
    says: "The receiver's certificate is for another host.",
    advice: 'Use the host name that the certificate is for, or get a certificate for this host name, then replay.',
  },
  tls_untrusted: {
    says: "The receiver's certificate is not from a trusted authority.",
    advice: 'Configure the receiver to send its full certificate chain, or use a trusted authority, then replay.',
  },
  tls_failure: { says: 'The TLS handshake failed.', advice: 'Check that the port speaks TLS, in a version that is not too old.' },
  tls_certificate_refused: {
    says: 'The receiver requires a client certificate, or did not accept the certificate of this destination.',
    advice: 'Check `tls` of the destination: the certificate must be valid, and from an authority that the receiver trusts.',
  },
  auth_unavailable: {
    says: 'The token endpoint did not return an access token.',
    advice: 'Check that the token endpoint of the destination works. The delivery is retried automatically.',
  },
  auth_refused: {
    says: 'The token endpoint refused to issue an access token.',
    advice: "Check the client id, the client secret and the scope in the destination's `auth`. The delivery is retried automatically.",
  },
  invalid_response: {
    says: 'The response of the receiver is not valid HTTP/1.1.',
    advice: 'Check the port: another protocol may be listening there.',
  },
  invalid_request: {
    says: 'The URL or a header cannot be sent in an HTTP request.',
    advice: "Correct the destination's URL or headers, then replay.",
  },
  integration_retry: {
    says: 'The integration asked for a retry.',
    advice: 'The delivery is retried automatically. If it keeps failing, read the error of the latest attempt.',
  },
  integration_failed: {
    says: 'The integration reported an error.',
    advice: 'Read the error of the attempt, correct the settings or the subscription, then replay.',
  },
  invalid_payload: {
    says: 'The integration rejected the message: a value that its action needs is missing or invalid.',
    advice: 'Correct the mapping of the subscription, or what your application sends, then replay.',
  },
  invalid_authentication: {
    says: 'The tool rejected the credentials in the settings of the integration.',
    advice: 'Enter new credentials in the settings, then replay.',
  },
  no_subscription: {
    says: 'No subscription of the integration matches the message. Nothing was sent.',
    advice: 'If the message should have been sent, change the subscriptions, then replay.',
  },
  mapping_failed: {
    says: 'The request settings of the destination do not fit the message. Nothing was sent.',
    advice: "Correct the destination's request, then replay.",
  },
  transformation_failed: {
    says: 'The transformation of the destination failed for the message. Nothing was sent.',
    advice: "Correct the destination's transformation, then replay.",
  },
  dropped_by_transformation: {
    says: 'The transformation dropped the message. Nothing was sent.',
    advice: 'The transformation returned null for it. To send it, change the transformation, then replay.',
  },
  integration_crashed: {
    says: 'The integration crashed or hung while it ran. Its requests may have reached the tool.',
    advice: "Check the service's log. The delivery is retried automatically, in a separate process, so the tool may get it twice.",
  },
  internal_error: {
    says: 'The service could not send the request because of an internal error.',
    advice: "Check the service's log. The delivery is retried automatically.",
  },
  sender_lost: {
    says: 'The service failed while it sent the request (its sender thread ended or stopped responding). The request may have reached the receiver.',
    advice: "Check the service's log. The delivery is retried automatically, so the receiver may get it twice.",
  },
  aborted: {
    says: 'The service stopped before the receiver answered.',
    advice: 'The message is sent again after the restart, so the receiver may get it twice.',
  },
  retry_window_over: {
    says: 'The retry window ended before the message could be delivered.',
    advice: 'Replay it when the receiver works again.',
  },
  destination_deleted: { says: 'The destination was deleted.', advice: 'Deliveries to a deleted destination cannot be replayed.' },
  message_deleted: {
    says: 'The message was deleted because a deletion was requested for its user.',
    advice: 'Its content is gone, so it cannot be sent.',
  },
  message_unreadable: {
    says: 'The stored message is damaged and cannot be read.',
    advice: 'Check the disk that the store is on, and send the message again from its source.',
  },
}

/** Names of the common HTTP statuses. */
const STATUS_NAMES: Readonly<Record<number, string>> = {
  301: 'Moved Permanently',
  302: 'Found',
  307: 'Temporary Redirect',
  308: 'Permanent Redirect',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Entity',
  425: 'Too Early',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
}

const STATUS_ADVICE: Readonly<Record<number, string>> = {
  401: 'The receiver rejected the signature or the credentials. Compare the secrets and headers on both sides; the signature checker shows what differs.',
  403: 'The receiver rejected the signature or the credentials. Compare the secrets and headers on both sides; the signature checker shows what differs.',
  404: 'The path of the URL does not exist on the receiver. Check the URL of the destination.',
  405: 'The receiver does not accept POST at this URL. Check the URL of the destination.',
  410: 'The receiver says that this URL is permanently gone. Check the URL of the destination.',
  413: 'The request is too large for the receiver. Make the batches of the destination smaller, or raise the limit of the receiver.',
  429: 'The receiver limits the rate of requests. Lower the number of concurrent requests in the settings of the destination.',
}

const HTTP = /^http_(\d{3})$/

/** Returns what a reason code means, in a sentence. */
export function reasonSentence(code: string): string {
  const status = statusOf(code)
  if (status === null) return REASONS[code]?.says ?? `Reason: ${code}.`
  const name = STATUS_NAMES[status]
  const answered = `The receiver answered ${status}${name === undefined ? '' : ` ${name}`}`
  return status >= 300 && status < 400 ? `${answered}, and redirects are not followed.` : `${answered}.`
}

/** Returns what to do about it. Empty if the code is unknown. */
export function reasonAdvice(code: string, isIntegration = false): string {
  const status = statusOf(code)
  if (status === null) return REASONS[code]?.advice ?? ''
  if (isIntegration && (status === 401 || status === 403)) return REASONS['invalid_authentication']?.advice ?? ''
  // The other advice is about the URL and the signature of a webhook.
  if (isIntegration && status < 413) return 'The response, whose start is shown with the attempt, may say why.'
  const known = STATUS_ADVICE[status]
  if (known !== undefined) return known
  if (status >= 500) return 'Check the log of the receiver, and the start of its response, which is shown with the attempt.'
  if (status >= 300 && status < 400) return 'Set the URL of the destination to the target of the redirect.'
  return 'The response, whose start is shown with the attempt, may say why.'
}

function statusOf(code: string): number | null {
  const status = HTTP.exec(code)?.[1]
  return status === undefined ? null : Number(status)
}
