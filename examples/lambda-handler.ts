// A handler for AWS Lambda, or anything that freezes the process between two calls. Once the handler has returned, no
// timer fires and no request proceeds, so what is still queued waits for the next invocation, which may never come:
// flush before returning. Never close: the same process, and the same client, serve the next invocation.
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
  /** What became of the messages on the way, those of earlier invocations included. */
  analytics: { delivered: number; failed: number; pending: number }
}

/** Analytics may take this long of an invocation, and leaves this much for the handler to return. */
const FLUSH_MS = Number(process.env['ANALYTICS_FLUSH_MS'] ?? 1_000)
const RESERVE_MS = 250

// Made once for each process, outside the handler: a warm invocation finds its connection open.
const analytics = new Analytics({
  writeKey: process.env['SWITCHYARD_WRITE_KEY'] ?? 'dev',
  host: process.env['SWITCHYARD_HOST_URL'] ?? 'http://localhost:8080',
  // A request that hangs must end, so that a later flush can send it again.
  httpRequestTimeout: FLUSH_MS,
}).on('error', (error) => console.error(`analytics: ${error.code}: ${error.message}`))

export async function handler(event: OrderEvent, context: InvocationContext): Promise<OrderResult> {
  analytics.track({
    // Lambda runs an invocation again when it failed: the same ID makes the second message a duplicate, which is dropped.
    messageId: `order-completed-${event.orderId}`,
    userId: event.userId,
    event: 'Order Completed',
    properties: { orderId: event.orderId, total: event.total },
  })
  const timeout = Math.max(0, Math.min(FLUSH_MS, context.getRemainingTimeInMillis() - RESERVE_MS))
  const flushed = await analytics.flush({ timeout })
  // The order stands whatever became of its message. Pending ones are still queued: the next flush waits for them, too.
  if (flushed.pending + flushed.failed > 0) console.error(`analytics: ${flushed.pending} pending, ${flushed.failed} failed`)
  return { statusCode: 200, analytics: flushed }
}

// Run directly, it is invoked twice in one process, as a cold and a warm start would.
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
  // Not process.exit(): the client still sends what is pending before the process ends on its own.
  process.exitCode = failed + pending === 0 ? 0 : 1
}
