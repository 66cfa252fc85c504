// A handler for AWS Lambda, or any platform that freezes the process between two invocations. After the handler has returned, no
// timer fires and no request continues, so queued messages wait for the next invocation, which may never happen:
// flush before returning. Do not close the client: the same process and client serve the next invocation.
// Run: SWITCHYARD_WRITE_KEY=… npm run example examples/lambda-handler.ts, which invokes it twice; SWITCHYARD_HOST_URL is the host.

import { Analytics } from '@switchyard/node'

export interface OrderEvent {
  orderId: string
  userId: string
  total: number
}

/** The part of Lambda's context that is used here. */
export interface InvocationContext {
  getRemainingTimeInMillis(): number
}

export interface OrderResult {
  statusCode: number
  /** The outcome of the messages, including those of earlier invocations. */
  analytics: { stored: number; failed: number; pending: number }
}

/** The most time that analytics may take of an invocation, and the time that it leaves for the handler to return. */
const FLUSH_MS = Number(process.env['ANALYTICS_FLUSH_MS'] ?? 1_000)
const RESERVE_MS = 250

// Created once per process, outside the handler: a warm invocation reuses its connection.
const analytics = new Analytics({
  writeKey: process.env['SWITCHYARD_WRITE_KEY'] ?? 'dev',
  host: process.env['SWITCHYARD_HOST_URL'] ?? 'http://localhost:8080',
  // A hanging request must time out, so that a later flush can send it again.
  httpRequestTimeout: FLUSH_MS,
}).on('error', (error) => console.error(`analytics: ${error.code}: ${error.message}`))

export async function handler(event: OrderEvent, context: InvocationContext): Promise<OrderResult> {
  analytics.track({
    // Lambda repeats an invocation that failed: with the same ID, the second message is dropped as a duplicate.
    messageId: `order-completed-${event.orderId}`,
    userId: event.userId,
    event: 'Order Completed',
    properties: { orderId: event.orderId, total: event.total },
  })
  const timeout = Math.max(0, Math.min(FLUSH_MS, context.getRemainingTimeInMillis() - RESERVE_MS))
  const flushed = await analytics.flush({ timeout })
  // The order is valid whether or not its message was stored. Pending messages are still queued: the next flush also waits for them.
  if (flushed.pending + flushed.failed > 0) console.error(`analytics: ${flushed.pending} pending, ${flushed.failed} failed`)
  return { statusCode: 200, analytics: flushed }
}

// When run directly, it is invoked twice in one process, like a cold and a warm start.
if (import.meta.main) {
  let failed = 0
  let pending = 0
  for (const orderId of ['order-1', 'order-2']) {
    const deadline = Date.now() + FLUSH_MS + 2_000
    const result = await handler({ orderId, userId: 'user-1', total: 42 }, { getRemainingTimeInMillis: () => deadline - Date.now() })
    console.log(JSON.stringify(result))
    failed += result.analytics.failed
    pending = result.analytics.pending
  }
  // Not process.exit(): the client still sends pending messages before the process ends by itself.
  process.exitCode = failed + pending === 0 ? 0 : 1
}
