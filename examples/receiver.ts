// A webhook receiver: checks the signature, prints what arrives, and answers at once. What comes twice, for deliveries are
// at least once, is recognised by its messageId and not handled again.
// SECRET is the destination's sharedSecret or signing secret; without it nothing is checked.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { parseArgs } from 'node:util'
import { verify } from '@switchyard/webhook'

const { values } = parseArgs({ options: { port: { type: 'string', default: '9000' }, host: { type: 'string', default: '127.0.0.1' } } })
const secret = process.env['SECRET']

// A real receiver keeps these where a restart does not lose them.
const seen = new Set<string>()

const server = createServer((request, response) => void answer(request, response))

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (secret === undefined) {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk as string
    handle(JSON.parse(text))
    response.writeHead(200).end()
    return
  }
  const options = secret.startsWith('whsec_') ? { signingSecrets: secret } : { sharedSecret: secret }
  const result = await verify(request, options)
  if (!result.ok) {
    console.log(`refused: ${result.message}`)
    response.writeHead(401).end()
    return
  }
  handle(result.payload)
  response.writeHead(200).end()
}

function handle(payload: unknown): void {
  const messages = (Array.isArray(payload) ? payload : [payload]) as { type: string; messageId?: string; event?: string }[]
  for (const message of messages) {
    if (message.messageId !== undefined && seen.has(message.messageId)) continue
    if (message.messageId !== undefined) seen.add(message.messageId)
    console.log(JSON.stringify(message))
  }
}

server.listen(Number(values.port), values.host, () => {
  const address = server.address() as { port: number }
  console.log(`receiver on http://${values.host}:${address.port}/`)
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    server.close()
    server.closeAllConnections()
  })
}
