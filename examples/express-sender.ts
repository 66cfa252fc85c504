// An Express application that sends messages: one client per process, calls that only queue, and a shutdown that loses nothing.
// Run: SWITCHYARD_WRITE_KEY=… npm run example examples/express-sender.ts
// Then: curl localhost:3000/orders -H 'content-type: application/json' -d '{"orderId":"order-1","userId":"user-1","total":42}'
// PORT (3000), SWITCHYARD_HOST_URL (http://localhost:8080) and SPOOL_DIR (none) are optional settings.

import type { AddressInfo } from 'node:net'
import { Analytics } from '@switchyard/node'
import express from 'express'

interface Order {
  orderId: string
  userId: string
  total: number
}

const analytics = new Analytics({
  writeKey: process.env['SWITCHYARD_WRITE_KEY'] ?? 'dev',
  host: process.env['SWITCHYARD_HOST_URL'] ?? 'http://localhost:8080',
  // With its own folder, a process that was killed sends its queued messages when it starts again.
  ...(process.env['SPOOL_DIR'] ? { spool: { dir: process.env['SPOOL_DIR'] } } : {}),
})
// A call never throws. Errors are reported here, or to a callback of the call.
analytics.on('error', (error) => console.error(`analytics: ${error.code}: ${error.message}`))

const app = express()
app.use(express.json())
app.use((_request, response, next) => {
  // During shutdown, an idle keep-alive connection would delay the end of the process.
  if (!server.listening) response.set('connection', 'close')
  next()
})

app.post('/orders', (request, response) => {
  const { orderId, userId, total } = (request.body ?? {}) as Partial<Order>
  if (!orderId || !userId) {
    response.status(400).json({ error: 'orderId and userId are required' })
    return
  }
  // Not awaited: it is sent in a batch, in the background.
  analytics.track({
    // The same ID for the same order: a browser that repeats the request is not counted twice.
    messageId: `order-completed-${orderId}`,
    userId,
    event: 'Order Completed',
    properties: { orderId, total },
  })
  response.status(201).json({ orderId })
})

const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})

/** First waits for requests in flight, which may still track, then flushes the queue. Nothing is open then, so the process ends by itself. */
function close(): void {
  server.close(() => void analytics.closeAndFlush({ timeout: 10_000 }))
}
process.once('SIGTERM', close).once('SIGINT', close)
