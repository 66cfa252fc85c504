// Explains why an attempt or a delivery failed: what the reason code means, in the words of the service (api/rules.ts), and what to do about it.

import { REASONS, STATUS_NAMES } from '../api/rules.ts'

/** What to do about it. */
const ADVICE: Readonly<Record<keyof typeof REASONS, string>> = {
  timeout: 'Make the receiver respond before it processes the message, or increase the timeout of the destination.',
  connection_refused: 'Check that the receiver is running: nothing listens on that address and port, or a firewall rejects the connection.',
  connection_reset: 'The receiver or a proxy in front of it crashed, restarted or timed out. Check its log.',
  connection_closed: 'The receiver crashed or restarted while it responded. Check its log.',
  connection_failed: 'Check the network between this service and the receiver.',
  unreachable: 'There is no route to its address. Check the network, the firewall and the address that its name resolves to.',
  dns_failure: 'The DNS server did not answer. Check the DNS configuration of the machine that this service runs on.',
  dns_not_found: 'Check the URL for a typo, and the DNS record of the host.',
  address_refused: 'Use a public address, or allow this one with SWITCHYARD_ALLOW_ADDRESSES, then replay: it is not retried automatically.',
  tls_self_signed: 'Install a certificate from a trusted authority at the receiver, then replay.',
  tls_expired: 'Renew the certificate, then replay.',
  tls_wrong_host: 'Use the host name that the certificate is for, or get a certificate for this host name, then replay.',
  tls_untrusted: 'Configure the receiver to send its full certificate chain, or use a trusted authority, then replay.',
  tls_failure: 'Check that the port speaks TLS, in a version that is not too old.',
  tls_certificate_refused: 'Check `tls` of the destination: the certificate must be valid, and from an authority that the receiver trusts.',
  auth_unavailable: 'Check that the token endpoint of the destination works. The delivery is retried automatically.',
  auth_refused: "Check the client id, the client secret and the scope in the destination's `auth`. The delivery is retried automatically.",
  invalid_response: 'Check the port: another protocol may be listening there.',
  invalid_request: "Correct the destination's URL or headers, then replay.",
  integration_retry: 'The delivery is retried automatically. If it keeps failing, read the error of the latest attempt.',
  integration_failed: 'Read the error of the attempt, correct the settings or the subscription, then replay.',
  invalid_payload: 'Correct the mapping of the subscription, or what your application sends, then replay.',
  invalid_authentication: 'Enter new credentials in the settings, then replay.',
  no_subscription: 'If the message should have been sent, change the subscriptions, then replay.',
  mail_without_tls: 'Enable TLS (STARTTLS) on the mail server, or use its port with TLS: smtps://host:465.',
  mail_login_refused:
    'Check the user name and the password. Some email services need an app password instead of the password of the account. The email is sent again automatically.',
  mail_deferred:
    'The start of the reply, which says why, is shown with the attempt, unless the server refused the connection. The email is sent again automatically.',
  mail_refused: 'The reply of the mail server says why: its start is shown with the attempt. Correct the addresses, then replay.',
  mail_protocol_error:
    'Check the port: smtps:// is for TLS from the start (465), smtp:// for STARTTLS (587). If it is right, the mail server is faulty. The email is sent again automatically.',
  mail_invalid: 'Correct `from`, `to`, `subject` and `text` in the request of the destination, then replay.',
  mapping_failed: "Correct the destination's request, then replay.",
  transformation_failed: "Correct the destination's transformation, then replay.",
  dropped_by_transformation: 'The transformation returned null for it. To send it, change the transformation, then replay.',
  integration_crashed:
    "Check the service's log. The delivery is retried automatically, in a separate process, so the tool may get it twice.",
  warehouse_credentials_refused: 'Enter the right user and password in the settings of the destination. Loads continue by themselves.',
  warehouse_permission_missing:
    'Give the user of the destination the missing permission. The test of the destination says which one it is.',
  warehouse_place_taken: 'Use another address, or set adopt to continue the tables that are there.',
  warehouse_not_found: 'Create the database, bucket or folder, or correct the address.',
  warehouse_read_only: 'Make the warehouse writable. Loads continue by themselves.',
  warehouse_table_changed: 'Undo the change of the table, or drop the table: it is created again.',
  warehouse_disk_full: 'Free some space. Loads continue by themselves.',
  warehouse_unreachable: 'Check the address, the network, and that the server is running.',
  warehouse_timed_out: 'Check the load of the server, and locks on its tables.',
  warehouse_file_missing: 'Restore the file from a backup, or remove its line from the manifest.',
  warehouse_failed: 'Read the error of the attempt. The load is repeated automatically.',
  warehouse_not_installed: 'Install the warehouse package: switchyard warehouse install.',
  deletion_unfinished: 'Nothing: the next attempt continues.',
  already_loaded: 'Nothing: its rows are in the tables.',
  loader_lost: "Check the service's log. The load is repeated automatically, and no row is written twice.",
  internal_error: "Check the service's log. The delivery is retried automatically.",
  sender_lost: "Check the service's log. The delivery is retried automatically, so the receiver may get it twice.",
  aborted: 'The message is sent again after the restart, so the receiver may get it twice.',
  order_backlog: 'Replay it, or raise maxWaiting in the order of the destination.',
  skipped_by_operator: 'Replay it if it should be sent after all.',
  retry_window_over: 'Replay it when the receiver works again.',
  destination_deleted: 'Deliveries to a deleted destination cannot be replayed.',
  message_deleted: 'Its content is gone, so it cannot be sent.',
  message_unreadable: 'Check the disk that the store is on, and send the message again from its source.',
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

const READ_RESPONSE = 'The response may say what to correct.'

/** Returns what a reason code means, in a sentence. */
export function reasonSentence(code: string): string {
  const status = statusOf(code)
  if (status === null) return own(REASONS, code) ?? `Reason: ${code}.`
  const name = own(STATUS_NAMES, String(status))
  const answered = `The receiver answered ${status}${name === undefined ? '' : ` ${name}`}`
  return status >= 300 && status < 400 ? `${answered}, and redirects are not followed.` : `${answered}.`
}

/** Returns what to do about it. Empty if the code is unknown. `adviceOf` is asked first about the status of a response. */
export function reasonAdvice(code: string, adviceOf: (status: number) => string | undefined = (status) => STATUS_ADVICE[status]): string {
  const status = statusOf(code)
  if (status === null) return own(ADVICE, code) ?? ''
  const known = adviceOf(status)
  if (known !== undefined) return known
  if (status >= 500) return 'Check the log of the receiver. The response may say more.'
  if (status >= 300 && status < 400) return 'Set the URL of the destination to the target of the redirect.'
  return READ_RESPONSE
}

/** The advice for a receiver that is not an HTTP endpoint of the user, but a tool that an integration calls. */
export function toolAdvice(code: string): string {
  return reasonAdvice(code, (status) => {
    if (status === 401 || status === 403) return ADVICE.invalid_authentication
    // The other advice is about the URL and the signature of a webhook.
    return status < 413 ? READ_RESPONSE : STATUS_ADVICE[status]
  })
}

function own(table: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}

function statusOf(code: string): number | null {
  const status = /^http_(\d{3})$/.exec(code)?.[1]
  return status === undefined ? null : Number(status)
}

/** Why deliveries expired: the cause of their last attempts, if it is the same for all that were examined and if there were any attempts. */
export function expiredTitle(sentence: string, answers: readonly { reason: string | null; sentence: string }[]): string {
  const causes = new Set(answers.map((answer) => answer.sentence))
  const [first] = answers
  if (first === undefined || first.reason === null || causes.size > 1) return sentence
  return `${first.sentence.replace(/\.$/, '')}, until the retry window ended.`
}
