// Messages like those of a shop, and how the work on them is measured.

import type { LoadMessage } from '../../packages/warehouse/src/warehouse.ts'

export interface Measured {
  ms: number
  cpuMs: number
}

/** Over days before the 17th of November 2026, 10,000 for each load. */
export function shopMessages(count: number, from = 0): LoadMessage[] {
  return Array.from({ length: count }, (_, index) => {
    const at = from + index
    const receivedAt = new Date(Date.UTC(2026, 10, 17) + (at % 86_400) * 1_000).toISOString()
    return {
      text: JSON.stringify({
        messageId: `message-${at}-${(at * 2_654_435_761) % 4_294_967_296}`,
        type: 'track',
        event: ['Order Completed', 'Product Viewed', 'Cart Viewed', 'Product Added'][at % 4],
        userId: `user-${at % 5_000}`,
        anonymousId: `anonymous-${at % 9_000}`,
        properties: {
          orderId: `order-${at}`,
          total: (at % 9_973) / 100,
          currency: ['EUR', 'USD', 'GBP'][at % 3],
          coupon: at % 7 === 0 ? 'WELCOME' : null,
          paid: at % 2 === 0,
          products: [{ sku: `sku-${at % 300}`, price: (at % 97) / 10 }],
          note: `A note of some length about the order ${at}`,
        },
        context: {
          ip: `192.0.2.${at % 250}`,
          library: { name: 'analytics.js', version: '2.1.0' },
          page: { url: `https://shop.example/orders/${at % 1_000}`, title: 'A page with a title' },
          userAgent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0 Safari/537.36',
        },
        timestamp: receivedAt,
        originalTimestamp: receivedAt,
        sentAt: receivedAt,
        receivedAt,
      }),
    }
  })
}

export async function measured(work: () => Promise<unknown>): Promise<Measured> {
  const [before, startedMs] = [process.cpuUsage(), performance.now()]
  await work()
  const { user, system } = process.cpuUsage(before)
  return { ms: performance.now() - startedMs, cpuMs: (user + system) / 1_000 }
}

/** By time. */
export function best(rounds: readonly Measured[]): Measured {
  return rounds.reduce((one, other) => (other.ms < one.ms ? other : one))
}

export function line(title: string, rows: number, { ms, cpuMs }: Measured): void {
  const perSecond = Math.round((rows / ms) * 1_000).toLocaleString('en')
  console.log(`  ${title.padEnd(54)} ${perSecond.padStart(10)} rows/s  ${((cpuMs / rows) * 1_000).toFixed(1).padStart(6)} µs CPU per row`)
}

/** The rows that both write, divided by the time: above 1, ours is faster. */
export function ratio(title: string, ours: number, theirs: number): void {
  console.log(`  ${title.padEnd(54)} ${(theirs / ours).toFixed(2).padStart(10)} ×`)
}
