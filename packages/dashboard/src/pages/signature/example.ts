// A valid example request, signed now with a generated secret.

import { base64, hex, hmac, standardDigest, utf8 } from './verify-schemes.ts'

export async function exampleRequest(nowMs: number): Promise<{ body: string; headers: string; secret: string }> {
  const at = new Date(nowMs).toISOString()
  const body = JSON.stringify({
    version: 1,
    type: 'track',
    userId: 'u-1',
    event: 'Order Completed',
    properties: { total: 12.5 },
    messageId: 'm-1',
    timestamp: at,
    receivedAt: at,
  })
  const key = crypto.getRandomValues(new Uint8Array(32))
  const timestamp = String(Math.floor(nowMs / 1_000))
  const lines = [
    `X-Signature: ${hex(await hmac('SHA-1', utf8('example shared secret'), utf8(body)))}`,
    'webhook-id: msg_example',
    `webhook-timestamp: ${timestamp}`,
    `webhook-signature: v1,${await standardDigest(key, 'msg_example', timestamp, utf8(body))}`,
  ]
  return { body, headers: lines.join('\n'), secret: `whsec_${base64(key)}` }
}
