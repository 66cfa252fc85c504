// The smallest useful program: identify a user, track an event, and exit when the service has stored both.
// Run: SWITCHYARD_WRITE_KEY=… npm run example examples/minimal-sender.ts
// Use the write key that `npm start` printed. Set another host as the argument or in SWITCHYARD_HOST_URL.

import { Analytics } from '@switchyard/node'

const host = process.argv[2] ?? process.env['SWITCHYARD_HOST_URL'] ?? 'http://localhost:8080'
const analytics = new Analytics({ writeKey: process.env['SWITCHYARD_WRITE_KEY'] ?? 'dev', host })

// A call never throws. Errors are reported here, or to a callback of the call.
analytics.on('error', (error) => console.error(`${error.code}: ${error.message}`))

analytics.identify({ userId: 'user-1', traits: { name: 'Ada', plan: 'pro' } })
analytics.track({ userId: 'user-1', event: 'Order Completed', properties: { orderId: 'order-1', total: 42 } })

// Calls only queue: without this line the messages would still be sent, but the program could not report the result.
const { stored, failed, pending } = await analytics.closeAndFlush({ timeout: 10_000 })

console.log(`${host}: ${stored} stored, ${failed} failed, ${pending} pending`)
process.exitCode = failed + pending === 0 ? 0 : 1
