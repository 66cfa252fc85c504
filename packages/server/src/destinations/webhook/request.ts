// Builds a webhook request: its body, its headers (docs/guide/quick-start-receiver.md) and its two kinds of signature
// (docs/guide/verifying-webhooks.md). The body is always the output of JSON.stringify for plain data, so the signature is valid both for
// receivers that read the raw bytes and for those that parse and re-stringify the body.

import { type StandardWebhook, type StandardWebhookHeaders, signMessage, standardWebhookSigner } from '@switchyard/webhook'
import type { Destination } from '../../store/port/model.ts'
import type { OutgoingRequest, Prepared, RequestAbout } from '../kind.ts'

export const USER_AGENT = 'Switchyard/1.0'

/** `messages` are JSON texts. A batch is sent as an array, even if it has one message. */
export function webhookRequest(
  destination: Destination,
  prepared: readonly (string | Prepared)[],
  batch: boolean,
  about: RequestAbout,
): OutgoingRequest {
  const messages = prepared.map((each) => (typeof each === 'string' ? each : each.text))
  const first = messages[0] as string
  const body = batch ? `[${messages.join(',')}]` : first
  const headers = [...constantHeaders(destination), 'X-Attempt', String(about.attempt)]
  if (about.replay) headers.push('X-Replay', 'true')
  if (about.trace !== null) {
    headers.push('traceparent', about.trace.traceparent)
    if (about.trace.tracestate !== null) headers.push('tracestate', about.trace.tracestate)
  }
  if (destination.sharedSecret !== null) headers.push('X-Signature', signMessage(first, destination.sharedSecret))
  if (destination.signingSecrets.length > 0) {
    const timestampSeconds = Math.floor(about.atMs / 1_000)
    const signed = signerOf(destination)({ id: about.id, timestampSeconds, body })
    for (const [name, value] of Object.entries(signed)) headers.push(name, value)
  }
  return { headers, body }
}

// Parts that are the same in all requests to a destination are cached by the destination object. A changed destination is a new object.
const headersOf = new WeakMap<Destination, readonly string[]>()
const signers = new WeakMap<Destination, (webhook: StandardWebhook) => StandardWebhookHeaders>()

function signerOf(destination: Destination): (webhook: StandardWebhook) => StandardWebhookHeaders {
  let signer = signers.get(destination)
  if (signer === undefined) {
    signer = standardWebhookSigner(destination.signingSecrets)
    signers.set(destination, signer)
  }
  return signer
}

/** Returns the headers that every request to a destination has. */
function constantHeaders(destination: Destination): readonly string[] {
  let headers = headersOf.get(destination)
  if (headers === undefined) {
    headers = ['User-Agent', USER_AGENT, 'Content-Type', 'application/json', ...Object.entries(destination.headers).flat()]
    headersOf.set(destination, headers)
  }
  return headers
}
