// Why an attempt or a delivery came to what it is, in words: what the code means, and what to do about it. The codes are the API's
// (packages/server/src/delivery/sending/outcome.ts and the states of a delivery); a test holds the two together.

interface Reason {
  /** A sentence. */
  says: string
  /** What helps, for somebody who has to act. */
  advice: string
}

const REASONS: Readonly<Record<string, Reason>> = {
  timeout: {
    says: 'The receiver did not answer in time.',
    advice: 'Answer first and work later, or give the destination a longer timeout.',
  },
  connection_refused: {
    says: 'The receiver refused the connection.',
    advice: 'Nothing listens at that address and port, or a firewall turns it away. Is the receiver running?',
  },
  connection_reset: {
    says: 'The receiver reset the connection.',
    advice: 'It crashed, restarted, or a proxy before it gave up. Its own log tells more.',
  },
  connection_closed: {
    says: 'The receiver closed the connection before its response was complete.',
    advice: 'It crashed or restarted while it answered. Its own log tells more.',
  },
  connection_failed: { says: 'The connection failed.', advice: 'Look at the network between this service and the receiver.' },
  unreachable: {
    says: 'The receiver cannot be reached over the network.',
    advice: 'There is no route to its address: look at the network, the firewall and the address that its name leads to.',
  },
  dns_failure: {
    says: "The DNS lookup of the receiver's host name failed.",
    advice: 'The name server did not answer. Look at the DNS that this service uses.',
  },
  dns_not_found: { says: "The receiver's host name does not exist.", advice: 'Look for a slip in the URL, or a record that was removed.' },
  address_refused: {
    says: 'The URL resolves to an address that is not public, and the configuration of this service does not allow it.',
    advice: 'Use a public address, or allow private ones in the configuration of the service. It is not tried again by itself.',
  },
  tls_self_signed: {
    says: "The receiver's certificate is self-signed.",
    advice: 'Give the receiver a certificate of a trusted authority, then replay.',
  },
  tls_expired: { says: "The receiver's certificate has expired or is not valid yet.", advice: 'Renew the certificate, then replay.' },
  tls_wrong_host: {
    says: "The receiver's certificate is for another host.",
    advice: 'Use the name that the certificate is for, or get one for this name, then replay.',
  },
  tls_untrusted: {
    says: "The receiver's certificate is not from a trusted authority.",
    advice: 'Send the whole chain of certificates, or use a trusted authority, then replay.',
  },
  tls_failure: { says: 'The TLS handshake failed.', advice: 'Does the port speak TLS, and a version that is not too old?' },
  invalid_response: {
    says: 'The response of the receiver is not valid HTTP/1.1.',
    advice: 'Is this the right port? Another protocol may live there.',
  },
  invalid_request: {
    says: 'The URL or a header cannot be sent in an HTTP request.',
    advice: "Mend the destination's URL or headers, then replay.",
  },
  internal_error: {
    says: 'The service could not send the request because of an internal error.',
    advice: "The service's log tells more. It is tried again by itself.",
  },
  aborted: {
    says: 'The service stopped before the receiver answered.',
    advice: 'It is sent again after the start, so the receiver may see it twice.',
  },
  retry_window_over: { says: 'The time for retries was over before it could be sent.', advice: 'Replay it when the receiver is well.' },
  destination_deleted: { says: 'The destination was deleted.', advice: 'It cannot be sent to it any more.' },
  message_deleted: { says: 'The message was deleted, as was asked for its user.', advice: 'There is nothing left that could be sent.' },
  message_unreadable: {
    says: 'The stored message is damaged and cannot be read.',
    advice: 'Check the disk that the store is on, and have the sender send the message again.',
  },
}

/** Of statuses that are met often. */
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
  401: 'The receiver did not accept the signature or the credentials: compare the secrets and headers of both sides. The signature checker says what differs.',
  403: 'The receiver did not accept the signature or the credentials: compare the secrets and headers of both sides. The signature checker says what differs.',
  404: 'The path of the URL does not exist at the receiver.',
  405: 'The receiver takes no POST at this URL.',
  410: 'The receiver says that this URL is gone for good.',
  413: 'The request is too large for the receiver: make the batches of the destination smaller, or raise its limit.',
  429: 'The receiver asks to be sent less: lower how many requests may be in flight at once.',
}

const HTTP = /^http_(\d{3})$/

/** What the code means, in a sentence. */
export function reasonSentence(code: string): string {
  const status = statusOf(code)
  if (status === null) return REASONS[code]?.says ?? `The reason is ${code}.`
  const name = STATUS_NAMES[status]
  const answered = `The receiver answered ${status}${name === undefined ? '' : ` ${name}`}`
  return status >= 300 && status < 400 ? `${answered}, and redirects are not followed.` : `${answered}.`
}

/** What to do about it. */
export function reasonAdvice(code: string): string {
  const status = statusOf(code)
  if (status === null) return REASONS[code]?.advice ?? ''
  const known = STATUS_ADVICE[status]
  if (known !== undefined) return known
  if (status >= 500) return 'The receiver has a fault of its own: its log tells more. The start of its answer is kept with the attempt.'
  if (status >= 300 && status < 400) return 'Give the destination the URL that the redirect leads to.'
  return 'The receiver refuses this request: the start of its answer, kept with the attempt, may say why.'
}

function statusOf(code: string): number | null {
  const status = HTTP.exec(code)?.[1]
  return status === undefined ? null : Number(status)
}
