// Replaces `next start`, so that the example runs without Next.js: registers the instrumentation, serves the one route,
// runs the callbacks passed to after(), and on SIGTERM ends when all of them are done, as Next.js does. Do not copy this file.
// Run: SWITCHYARD_WRITE_KEY=… npm run example examples/nextjs-sender/host.ts
// Then: curl localhost:3000/api/orders -d '{"orderId":"order-1","userId":"user-1","total":42}'
// PORT (3000), SWITCHYARD_HOST_URL (http://localhost:8080) and SPOOL_DIR (none) are optional settings.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { register } from './instrumentation.ts'
import { type AfterCallback, requestStorage } from './next-server.ts'

process.env['NEXT_RUNTIME'] = 'nodejs'
await register()
const routes = new Map<string, Record<string, unknown>>([['/api/orders', await import('./app/api/orders/route.ts')]])

const afterwards = new Set<Promise<unknown>>()
const server = createServer((request, response) => void serve(request, response))

async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const callbacks: AfterCallback[] = []
  try {
    const answer = await requestStorage.run(callbacks, () => handle(incoming))
    if (!server.listening) outgoing.setHeader('connection', 'close')
    outgoing.writeHead(answer.status, [...answer.headers].flat())
    outgoing.end(Buffer.from(await answer.arrayBuffer()))
  } catch (error) {
    console.error(error)
    outgoing.writeHead(500).end()
  }
  const done = Promise.allSettled(callbacks.map((callback) => callback()))
  afterwards.add(done)
  await done
  afterwards.delete(done)
}

async function handle(incoming: IncomingMessage): Promise<Response> {
  const url = new URL(incoming.url ?? '/', 'http://localhost')
  const method = incoming.method ?? 'GET'
  const handler = routes.get(url.pathname)?.[method] as ((request: Request) => Promise<Response>) | undefined
  if (handler === undefined) return new Response(null, { status: routes.has(url.pathname) ? 405 : 404 })
  const body = method === 'GET' || method === 'HEAD' ? null : await buffer(incoming)
  const headers = Object.entries(incoming.headersDistinct).flatMap(([name, values]) => (values ?? []).map((value) => [name, value]))
  return handler(new Request(url, { method, headers: headers as [string, string][], body }))
}

function close(): void {
  server.close(() => void Promise.all(afterwards).then(() => process.exit(0)))
}
process.once('SIGTERM', close).once('SIGINT', close)

server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () =>
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`),
)
