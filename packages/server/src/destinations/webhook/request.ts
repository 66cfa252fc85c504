// Builds a webhook request: its body, its headers (docs/guide/quick-start-receiver.md) and its two kinds of signature
// (docs/guide/verifying-webhooks.md). A JSON body is always the output of JSON.stringify for plain data, so the signature is valid both for
// receivers that read the raw bytes and for those that parse and re-stringify the body.

import { standardWebhookSigner } from '@switchyard/webhook'
import type { WebhookDestination } from '../../model/configuration.ts'
import { oncePerObject } from '../../model/once-per-object.ts'
import type { OutgoingRequest, Prepared, RequestAbout } from '../port/kind.ts'
import { messageSigner } from './message-signer.ts'
import { contentType, joined } from './shaping/body-format.ts'

export const USER_AGENT = 'Switchyard/1.0'

/** Without `request`, `messages` are JSON texts. A batch is sent as an array, even if it has one message. */
export function webhookRequest(
  destination: WebhookDestination,
  messages: readonly (string | Prepared)[],
  batch: boolean,
  about: RequestAbout,
): OutgoingRequest {
  const { request } = destination
  const format = request === null ? 'json' : request.format
  const texts = messages.map((message) => (typeof message === 'string' ? message : message.text))
  const first = texts[0] as string
  const body = joined(texts, format, batch)
  // A batch with a path or headers of its own is refused when it is configured, so those of its messages are all the same.
  const shape = typeof messages[0] === 'object' ? messages[0] : CLASSIC_SHAPE
  const headers = [...withoutOverridden(constantHeaders(destination), shape.headers), ...shape.headers, 'X-Attempt', String(about.attempt)]
  if (about.replay) headers.push('X-Replay', 'true')
  if (about.trace !== null) {
    headers.push('traceparent', about.trace.traceparent)
    if (about.trace.tracestate !== null) headers.push('tracestate', about.trace.tracestate)
  }
  // In a JSON array, the signature covers its first element.
  const sign = messageSignerOf(destination)
  if (sign !== null) headers.push('X-Signature', sign(format === 'json' ? first : body))
  if (destination.signingSecrets.length > 0) {
    const timestampSeconds = Math.floor(about.atMs / 1_000)
    const signed = signerOf(destination)({ id: about.id, timestampSeconds, body })
    for (const [name, value] of Object.entries(signed)) headers.push(name, value)
  }
  return { method: request === null ? 'POST' : request.method, path: shape.path, headers, body }
}

const CLASSIC_SHAPE = { path: '', headers: [] as readonly string[] }

/** Removes configured headers that `request` sets, too. */
function withoutOverridden(constant: readonly string[], own: readonly string[]): readonly string[] {
  if (own.length === 0) return constant
  const names = new Set(own.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()))
  return constant.filter((_, at) => !names.has((constant[at - (at % 2)] as string).toLowerCase()))
}

// Parts that are the same in all requests to a destination.
const messageSignerOf = oncePerObject(({ sharedSecret }: WebhookDestination) =>
  sharedSecret === null ? null : messageSigner(sharedSecret),
)

const signerOf = oncePerObject(({ signingSecrets }: WebhookDestination) => standardWebhookSigner(signingSecrets))

const constantHeaders = oncePerObject(({ request, headers }: WebhookDestination): readonly string[] => {
  const type = request === null ? 'application/json' : contentType(request.format)
  return ['User-Agent', USER_AGENT, 'Content-Type', type, ...Object.entries(headers).flat()]
})
