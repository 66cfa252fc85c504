// What one request looks like on the wire: its body, its headers (docs/guide/quick-start-receiver.md) and its two kinds of signature
// (docs/guide/verifying-webhooks.md). The body is always the output of JSON.stringify over plain data, so a receiver that re-stringifies and one that reads raw bytes both verify.

import { signMessage, signStandardWebhook } from '@switchyard/webhook'
import type { Destination } from '../../store/port/model.ts'
import type { OutgoingRequest, RequestAbout } from '../kind.ts'

export const USER_AGENT = 'Switchyard/1.0'

/** `messages` are JSON texts. A batch is an array, of one message too. */
export function webhookRequest(
  destination: Destination,
  messages: readonly string[],
  batch: boolean,
  about: RequestAbout,
): OutgoingRequest {
  const first = messages[0] as string
  const body = batch ? `[${messages.join(',')}]` : first
  const headers = [...standing(destination), 'X-Attempt', String(about.attempt)]
  if (about.replay) headers.push('X-Replay', 'true')
  if (about.trace !== null) {
    headers.push('traceparent', about.trace.traceparent)
    if (about.trace.tracestate !== null) headers.push('tracestate', about.trace.tracestate)
  }
  if (destination.sharedSecret !== null) headers.push('X-Signature', signMessage(first, destination.sharedSecret))
  if (destination.signingSecrets.length > 0) {
    const timestampSeconds = Math.floor(about.atMs / 1_000)
    const signed = signStandardWebhook({ id: about.id, timestampSeconds, body }, destination.signingSecrets)
    for (const [name, value] of Object.entries(signed)) headers.push(name, value)
  }
  return { headers, body }
}

const known = new WeakMap<Destination, readonly string[]>()

/** What every request to a destination carries. A changed destination is another object. */
function standing(destination: Destination): readonly string[] {
  let headers = known.get(destination)
  if (headers === undefined) {
    headers = ['User-Agent', USER_AGENT, 'Content-Type', 'application/json', ...Object.entries(destination.headers).flat()]
    known.set(destination, headers)
  }
  return headers
}
