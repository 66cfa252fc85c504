// An App Router route handler that places an order and tracks it. The response does not wait for analytics: the call only
// queues, and after() flushes once the response is sent, for which a serverless platform would otherwise leave no time.
// In your application: import { after } from 'next/server'.

import { analytics } from '../../../lib/analytics.ts'
import { after } from '../../../next-server.ts'

interface Order {
  orderId: string
  userId: string
  total: number
}

const FLUSH_MS = 5_000

export async function POST(request: Request): Promise<Response> {
  const order = (await request.json().catch(() => null)) as Order | null
  if (!order?.orderId || !order.userId) return Response.json({ error: 'orderId and userId are required' }, { status: 400 })

  analytics.track({
    // The same ID for the same order: a browser that repeats the request is not counted twice.
    messageId: `order-completed-${order.orderId}`,
    userId: order.userId,
    event: 'Order Completed',
    properties: { orderId: order.orderId, total: order.total },
  })
  after(() => analytics.flush({ timeout: FLUSH_MS }))

  return Response.json({ orderId: order.orderId }, { status: 201 })
}
