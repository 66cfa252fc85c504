// A webhook receiver with nothing but Node.js: verifies the signature, prints what arrives, and answers at once. Delivery is at
// least once, so it recognises repeated messages by their messageId and does not process them again.
// Run: SECRET=… npm run example examples/receiver.ts (-- --port 9000 --host 127.0.0.1)
// SECRET is the destination's sharedSecret or signing secret; without it no signature is verified.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { verify, type WebhookMessage } from '@switchyard/webhook'

const { values } = parseArgs({ options: { port: { type: 'string', default: '9000' }, host: { type: 'string', default: '127.0.0.1' } } })
const secret = process.env['SECRET']

// A real receiver stores these where they survive a restart.
const seen = new Set<string>()

const server = createServer((request, response) => void answer(request, response))

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (secret === undefined) {
    try {
      handle((await json(request)) as WebhookMessage | WebhookMessage[])
      response.writeHead(200).end()
    } catch {
      response.writeHead(400).end()
    }
    return
  }
  const result = await verify(request, secret.startsWith('whsec_') ? { signingSecrets: secret } : { sharedSecret: secret })
  if (!result.ok) {
    console.log(`rejected: ${result.message}`)
    response.writeHead(result.status).end(result.code)
    return
  }
  handle(result.messages)
  response.writeHead(200).end()
}

function handle(messages: WebhookMessage | WebhookMessage[]): void {
  for (const message of [messages].flat()) {
    if (message.messageId !== undefined && seen.has(message.messageId)) continue
    if (message.messageId !== undefined) seen.add(message.messageId)
    console.log(JSON.stringify(message))
  }
}

server.listen(Number(values.port), values.host, () => {
  const address = server.address() as { port: number }
  console.log(`receiver on http://${values.host}:${address.port}/`)
})

function close(): void {
  server.close()
  // Requests in flight are answered; idle keep-alive connections are closed.
  setTimeout(() => server.closeAllConnections(), 500)
}
process.once('SIGINT', close).once('SIGTERM', close)
